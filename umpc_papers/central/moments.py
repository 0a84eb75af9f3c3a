"""Variances without privacy: of the complete, the disjoint and the subsampled mean.

They are for independent records and follow from Hoeffding's ζ_c, the variance of f given c of its
records' values (paper 002, equations 2 and 3).

Paper: Hoeffding 1948; Chaudhuri, Loh, Pandey, Sarkar 2024, sections 2.1 and A.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from umpc.errors import StudyError


def complete_variance(records: int, zetas: Sequence[float]) -> float:
    """Variance of the U-statistic: the sum over c of C(k, c) C(n-k, k-c) ζ_c / C(n, k).

    Args:
        records: n.
        zetas: ζ_1 .. ζ_k, squared values.

    Raises:
        StudyError: there are no ζ, or more than records.
    """
    k = len(zetas)
    if not 1 <= k <= records:
        raise StudyError(f"expected between 1 and {records} conditional variances, {k} came")
    pairs = sum(comb(k, c) * comb(records - k, k - c) * zeta for c, zeta in enumerate(zetas, 1))
    return pairs / comb(records, k)


def disjoint_variance(records: int, zetas: Sequence[float]) -> float:
    """Variance of the mean of n // k independent values: ζ_k / (n // k)."""
    return zetas[-1] / (records // len(zetas))


def subsampled_variance(records: int, count: int, zetas: Sequence[float]) -> float:
    """Variance of the mean over M independent sets: (1 - 1/M) Var U + ζ_k / M.

    Paper: 002, Lemma A.5.
    """
    return (1 - 1 / count) * complete_variance(records, zetas) + zetas[-1] / count
