"""Bounds as the papers print them, for the tests of what is measured and predicted.

No protocol computes them. Papers: Bell et al. 2020; Ghazi et al. 2024; Sinh & Ramon 2025. Each
docstring says where a bound departs from its paper.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from umpc.mpc.arrays import Floats
from umpc_papers.local.bell_auc import PRINTED_FACTOR
from umpc_papers.local.factors import Factors


def theorem_1(records: int, truth: float, width: float = 1.0) -> float:
    """Upper bound on the variance over random records and responses.

    Paper: Bell et al. 2020, theorem 1 (corollary 2).

    Args:
        truth: 1 - beta.
        width: length of the kernel's range; the paper has 1.
    """
    n = records
    g = truth
    return width**2 * (1 / (n * g**2) + (2 - g) ** 2 / (2 * n * (n - 1) * g**4))


def theorem_1_small_epsilon(records: int, cells: int, epsilon: float, width: float = 1.0) -> float:
    """Theorem 1's bound for small epsilon: (1 + t/e)^2/n + 2 (1 + t/e)^4/n^2.

    The paper has half of (1 + t/e)^4/n^2 as its second term, because it sets (1 + beta)^2 to 1,
    although beta is nearly 1. It then drops the term. That is right only for n well above
    2 t^2/e^2: at 64 cells, epsilon 1 and 4,521 records the term is nearly twice the first one.
    """
    gain = 1 + cells / epsilon
    return width**2 * (gain**2 / records + 2 * gain**4 / records**2)


def theorem_2_lipschitz(records: int, truth: float, bins: int, lipschitz: float) -> float:
    """Bound on the mean squared error for a Lipschitz kernel: theorem 1 + L^2/k^2.

    It holds for a kernel on [0, 1]^2 that is L-Lipschitz in each argument, with simple rounding.

    The paper has L^2/(2 k^2). Both arguments move by at most 1/(2k), so the error is at most
    2 L/(2k) and its square at most L^2/k^2. The kernel f = L (x + y) reaches this bound when all
    records lie at the upper end of their bin.
    """
    return theorem_1(records, truth) + lipschitz**2 / bins**2


def theorem_2_smooth(records: int, truth: float, bins: int, lipschitz: float) -> float:
    """Bound on the mean squared error for a density that is L-Lipschitz, with the average kernel.

    The bound is theorem 1 + (2 L/k + 2 L^2/k^2)^2. The paper squares without the mixed term:
    4 L^2/k^2 + 4 L^4/k^4.
    """
    return theorem_1(records, truth) + (2 * lipschitz / bins + 2 * lipschitz**2 / bins**2) ** 2


def corollary_1(records: int, epsilon: float, lipschitz: float) -> int:
    """The number of bins of corollary 1: n^(1/4) √(L ε), for ε ≤ 1 and many records.

    It balances k²/(nε²) of theorem 1 with L²/k² of theorem 2.
    """
    return max(1, round(sqrt(sqrt(records) * lipschitz * epsilon)))


def theorem_3(
    negatives: int,
    positives: int,
    levels: int,
    variance_per_record: float,
    constant: float,
    as_printed: bool = False,
) -> float:
    """Bound on the AUC's mean squared error when discarded nodes count as half.

    It holds for independent levels. With the `users` split the bound is alpha times larger.

    Args:
        variance_per_record: C alpha.
        constant: a > 1.
        as_printed: whether to use the paper's 21 instead of the corrected constant.
    """
    root = sqrt(constant)
    factor = PRINTED_FACTOR if as_printed else 16 * constant + 9
    return _bound(
        negatives,
        positives,
        levels,
        variance_per_record,
        smaller_factor=4 * constant + 1,
        root_factor=factor / (root - 1),
    )


def theorem_3_zero(
    negatives: int, positives: int, levels: int, variance_per_record: float, constant: float
) -> float:
    """Bound on the AUC's mean squared error when discarded nodes count as zero."""
    return _bound(
        negatives,
        positives,
        levels,
        variance_per_record,
        smaller_factor=8 * constant + 2,
        root_factor=1 / (sqrt(constant) - 1),
    )


def _bound(
    minus: int,
    plus: int,
    levels: int,
    per_record: float,
    smaller_factor: float,
    root_factor: float,
) -> float:
    """Theorem 3 with given factors of m and of sqrt(2 n C alpha), divided by (n- n+)^2."""
    n = minus + plus
    smaller = min(minus, plus)
    inside = 2 * n + smaller_factor * smaller + root_factor * sqrt(2 * n * per_record)
    return per_record * levels * inside / (minus * plus)


def best_constant_approximate(
    negatives: int, positives: int, variance_per_record: float, variant: str
) -> float:
    """Corollaries 4 and 5: the approximation (1 + sqrt(right side))^2 of `best_constant`."""
    root = sqrt(2 * (negatives + positives) * variance_per_record) / min(negatives, positives)
    return (1 + sqrt(root * (PRINTED_FACTOR / 8 if variant == "half" else 1 / 16))) ** 2


def optimal_pairings(
    records: int, epsilon: float, zeta_1: float, zeta_2: float, width: float = 1.0
) -> float:
    """The P that makes theorem 5's error least, as a real number of at least 1.

    The error is 2/(Pn)·[2(P − 1)(1 − 1/(n − 1))ζ₁ + (1 + (P − 1)/(n − 1))ζ₂ + 2P²w²/ε²]. Terms
    without P aside it is c/P + 4Pw²/(nε²), so P² = (ζ₂(n − 2) − 2ζ₁(n − 2))/(n − 1)·ε²/(2w²).

    Args: width: w, the length of the kernel's range.
    """
    rest = (zeta_2 - 2 * zeta_1) * (records - 2) / (records - 1)
    return max(1.0, sqrt(max(0.0, rest) / 2) * epsilon / width)


def count_variance(records: float, truth: float, count: float = 0.0) -> float:
    """Variance of the estimated count of a value.

    Args:
        records: n.
        truth: g, the gain of a record's bit.
        count: the number of records that have the value.
    """
    return records / truth**2 - count


def lemma_5(records: float, epsilon: float) -> float:
    """The paper's bound on the variance of a count, 4 n e^eps/(e^eps-1)^2.

    It is too small by n - count.
    """
    return float(records / np.sinh(epsilon / 2) ** 2)


def projection_variance(exact: Factors, dimension: int, mean: Floats) -> float:
    """Approximate variance of mean' A mean over projections.

    It is 2 |x+|^4/d+ + 2 |x-|^4/d-, where x± are the parts of the mean vector.

    Args:
        mean: (t,) float64, the share of records in each cell.
    """
    vector = mean @ exact.vectors
    total = 0.0
    rank = float(np.trace(exact.form @ exact.form))
    square = exact.form @ exact.form
    for part in ((square + exact.form) / 2, (square - exact.form) / 2):
        mine = round(dimension * float(np.trace(part)) / rank)
        if mine:
            total += 2 * float(vector @ part @ vector) ** 2 / mine
    return total


def sinh_ramon_bytes(records: int, epsilon: float, cells: int, element_bytes: int) -> float:
    """Bytes that Sinh & Ramon 2025, table 1, count for Ghazi's protocol.

    They are n d numbers with d = epsilon^2 n ln t, without the constants that the table omits.
    """
    return records * epsilon**2 * records * float(np.log(cells)) * element_bytes
