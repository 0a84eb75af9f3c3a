"""The predicted error of a trusted curator's estimate."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np

from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.study.sizes import Sizes
from umpc.ustat.design import LargerMoments, Moments
from umpc_papers.central.messages import CuratorMessages
from umpc_papers.central.settings import SUBSAMPLED, CentralSettings


def error_of_curator(sizes: Sizes, table: ReferenceTable) -> PredictedError:
    """The error: noise whatever the records are, and the sets that the mechanism takes."""
    study = sizes.study
    n = sizes.records
    curator = CuratorMessages(study)
    noise = curator.usual_std(n)
    bound = curator.choice(n).sampling_bound(n)
    if bound == 0:
        return PredictedError(noise)
    if study.settings_as(CentralSettings).chunks > 1:
        return PredictedError(noise, bound)  # of a median, an upper bound
    return PredictedError(noise, sqrt(_sampling_variance(sizes, table)))


def _sampling_variance(sizes: Sizes, table: ReferenceTable) -> float:
    """The variance from taking the mechanism's sets instead of all."""
    noise = sizes.study.noise
    n = sizes.records
    if sizes.study.degree == 1:
        spread = float(np.var(table.slopes @ table.values))
        if noise in SUBSAMPLED:
            return spread / sizes.edges
        part = n - n // 2 if noise == "hajek_split" else n
        return spread / part * (n - part) / max(1, n - 1)
    if sizes.study.degree > 2:
        moments = table.larger_moments
        if noise in SUBSAMPLED:
            return moments.variance / sizes.edges
        if noise == "hajek_split":
            return _larger_over_part(moments, n - n // 2, n)
        return moments.over_balanced(n // sizes.study.degree, n)
    if noise in SUBSAMPLED:
        return table.moments.same / sizes.edges
    if noise == "hajek_split":
        return _variance_of_part(table.moments, n - n // 2, n)
    return table.moments.variance(n // 2, (n,))


def _variance_of_part(moments: Moments, part: int, records: int) -> float:
    """The variance of the mean over all pairs of `part` of the records, chosen at random."""
    n = records
    own = moments.linear[0] * (n - 1) / (2 * max(1, n - 2))
    varying = 4 * own * (n - part) / (part * (n - 1))
    if n < 4 or part < 2:
        return varying
    edges = comb(part, 2)
    left = 1 - 2 * (part - 2) / (n - 2) + comb(part - 2, 2) / comb(n - 2, 2)
    return varying + moments.rest * max(0.0, left) / edges


def _larger_over_part(moments: LargerMoments, part: int, records: int) -> float:
    """The variance of the mean over all sets of `part` of the records, chosen at random.

    The other parts count as functions of two records, as which they matter most.
    """
    n, k = records, moments.degree
    single = moments.linear * k / part * (n - part) / max(1, n - k)
    left = (1 - part / n) ** 2 * comb(k, 2) / comb(part, 2) if part > 1 else 1.0
    return single + moments.rest * left
