"""Errors in theory for these very records: of sampling E instead of all pairs, and of noise.

The paper bounds them (D.1.2). Here they are exact, so measured means have to meet them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reproduction.figures.paper003.data import Data, load

ROWS = 1 << 21
"""Number of pairs that are in memory at once."""


@dataclass(frozen=True)
class Moments:
    """Moments of f over all ordered pairs of different records, in the kernel's units.

    mean, square: the means of f and of f².
    sharing: the mean product of two pairs that share a record.
    """

    records: int
    mean: float
    square: float
    sharing: float

    @property
    def variance(self) -> float:
        """σ² of f over pairs."""
        return self.square - self.mean**2

    @property
    def disjoint(self) -> float:
        """The mean product of two pairs without a common record.

        It follows because all products add up to the square of the sum.
        """
        n, pairs = self.records, self.records * (self.records - 1) / 2
        touching = n * (n - 1) * (n - 2)
        left = pairs * (pairs - 1) - touching
        return (
            (pairs**2 * self.mean**2 - pairs * self.square - touching * self.sharing) / left
            if left
            else 0.0
        )

    def of_graph(self, edges: int, touching: int) -> float:
        """The variance of the mean over a fixed graph with randomly numbered vertices.

        docs/papers.md derives it.

        Args: touching: ordered pairs of edges that share a vertex, Σ d(d − 1) over degrees.
        """
        total = edges * self.square + touching * self.sharing
        total += (edges * (edges - 1) - touching) * self.disjoint
        return max(0.0, total / edges**2 - self.mean**2)

    def of_balanced(self, edges: int) -> float:
        each, more = divmod(2 * edges, self.records)
        return self.of_graph(
            edges, (self.records - more) * each * (each - 1) + more * (each + 1) * each
        )

    def of_uniform(self, edges: int) -> float:
        """The variance of the mean over `edges` pairs, drawn without replacement."""
        pairs = self.records * (self.records - 1) / 2
        return self.variance / edges * (pairs - edges) / (pairs - 1)


def moments_of(data: Data) -> Moments:
    """The moments from the kernel on all pairs, some rows at a time."""
    kernel, n = data.kernel, data.records
    total = square = sharing = 0.0
    step = max(1, ROWS // n)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        first = {name: np.repeat(column[rows], n) for name, column in data.columns.items()}
        second = {name: np.tile(column, len(rows)) for name, column in data.columns.items()}
        values = kernel.evaluate([first, second]).astype(np.float64).reshape(len(rows), n)
        values[np.arange(len(rows)), rows] = 0
        sums, squares = values.sum(axis=1), (values**2).sum(axis=1)
        total, square = total + sums.sum(), square + squares.sum()
        sharing += (sums**2 - squares).sum()
    ordered = n * (n - 1)
    return Moments(n, total / ordered, square / ordered, sharing / (ordered * (n - 2)))


@lru_cache(maxsize=32)
def moments(name: str, records: int) -> Moments:
    """The moments of a table of `data.load`."""
    return moments_of(load(name, records))
