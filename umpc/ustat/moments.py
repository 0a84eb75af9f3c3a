"""How a statistic of pairs varies over a table, and so over the edges that happen to be drawn: exactly.

`sampling.balanced`, `biregular` and `matchings` are fixed graphs whose vertices are numbered at random. The mean over
such a graph has the expectation of the mean over all pairs, and its variance needs of the table only the mean product
of f's deviations over pairs of edges that are the same, share a record, or share none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """How the kernels' values vary over all pairs of a table.

    count: pairs. totals: (kernels,) of the values; products: (kernels, kernels), of two kernels' values of a pair.
    at: for each class (both the same without classes) the values' sums by record, (kernels, records).
    """

    count: int
    totals: np.ndarray
    products: np.ndarray
    at: tuple[np.ndarray, ...]

    @property
    def means(self) -> np.ndarray:
        return self.totals / self.count

    def moments(self, slopes: np.ndarray) -> Moments:
        """Of Σ slope · kernel."""
        mean, ends, shared = float(slopes @ self.means), 3 - len(self.at), []
        sizes = tuple(sums.shape[1] for sums in self.at)
        same = float(slopes @ self.products @ slopes) - self.count * mean**2
        for sums, possible in zip(self.at, _possible(sizes), strict=True):
            around = slopes @ sums - ends * self.count * mean / sums.shape[1]
            shared.append((float(around @ around) - ends * same) / max(1.0, possible))
        return Moments(same / self.count, tuple(shared))


@dataclass(frozen=True)
class Moments:
    """Means of (f_S − U)(f_T − U) over ordered pairs of edges S, T of one table, in squared values.

    same: S = T. shared: S and T have one record of this class in common; without classes one entry.
    """

    same: float
    shared: tuple[float, ...]

    def variance(self, edges: int, sizes: tuple[int, ...]) -> float:
        """Of the mean over a graph of so many edges, its degrees as equal as can be, its vertices numbered at random.

        sizes: records of each class.
        """
        ends = 3 - len(sizes)
        return self._variance(edges, [_adjacent(ends * edges, size) for size in sizes], sizes)

    def variance_of_part(self, part: int, records: int) -> float:
        """Of the mean over all pairs of so many records, chosen at random."""
        edges = part * (part - 1) // 2
        return self._variance(edges, [2.0 * edges * (part - 2)], (records,))

    def _variance(self, edges: int, adjacent: list[float], sizes: tuple[int, ...]) -> float:
        """adjacent: ordered pairs of edges that share a record, of each class.

        Over all pairs of edges the products add up to 0, which tells their mean where S and T share no record.
        """
        count, possible = _pairs(sizes), _possible(sizes)
        apart = count * (count - 1.0) - sum(possible)
        rest = -(count * self.same + np.dot(possible, self.shared)) / apart if apart else 0.0
        total = (
            edges * self.same
            + np.dot(adjacent, self.shared)
            + (edges * (edges - 1.0) - sum(adjacent)) * rest
        )
        return max(0.0, float(total) / edges**2)


def _pairs(sizes: tuple[int, ...]) -> int:
    return sizes[0] * sizes[1] if len(sizes) == 2 else sizes[0] * (sizes[0] - 1) // 2


def _possible(sizes: tuple[int, ...]) -> list[float]:
    """Ordered pairs of all edges that share one record, of each class."""
    others = [sizes[1] - 1, sizes[0] - 1] if len(sizes) == 2 else [2 * (sizes[0] - 2)]
    return [float(_pairs(sizes)) * each for each in others]


def _adjacent(ends: int, vertices: int) -> float:
    """Σ d (d − 1) of degrees that add up to `ends` and differ by at most 1."""
    each, more = divmod(ends, vertices)
    return float(vertices * each * (each - 1) + more * 2 * each)
