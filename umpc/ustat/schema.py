"""The values that a field may hold: a fixed-point number with bounds and a resolution.

A value x travels as the integer x / resolution, so all arithmetic is exact. A difference of two
such integers needs only the bits of its own domain: age 0..127 is compared with 8 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property

from umpc.errors import RangeError, StudyError, UnknownField

MAX_UNITS = 1 << 52
"""Integers up to here pass through a double (a site's table) without loss."""


def check_words(name: str, categories: Iterable[str]) -> None:
    """Refuse categories with blanks at their ends, which no text of a table has.

    A study that was released before is replayed without this check.

    Raises: StudyError.
    """
    for category in categories:
        if category != category.strip():
            raise StudyError(
                f"field {name!r}: a category without blanks at its ends was expected, because "
                f"texts are read without them, and {category!r} came; write {category.strip()!r}"
            )


@dataclass(frozen=True)
class FieldSchema:
    """One field: real values in [lower, upper], rounded to multiples of resolution.

    Args: categories: the labels of a field that has no order. A value is then the number of its
    label, from 0.
    Raises: RangeError where bounds, resolution and categories do not fit each other.
    """

    name: str
    lower: Fraction
    upper: Fraction
    resolution: Fraction
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_categories()
        if self.resolution <= 0:
            raise self._unfit(f"resolution must be positive, got {self.resolution}")
        if self.lower > self.upper:
            raise self._unfit(
                f"lower bound {self.lower} is above upper bound {self.upper}; swap them"
            )
        self._check_bound("lower", self.lower)
        self._check_bound("upper", self.upper)

    def _check_categories(self) -> None:
        last = Fraction(len(self.categories) - 1)
        numbered = (Fraction(0), last, Fraction(1))
        if self.categories and (self.lower, self.upper, self.resolution) != numbered:
            raise self._unfit(
                f"{len(self.categories)} categories are numbered from 0 in steps of 1"
            )
        if len(set(self.categories)) != len(self.categories):
            raise self._unfit("a category is listed twice; list each once")

    def _check_bound(self, label: str, bound: Fraction) -> None:
        units = bound / self.resolution
        if units.denominator != 1:
            raise self._unfit(
                f"{label} bound {bound} is not a multiple of the resolution {self.resolution}; "
                f"round it outwards"
            )
        if abs(units) > MAX_UNITS:
            raise self._unfit(
                f"{label} bound is {abs(units)} steps of the resolution, at most {MAX_UNITS} "
                f"are possible; narrow the bounds or take a coarser resolution"
            )

    def _unfit(self, reason: str) -> RangeError:
        return RangeError(f"field {self.name!r}: {reason}")

    @cached_property
    def lower_units(self) -> int:
        """The smallest value as an integer, in steps of the resolution."""
        return int(self.lower / self.resolution)

    @cached_property
    def upper_units(self) -> int:
        """The largest value as an integer, in steps of the resolution."""
        return int(self.upper / self.resolution)


class Schema:
    """The fields of a study, by name, in the study's order. Equal fields make equal schemas."""

    def __init__(self, fields: Iterable[FieldSchema]):
        self._fields = {field.name: field for field in fields}
        self._hash = hash(tuple(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return self._hash

    def __getitem__(self, name: str) -> FieldSchema:
        """The field of that name. Raises: UnknownField."""
        if name not in self._fields:
            close = get_close_matches(name, self._fields, n=1)
            hint = f"; did you mean {close[0]!r}? Else add" if close else "; add"
            raise UnknownField(
                f"the kernel uses field {name!r}, but the study's schema has "
                f"{sorted(self._fields)}{hint} the field to the schema or correct its name"
            )
        return self._fields[name]

    def __iter__(self) -> Iterator[FieldSchema]:
        return iter(self._fields.values())

    def __len__(self) -> int:
        return len(self._fields)
