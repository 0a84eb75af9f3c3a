"""The study's fields of some rows of a table, as every reader returns them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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


def digests_of(words: Iterable[str]) -> Digests:
    """Return the digest of each word. Nobody relies on it against a table's own owner."""
    found = [hashlib.md5(word.encode(), usedforsecurity=False).hexdigest() for word in words]
    return np.array(found, f"S{DIGEST_BYTES}")
