"""How much of a kernel's variance is left in its mean over E: exactly, for the worst table.

E is a fixed graph whose vertices are numbered at random (`sampling.py`). Let σ² be the variance of
the kernel over all sets of the table's records. Then

    Var(mean over E) <= factor · σ² / |E|.

The factor depends on |E| and the numbers of records alone. Hoeffding's decomposition writes a
kernel as a sum of orthogonal parts, and a random numbering keeps them uncorrelated (Hoeffding 1948,
for a finite population). So the variance is a weighted sum of the parts' variances, and the largest
weight bounds it. Some table attains the bound.

| part, for pairs | its covariance over two edges that share a record, or none |
|---|---|
| g(x) + g(y) | only records that are in one edge more than others count |
| h, whose sums over the pairs of a record are 0 | −σ²/(n − 2), and σ²/C(n − 2, 2) |

*Moments.* The exact variance of a mean over randomly numbered pairs, from moments of the table.

`sampling.balanced`, `biregular` and each pairing of `matchings` are fixed graphs whose vertices
are numbered at random. The mean over such a graph has the expectation of the mean over all pairs.
Its variance is a weighted sum of the variances of the kernel's parts (Hoeffding 1948, for a finite
population): functions of one record, and a rest whose sums over the pairs of each record are 0. The
weights follow from the graph, so the parts of a smaller table like it will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

NONE = Fraction(0)


def largest_factor(edges: int, records: int, degree: int) -> Fraction:
    """The factor of a balanced E over records without classes, for any degree.

    For three and more records see `factors_of_larger`. The search of `edge_blocks.py` may leave
    some parts more than others, by less than 1/n of them (`tests/ustat/test_design.py` compares
    the factor with the sampler's own edges).
    """
    sets = comb(records, degree)
    if edges >= sets:
        return NONE
    if edges == 1:
        return Fraction(1)
    if degree == 1:
        return Fraction(records - edges, records - 1)
    if degree == 2:
        return max(factors_of_pairs(edges, records))
    single, rest = factors_of_larger(edges, records, degree)
    if degree * edges <= records:
        return max(single, rest)
    return max(single, rest * (1 + Fraction(1, records)))


def factors_of_larger(edges: int, records: int, degree: int) -> tuple[Fraction, Fraction]:
    """The factors of both parts of a kernel of three and more records: single records, the rest.

    Edges up to n/k share no record, and the rest's factor is that of the worst kernel, exactly.
    Otherwise the factors of all functions on the N sets, each of variance 1, add up to N − |E|,
    because the edges are distinct. Functions of single records are n − 1 dimensions of them. The
    search changes no other part on purpose, so these share the remainder equally.
    """
    sets = comb(records, degree)
    if edges >= sets:
        return NONE, NONE
    single = _linear(edges, records, degree)
    if degree * edges <= records:
        orders = range(2, min(degree, records - degree) + 1)
        apart = [1 + (edges - 1) * _apart(records, degree, order) for order in orders]
        return single, max(apart, default=NONE)
    if sets == records:
        # k = n − 1: every kernel adds up functions of single records
        return single, NONE
    return single, (sets - edges - (records - 1) * single) / (sets - records)


def _apart(records: int, degree: int, order: int) -> Fraction:
    """The correlation of a kernel's values on two disjoint sets, for a part of this order.

    Paper: Delsarte 1973, An algebraic approach to the association schemes of coding theory, 4.2:
    the eigenvalue of disjointness in the Johnson scheme, over the number of disjoint sets.
    """
    if records < 2 * degree:
        return NONE
    sign = -1 if order % 2 else 1
    return Fraction(
        sign * comb(records - degree - order, degree - order), comb(records - degree, degree)
    )


def largest_factor_two_sample(edges: int, zeros: int, ones: int) -> Fraction:
    """The factor of a biregular E between two classes of so many records."""
    return max(factors_two_sample(edges, zeros, ones))


def factors_of_pairs(edges: int, records: int) -> tuple[Fraction, Fraction]:
    """The factors of both parts of a kernel of pairs: of single records, and the rest."""
    return _linear(edges, records, 2), _rest_of_pairs(edges, records)


def factors_two_sample(edges: int, zeros: int, ones: int) -> tuple[Fraction, Fraction, Fraction]:
    """The factors of a kernel's three parts: of the first class, of the second, and the rest."""
    of_zeros, of_ones = (
        _one_more(edges, size) * Fraction(1, edges) if size > 1 else NONE for size in (zeros, ones)
    )
    if min(zeros, ones) == 1:
        return of_zeros, of_ones, NONE
    rows, columns = _sharing(edges, zeros), _sharing(edges, ones)
    disjoint = edges * (edges - 1) - rows - columns
    rest = (
        1
        - Fraction(rows, edges * (ones - 1))
        - Fraction(columns, edges * (zeros - 1))
        + Fraction(disjoint, edges * (zeros - 1) * (ones - 1))
    )
    return of_zeros, of_ones, rest


def _linear(edges: int, records: int, degree: int) -> Fraction:
    """The factor of kernels that add up one function of each record."""
    if records == degree:
        return NONE
    varying = _one_more(degree * edges, records)
    return varying * Fraction(records - 1, edges * degree * (records - degree))


def _one_more(ends: int, records: int) -> Fraction:
    """Var(Σ d·g) / Var(g), where degrees d add up to `ends` and differ by at most 1."""
    more = ends % records
    return Fraction(more * (records - more), records - 1)


def _rest_of_pairs(edges: int, records: int) -> Fraction:
    """The factor of kernels of pairs whose sums over the pairs of each record are 0."""
    if records < 4:
        return NONE
    adjacent = _sharing(2 * edges, records)
    disjoint = edges * (edges - 1) - adjacent
    return (
        1
        - Fraction(adjacent, edges * (records - 2))
        + Fraction(disjoint, edges * comb(records - 2, 2))
    )


def _sharing(ends: int, records: int) -> int:
    """Σ d·(d − 1) over degrees d that add up to `ends` and differ by at most 1."""
    each, more = divmod(ends, records)
    return records * each * (each - 1) + more * 2 * each


# --- moments --------------------------------------------------------------------------------------


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
