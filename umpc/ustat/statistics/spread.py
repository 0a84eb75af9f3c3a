"""Statistics of one column: location, spread, symmetry, collisions. Also the Rand index."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from umpc.ustat.pair_quantiles import cells
from umpc.ustat.statistics.statistic import (
    THRESHOLDS,
    FieldRule,
    KernelFunction,
    Parameter,
    Statistic,
)
from umpc.ustat.tracing import sign


def _mean(x: str) -> KernelFunction:
    return lambda a: a[x]


def _gini_mean_difference(x: str) -> KernelFunction:
    return lambda a, b: abs(a[x] - b[x])


def _gini_coefficient(x: str) -> KernelFunction:
    return lambda a, b: (abs(a[x] - b[x]), a[x] + b[x])


def _asymmetry(x: str, centre: Fraction) -> KernelFunction:
    """Two sums: |a + b| − |a − b| and |a + b|, both about the centre."""

    def kernel(a: Any, b: Any) -> Any:
        both = abs(a[x] + b[x] - 2 * centre if centre else a[x] + b[x])
        return both - abs(a[x] - b[x]), both

    return kernel


def _variance(x: str) -> KernelFunction:
    return lambda a, b: (a[x] - b[x]) ** 2 / 2


def _wilcoxon_signed_rank(x: str) -> KernelFunction:
    return lambda a, b: (sign(a[x] + b[x]) + 1) / 2


def _wilcoxon_null_variance(n: int) -> Fraction:
    """The variance of a U-statistic by Hoeffding 1948, 5.18, with ζ1 = 1/12 and ζ2 = 1/4."""
    return Fraction(2 * n - 1, 6 * n * (n - 1))


def _hodges_lehmann(x: str, thresholds: Sequence[Fraction]) -> KernelFunction:
    return lambda a, b: cells(lambda c: (a[x] + b[x]) / 2 < c, thresholds)


def _triples_skewness(x: str) -> KernelFunction:
    """1/3 for a triple that leans right, −1/3 for one that leans left, else 0.

    A triple leans right if its mean is above its median. The paper's kernel has three signs, each
    of a sum of two values minus twice the third. These three numbers add up to 0. In a triple that
    leans right two of them are positive, in one that leans left two are negative, and else the
    signs cancel. Counting "at least two" keeps the range at ±1/3. A sum of three signs would seem
    to reach ±1, at three times the noise.
    """

    def kernel(a: Any, b: Any, c: Any) -> Any:
        splits = ((a[x] + b[x], 2 * c[x]), (a[x] + c[x], 2 * b[x]), (b[x] + c[x], 2 * a[x]))
        right = _at_least_two(*(twice < two for two, twice in splits))
        left = _at_least_two(*(two < twice for two, twice in splits))
        return (right - left) / 3

    return kernel


def _at_least_two(p: Any, q: Any, r: Any) -> Any:
    return (p & q) ^ (p & r) ^ (q & r)


def _duplicate_pair_ratio(x: str) -> KernelFunction:
    return lambda a, b: a[x] == b[x]


def _uniformity(x: str, cells: Fraction) -> KernelFunction:
    return lambda a, b: (a[x] == b[x]) - 1 / cells


def _uniformity_null_variance(n: int, cells: Fraction) -> Fraction:
    """The kernel is degenerate under the uniform distribution, so pairs are uncorrelated."""
    return (1 - 1 / cells) / cells / Fraction(n * (n - 1), 2)


def _rand_index(x: str, y: str) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        together_in_x = a[x] == b[x]
        together_in_y = a[y] == b[y]
        return (together_in_x & together_in_y) | (~together_in_x & ~together_in_y)

    return kernel


SPREAD = (
    Statistic(
        "mean", "Mean", ("x",), "Hoeffding 1948, the U-statistic of degree 1", _mean, degree=1
    ),
    Statistic(
        "gini_mean_difference",
        "Gini mean difference",
        ("x",),
        "Gini 1912; Sinh & Ramon 2025, A.5.2",
        _gini_mean_difference,
    ),
    Statistic(
        "gini_coefficient",
        "Gini coefficient of a column of at least 0: mean difference / twice the mean",
        ("x",),
        "Gini 1914; Hoeffding 1948, section 9, with the mean over pairs of different records",
        _gini_coefficient,
        estimator="ratio",
        rules=(FieldRule("x", positive_mean=True),),
    ),
    Statistic(
        "asymmetry",
        "Székely and Móri's asymmetry about a public centre: zero only if symmetric",
        ("x",),
        "Székely & Móri 2001: 1 − E|X − X'| / E|X + X'|",
        _asymmetry,
        estimator="ratio",
        parameters=(Parameter("centre", default=0),),
    ),
    Statistic(
        "variance",
        "Variance, unbiased",
        ("x",),
        "Hoeffding 1948, as the mean of (x − x')²/2",
        _variance,
    ),
    Statistic(
        "wilcoxon_signed_rank",
        "Wilcoxon's signed rank, pair form",
        ("x",),
        "Tukey 1949: pairs whose sum is positive, zero counted half",
        _wilcoxon_signed_rank,
        null_variance=_wilcoxon_null_variance,
    ),
    Statistic(
        "hodges_lehmann",
        "Hodges and Lehmann's location: the median of the means of two records",
        ("x",),
        "Hodges & Lehmann 1963, over pairs of different records",
        _hodges_lehmann,
        estimator="pair_median",
        parameters=(THRESHOLDS,),
    ),
    Statistic(
        "triples_skewness",
        "Triples that lean right minus triples that lean left, a third",
        ("x",),
        "Randles, Fligner, Policello & Wolfe 1980",
        _triples_skewness,
        degree=3,
    ),
    Statistic(
        "duplicate_pair_ratio",
        "Ratio of pairs with equal values",
        ("x",),
        "Sinh & Ramon 2025, section 6; minus its logarithm is the Rényi entropy of order 2",
        _duplicate_pair_ratio,
    ),
    Statistic(
        "renyi_entropy",
        "Collision entropy (Rényi, order 2), in bits",
        ("x",),
        "Rényi 1961; Bell et al. 2020, equation 5, to base 2",
        _duplicate_pair_ratio,
        estimator="collision_entropy",
    ),
    Statistic(
        "renyi_entropy_nats",
        "Collision entropy (Rényi, order 2), in nats",
        ("x",),
        "Rényi 1961; Bell et al. 2020, equation 5",
        _duplicate_pair_ratio,
        estimator="collision_entropy_nats",
    ),
    Statistic(
        "uniformity",
        "Squared distance to the uniform distribution over `cells` values",
        ("x",),
        "Goldreich & Ron 2000; Diakonikolas et al. 2019: pairs with equal values minus 1/cells",
        _uniformity,
        parameters=(Parameter("cells", positive=True, whole=True),),
        null_variance=_uniformity_null_variance,
    ),
    Statistic(
        "rand_index",
        "Rand index of two clusterings",
        ("x", "y"),
        "Rand 1971: pairs on which both clusterings agree "
        "(not Sinh & Ramon 2025, A.5.4, see docs/papers.md)",
        _rand_index,
    ),
)
