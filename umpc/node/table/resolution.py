"""The resolution that holds every value of a column: its digits, or the smallest difference.

A column of measured decimals takes its digits: 17.99 and 20.5 have the resolution 0.01. A column of
doubles with 15 digits would take more steps than a comparison should cost. It takes the coarsest
power of ten that keeps different values different, so that no rank changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from umpc.ustat.schema import MAX_UNITS

CHEAP_STEPS = 1 << 32
"""Up to so many steps from 0, a resolution is taken by the digits. Each comparison costs about as
many steps as the values have bits."""
MOST_DIGITS = 30


@dataclass(frozen=True)
class Resolution:
    """A resolution for a column, and what it keeps.

    step: a power of ten, at most 1. is_exact: every value is a multiple of it. merged: the number
    of different values that become equal to another one.
    """

    step: Fraction
    is_exact: bool
    merged: int

    @property
    def text(self) -> str:
        """The step as a study file has it."""
        digits = len(str(self.step.denominator)) - 1
        return f"{Decimal(1).scaleb(-digits):f}"

    def bounds(self, low: Fraction, high: Fraction) -> tuple[str, str]:
        """Return the bounds as decimals, widened to multiples of the step."""
        units = low // self.step, -(-high // self.step)
        digits = len(self.text.partition(".")[2])
        return _decimal(units[0], digits), _decimal(units[1], digits)

    @property
    def keeps(self) -> str:
        """A sentence about the effect of the resolution on the column."""
        if self.is_exact:
            return "holds every value"
        if not self.merged:
            return "rounds values and keeps different values different, so ranks stay"
        return f"is the finest possible one, and makes {self.merged} different values equal"


def find_resolution(values: Iterable[Decimal]) -> Resolution:
    """Return the resolution for a column of finite numbers: at least one."""
    distinct = sorted(set(map(Fraction, values)))
    largest = max(abs(distinct[0]), abs(distinct[-1]))
    exact = _digits(distinct)
    if largest * 10**exact <= CHEAP_STEPS:
        return Resolution(Fraction(1, 10**exact), True, 0)
    found = _kept(distinct, 0)
    for digits in range(exact + 1):
        if largest * 10**digits > MAX_UNITS:
            break
        found = _kept(distinct, digits)
        if not found.merged:
            break
    return found


def count_merged(values: Iterable[Fraction], step: Fraction) -> int:
    """Return how many different values become equal to another one in multiples of the step."""
    distinct = set(values)
    return len(distinct) - len({round(value / step) for value in distinct})


def is_held(values: Iterable[Fraction], step: Fraction) -> bool:
    """Return whether every value is a multiple of the step."""
    return all((value / step).denominator == 1 for value in values)


def _kept(distinct: Sequence[Fraction], digits: int) -> Resolution:
    step = Fraction(1, 10**digits)
    return Resolution(step, is_held(distinct, step), count_merged(distinct, step))


def _digits(values: Iterable[Fraction]) -> int:
    """Return the decimals that all values need, of which each has finitely many."""
    digits = 0
    for value in values:
        while (value * 10**digits).denominator != 1 and digits < MOST_DIGITS:
            digits += 1
    return digits


def _decimal(units: int, digits: int) -> str:
    """Return units · 10^-digits as text without needless zeros, exactly."""
    text = f"{abs(units):0{digits + 1}d}"
    whole, part = text[: len(text) - digits], text[len(text) - digits :].rstrip("0")
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"
