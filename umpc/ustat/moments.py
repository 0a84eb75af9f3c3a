"""The exact variance of a mean over randomly numbered pairs, from moments of the table.

`sampling.balanced`, `biregular` and each pairing of `matchings` are fixed graphs whose vertices
are numbered at random. The mean over such a graph has the expectation of the mean over all pairs.
Its variance is a weighted sum of the variances of the kernel's parts (Hoeffding 1948, for a finite
population): functions of one record, and a rest whose sums over the pairs of each record are 0. The
weights follow from the graph (`design.py`), so the parts of a smaller table like it will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.design import factors_of_larger, factors_of_pairs, factors_two_sample


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
        sizes = [sums.shape[1] for sums in self.at]
        # the mean of (f − U)² over all pairs
        same = max(0.0, float(slopes @ self.products @ slopes) / self.count - mean**2)
        linear = []
        for number, size in enumerate(sizes):
            others = sizes[1 - number] if len(sizes) == 2 else size - 1
            around = slopes @ self.at[number] - mean * others
            if len(sizes) == 2:
                linear.append(float(np.mean((around / others) ** 2)))
            elif size > 2:
                # Σ over the pairs of x of (f − U) is (n − 2)·g(x), where f − U = g(x) + g(y) + h
                own = float(np.mean((around / (size - 2)) ** 2))
                linear.append(2 * own * (size - 2) / (size - 1))
            else:
                linear.append(0.0)
        return Moments(tuple(linear), max(0.0, same - sum(linear)))


@dataclass(frozen=True)
class Moments:
    """The variances of the kernel's parts over all pairs of one table, in squared values.

    Args:
        linear: of the functions of one record, for each class; one entry without classes.
        rest: of the part whose sums over the pairs of each record are 0.
    """

    linear: tuple[float, ...]
    rest: float

    @property
    def same(self) -> float:
        """The variance of the kernel over all pairs."""
        return sum(self.linear) + self.rest

    def variance(self, edges: int, sizes: tuple[int, ...]) -> float:
        """The variance of the mean over a graph whose vertices are numbered at random.

        Args:
            edges: the graph's edges; its degrees are as equal as possible.
            sizes: the records of each class.
        """
        factors: tuple[Fraction, ...]
        if len(sizes) == 2:
            factors = factors_two_sample(edges, *sizes)
        else:
            factors = factors_of_pairs(edges, *sizes)
        parts = (*self.linear, self.rest)
        return (
            sum(part * float(factor) for part, factor in zip(parts, factors, strict=True)) / edges
        )


@dataclass(frozen=True)
class LargerMoments:
    """The variances of a kernel's parts over all sets of three and more records of one table.

    Args:
        degree: the records of a set.
        linear: of the functions of one record.
        rest: of the other parts, whose means given any single record are 0.
    """

    degree: int
    linear: float
    rest: float

    @property
    def variance(self) -> float:
        """The variance of the kernel over all sets."""
        return self.linear + self.rest

    def over_balanced(self, edges: int, records: int) -> float:
        """The variance of the mean over distinct random sets with degrees as equal as possible.

        Equal degrees leave of single records only what those with one set more contribute.
        """
        single, rest = map(float, factors_of_larger(edges, records, self.degree))
        return (self.linear * single + self.rest * rest) / edges
