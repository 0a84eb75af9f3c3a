"""The local Hájek projections of a table over a grid, and a bound of the local sensitivity.

A is the matrix of the kernel over D cells, in units, and H the histogram of all n records. The
projections are g = A·H: g(c) is the sum of the kernel over a record in cell c and all records.

*The local sensitivity.* Let x' be x with a record of cell c replaced by one of cell c'. With H of
x, the other records have the projections g - A e_c. So the sum S over all pairs changes by

    S(x) - S(x') = (g(c) - A_cc) - (g(c') - A_c'c).

For any vector v and its mean v̄, |v(c) - v(c')| <= √2 ‖v - v̄‖. With W = max |A_cc - A_c'c|,

    |S(x) - S(x')| <= √2 ‖g - ḡ‖ + W                                             (1)

for *every* neighbour x', whatever cells it has. For a degenerate kernel g - ḡ is about √n, so this
is far below (n - 1)·(max A - min A), the sensitivity for all tables.

*Its square is a sum over pairs.* Q = D ‖g - ḡ‖² = HᵀBH with B = D·A² - (A1)(A1)ᵀ, a matrix of
integers. So Q is a sum over pairs of the kernel B and a sum over single records:

    Q = 2·P + Σ_i B(i, i) <= 2·P + n·β,   P = Σ_{i<j} B(i, j),   β = max B(c, c).           (2)

P is another sum over the same grid. One replaced record changes it by at most
(n - 1)·(max B - min B). Everything is divided by the greatest common divisor of B's entries, which
is public.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 4 (the projections). Departure: the projections
of all cells count and not only those of records, so that nothing has to be weighted down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Word
from umpc.errors import RangeError
from umpc.mpc.arrays import Integers, Words

MOST_CELLS = 1 << 10
"""The most cells: B takes D³ steps."""
EXACT_FLOATS = 1 << 53
"""Integers below this magnitude are exact as floats."""
MOST_ENTRY = 1 << 62


@dataclass(frozen=True, eq=False)
class MatrixForm:
    """A sum over pairs from a small matrix. Args: entries: (cells, cells) int64, symmetric."""

    entries: Integers

    @cached_property
    def magnitude(self) -> int:
        return int(np.abs(self.entries).max())

    @property
    def cost(self) -> int:
        return self.entries.size

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        # Casts of signed integers to unsigned ones wrap, as the ring does.
        image: NDArray[Word] = self.entries.astype(vector.dtype) @ vector
        return image

    def diagonal(self) -> Words:
        return np.ascontiguousarray(self.entries.diagonal()).view(np.uint64)


@dataclass(frozen=True, eq=False)
class Projections:
    """All projections of one kernel. Args: entries: A, (cells, cells) int64, in units."""

    entries: Integers

    @property
    def cells(self) -> int:
        """D."""
        return len(self.entries)

    @cached_property
    def _gram(self) -> tuple[Integers, int]:
        """B divided by its greatest common divisor, and the divisor. Raises: RangeError."""
        size = self.cells
        most = int(np.abs(self.entries).max())
        if 2 * size**2 * most**2 >= MOST_ENTRY:
            raise RangeError(
                f"the squares of the projections of {size:,} cells with kernel values of up to "
                f"{most:,} units do not fit 62 bits; take coarser fields"
            )
        if size * most**2 < EXACT_FLOATS:
            floats = self.entries.astype(np.float64)
            square = (floats @ floats).astype(np.int64)
        else:
            square = self.entries @ self.entries
        rows = self.entries.sum(axis=1)
        gram = size * square - np.outer(rows, rows)
        divisor = int(np.gcd.reduce(gram, axis=None)) or 1
        return gram // divisor, divisor

    @property
    def gram(self) -> Integers:
        """B, divided by `divisor`: (cells, cells) int64."""
        return self._gram[0]

    @property
    def divisor(self) -> int:
        """The greatest common divisor of B's entries."""
        return self._gram[1]

    @cached_property
    def range(self) -> tuple[int, int]:
        """The least and the largest entry of `gram`."""
        return int(self.gram.min()), int(self.gram.max())

    @cached_property
    def top(self) -> int:
        """β, divided by `divisor`."""
        return int(self.gram.diagonal().max())

    @cached_property
    def own_width(self) -> int:
        """W, in units of the kernel."""
        return int(np.abs(self.entries.diagonal()[:, None] - self.entries.T).max())

    def sensitivity_of_squares(self, records: int) -> int:
        """The most that one replaced record changes P, divided by `divisor`."""
        low, high = self.range
        return max(0, records - 1) * (high - low)

    def bound(self, pairs: int, records: int) -> int:
        """A bound of the local sensitivity of S, in units: (1), from a bound of P by (2).

        Args: pairs: at least P, divided by `divisor`. records: n.
        """
        squares = max(0, 2 * pairs + records * self.top) * self.divisor
        # √2 ‖g - ḡ‖ = √(2 Q/D). S is a whole number of units, so rounding down is exact.
        return isqrt(2 * squares // self.cells) + self.own_width
