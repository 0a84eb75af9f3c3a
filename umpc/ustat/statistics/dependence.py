"""Statistics of two columns: how strongly one depends on the other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations
from operator import add, xor
from typing import Any

from umpc.ustat.pair_quantiles import cells
from umpc.ustat.statistics.statistic import (
    THRESHOLDS,
    TWO_CLASSES,
    FieldRule,
    KernelFunction,
    Statistic,
)
from umpc.ustat.tracing import sign


def _covariance(x: str, y: str) -> KernelFunction:
    return lambda a, b: (a[x] - b[x]) * (a[y] - b[y]) / 2


def _kendall_tau(x: str, y: str) -> KernelFunction:
    return lambda a, b: sign(a[x] - b[x]) * sign(a[y] - b[y])


def _kendall_null_variance(n: int) -> Fraction:
    """The variance of tau-a by Kendall 1938."""
    return Fraction(2 * (2 * n + 5), 9 * n * (n - 1))


def _theil_sen(x: str, y: str, thresholds: Sequence[Fraction]) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        apart = a[x] - b[x]
        rise = sign(apart) * (a[y] - b[y])
        return cells(lambda c: rise < c * abs(apart), thresholds, a[x] != b[x])

    return kernel


def _kendall_tau_b(x: str, y: str) -> KernelFunction:
    return lambda a, b: (sign(a[x] - b[x]) * sign(a[y] - b[y]), a[x] != b[x], a[y] != b[y])


def _goodman_kruskal_gamma(x: str, y: str) -> KernelFunction:
    return lambda a, b: (sign(a[x] - b[x]) * sign(a[y] - b[y]), (a[x] != b[x]) & (a[y] != b[y]))


def _somers_d(x: str, y: str) -> KernelFunction:
    return lambda a, b: (sign(a[x] - b[x]) * sign(a[y] - b[y]), a[x] != b[x])


def _kendall_tau_label(x: str, label: str) -> KernelFunction:
    """The three sums of tau-b. A record of class 1 counts above any other."""

    def kernel(a: Any, b: Any) -> Any:
        first, second = a[label] == 1, b[label] == 1
        return sign(a[x] - b[x]) * (first - second), a[x] != b[x], first ^ second

    return kernel


def _phi_coefficient(x: str, y: str) -> KernelFunction:
    """Three sums: twice the covariance of [x = 1] and [y = 1], and twice their variances."""

    def kernel(a: Any, b: Any) -> Any:
        p, q = a[x] == 1, b[x] == 1
        r, s = a[y] == 1, b[y] == 1
        return (p - q) * (r - s), p ^ q, r ^ s

    return kernel


def _spearman_rho(x: str, y: str) -> KernelFunction:
    """3·sign(x1 − x2)·sign(y1 − y3), averaged over the six ways to number three records.

    It estimates Spearman's correlation of the population (the grade correlation) without bias. The
    correlation of n ranks without ties is r = (n − 2)/(n + 1)·U + 3/(n + 1)·τ, with Kendall's τ-a
    (Hoeffding 1948, section 9b).
    """

    def kernel(a: Any, b: Any, c: Any) -> Any:
        orders = permutations((a, b, c))
        signs = (sign(p[x] - q[x]) * sign(p[y] - r[y]) for p, q, r in orders)
        # 3 times a mean of six
        return reduce(add, signs) / 2

    return kernel


def _spearman_rho_b(x: str, y: str) -> KernelFunction:
    """Three sums: the kernel of `spearman_rho`, and for each column whether three values differ.

    With mid-distribution functions F and G, which count a tie half, Cov(F(X), G(Y)) is a quarter of
    the mean of sign(x1 − x2)·sign(y1 − y3). Var F(X) is a quarter of that of
    sign(x1 − x2)·sign(x1 − x3), whose mean over the three choices of the first record is 1/3 if
    the three values are not all equal, and 0 if they are.
    """
    numerator = _spearman_rho(x, y)

    def kernel(a: Any, b: Any, c: Any) -> Any:
        varied = (~((a[name] == b[name]) & (b[name] == c[name])) for name in (x, y))
        return (numerator(a, b, c), *varied)

    return kernel


def _spearman_null_variance(n: int) -> Fraction:
    """The variance of U above, which is a linear combination of r and τ.

    It follows from Var r = 1/(n − 1), Kendall's variance of τ, and
    Cov(r, τ) = 2(n + 1)/(3n(n − 1)).
    """
    return Fraction(n * n - 3, n * (n - 1) * (n - 2))


def _bergsma_dassios_tau_star(x: str, y: str) -> KernelFunction:
    """Whether x and y split four records into the same two halves.

    There are three ways to split four records into halves. A column separates a split if every
    value of one half is below every value of the other; it separates at most one. The paper's
    kernel averages a(x1, …, x4)·a(y1, …, y4) over 24 permutations, where
    a = sign(|x1 − x2| + |x3 − x4| − |x1 − x3| − |x2 − x4|). This a is 1, −1 or 0: one split is
    separated, another one is, or neither of the two is. The average is 2/3 if both columns separate
    the same split, −1/3 if they separate different ones, and 0 if one separates none.
    """

    def kernel(a: Any, b: Any, c: Any, d: Any) -> Any:
        splits = ((a, b, c, d), (a, c, b, d), (a, d, b, c))
        by_x = [separates(x, *split) for split in splits]
        by_y = [separates(y, *split) for split in splits]
        same = reduce(add, (p * q for p, q in zip(by_x, by_y, strict=True)))
        return same - reduce(xor, by_x) * reduce(xor, by_y) / 3

    return kernel


def separates(x: str, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Whether both of a, b are below both of c, d, or above them."""
    below = (a[x] < c[x]) & (a[x] < d[x]) & (b[x] < c[x]) & (b[x] < d[x])
    above = (c[x] < a[x]) & (d[x] < a[x]) & (c[x] < b[x]) & (d[x] < b[x])
    return below ^ above


def _tau_star_null_variance(n: int) -> Fraction:
    """The variance of a U-statistic by Hoeffding 1948, 5.13, with ζ1 = 0.

    ζ2, ζ3 and ζ4 are computed from all permutations of n = 4, 5, 6. The variance is 2/9 for n = 4.
    """
    return Fraction(8 * (3 * n * n + 5 * n - 18), 75 * n * (n - 1) * (n - 2) * (n - 3))


SYMMETRIC = (
    "kendall_tau",
    "kendall_tau_b",
    "spearman_rho",
    "spearman_rho_b",
    "phi_coefficient",
)
"""The statistics that are equal for (x, y) and (y, x): a matrix has them for all pairs."""
DEPENDENCE = (
    Statistic(
        "theil_sen",
        "Theil and Sen's slope: the median of the slopes of y over x of pairs that differ in x",
        ("x", "y"),
        "Theil 1950; Sen 1968",
        _theil_sen,
        estimator="pair_median",
        parameters=(THRESHOLDS,),
    ),
    Statistic(
        "covariance",
        "Covariance, unbiased",
        ("x", "y"),
        "Hoeffding 1948, as the mean of (x − x')(y − y')/2",
        _covariance,
    ),
    Statistic(
        "kendall_tau",
        "Kendall's tau-a",
        ("x", "y"),
        "Kendall 1938; Sinh & Ramon 2025, A.5.1, with ties counted as 0",
        _kendall_tau,
        null_variance=_kendall_null_variance,
    ),
    Statistic(
        "kendall_tau_b",
        "Kendall's tau-b: concordance / √(untied in x · untied in y)",
        ("x", "y"),
        "Kendall 1945",
        _kendall_tau_b,
        estimator="geometric_ratio",
    ),
    Statistic(
        "goodman_kruskal_gamma",
        "Goodman and Kruskal's gamma: concordance / untied pairs",
        ("x", "y"),
        "Goodman & Kruskal 1954",
        _goodman_kruskal_gamma,
        estimator="ratio",
    ),
    Statistic(
        "somers_d",
        "Somers' D of y given x: concordance / pairs untied in x",
        ("x", "y"),
        "Somers 1962",
        _somers_d,
        estimator="ratio",
        null_variance=_kendall_null_variance,
    ),
    Statistic(
        "kendall_tau_label",
        "Kendall's tau-b of a column and a private label: 1 (the second category) against others",
        ("x", "label"),
        "Kendall 1945",
        _kendall_tau_label,
        estimator="geometric_ratio",
        rules=(FieldRule("label", TWO_CLASSES, "{high} counts above {low}"),),
    ),
    Statistic(
        "phi_coefficient",
        "Phi of a 2 × 2 table, 1 (the second category) against others: √(Pearson's χ² / n), signed",
        ("x", "y"),
        "Pearson 1900; Yule 1912",
        _phi_coefficient,
        estimator="geometric_ratio",
        rules=tuple(FieldRule(each, TWO_CLASSES, "{high} counts above {low}") for each in "xy"),
    ),
    Statistic(
        "spearman_rho",
        "Spearman's rho of the population, unbiased",
        ("x", "y"),
        "Hoeffding 1948, section 9: 3·sign(x1 − x2)·sign(y1 − y3), with ties counted as 0",
        _spearman_rho,
        degree=3,
        null_variance=_spearman_null_variance,
    ),
    Statistic(
        "spearman_rho_b",
        "Spearman's rho of the population with mid-ranks: corrected for ties",
        ("x", "y"),
        "Nešlehová 2007: rho / √((1 − P(three equal x))·(1 − P(three equal y)))",
        _spearman_rho_b,
        degree=3,
        estimator="geometric_ratio",
    ),
    Statistic(
        "bergsma_dassios_tau_star",
        "Bergsma and Dassios' tau*: zero only if independent",
        ("x", "y"),
        "Bergsma & Dassios 2014",
        _bergsma_dassios_tau_star,
        degree=4,
        null_variance=_tau_star_null_variance,
    ),
)
