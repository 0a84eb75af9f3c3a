"""Rows of a ledger: what they say together, and the hash that ties each to the one before.

Nothing here touches a file. `Account` follows the rows, whether they are read back or just written, so a running node
and a verifier agree by construction.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

FIRST_HASH = hashlib.sha256(b"umpc ledger 1").digest()


@dataclass(frozen=True)
class Balance:
    """total = spent + reserved + left, unless the total was lowered below the rest: then left = 0."""

    total: Fraction
    spent: Fraction
    reserved: Fraction
    left: Fraction


@dataclass(frozen=True)
class Row:
    """One line of the history. `kind`: genesis, total, reserve, cancel, charge or release."""

    seq: int
    at: str
    kind: str
    study: bytes
    epsilon: Fraction | None
    attempt: bytes
    share: bytes = field(repr=False)
    note: str
    hash: bytes


class Account:
    """The balance as the rows tell it. The same code reads the file and follows the running node."""

    def __init__(self) -> None:
        self.dataset, self.total, self.spent = "", Fraction(0), Fraction(0)
        self.open: dict[bytes, Fraction] = {}  # reserved and neither charged nor cancelled
        self.charged: dict[bytes, int] = {}  # study -> seq of its charge

    def balance(self) -> Balance:
        reserved = sum(self.open.values(), Fraction(0))
        left = max(self.total - self.spent - reserved, Fraction(0))
        return Balance(self.total, self.spent, reserved, left)

    def apply(self, row: Row) -> str:
        """Follows one row. Returns why the row cannot stand here, or nothing."""
        study, epsilon = row.study, row.epsilon
        match row.kind:
            case "genesis" if row.seq == 1:
                self.dataset = row.note
                return ""
            case "total" if epsilon is not None:
                self.total = epsilon
            case "reserve" if epsilon is not None and study not in self.open and study not in self.charged:
                self.open[study] = epsilon
            case "cancel" if epsilon is not None and self.open.get(study) == epsilon:
                del self.open[study]
            case "charge" if epsilon is not None and self.open.get(study) == epsilon:
                self.spent += self.open.pop(study)
                self.charged[study] = row.seq
            case "release" if study in self.charged:
                pass
            case _:
                return f"{row.kind!r} cannot follow the rows before it"
        return "" if row.seq > 1 else "the first row was expected to be the genesis"


def sealed(previous: bytes, values: tuple) -> tuple:
    return (*values, row_hash(previous, values))


def row_hash(previous: bytes, values: Iterable[int | str | bytes]) -> bytes:
    """SHA-256 over the previous hash and each value as type, length, bytes: no two rows encode alike."""
    digest = hashlib.sha256(previous)
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        digest.update(type(value).__name__[:1].encode() + len(data).to_bytes(8, "big") + data)
    return digest.digest()


def fault(row: tuple, seq: int, previous: bytes) -> str:
    """What is wrong with a row by itself, or nothing."""
    if row[0] != seq:
        return f"row {row[0]} stands in its place"
    if row[-1] != row_hash(previous, row[:-1]):
        return "its content does not agree with its hash"
    if row[4] and not re.fullmatch(r"[1-9][0-9]*/[1-9][0-9]*", row[4]):
        return "its epsilon is not a fraction"
    return ""


def row_of(values: tuple) -> Row:
    seq, at, kind, study, epsilon, attempt, share, note, digest = values
    return Row(seq, at, kind, study, Fraction(epsilon) if epsilon else None, attempt, share, note, digest)


def exact_text(epsilon: Fraction | None) -> str:
    return "" if epsilon is None else f"{epsilon.numerator}/{epsilon.denominator}"
