"""Rows of a ledger: what they say together, and the keyed hash that ties each to the one before.

Nothing here touches a file. `Account` follows the rows, whether they are read back or just written, so a running node
and a verifier agree by construction. Costs add up by basic composition: ε with ε, δ with δ (Dwork & Roth 2014, theorem
3.16).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

VERSION = b"umpc ledger 2"
"""The genesis row's study. Version 1 kept no δ and its hashes no key."""
FIRST_HASH = hashlib.sha256(VERSION).digest()
FRACTION = r"(0|[1-9][0-9]*)/[1-9][0-9]*"


@dataclass(frozen=True)
class Balance:
    """Of ε, or of δ: total = spent + reserved + left, unless the total was lowered below the rest: then left = 0."""

    total: Fraction
    spent: Fraction
    reserved: Fraction
    left: Fraction


@dataclass(frozen=True)
class BudgetCost:
    """What a study costs. delta: None until the number of records is known."""

    epsilon: Fraction
    delta: Fraction | None


@dataclass(frozen=True)
class Row:
    """One line of the history. `kind`: genesis, total, reserve, delta, cancel, charge, answer, release or accept."""

    seq: int
    at: str
    kind: str
    study: bytes
    epsilon: Fraction | None
    delta: Fraction | None
    attempt: bytes
    share: bytes = field(repr=False)
    note: str
    hash: bytes

    @property
    def cost(self) -> BudgetCost:
        return BudgetCost(self.epsilon or Fraction(0), self.delta)


class Account:
    """The balances as the rows tell them. The same code reads the file and follows the running node."""

    def __init__(self) -> None:
        self.dataset = ""
        self.total, self.spent = (
            BudgetCost(Fraction(0), Fraction(0)),
            BudgetCost(Fraction(0), Fraction(0)),
        )
        self.open: dict[bytes, BudgetCost] = {}  # reserved and neither charged nor cancelled
        self.charged: dict[bytes, int] = {}  # study -> seq of its charge
        self.answered: dict[bytes, int] = {}  # study -> seq of its answer

    def epsilon(self) -> Balance:
        reserved = sum((cost.epsilon for cost in self.open.values()), Fraction(0))
        return _balance(self.total.epsilon, self.spent.epsilon, reserved)

    def delta(self) -> Balance:
        reserved = sum((cost.delta or Fraction(0) for cost in self.open.values()), Fraction(0))
        return _balance(self.total.delta, self.spent.delta, reserved)

    def apply(self, row: Row) -> str:
        """Follows one row. Returns why the row cannot stand here, or nothing."""
        study, cost, reserved = row.study, row.cost, self.open.get(row.study)
        match row.kind:
            case "genesis" if row.seq == 1 and study == VERSION:
                self.dataset = row.note
                return ""
            case "total" if cost.epsilon > 0 and cost.delta is not None:
                self.total = cost
            case "reserve" if cost.epsilon > 0 and reserved is None and study not in self.charged:
                self.open[study] = cost
            case "delta" if (
                reserved
                and reserved.delta is None
                and cost == BudgetCost(Fraction(0), cost.delta or Fraction(0))
            ):
                self.open[study] = BudgetCost(reserved.epsilon, cost.delta)
            case "cancel" if reserved == cost:
                del self.open[study]
            case "charge" if reserved == cost and cost.delta is not None:
                del self.open[study]
                self.spent = BudgetCost(
                    self.spent.epsilon + cost.epsilon, self.spent.delta + cost.delta
                )
                self.charged[study] = row.seq
            case "answer" if study in self.charged and study not in self.answered:
                self.answered[study] = row.seq
            case "release" if study in self.charged:
                pass
            case "accept" if not study:
                pass
            case _:
                return f"{row.kind!r} cannot follow the rows before it"
        return "" if row.seq > 1 else "the first row was expected to be the genesis"


def _balance(total: Fraction, spent: Fraction, reserved: Fraction) -> Balance:
    return Balance(total, spent, reserved, max(total - spent - reserved, Fraction(0)))


# --- rows as they are stored ------------------------------------------------------------------------------


def sealed(key: bytes, previous: bytes, values: tuple) -> tuple:
    return (*values, row_hash(key, previous, values))


def row_hash(key: bytes, previous: bytes, values: Iterable[int | str | bytes]) -> bytes:
    """HMAC-SHA-256 of the previous hash and each value as type, length, bytes: no two rows encode alike."""
    digest = hmac.new(key, previous, hashlib.sha256)
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        digest.update(type(value).__name__[:1].encode() + len(data).to_bytes(8, "big") + data)
    return digest.digest()


def fault(key: bytes, row: tuple, seq: int, previous: bytes) -> str:
    """What is wrong with a row by itself, or nothing."""
    if row[0] != seq:
        return f"row {row[0]} stands in its place"
    if row[-1] != row_hash(key, previous, row[:-1]):
        return "its content does not agree with its hash"
    if any(text and not re.fullmatch(FRACTION, text) for text in row[4:6]):
        return "its epsilon or delta is not a fraction"
    return ""


def row_of(values: tuple) -> Row:
    seq, at, kind, study, epsilon, delta, *rest = values
    return Row(seq, at, kind, study, _fraction(epsilon), _fraction(delta), *rest)


def _fraction(text: str) -> Fraction | None:
    return Fraction(text) if text else None


def exact_text(value: Fraction | None) -> str:
    return "" if value is None else f"{value.numerator}/{value.denominator}"
