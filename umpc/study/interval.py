"""The intervals of a report: for the statistic on all sets of the records, and of the noise alone.

`umpc/inference` computes both in the same way from the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite

from umpc.study.document import Study
from umpc.study.report import SumReport
from umpc.ustat.error_law import Floats, Noise
from umpc.ustat.estimators import WITH_VARIANCE, Estimate, estimate
from umpc.ustat.intervals import covering_interval, sampling_std, statistic_range
from umpc.ustat.kernel import Kernel
from umpc.ustat.released_means import ReleasedStatistic, ReleasedSum, joint_values

SETS = {1: "records", 2: "pairs", 3: "triples", 4: "quadruples"}
"""The plural name of a set of so many records."""
UNBOUNDED = (
    "no value: with the sampling of E a denominator cannot be told from zero; take more edges"
)
MOVED = "noise moved the estimate out of its possible values,"
"""The first words of the note about an estimate that is impossible."""
COUNTS_AS = "intervals take it for the nearest possible one"
ROUNDING = 1e-9
"""An estimate is beyond its possible values by more than this part of it."""


@dataclass(frozen=True)
class Limits:
    """Where an interval is not for the value on all sets.

    covers: the value that it is for. note: how far that can be from the value on all sets.
    """

    covers: str
    note: str = ""


@dataclass(frozen=True)
class Covering:
    """The 95 % intervals of a statistic, in the estimate's unit.

    low, high: for the statistic that was asked for; None where there is no value.
    noise_low, noise_high: of the noise alone, for the value on the sampled sets; None where there
        is no value, and where it has no end.
    sampling_std: of the sampling of E, at most, given the released means.
    """

    low: float | None = None
    high: float | None = None
    noise_low: float | None = None
    noise_high: float | None = None
    sampling_std: float | None = None


NOTHING = Covering()


def covers_all_sets(study: Study) -> str:
    """The value that an interval over all sets of the records is for."""
    if study.degree == 1:
        return "the value on all records"
    classes = " of the two classes" if study.two_sample else " of the records"
    return f"the value on all {SETS.get(study.degree, 'sets')}{classes}"


def estimated(
    study: Study, sums: Sequence[SumReport], sets: int, edges: int = 0
) -> tuple[Estimate, Covering]:
    """The statistic of the released means with the errors of its noise, and its intervals.

    A note says where noise moved the value beyond all possible ones.

    Args: sets: the number of possible sets. edges: |E|; 0 where it is not known.
    """
    result = estimate(
        study.estimator,
        [entry.mean for entry in sums],
        [entry.noise_std for entry in sums],
        [entry.sampling_std_bound for entry in sums],
        sets,
    )
    if result.value is None:
        return result, NOTHING
    released = tuple(_released(study, sums))
    covering = _covering(study, released, sets, edges)
    if covering is NOTHING:
        return Estimate(None, None, None, UNBOUNDED), NOTHING
    low, high = statistic_range(study.estimator, _points(study, len(released)), sets)
    rounding = ROUNDING * abs(result.value)
    if low - rounding <= result.value <= high + rounding:
        return result, covering
    return replace(result, note=f"{MOVED} {low:g} to {high:g}; {COUNTS_AS}"), covering


@lru_cache(maxsize=256)
def _covering(study: Study, released: tuple[ReleasedSum, ...], sets: int, edges: int) -> Covering:
    """The intervals of these released sums; `NOTHING` where the first one has no end.

    The last ones are kept: an audit runs one study many times, and few values come back often.
    """
    statistic = _statistic(study, released, edges)
    low, high = covering_interval(study.estimator, statistic, sets)
    if not (isfinite(low) and isfinite(high)):
        return NOTHING
    found = Covering(low, high, low, high, 0.0)
    if not any(entry.sampling for entry in released):
        return found
    std = sampling_std(study.estimator, statistic, sets)
    low, high = covering_interval(study.estimator, statistic.noise_alone, sets)
    if not (isfinite(low) and isfinite(high)):
        return replace(found, noise_low=None, noise_high=None, sampling_std=std)
    return replace(found, noise_low=low, noise_high=high, sampling_std=std)


def noise_law(entry: SumReport) -> Noise:
    """The law of the noise of a released sum."""
    return Noise(entry.noise_std, entry.noise_step, entry.noise_shape, entry.noise_shift)


def statistic_of(study: Study, sums: Sequence[SumReport], edges: int = 0) -> ReleasedStatistic:
    """The released means with the ranges of their kernels; without a sum that gives a variance.

    Args: edges: |E|; 0 where it is not known.
    """
    return _statistic(study, tuple(_released(study, sums)), edges)


def _statistic(study: Study, released: tuple[ReleasedSum, ...], edges: int) -> ReleasedStatistic:
    return ReleasedStatistic(released, _points(study, len(released)), edges=edges)


def released_sums(sums: Sequence[SumReport], kernels: Iterable[Kernel]) -> list[ReleasedSum]:
    """All released sums with their noise and their kernels' ranges."""
    return [
        ReleasedSum(
            mean=entry.mean,
            noise=noise_law(entry),
            low=float(kernel.interval.low),
            high=float(kernel.interval.high),
            sampling=entry.sampling_std_bound,
        )
        for entry, kernel in zip(sums, kernels, strict=True)
    ]


def _released(study: Study, sums: Sequence[SumReport]) -> list[ReleasedSum]:
    """The sums that the interval is about."""
    released = released_sums(sums, study.parsed_kernels)
    return released[:1] if study.estimator == WITH_VARIANCE else released


@lru_cache(maxsize=16)
def _points(study: Study, count: int) -> Floats:
    return joint_values(study.parsed_kernels[:count])
