"""Values as integers in units of the resolution, and the values that count as something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RangeError
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema

if TYPE_CHECKING:
    from umpc.node.table.reading import Floats, Values

ROWS_LISTED = 20
LARGEST_TERM = 10**100
"""Bound on a resolution's numerator and denominator, far below a double's overflow."""
NEAR = 2.0**-50
"""A quotient this close to a step, relative to itself, is at it: the double of a decimal and the
division each round by 2^-53."""
LARGEST_EXACT = 2.0**53
"""Whole numbers below it are doubles."""

NARROW = (np.int8, np.int16, np.int32)
"""Types of columns in memory, where the public bounds of a field fit."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Misfit:
    """The values of one field that count as something else. Only the administrator may see it.

    `beyond` has the rows of values outside the bounds. `unknown` has the rows of values that are no
    number, or none of the categories. `rounded` has the rows of values between two steps of the
    resolution. All are (rows,) int64, and the first row is 1. `marks` has those words among the
    unknown values that often mark a missing value.
    """

    name: str
    expected: str
    substitute: str
    beyond: Rows = field(repr=False)
    unknown: Rows = field(repr=False)
    rounded: Rows = field(repr=False)
    marks: tuple[str, ...] = field(default=(), repr=False)
    missing: tuple[str, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(len(self.beyond) or len(self.unknown) or len(self.rounded))

    def __str__(self) -> str:
        """One line with counts and row numbers, and without values."""
        parts = []
        if len(self.beyond):
            parts.append(f"data rows {_listed(self.beyond)} count as the nearer bound")
        if len(self.unknown):
            parts.append(f"data rows {_listed(self.unknown)} count as {self.substitute}")
        if len(self.rounded):
            parts.append(
                f"data rows {_listed(self.rounded)} were rounded to the nearest step, which can "
                f"change ranks"
            )
        count = len(self.beyond) + len(self.unknown) + len(self.rounded)
        return (
            f"field {self.name!r}: {self.expected} were expected; values that do not fit: {count}; "
            f"{'; '.join(parts)} (the first row below the header is 1){self._advice()}"
        )

    def _advice(self) -> str:
        """Return the sentences that say what to do about marks and about rounding."""
        advice = ""
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


def to_units(column: Floats, schema: FieldSchema) -> NDArray[np.int64]:
    """Convert a field's values to integers in units of its resolution.

    Args: column: (count,) float64, NaN where the table has no number and no category.
    Returns: (count,) int64, within the field's bounds.
    """
    lower, upper = float(schema.lower), float(schema.upper)
    substitute = upper if schema.categories else lower
    values = np.where(np.isnan(column), substitute, column)
    units = _round_half_even(np.clip(values, lower, upper), schema.resolution)
    return np.clip(units, schema.lower_units, schema.upper_units)


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
        self._beyond: list[Rows] = []
        self._unknown: list[Rows] = []
        self._rounded: list[Rows] = []
        self._marks: set[int] = set()

    def add(self, values: Values, rows: Rows) -> None:
        """Look at complete records. Args: rows: (count,), their places in the table, from 1."""
        schema, numbers = self._schema, values.numbers
        lower, upper = float(schema.lower), float(schema.upper)
        unknown = np.isnan(numbers)
        beyond = (numbers < lower) | (numbers > upper)
        inside = np.where(unknown | beyond, lower, numbers)
        rounded = _is_between_steps(inside, schema.resolution)
        found = (self._beyond, beyond), (self._unknown, unknown), (self._rounded, rounded)
        for parts, is_found in found:
            if is_found.any():
                parts.append(rows[is_found])
        self._marks.update(np.unique(values.marks[unknown]).tolist())

    @property
    def misfit(self) -> Misfit:
        """All values that do not fit; false if there are none."""
        schema, source = self._schema, self._source
        expected = f"numbers from {schema.lower} to {schema.upper}"
        substitute = f"the lower bound {schema.lower}"
        if schema.categories:
            expected = f"words of {len(schema.categories)} categories"
            substitute = f"the last category {schema.categories[-1]!r}"
        elif self._rounded:
            expected += f" in steps of {schema.resolution}"
        listed = source.unlisted_marks()
        marks = tuple(listed[place - 1] for place in sorted(self._marks) if place)
        return Misfit(
            schema.name,
            expected,
            substitute,
            _joined(self._beyond),
            _joined(self._unknown),
            _joined(self._rounded),
            marks,
            source.missing,
        )


def _joined(parts: Sequence[Rows]) -> Rows:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def check_resolution(schema: FieldSchema, site: TableSite) -> None:
    """Raises: RangeError where the field's resolution lies beyond a double."""
    if max(schema.resolution.numerator, schema.resolution.denominator) > LARGEST_TERM:
        raise site.error(
            RangeError,
            f"field {schema.name!r}: a resolution of at most 100 digits was expected, and a longer "
            "one came. Take a simpler resolution in the study",
        )


def _listed(rows: Rows) -> str:
    """Return the first ROWS_LISTED row numbers, and how many more there are."""
    more = f" and {len(rows) - ROWS_LISTED} more" if len(rows) > ROWS_LISTED else ""
    return ", ".join(map(str, rows[:ROWS_LISTED])) + more


def _quotients(values: NDArray[np.float64], resolution: Fraction) -> NDArray[np.float64]:
    return values * float(resolution.denominator) / float(resolution.numerator)


def _is_between_steps(values: NDArray[np.float64], resolution: Fraction) -> NDArray[np.bool_]:
    """Return where a value lies between two steps, beyond what a double of it can be off."""
    quotients = _quotients(values, resolution)
    distances = np.abs(quotients - np.rint(quotients))
    between: NDArray[np.bool_] = distances > NEAR * np.maximum(np.abs(quotients), 1)
    return between


def _round_half_even(values: NDArray[np.float64], resolution: Fraction) -> NDArray[np.int64]:
    """Return values / resolution as int64, exact for the decimals in the table.

    0.35 / 0.1 is a tie and goes to 4, although the double 0.35 lies below 0.35. Only quotients
    within a few roundings of a tie are computed again, as fractions, each distinct value once.
    Wide columns of whole numbers need none of them, which saves a site minutes.
    """
    quotients = _quotients(values, resolution)
    units: NDArray[np.int64] = np.rint(quotients).astype(np.int64)
    to_tie = np.abs(quotients - np.floor(quotients) - 0.5)
    near = to_tie <= NEAR * np.maximum(np.abs(quotients), 1)
    if resolution.numerator == 1:
        # a whole value has a whole quotient, which is no tie, however large it is
        near &= (values != np.rint(values)) | (np.abs(quotients) >= LARGEST_EXACT)
    distinct, where = np.unique(values[near], return_inverse=True)
    exact = [round(Fraction(repr(value)) / resolution) for value in distinct.tolist()]
    units[near] = np.array(exact, dtype=np.int64)[where]
    return units
