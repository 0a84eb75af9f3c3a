"""Values as integers in units of the resolution, and the values that count as something else."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RangeError
from umpc.node.table.batch import Floats, Places
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema

ROWS_LISTED = 20
LARGEST_TERM = 10**100
"""Bound on a resolution's numerator and denominator, far below a double's overflow."""
NEAR = 2.0**-50
"""A quotient this close to a step, relative to itself, is at it: the double of a decimal and the
division each round by 2^-53."""
LARGE = 2.0**48
"""From here on a double's rounding reaches a quarter of a step."""
LARGEST_EXACT = 2.0**53
"""Whole numbers below it are doubles."""

NARROW = (np.int8, np.int16, np.int32)
"""Types of columns in memory, where the public bounds of a field fit."""

KINDS = ("beyond", "unknown", "rounded")
"""The ways in which a value does not fit, in the order of `Misfit`."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Misfit:
    """The values of one field that count as something else. Only the administrator may see it.

    `beyond` has the rows of values outside the bounds. `unknown` has the rows of values that are no
    number, or with `of_words` none of the categories. `rounded` has the rows of values between two
    steps of the resolution. All are (rows,) int64, and the first row is 1. `marks` has those words
    among the unknown values that often mark a missing value. `records` is the number of complete
    records. `infinite` is the number of values beyond the bounds that are infinite.
    """

    name: str
    expected: str
    substitute: str
    beyond: Places = field(repr=False)
    unknown: Places = field(repr=False)
    rounded: Places = field(repr=False)
    marks: tuple[str, ...] = field(default=(), repr=False)
    missing: tuple[str, ...] = field(default=(), repr=False)
    of_words: bool = False
    records: int = field(default=0, repr=False)
    infinite: int = field(default=0, repr=False)

    @property
    def is_of_most(self) -> bool:
        """Whether more than half of the records have a value that is outside of what is expected.

        Values between two steps do not count: to be rounded is usual for measured numbers.
        """
        return 2 * (len(self.beyond) + len(self.unknown)) > self.records

    def __bool__(self) -> bool:
        return bool(len(self.beyond) or len(self.unknown) or len(self.rounded))

    def __str__(self) -> str:
        """One line with counts and row numbers, and without values."""
        parts = []
        if len(self.beyond):
            infinite = f", {self.infinite} of them infinite," if self.infinite else ""
            parts.append(f"data rows {_listed(self.beyond)}{infinite} count as the nearer bound")
        if len(self.unknown):
            lacking = "none of these words" if self.of_words else "no numbers"
            parts.append(
                f"data rows {_listed(self.unknown)} are {lacking} and count as {self.substitute}"
            )
        if len(self.rounded):
            parts.append(
                f"data rows {_listed(self.rounded)} were rounded to the nearest step, which can "
                f"change ranks"
            )
        count = len(self.beyond) + len(self.unknown) + len(self.rounded)
        return (
            f"field {self.name!r}: {self.expected} were expected; values that do not fit: "
            f"{count} of {self.records}; {'; '.join(parts)} (the first row below the header is 1)"
            f"{self._advice()}"
        )

    def _advice(self) -> str:
        """Return the sentences that say what to do about words, marks and rounding."""
        advice = ""
        if len(self.unknown) and not self.of_words:
            advice += "; `umpc node doctor` says how these are written, and what to do"
        if self.marks:
            listed = ", ".join(f'"{word}"' for word in (*self.missing, *self.marks))
            shown = ", ".join(map(repr, self.marks))
            advice += (
                f"; among them is {shown}, which often marks a missing value: if so, write "
                f"missing = [{listed}] under [data]"
            )
        if len(self.rounded):
            advice += (
                "; `umpc study check STUDY --table` with this node's configuration finds the "
                "resolution that holds every value"
            )
        return advice


@dataclass(frozen=True)
class FieldUnits:
    """A field's values in units of its resolution, and where they count as something else.

    units: (count,) int64, within the field's bounds. unknown, beyond, infinite, rounded: (count,)
    bool.
    """

    units: Places
    unknown: Flags
    beyond: Flags
    rounded: Flags
    infinite: Flags

    def take(self, rows: Places) -> FieldUnits:
        """Return the values of these rows."""
        return FieldUnits(*(values[rows] for values in vars(self).values()))


def to_units(column: Floats, schema: FieldSchema) -> FieldUnits:
    """Convert a field's values to integers in units of its resolution.

    Args: column: (count,) float64, NaN where the table has no number and no category.
    """
    lower, upper = float(schema.lower), float(schema.upper)
    unknown = np.isnan(column)
    beyond = (column < lower) | (column > upper)
    values = np.clip(column, lower, upper) if beyond.any() else column
    if unknown.any():
        values = np.where(unknown, upper if schema.categories else lower, values)
    units, rounded = _round_half_even(values, schema.resolution)
    within = np.clip(units, schema.lower_units, schema.upper_units)
    return FieldUnits(within, unknown, beyond, rounded, np.isinf(column))


def narrowest(schema: FieldSchema) -> type[np.signedinteger[Any]]:
    """Return the narrowest type that holds the field's bounds."""
    for kind in NARROW:
        fitting = np.iinfo(kind)
        if fitting.min <= schema.lower_units and schema.upper_units <= fitting.max:
            return kind
    return np.int64


class MisfitFinder:
    """The values of one field that count as something else, gathered batch by batch."""

    def __init__(self, schema: FieldSchema, source: TableSource):
        self._schema, self._source = schema, source
        self._rows: dict[str, list[Places]] = {kind: [] for kind in KINDS}
        self._marks: set[int] = set()
        self._records = self._infinite = 0

    def add(self, found: FieldUnits, marks: NDArray[np.uint8], rows: Places) -> None:
        """Look at complete records.

        Args: marks: as in Values. rows: (count,), their places in the table, from 1.
        """
        self._records += len(rows)
        self._infinite += int(found.infinite.sum())
        for kind, parts in self._rows.items():
            if (flags := getattr(found, kind)).any():
                parts.append(rows[flags])
        if found.unknown.any():
            self._marks.update(np.unique(marks[found.unknown]).tolist())

    @property
    def misfit(self) -> Misfit:
        """All values that do not fit; false if there are none."""
        schema, source = self._schema, self._source
        expected = f"numbers from {schema.lower} to {schema.upper}"
        substitute = f"the lower bound {schema.lower}"
        if schema.categories:
            expected = f"words of {len(schema.categories)} categories"
            substitute = f"the last category {schema.categories[-1]!r}"
        elif self._rows["rounded"]:
            expected += f" in steps of {schema.resolution}"
        listed = source.unlisted_marks()
        marks = tuple(listed[place - 1] for place in sorted(self._marks) if place)
        none = np.empty(0, np.int64)
        beyond, unknown, rounded = (np.concatenate([none, *self._rows[kind]]) for kind in KINDS)
        return Misfit(
            schema.name,
            expected,
            substitute,
            beyond,
            unknown,
            rounded,
            marks,
            source.missing,
            bool(schema.categories),
            self._records,
            self._infinite,
        )


def check_resolution(schema: FieldSchema, site: TableSite) -> None:
    """Raises: RangeError where the field's resolution lies beyond a double."""
    if max(schema.resolution.numerator, schema.resolution.denominator) > LARGEST_TERM:
        raise site.error(
            RangeError,
            f"field {schema.name!r}: a resolution of at most 100 digits was expected, and a longer "
            "one came. Take a simpler resolution in the study",
        )


def _listed(rows: Places) -> str:
    """Return the first ROWS_LISTED row numbers, and how many more there are."""
    more = f" and {len(rows) - ROWS_LISTED} more" if len(rows) > ROWS_LISTED else ""
    return ", ".join(map(str, rows[:ROWS_LISTED])) + more


def _round_half_even(values: Floats, resolution: Fraction) -> tuple[Places, Flags]:
    """Return values / resolution as int64, exact for the decimals in the table.

    0.35 / 0.1 is a tie and goes to 4, although the double 0.35 lies below 0.35. Only quotients
    within a few roundings of a tie are computed again, as fractions, each distinct value once.
    Wide columns of whole numbers need none of them, which saves a site minutes.

    Returns: the units; and where a value lies between two steps, beyond what a double can be off.
    """
    quotients = values * float(resolution.denominator)
    if resolution.numerator != 1:
        quotients /= float(resolution.numerator)
    nearest = np.rint(quotients)
    units: Places = nearest.astype(np.int64)
    between = np.zeros(len(values), bool)
    # a whole quotient is neither a tie nor between steps, unless it is large
    places = np.flatnonzero((quotients != nearest) | (np.abs(quotients) >= LARGE))
    if not len(places):
        return units, between
    chosen, exact_values = quotients[places], values[places]
    slack = NEAR * np.maximum(np.abs(chosen), 1)
    between[places] = np.abs(chosen - nearest[places]) > slack
    near = np.abs(chosen - np.floor(chosen) - 0.5) <= slack
    if resolution.numerator == 1:
        # a whole value has a whole quotient, which is no tie, however large it is
        is_whole = exact_values == np.rint(exact_values)
        near &= ~is_whole | (np.abs(chosen) >= LARGEST_EXACT)
    distinct, where = np.unique(exact_values[near], return_inverse=True)
    exact = [round(Fraction(repr(value)) / resolution) for value in distinct.tolist()]
    units[places[near]] = np.array(exact, dtype=np.int64)[where]
    return units, between
