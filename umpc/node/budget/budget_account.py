"""The rows of a ledger: the balances they add up to, and the keyed hashes that chain them.

Nothing here touches a file. `Account` follows the rows, both when they are read back and when they
are written. A running node and a verifier therefore agree by construction. Costs add up by the
site's composition (`umpc/dp/composition.py`): by default ε with ε and δ with δ.

*Budget limits.* The ε and δ that a ledger accepts, and its refusal when too little is left.

Nothing here touches a file. Amounts are exact fractions of numbers of bounded size, so that no
study can bloat the ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from umpc.dp.composition import BASIC, Composition, Weight, rho_of_pure, total_weight
from umpc.dp.events import Event
from umpc.errors import EncodingError, InsufficientBudget, InvalidEpsilon, LedgerError
from umpc.study.parts import COURSE_BYTES, Course

VERSION = b"umpc ledger 2"
"""The study of the genesis row. Version 1 kept no δ, and its hashes had no key."""
FIRST_HASH = hashlib.sha256(VERSION).digest()
BASIC_COMPOSITION = Composition()
ATTEMPT_BYTES = 32
"""Length of an attempt's id, with which the attempt of a charge begins."""
RESTORE, RESTORE_ALL = "restore", "restore-all"
"""The kinds of rows that stand for what a lost ledger charged after a backup of it."""
StoredRow = tuple[Any, ...]
"""One row in SQLite: seq, at, kind, study, epsilon, delta, attempt, share, note, hash."""
FRACTION = r"(0|[1-9][0-9]*)/[1-9][0-9]*"


@dataclass(frozen=True)
class Balance:
    """The balance of ε, or that of δ.

    total = spent + reserved + left, unless the total was lowered below spent + reserved. Then
    left = 0.
    """

    total: Fraction
    spent: Fraction
    reserved: Fraction
    left: Fraction


@dataclass(frozen=True)
class BudgetCost:
    """The cost of a study. `delta` is None until the number of records is known.

    events: the mechanism of its release; empty where nothing but ε and δ is known.
    """

    epsilon: Fraction
    delta: Fraction | None
    events: tuple[Event, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Row:
    """One line of the history.

    `kind` is genesis, total, charge, course, step, answer, accept, restore or restore-all. Earlier
    versions also wrote reserve, delta, cancel and release. A `course` charges the first step of a
    course, with the whole ε and δ, and a `step` is each further one, which costs nothing more. A
    `restore` counts as spent what was charged after the backup that this ledger comes from, and a
    `restore-all` counts all that could have been.
    """

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
        """The row's ε, 0 if it has none, and its δ."""
        return BudgetCost(self.epsilon or Fraction(0), self.delta)


class Account:
    """The balances that follow from the rows.

    Args:
        composition: how costs add up.
        mechanisms: (study, attempt) → the events of its release, where they are known.
    """

    def __init__(
        self,
        composition: Composition = BASIC_COMPOSITION,
        mechanisms: Mapping[tuple[bytes, bytes], tuple[Event, ...]] | None = None,
    ) -> None:
        self.composition = composition
        self.mechanisms = dict(mechanisms or {})
        self.dataset = ""
        self.total_note = ""
        """The words of the last total's row, which name the composition at that time."""
        self.open: dict[bytes, BudgetCost] = {}
        """Cost of each study that is reserved and neither charged nor cancelled.

        Rows reserve only in ledgers of earlier versions. Now a running node reserves here in
        memory, and a held attempt on disk (`store.py`).
        """
        self.charged: dict[bytes, int] = {}
        """Number of the row that charged a study."""
        self.answered: dict[bytes, int] = {}
        """Number of the row with a study's answer."""
        self.courses: dict[bytes, set[int]] = {}
        """The steps that were released of each course that is paid."""
        self.closed: set[bytes] = set()
        """Studies of a restored ledger without an answer: the lost ledger may have had one."""
        self._total_epsilon = self._total_delta = Fraction(0)
        self._spent = Weight()

    @property
    def total(self) -> BudgetCost:
        """The configured total of ε and δ."""
        return BudgetCost(self._total_epsilon, self._total_delta)

    @property
    def spent(self) -> BudgetCost:
        """The charged ε and δ of all studies together."""
        return BudgetCost(self.composition.epsilon(self._spent), self._spent.delta)

    def epsilon(self) -> Balance:
        """Return the balance of ε."""
        spent = self.composition.epsilon(self._spent)
        promised = self.composition.epsilon(self._promised())
        return _balance(self._total_epsilon, spent, promised - spent)

    def delta(self) -> Balance:
        """Return the balance of δ, without that of the composition itself."""
        promised = self._promised().delta
        return _balance(self._total_delta, self._spent.delta, promised - self._spent.delta)

    def lacks(self, cost: BudgetCost, replaced: bytes = b"") -> str:
        """Return "epsilon" or "delta" if there is too little of it for one more study, else "".

        Args: replaced: a study whose reservation the cost replaces.
        """
        weight = self._weigh(cost)
        promised = self._promised(replaced) + weight
        if self.composition.epsilon(promised) > self._total_epsilon:
            return "epsilon"
        return "delta" if weight.delta and promised.delta > self._total_delta else ""

    def largest_epsilon(self) -> Fraction:
        """Return the ε that one more study may have if its δ is 0, to 20 binary digits below."""
        left = self.epsilon().left
        if self.composition.name == BASIC:
            return left
        step, found = self._total_epsilon, Fraction(0)
        while step * (1 << 20) >= self._total_epsilon:
            if not self.lacks(BudgetCost(found + step, Fraction(0))):
                found += step
            step /= 2
        return found

    def held_cost(self, study: bytes, cost: BudgetCost, attempt: bytes) -> BudgetCost:
        """Return the cost of an attempt, with its mechanism where that is known."""
        events = self.mechanisms.get((study, attempt[:ATTEMPT_BYTES]), ())
        return BudgetCost(cost.epsilon, cost.delta, events)

    def give_up(self, study: bytes) -> None:
        """Forget a reservation, with the mechanisms of attempts that charged nothing."""
        self.open.pop(study, None)
        if study not in self.charged:
            for key in [key for key in self.mechanisms if key[0] == study]:
                del self.mechanisms[key]

    def _promised(self, but: bytes = b"") -> Weight:
        """The weight of all that is charged or reserved, but for one study's reservation."""
        reserved = [cost for study, cost in self.open.items() if study != but]
        return self._spent + total_weight(map(self._weigh, reserved))

    def _weigh(self, cost: BudgetCost) -> Weight:
        if not (cost.epsilon or cost.delta):
            return Weight()  # a step of a course that is paid
        return self.composition.weigh(cost.epsilon, cost.delta or Fraction(0), cost.events)

    def apply(self, row: Row) -> str:
        """Follow one row. Return why the row cannot stand here, or "" if it can."""
        follow = self._followers.get(row.kind)
        if follow is None or not follow(self, row):
            return f"{row.kind!r} cannot follow the rows before it"
        if row.seq == 1 and row.kind != "genesis":
            return "the first row was expected to be the genesis"
        return ""

    # Each of these follows a row of one kind and returns whether the row can stand here. A row
    # that cannot stand here changes nothing.

    def _genesis(self, row: Row) -> bool:
        if row.seq != 1 or row.study != VERSION:
            return False
        self.dataset = row.note
        return True

    def _set_total(self, row: Row) -> bool:
        if row.cost.epsilon <= 0 or row.delta is None:
            return False
        self._total_epsilon = row.cost.epsilon
        self._total_delta = row.delta
        self.total_note = row.note
        return True

    def _reserve(self, row: Row) -> bool:
        if row.cost.epsilon <= 0 or row.study in self.open or row.study in self.charged:
            return False
        self.open[row.study] = row.cost
        return True

    def _reserve_delta(self, row: Row) -> bool:
        reserved = self.open.get(row.study)
        if reserved is None or reserved.delta is not None:
            return False
        if row.cost.epsilon != 0 or row.delta is None:
            return False
        self.open[row.study] = BudgetCost(reserved.epsilon, row.delta)
        return True

    def _cancel(self, row: Row) -> bool:
        if self.open.get(row.study) != row.cost:
            return False
        del self.open[row.study]
        return True

    def _charge(self, row: Row) -> bool:
        """A reservation is a row only in ledgers of earlier versions; then the amounts agree."""
        if row.study in self.charged or row.cost.epsilon <= 0 or row.delta is None:
            return False
        if self.open.pop(row.study, row.cost) != row.cost:
            return False
        self._spent += self._weigh(self.held_cost(row.study, row.cost, row.attempt))
        self.charged[row.study] = row.seq
        return True

    def _course(self, row: Row) -> bool:
        course = course_in(row.attempt)
        if course is None or self._is_released(course) or not self._charge(row):
            return False
        self.courses.setdefault(course.id, set()).add(course.step)
        return True

    def _step(self, row: Row) -> bool:
        course = course_in(row.attempt)
        if course is None or course.id not in self.courses or self._is_released(course):
            return False
        if row.study in self.charged or row.cost != BudgetCost(Fraction(0), Fraction(0)):
            return False
        self.open.pop(row.study, None)
        self.charged[row.study] = row.seq
        self.courses[course.id].add(course.step)
        return True

    def _is_released(self, course: Course) -> bool:
        return course.step in self.courses.get(course.id, ())

    def _answer(self, row: Row) -> bool:
        if row.study not in self.charged or row.study in self.answered:
            return False
        if row.study in self.closed:
            return False
        self.answered[row.study] = row.seq
        return True

    def _release(self, row: Row) -> bool:
        return row.study in self.charged

    def _accept(self, row: Row) -> bool:
        return not row.study

    def _restore(self, row: Row) -> bool:
        """Count what the lost ledger charged after the backup, as one release of that ε and δ.

        No question is answered any more, and a further step of a course pays for it anew: the lost
        ledger may have answered, or released that step.
        """
        if row.study or row.delta is None:
            return False
        weight = self.composition.weigh(row.cost.epsilon, row.delta)
        if row.kind == RESTORE_ALL:
            # The lost studies' ε may add up to more than the total, so only ρ is known.
            rho = rho_of_pure(row.cost.epsilon) if row.cost.epsilon else Fraction(0)
            weight = Weight(row.cost.epsilon, rho, row.delta, plain=False)
        self._spent += weight
        self.open.clear()
        self.courses.clear()
        self.closed = self.charged.keys() - self.answered.keys()
        return True

    _followers: ClassVar[Mapping[str, Callable[[Account, Row], bool]]] = {
        "genesis": _genesis,
        "total": _set_total,
        "reserve": _reserve,
        "delta": _reserve_delta,
        "cancel": _cancel,
        "charge": _charge,
        "course": _course,
        "step": _step,
        "answer": _answer,
        "release": _release,
        "accept": _accept,
        RESTORE: _restore,
        RESTORE_ALL: _restore,
    }


def course_in(attempt: bytes) -> Course | None:
    """The course with which the attempt of a step ends; None for any other attempt."""
    if len(attempt) != ATTEMPT_BYTES + COURSE_BYTES:
        return None
    try:
        return Course.decode(attempt[ATTEMPT_BYTES:])
    except EncodingError:
        return None


def _balance(total: Fraction, spent: Fraction, reserved: Fraction) -> Balance:
    return Balance(total, spent, reserved, max(total - spent - reserved, Fraction(0)))


# --- rows as they are stored ------------------------------------------------------------------


def sealed(key: bytes, previous: bytes, values: StoredRow) -> StoredRow:
    """Return a row with its hash at the end."""
    return (*values, row_hash(key, previous, values))


def row_hash(key: bytes, previous: bytes, values: Iterable[int | str | bytes]) -> bytes:
    """Return the HMAC-SHA-256 of the previous hash and the values of a row.

    Each value enters as type, length and bytes, so that no two rows have the same encoding.
    """
    digest = hmac.new(key, previous, hashlib.sha256)
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        digest.update(type(value).__name__[:1].encode() + len(data).to_bytes(8, "big") + data)
    return digest.digest()


def fault(key: bytes, row: StoredRow, seq: int, previous: bytes) -> str:
    """Return what is wrong with a row by itself, or "" if nothing is."""
    if row[0] != seq:
        return f"row {row[0]} stands in its place"
    if row[-1] != row_hash(key, previous, row[:-1]):
        return "its content does not agree with its hash"
    if any(text and not re.fullmatch(FRACTION, text) for text in row[4:6]):
        return "its epsilon or delta is not a fraction"
    return ""


def row_of(values: StoredRow) -> Row:
    """Return a stored row with its amounts as fractions."""
    seq, at, kind, study, epsilon, delta, *rest = values
    return Row(seq, at, kind, study, _fraction(epsilon), _fraction(delta), *rest)


def _fraction(text: str) -> Fraction | None:
    return Fraction(text) if text else None


def exact_text(value: Fraction | None) -> str:
    """Return an amount as it is stored: "numerator/denominator", or "" for None."""
    return "" if value is None else f"{value.numerator}/{value.denominator}"


# --- budget limits --------------------------------------------------------------------------------

BITS = 128
"""Largest number of bits of an amount's numerator and denominator."""
DELTA_BITS = 120
"""A study's δ is rounded up to a multiple of 2^-DELTA_BITS."""
DEFAULT_DELTA = Fraction(1, 10**9)
"""Total δ for all studies of a data set, if [budget] names none."""
DEFAULT_HOLD_SECONDS = 86_400.0
"""How long a run, and then its finished attempt, may reserve budget, if [budget] says nothing."""
INSTEAD = {
    "epsilon": "Ask for less, wait until open studies end,",
    "delta": 'Ask with noise = "distributed" (of noisy pairs "randomised_response"), which costs '
    "no delta, wait until open studies end,",
}
"""Advice to a coordinator when too little of an amount is left."""


def exact_delta(delta: Fraction) -> Fraction:
    """Return a study's δ as the ledger charges it.

    A δ that is too long is rounded up to the next multiple of 2^-DELTA_BITS.

    Raises: LedgerError unless 0 <= δ <= 1.
    """
    if not 0 <= delta <= 1:
        raise LedgerError(
            f"a study's delta was expected between 0 and 1, and {delta!r} came. "
            "This is a fault; report it"
        )
    if _too_long(delta):
        return Fraction(math.ceil(delta * 2**DELTA_BITS), 2**DELTA_BITS)
    return Fraction(delta)


def check_epsilon(epsilon: Fraction) -> None:
    """Check that ε is an exact fraction above 0 of bounded size. Raises: InvalidEpsilon."""
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon was expected to be an exact fraction above 0, and {epsilon!r} came. "
            "Correct epsilon in the study, or under [budget]"
        )
    if _too_long(epsilon):
        raise InvalidEpsilon(
            f"epsilon was expected as a fraction of numbers of at most {BITS} bits. "
            "Round epsilon in the study, or under [budget]"
        )


def check_delta(delta: Fraction) -> None:
    """Check that δ is an exact fraction, 0 or more, of bounded size. Raises: LedgerError."""
    if not isinstance(delta, Fraction) or delta < 0 or _too_long(delta):
        raise LedgerError(
            "delta was expected to be an exact fraction, 0 or more, of numbers of at most "
            f"{BITS} bits, and {delta!r} came. Correct delta under [budget]"
        )


def _too_long(amount: Fraction) -> bool:
    return max(amount.numerator.bit_length(), amount.denominator.bit_length()) > BITS


def shown(amount: Fraction) -> str:
    """Return an amount for people: exact if it is short, else to 6 digits.

    Sums of many fractions grow long.
    """
    return str(amount) if amount.denominator < 10**6 else f"about {float(amount):.6g}"


def insufficient(
    dataset: str, amount: str, balance: Balance, asked: Fraction, composition: str = BASIC
) -> InsufficientBudget:
    """Return the refusal of a study. Args: amount: "epsilon" or "delta", the one that lacks.

    The coordinator reads only that the site's budget is not enough. The balance is for the site's
    administrator.
    """
    error = InsufficientBudget(
        f"the study asks for {amount} {shown(asked)}, and the site's budget has less left. "
        f"{INSTEAD[amount]} or have the site's administrator raise {amount} under [budget]",
        detail=f"data set {dataset!r}: the study asks for {amount} {shown(asked)}, and "
        f"{shown(balance.left)} is left of {shown(balance.total)} (spent {shown(balance.spent)}, "
        f"reserved {shown(balance.reserved)}"
        f"{'' if composition == BASIC else f', all composed by {composition}'})",
    )
    error.spent = balance.spent
    error.reserved = balance.reserved
    error.left = balance.left
    error.asked = asked
    return error
