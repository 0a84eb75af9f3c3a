"""Columns of a table as numbers: some rows for a study, or all rows for the table's own owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Digests = NDArray[np.bytes_]
"""(rows,) 32 bytes, the MD5 of each row's word in hex, as DuckDB's `md5` gives it."""
DIGEST_BYTES = 32


@dataclass(frozen=True)
class Values:
    """The values of one field in some rows.

    numbers: (rows,) float64; a category's place; NaN where the value is no number and no category.
    marks: (rows,) uint8, the place in MISSING_MARKS of such a value, from 1, or 0.
    digests: of a field with categories, whether the study lists the word or not; else None.
    """

    numbers: Floats
    marks: NDArray[np.uint8]
    digests: Digests | None = None

    def take(self, rows: Places) -> Values:
        """Return the values of these rows."""
        digests = None if self.digests is None else self.digests[rows]
        return Values(self.numbers[rows], self.marks[rows], digests)


@dataclass(frozen=True)
class Batch:
    """The study's fields of some rows, in the table's order.

    present: (rows,) bool, true where neither a field nor the person is missing. persons: (rows,)
    the people's texts, or (0,) without a person.
    """

    present: NDArray[np.bool_]
    values: dict[str, Values]
    persons: NDArray[np.object_]


@dataclass(frozen=True)
class ReadColumn:
    """A column as every study reads it, for the table's own owner.

    texts: (rows,) the texts, None where the value is missing. numbers: (rows,) float64, the number
    or the category's place; NaN where the value is neither, or missing.
    """

    texts: NDArray[np.object_]
    numbers: Floats

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """(rows,) whether there is a value."""
        return np.array([text is not None for text in self.texts], bool)

    def take(self, rows: NDArray[np.bool_]) -> ReadColumn:
        """Return the values of these rows."""
        return ReadColumn(self.texts[rows], self.numbers[rows])


def complete(columns: Mapping[str, ReadColumn]) -> dict[str, ReadColumn]:
    """Return the rows that have a value in each column."""
    rows = np.logical_and.reduce([each.is_there for each in columns.values()])
    return {name: each.take(rows) for name, each in columns.items()}
