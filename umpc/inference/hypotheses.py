"""The hypothesis that each statistic of the library tests, and its law if that is true.

A law holds for continuous columns. With ties it is *bounded*: break all ties at random, and the
law holds exactly for the statistic that comes out. For Kendall's tau, the AUC, Wilcoxon's signed
rank and Spearman's rho the statistic with ties is the mean of that statistic over the ways to break
them. So it is nearer to the hypothesis' value, and its variance is smaller. A field's number of
values is public and bounds the variance further:

    Σ p³ >= 1/c²  and  Σ p² >= 1/c  for shares p of c values.

For tau* there is no such argument; `python -m bench.type_one --ties` tries it.

A limit law is too short for few records. So few records have an exact law where there is one
(`few_records.py`, and below), and elsewhere the tails of a limit are multiplied by 1 + 2/n. `python
-m bench.type_one --records` prints how often true hypotheses are rejected then.

*Equal pairs.* The exact law of the number of equal pairs, of records that are uniform over cells.

With few cells all counts of all cells are visited. With more, the counts are independent Poisson
numbers, given that their sum is n. So with w(i) for a Poisson probability of mean n/cells,

    E y^pairs = [x^n] (Σ w(i)·x^i·y^(i(i − 1)/2))^cells / P(sum = n).

Both x and y run over roots of unity: the mean over x gives the coefficient, and one Fourier
transform over y gives the law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, comb, exp, inf, lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.inference.null_laws import (
    ALTERNATIVES,
    FEW,
    GREATER,
    TWO_SIDED,
    ChiSquareLaw,
    CountLaw,
    LargestTailLaw,
    NormalLaw,
    NullLaw,
    TauStarLaw,
    concordant_fours,
    discrete_share,
    inversions,
    mann_whitney,
    most_of_a_label,
    most_of_two_values,
    rank_products,
    signed_pairs,
    untied_share,
)
from umpc.ustat.statistics import find_statistic

EXACT_RECORDS = 120
"""Up to so many records, laws of counts are exact; a normal law of the exact variance beyond."""
EXACT_PAIRS = 3_600
"""Up to so many pairs across two classes, too."""
LABELLED_RECORDS = 12
"""Up to so many, the law of a column with a private label is exact."""
SHORTNESS = 2.0
"""The tails of a limit law are multiplied by 1 + SHORTNESS/n."""


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
        law: None where only a bound of its variance is known, which the sums release.
        value: the statistic's value under it. weights, constant: Σ weight·mean − constant of the
            sums is the combination that is tested; its law is `law`, and its mean is 0.
        alternative: the usual one. alternatives: those that the test has.
        one_sided: why there is only one, if there is.
    """

    text: str
    law: Callable[[DrawnRecords], NullLaw] | None
    value: float = 0.0
    weights: tuple[float, ...] = (1,)
    constant: float = 0.0
    alternative: str = TWO_SIDED
    alternatives: tuple[str, ...] = ALTERNATIVES
    one_sided: str = ""


def room(records: int) -> float:
    """The factor of a limit law's tails."""
    return 1 + SHORTNESS / records


def kendall_law(drawn: DrawnRecords) -> NullLaw:
    """Kendall's tau-a of independent columns: exact, or normal with the variance that ties allow.

    Var = 2/(n(n − 1))·(2(n − 2)·a_x·a_y + b_x·b_y) with a = E sign(x1 − x2)·sign(x1 − x3) and
    b = P(x1 ≠ x2), which are at most (1 − 1/c²)/3 and 1 − 1/c for c values.
    """
    n = drawn.records
    if n <= EXACT_RECORDS and drawn.is_fine:
        return CountLaw(inversions(n), -1.0, 2 / comb(n, 2))
    first, second = (*drawn.values, inf, inf)[:2]
    few, many = sorted((first, second))
    if many <= 2:
        return two_values_law(n)
    if few <= 2 and n <= LABELLED_RECORDS and many > n:
        step = 1 / comb(n, 2)
        return LargestTailLaw(most_of_a_label(n), step * (n**2 // 4), step)
    ranks = discrete_share(first) * discrete_share(second) / 9
    untied = untied_share(first) * untied_share(second)
    variance = 2 / (n * (n - 1)) * (2 * (n - 2) * ranks + untied)
    return NormalLaw(0.0, sqrt(variance), factor=1.0 if drawn.is_fine else room(n))


def two_values_law(records: int) -> NullLaw:
    """Tau-a of independent columns of two values, whose shares are not known.

    It is 2·(a·n − r·s)/(n(n − 1)) with r and s records of the second value, and a of both. Given r
    and s its steps are 2/(n − 1).
    """
    n = records
    if n <= EXACT_RECORDS:
        step = 1 / comb(n, 2)
        return LargestTailLaw(most_of_two_values(n), step * (n**2 // 4), step)
    return NormalLaw(0.0, sqrt(1 / (4 * (n - 1))), factor=room(n), half_step=1 / (n - 1))


def _with_a_label(drawn: DrawnRecords) -> DrawnRecords:
    """One of two columns is a label of two classes."""
    return DrawnRecords(drawn.records, None, (max(drawn.values), 2.0))


def _half(law: NullLaw) -> NullLaw:
    """The law of half the statistic."""
    if isinstance(law, LargestTailLaw):
        return replace(law, limit=law.limit / 2, step=law.step / 2)
    if isinstance(law, NormalLaw):
        return replace(law, mean=law.mean / 2, std=law.std / 2, half_step=law.half_step / 2)
    raise AssertionError(f"a label has two values, so its law is not {law.name}")


def labelled_law(drawn: DrawnRecords) -> NullLaw:
    """Tau-a of a column and a private label."""
    return kendall_law(_with_a_label(drawn))


def _auc_private_law(drawn: DrawnRecords) -> NullLaw:
    """Pairs in order, minus half the pairs of different labels: half of tau-a with the label."""
    return _half(labelled_law(drawn))


def _phi_law(drawn: DrawnRecords) -> NullLaw:
    return kendall_law(DrawnRecords(drawn.records, None, (2.0, 2.0)))


def mann_whitney_law(drawn: DrawnRecords) -> NullLaw:
    """AUC − 1/2 of two classes of one law, with the variance of Hemelrijk 1952 for ties."""
    first, second = drawn.classes or (1, 1)
    n, pairs = first + second, first * second
    if pairs <= EXACT_PAIRS and drawn.is_fine:
        return CountLaw(mann_whitney(first, second), -0.5, 1 / pairs)
    values = min(drawn.values, default=inf)
    is_two = values <= 2
    if is_two and n <= EXACT_RECORDS:
        # (a·n − n0·s)/(2·n0·n1), with s records of the second value, and a in the first class
        step = 1 / (2 * pairs)
        return LargestTailLaw(most_of_two_values(n, first), step * (n**2 // 4), step)
    tied = max(0.0, (n**3 / values**2 - n) / (n * (n - 1)))
    half_step = n / (4 * pairs) if is_two else 0.0
    factor = 1.0 if drawn.is_fine else room(n)
    std = sqrt(max(0.0, n + 1 - tied) / (12 * pairs))
    return NormalLaw(0.0, std, factor=factor, half_step=half_step)


def signed_rank_law(drawn: DrawnRecords) -> NullLaw:
    """The share of pairs with a positive sum, minus 1/2, under symmetry about 0."""
    n = drawn.records
    if n <= EXACT_RECORDS and drawn.is_fine:
        return CountLaw(signed_pairs(n), -0.5, 1 / comb(n, 2))
    return NormalLaw(0.0, _std("wilcoxon_signed_rank", n), factor=1.0 if drawn.is_fine else room(n))


def spearman_law(drawn: DrawnRecords) -> NullLaw:
    """Spearman's rho of independent columns: exact, or normal with its exact variance."""
    n = drawn.records
    if n <= FEW and drawn.is_fine:
        scale = 3 / (n * (n - 1) * (n - 2))
        return CountLaw(rank_products(n), -scale * ((n**3 - n) // 3), scale)
    return NormalLaw(0.0, _std("spearman_rho", n), factor=room(n))


def tau_star_law(drawn: DrawnRecords) -> NullLaw:
    """Bergsma and Dassios' tau* of independent columns: exact, or the limit."""
    n = drawn.records
    if n <= FEW:
        return CountLaw(concordant_fours(n), -1 / 3, 1 / comb(n, 4))
    return TauStarLaw(_std("bergsma_dassios_tau_star", n), room(n))


def uniformity_law(drawn: DrawnRecords) -> NullLaw:
    """Pairs with equal values minus 1/cells: (χ² − (cells − 1))/(cells·(n − 1)), Pearson's χ²."""
    n, cells = drawn.records, max(2, round(-1 / drawn.lowest)) if drawn.lowest else 2
    exact = equal_pairs(n, cells)
    if exact is None:
        return ChiSquareLaw(cells - 1, 1 / (cells * (n - 1)))
    step = 1 / comb(n, 2)
    start = exact.least * step - 1 / cells
    name = "exact law of equal pairs"
    return CountLaw(exact.probabilities, start, step, name, exact.rounding)


def triples_law(drawn: DrawnRecords) -> NullLaw:
    """Triples that lean right minus those that lean left, a third, under symmetry.

    The variance depends on the law of the records. It is at most k/n·Var(kernel) (Hoeffding 1948,
    5.13), with k = 3 and Var(kernel) <= 1/9.
    """
    return NormalLaw(0.0, sqrt(3 / drawn.records / 9), "normal law of the largest variance")


def _std(statistic: str, records: int) -> float:
    """The standard deviation by the library's null variance."""
    variance = find_statistic(statistic).null_variance
    return sqrt(variance(records)) if variance else 0.0


INDEPENDENT = "both columns are independent"
ONE_LAW = "both classes have the same law"
SYMMETRIC = "the column is symmetric about 0"
SAME_AUC = "both scores have the same AUC"
NEVER_BELOW = "it is 0 for independent columns and above 0 for others"

HYPOTHESES = {
    "kendall_tau": Hypothesis(INDEPENDENT, kendall_law),
    "kendall_tau_b": Hypothesis(INDEPENDENT, kendall_law, weights=(1, 0, 0)),
    "goodman_kruskal_gamma": Hypothesis(INDEPENDENT, kendall_law, weights=(1, 0)),
    "somers_d": Hypothesis(INDEPENDENT, kendall_law, weights=(1, 0)),
    "kendall_tau_label": Hypothesis(INDEPENDENT, labelled_law, weights=(1, 0, 0)),
    "phi_coefficient": Hypothesis(INDEPENDENT, _phi_law, weights=(1, 0, 0)),
    "spearman_rho": Hypothesis(INDEPENDENT, spearman_law),
    "spearman_rho_b": Hypothesis(INDEPENDENT, spearman_law, weights=(1, 0, 0)),
    "bergsma_dassios_tau_star": Hypothesis(
        INDEPENDENT,
        tau_star_law,
        alternative=GREATER,
        alternatives=(GREATER,),
        one_sided=NEVER_BELOW,
    ),
    "auc": Hypothesis(ONE_LAW, mann_whitney_law, 0.5, (1,), 0.5),
    "mann_whitney_u": Hypothesis(ONE_LAW, mann_whitney_law, 0.5, (1,), 0.5),
    "auc_private": Hypothesis(ONE_LAW, _auc_private_law, 0.5, (1, -0.5), 0.0),
    "wilcoxon_signed_rank": Hypothesis(SYMMETRIC, signed_rank_law, 0.5, (1,), 0.5),
    "triples_skewness": Hypothesis("the column is symmetric about some value", triples_law),
    "uniformity": Hypothesis(
        "the column is uniform over the cells", uniformity_law, alternative=GREATER
    ),
    "auc_difference": Hypothesis(SAME_AUC, None, weights=(1, -1, 0)),
    "auc_difference_public": Hypothesis(SAME_AUC, None, weights=(1, -1)),
    "tau_difference": Hypothesis(
        "both columns have the same tau with the third", None, weights=(1, -1)
    ),
    "concordance_difference": Hypothesis(
        "both scores have the same concordance index", None, weights=(1, -1, 0)
    ),
}
"""Statistic → its hypothesis."""


# --- equal pairs ----------------------------------------------------------------------------------

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

LOST = 32.3
"""Numbers of pairs whose probability is below e^-LOST, which is 1e-14, lie outside the window."""
NOTHING = 1e-16
"""A cell's count of which all cells together have a smaller probability counts for nothing."""
MOST_TABLES = 1 << 20
"""Ways to spread the records over the cells, up to which they are all visited."""
MOST_PLACES = 1 << 20
"""The largest window of numbers of pairs."""
MOST_RECORDS = 10_000
MOST_WORK = 1 << 26
"""Multiplications up to which the transform is computed: about a quarter of a second."""
TILTS = 80
AT_ONCE = 1 << 18
"""Numbers of a block: 4 MiB."""


@dataclass(frozen=True)
class EqualPairs:
    """least: the smallest number of pairs. probabilities: from it on. rounding: more than the sum
    of some of them is wrong by.
    """

    least: int
    probabilities: Floats
    rounding: float


@lru_cache(maxsize=8)
def equal_pairs(records: int, cells: int) -> EqualPairs | None:
    """The law of the number of pairs of records in one cell; None where it takes too long.

    Args: records: at least 2. cells: at least 2.
    """
    if records > MOST_RECORDS:
        return None
    weights = _poisson(records / cells, records)
    likely = np.flatnonzero(np.exp(weights) * cells > NOTHING)
    weights = weights[: int(likely[-1]) + 1]
    low, high = _window(records, cells, weights)
    if high - low > MOST_PLACES:
        return None
    rounding = 100 * exp(-LOST) + NOTHING * cells * sqrt(records)
    if comb(records + cells - 1, cells - 1) <= MOST_TABLES:
        return EqualPairs(low, _visited(records, cells, low, high), rounding)
    places = 1 << (high - low + 1).bit_length()
    roots = ceil(10 * sqrt(records)) + 40
    if (places // 2 + 1) * roots * (len(weights) + 4 * cells.bit_length()) > MOST_WORK:
        return None
    times = np.arange(places // 2 + 1) * (2 * pi / places)
    rows = max(1, AT_ONCE // roots)
    blocks = np.split(times, range(rows, len(times), rows))
    found = [_characteristic(block, np.exp(weights), records, cells, roots) for block in blocks]
    law = np.fft.irfft((np.concatenate(found) * np.exp(-1j * times * low)).conj(), places)
    return EqualPairs(low, np.maximum(law[: high - low + 1], 0.0), rounding)


def _visited(records: int, cells: int, low: int, high: int) -> Floats:
    """The probabilities from `low` to `high` pairs, by all ways to spread the records."""
    left, pairs, logs = np.array([records]), np.zeros(1, dtype=np.int64), np.zeros(1)
    factorials = _log_factorials(records)
    for cell in range(cells):
        # a way for each count of this cell, and the last cell takes the rest
        many = left + 1 if cell < cells - 1 else np.ones_like(left)
        ways = np.repeat(np.arange(len(left)), many)
        counts = np.arange(len(ways)) - np.repeat(np.cumsum(many) - many, many)
        counts = counts if cell < cells - 1 else left
        left = left[ways] - counts
        pairs = pairs[ways] + counts * (counts - 1) // 2
        logs = logs[ways] - factorials[counts]
    shares = np.exp(logs + factorials[records] - records * log(cells))
    inside = (pairs >= low) & (pairs <= high)
    law = np.bincount(pairs[inside] - low, shares[inside], high - low + 1)
    return np.asarray(law, dtype=np.float64)


def _log_factorials(most: int) -> Floats:
    return np.array([lgamma(number + 1) for number in range(most + 1)])


def _poisson(mean: float, most: int) -> Floats:
    """Logarithms of Poisson probabilities from 0 to `most`."""
    found: Floats = np.arange(most + 1) * log(mean) - mean - _log_factorials(most)
    return found


def _window(records: int, cells: int, weights: Floats) -> tuple[int, int]:
    """The smallest and the largest number of pairs that count.

    Chernoff's bound of the Poisson numbers, divided by P(sum = n) > 1/(3·√n).
    """
    counts = np.arange(len(weights))
    pairs = counts * (counts - 1) / 2
    each, more = divmod(records, cells)
    least = more * comb(each + 1, 2) + (cells - more) * comb(each, 2)
    spread = sqrt(comb(records, 2) / cells) + 1
    low, high = float(least), float(comb(records, 2))
    for tilt in np.geomspace(1e-2, 1e2, TILTS) / spread:
        room = LOST + log(3 * sqrt(records))
        above = cells * float(np.logaddexp.reduce(weights + tilt * pairs))
        below = cells * float(np.logaddexp.reduce(weights - tilt * pairs))
        high = min(high, (above + room) / tilt)
        low = max(low, -(below + room) / tilt)
    return int(low), ceil(high)


def _characteristic(
    times: Floats, shares: Floats, records: int, cells: int, roots: int
) -> Complexes:
    """E exp(i·t·pairs) at these times."""
    counts = np.arange(len(shares))
    angles = np.arange(roots) * (2 * pi / roots)
    by_time = shares * np.exp(1j * np.outer(times, counts * (counts - 1) / 2))
    by_root = np.exp(1j * np.outer(counts, angles))
    tables = _power(by_time @ by_root, cells)
    given = roots * np.exp(_poisson(records, records)[-1])
    found: Complexes = tables @ np.exp(-1j * angles * records) / given
    return found


def _power(base: Complexes, exponent: int) -> Complexes:
    """base^exponent, by repeated squares."""
    found = np.ones_like(base)
    while exponent:
        if exponent & 1:
            found = found * base
        exponent >>= 1
        base = base * base
    return found
