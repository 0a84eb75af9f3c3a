"""The hypothesis that each statistic of the library tests, and its law if that is true.

A law holds for continuous columns. With ties it is *bounded*: break all ties at random, and the
law holds exactly for the statistic that comes out. For Kendall's tau, the AUC, Wilcoxon's signed
rank and Spearman's rho the statistic with ties is the mean of that statistic over the ways to break
them. So it is nearer to the hypothesis' value, and its variance is smaller. A field's number of
values is public and bounds the variance further:

    Σ p³ >= 1/c²  and  Σ p² >= 1/c  for shares p of c values.

For tau* there is no such argument; `python -m bench.type_one --ties` tries it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, inf, sqrt

from umpc.inference.exact_counts import inversions, mann_whitney, signed_pairs
from umpc.inference.null_laws import (
    ChiSquareLaw,
    CountLaw,
    NormalLaw,
    NullLaw,
    TauStarLaw,
    discrete_share,
    untied_share,
)
from umpc.ustat.statistics import find_statistic

EXACT_RECORDS = 120
"""Up to so many records, laws of counts are exact; a normal law of the exact variance beyond."""
EXACT_PAIRS = 3_600
"""Up to so many pairs across two classes, too."""
TWO_SIDED, GREATER, LESS = "two-sided", "greater", "less"
ALTERNATIVES = (TWO_SIDED, GREATER, LESS)


@dataclass(frozen=True)
class DrawnRecords:
    """The records of a study, as far as anybody knows them.

    classes: the numbers of both classes in two-sample studies. values: of each field that the
    kernels use, how many values it can have. lowest: the smallest value of the first kernel.
    """

    records: int
    classes: tuple[int, int] | None
    values: tuple[float, ...]
    lowest: float = 0.0

    @property
    def is_fine(self) -> bool:
        """Whether each field can have another value for every record."""
        return min(self.values, default=inf) > self.records


@dataclass(frozen=True)
class Hypothesis:
    """The hypothesis of a statistic.

    Args:
        text: the hypothesis in words.
        value: the statistic's value under it. weights, constant: Σ weight·mean − constant of the
            sums is the combination that is tested; its law is `law`, and its mean is 0.
        alternative: the usual one.
    """

    text: str
    value: float
    weights: tuple[float, ...]
    constant: float
    law: Callable[[DrawnRecords], NullLaw]
    alternative: str = TWO_SIDED


def kendall_law(drawn: DrawnRecords) -> NullLaw:
    """Kendall's tau-a of independent columns: exact, or normal with the variance that ties allow.

    Var = 2/(n(n − 1))·(2(n − 2)·a_x·a_y + b_x·b_y) with a = E sign(x1 − x2)·sign(x1 − x3) and
    b = P(x1 ≠ x2), which are at most (1 − 1/c²)/3 and 1 − 1/c for c values.
    """
    n = drawn.records
    if n <= EXACT_RECORDS and drawn.is_fine:
        return CountLaw(inversions(n), -1.0, 2 / comb(n, 2))
    first, second = (*drawn.values, inf, inf)[:2]
    ranks = discrete_share(first) * discrete_share(second) / 9
    untied = untied_share(first) * untied_share(second)
    return NormalLaw(0.0, sqrt(2 / (n * (n - 1)) * (2 * (n - 2) * ranks + untied)))


def _with_a_label(drawn: DrawnRecords) -> DrawnRecords:
    """One of two columns is a label of two classes."""
    return DrawnRecords(drawn.records, None, (max(drawn.values), 2.0))


def _half(law: NormalLaw) -> NormalLaw:
    return NormalLaw(law.mean / 2, law.std / 2)


def labelled_law(drawn: DrawnRecords) -> NullLaw:
    """Tau-a of a column and a private label."""
    return kendall_law(_with_a_label(drawn))


def _auc_private_law(drawn: DrawnRecords) -> NullLaw:
    """Pairs in order, minus half the pairs of different labels: half of tau-a with the label."""
    law = labelled_law(drawn)
    return _half(law) if isinstance(law, NormalLaw) else law


def _phi_law(drawn: DrawnRecords) -> NullLaw:
    return kendall_law(DrawnRecords(drawn.records, None, (2.0, 2.0)))


def mann_whitney_law(drawn: DrawnRecords) -> NullLaw:
    """AUC − 1/2 of two classes of one law, with the variance of Hemelrijk 1952 for ties."""
    first, second = drawn.classes or (1, 1)
    n, pairs = first + second, first * second
    if pairs <= EXACT_PAIRS and drawn.is_fine:
        return CountLaw(mann_whitney(first, second), -0.5, 1 / pairs)
    values = min(drawn.values, default=inf)
    tied = max(0.0, (n**3 / values**2 - n) / (n * (n - 1)))
    return NormalLaw(0.0, sqrt(max(0.0, n + 1 - tied) / (12 * pairs)))


def signed_rank_law(drawn: DrawnRecords) -> NullLaw:
    """The share of pairs with a positive sum, minus 1/2, under symmetry about 0."""
    n = drawn.records
    if n <= EXACT_RECORDS and drawn.is_fine:
        return CountLaw(signed_pairs(n), -0.5, 1 / comb(n, 2))
    return _normal("wilcoxon_signed_rank", n)


def spearman_law(drawn: DrawnRecords) -> NullLaw:
    """Spearman's rho of independent columns: normal with its exact variance."""
    return _normal("spearman_rho", drawn.records)


def tau_star_law(drawn: DrawnRecords) -> NullLaw:
    """Bergsma and Dassios' tau* of independent columns."""
    return TauStarLaw(_normal("bergsma_dassios_tau_star", drawn.records).std)


def uniformity_law(drawn: DrawnRecords) -> NullLaw:
    """Pairs with equal values minus 1/cells: (χ² − (cells − 1))/(cells·(n − 1)), Pearson's χ²."""
    cells = max(2, round(-1 / drawn.lowest)) if drawn.lowest else 2
    return ChiSquareLaw(cells - 1, 1 / (cells * (drawn.records - 1)))


def triples_law(drawn: DrawnRecords) -> NullLaw:
    """Triples that lean right minus those that lean left, a third, under symmetry.

    The variance depends on the law of the records. It is at most k/n·Var(kernel) (Hoeffding 1948,
    5.13), with k = 3 and Var(kernel) <= 1/9.
    """
    return NormalLaw(0.0, sqrt(3 / drawn.records / 9), "normal law of the largest variance")


def _normal(statistic: str, records: int) -> NormalLaw:
    """Normal with the library's null variance."""
    variance = find_statistic(statistic).null_variance
    return NormalLaw(0.0, sqrt(variance(records)) if variance else 0.0)


INDEPENDENT = "both columns are independent"
ONE_LAW = "both classes have the same law"
SYMMETRIC = "the column is symmetric about 0"

HYPOTHESES = {
    "kendall_tau": Hypothesis(INDEPENDENT, 0.0, (1,), 0.0, kendall_law),
    "kendall_tau_b": Hypothesis(INDEPENDENT, 0.0, (1, 0, 0), 0.0, kendall_law),
    "goodman_kruskal_gamma": Hypothesis(INDEPENDENT, 0.0, (1, 0), 0.0, kendall_law),
    "somers_d": Hypothesis(INDEPENDENT, 0.0, (1, 0), 0.0, kendall_law),
    "kendall_tau_label": Hypothesis(INDEPENDENT, 0.0, (1, 0, 0), 0.0, labelled_law),
    "phi_coefficient": Hypothesis(INDEPENDENT, 0.0, (1, 0, 0), 0.0, _phi_law),
    "spearman_rho": Hypothesis(INDEPENDENT, 0.0, (1,), 0.0, spearman_law),
    "spearman_rho_b": Hypothesis(INDEPENDENT, 0.0, (1, 0, 0), 0.0, spearman_law),
    "bergsma_dassios_tau_star": Hypothesis(INDEPENDENT, 0.0, (1,), 0.0, tau_star_law, GREATER),
    "auc": Hypothesis(ONE_LAW, 0.5, (1,), 0.5, mann_whitney_law),
    "mann_whitney_u": Hypothesis(ONE_LAW, 0.5, (1,), 0.5, mann_whitney_law),
    "auc_private": Hypothesis(ONE_LAW, 0.5, (1, -0.5), 0.0, _auc_private_law),
    "wilcoxon_signed_rank": Hypothesis(SYMMETRIC, 0.5, (1,), 0.5, signed_rank_law),
    "triples_skewness": Hypothesis(
        "the column is symmetric about some value", 0.0, (1,), 0.0, triples_law
    ),
    "uniformity": Hypothesis(
        "the column is uniform over the cells", 0.0, (1,), 0.0, uniformity_law, GREATER
    ),
}
"""Statistic → its hypothesis."""
