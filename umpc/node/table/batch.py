"""The study's fields of some rows of a table, as every reader returns them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Values:
    """The values of one field in some rows.

    numbers: (rows,) float64; a category's place; NaN where the value is no number and no category.
    marks: (rows,) uint8, the place in MISSING_MARKS of such a value, from 1, or 0.
    """

    numbers: Floats
    marks: NDArray[np.uint8]

    def take(self, rows: Places) -> Values:
        """Return the values of these rows."""
        return Values(self.numbers[rows], self.marks[rows])


@dataclass(frozen=True)
class Batch:
    """The study's fields of some rows, in the table's order.

    present: (rows,) bool, true where neither a field nor the person is missing. persons: (rows,)
    the people's texts, or (0,) without a person.
    """

    present: NDArray[np.bool_]
    values: dict[str, Values]
    persons: NDArray[np.object_]
