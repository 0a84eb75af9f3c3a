"""The exact variance of a mean over randomly numbered pairs, from moments of the table.

`sampling.balanced`, `biregular` and each pairing of `matchings` are fixed graphs whose vertices
are numbered at random. The mean over such a graph has the expectation of the mean over all pairs.
Its variance depends on the table only through the mean products of the kernel's deviations over
pairs of edges that are equal, that share a record, or that share none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """Sums of the kernels' values over all pairs of a table.

    Args:
        count: the number of pairs.
        totals: (kernels,) each kernel's values added up.
        products: (kernels, kernels) products of two kernels' values of one pair, added up.
        at: for each class (one entry without classes), each kernel's values added up by record:
            (kernels, records).
    """

    count: int
    totals: NDArray[np.float64]
    products: NDArray[np.float64]
    at: tuple[NDArray[np.float64], ...]

    @property
    def means(self) -> NDArray[np.float64]:
        """(kernels,) each kernel's mean over all pairs."""
        return self.totals / self.count

    def moments(self, slopes: NDArray[np.float64]) -> Moments:
        """The moments of the linear combination Σ slope · kernel. slopes: (kernels,)."""
        mean = float(slopes @ self.means)
        ends = _ends(len(self.at))
        sizes = tuple(sums.shape[1] for sums in self.at)
        # Σ (f − U)² over all pairs
        same = float(slopes @ self.products @ slopes) - self.count * mean**2
        shared = []
        for sums, possible in zip(self.at, _sharing_pairs(sizes), strict=True):
            # by record, Σ (f − U) over its pairs; its square also counts each pair with itself
            around = slopes @ sums - ends * self.count * mean / sums.shape[1]
            shared.append((float(around @ around) - ends * same) / max(1.0, possible))
        return Moments(same / self.count, tuple(shared))


@dataclass(frozen=True)
class Moments:
    """Means of (f_S − U)(f_T − U) over ordered pairs of edges S, T of one table, in squared values.

    Args:
        same: the mean where S = T.
        shared: the mean where S and T share one record of this class; one entry without classes.
    """

    same: float
    shared: tuple[float, ...]

    def variance(self, edges: int, sizes: tuple[int, ...]) -> float:
        """The variance of the mean over a graph whose vertices are numbered at random.

        Args:
            edges: the graph's edges; its degrees are as equal as possible.
            sizes: the records of each class.
        """
        ends = _ends(len(sizes))
        adjacent = [_sharing_in_graph(ends * edges, size) for size in sizes]
        return self._variance(edges, adjacent, sizes)

    def variance_of_part(self, part: int, records: int) -> float:
        """The variance of the mean over all pairs of `part` of the records, chosen at random."""
        edges = part * (part - 1) // 2
        return self._variance(edges, [2.0 * edges * (part - 2)], (records,))

    def _variance(self, edges: int, adjacent: list[float], sizes: tuple[int, ...]) -> float:
        """The variance for a graph with these numbers of neighbouring edges.

        Args: adjacent: for each class, the ordered pairs of edges that share a record.
        """
        count, possible = _pairs(sizes), _sharing_pairs(sizes)
        # over all pairs of edges the products add up to 0, which gives their mean for disjoint ones
        disjoint = count * (count - 1.0) - sum(possible)
        products = count * self.same + np.dot(possible, self.shared)
        rest = -products / disjoint if disjoint else 0.0
        total = (
            edges * self.same
            + np.dot(adjacent, self.shared)
            + (edges * (edges - 1.0) - sum(adjacent)) * rest
        )
        return max(0.0, float(total) / edges**2)


def _ends(classes: int) -> int:
    """An edge's records of one class: 2 without classes, 1 with two classes."""
    return 3 - classes


def _pairs(sizes: tuple[int, ...]) -> int:
    """The number of all edges."""
    return sizes[0] * sizes[1] if len(sizes) == 2 else sizes[0] * (sizes[0] - 1) // 2


def _sharing_pairs(sizes: tuple[int, ...]) -> list[float]:
    """For each class, the ordered pairs of all edges that share exactly one record of it."""
    others = [sizes[1] - 1, sizes[0] - 1] if len(sizes) == 2 else [2 * (sizes[0] - 2)]
    return [float(_pairs(sizes)) * each for each in others]


def _sharing_in_graph(ends: int, vertices: int) -> float:
    """Σ d·(d − 1) over degrees d that add up to `ends` and differ by at most 1."""
    each, more = divmod(ends, vertices)
    return float(vertices * each * (each - 1) + more * 2 * each)
