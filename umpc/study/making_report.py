"""The report of a study, from what was released of each sum and what the run took.

*Possible.* The sums that a study can release at all, and the refusal of every other sum.

A sum over E lies between |E|·min f and |E|·max f, and its noise stays within a tail bound but for a
probability of 2^-64. A sum outside both is no result: a process deviated from the protocol, or its
memory failed. The sum itself is never shown, because a liar may have put one record's value there.

*False alarms*: honest parties are refused with a probability of at most 2^-64 for each sum, because
the value is always inside its range and the tail bound is exceeded no more often. Noise of finitely
many coins never exceeds its bound, so it is never refused.

*Missed*: any deviation that leaves the sum inside the range.

*What a refusal tells*: a liar that makes the sum impossible for one value of a bit learns that bit
from the refusal. So the coordinator tells no node of it (`umpc/coordinator/client.py`).

The intervals of a report: for the statistic on all sets of the records, and of the noise alone.

`umpc/inference` computes both in the same way from the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isfinite

from umpc.errors import ImpossibleResult
from umpc.study.attempt import Attempt
from umpc.study.cost import NO_COST, Cost, Measured, count_online
from umpc.study.document import Study
from umpc.study.report import PartReport, Report, SumReport
from umpc.study.rules import classes_of
from umpc.study.settings import edge_interval
from umpc.study.sizes import Sizes
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
        study.pair_ends,
    )
    if result.value is None:
        return result, NOTHING
    released = tuple(_released(study, sums))
    covering = _covering(study, released, sets, edges)
    if covering is NOTHING:
        return Estimate(None, None, None, UNBOUNDED), NOTHING
    if study.pair_ends:
        return result, covering
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
    points, ends = _points(study, len(released)), study.pair_ends
    statistic = ReleasedStatistic(released, points, edges=edges, ends=ends)
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


def released_sums(sums: Sequence[SumReport], kernels: Iterable[Kernel]) -> list[ReleasedSum]:
    """All released sums with their noise and their kernels' ranges."""
    return [
        ReleasedSum(
            mean=entry.mean,
            noise=Noise(entry.noise_std, entry.noise_step, entry.noise_shape, entry.noise_shift),
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


# --- the report -----------------------------------------------------------------------------------


SEVERAL = (
    "the study reports several values, each with its own interval; a p-value of one of them is not "
    "corrected for their number"
)
"""The note of a report of several values."""


def report_of(
    study: Study,
    sums: list[SumReport],
    run: Attempt | Sizes,
    delta: Fraction,
    measured: Measured,
    cost: Cost = NO_COST,
    limits: Limits | None = None,
) -> Report:
    """The report, from what was released of each sum.

    Args:
        limits: what the interval covers, where that is not the value on all sets.
        run: the attempt; for a replay the sizes alone, because its seed is not known.
        delta: δ of the release. cost: what was predicted; nothing for a replay.
    """
    attempt = run if isinstance(run, Attempt) else None
    sizes = run.sizes if isinstance(run, Attempt) else run
    members = attempt.members if attempt else ()
    online = count_online(cost.sent, cost.revealed, cost.asked, cost.heaps)
    predicted = {f"{key}_predicted": value for key, value in online.items()}
    result, covering = estimated(study, sums, sizes.sets, sizes.edges)
    limits = limits or Limits(covers_all_sets(study))
    return Report(
        study=study.name,
        statistic=study.statistic,
        estimator=study.estimator,
        estimate=result.value,
        noise_std=result.noise_std,
        noise_std_if_honest=_noise_if_honest(study, sums, sizes),
        **vars(covering),
        interval_covers=limits.covers,
        sampling_std_bound=result.sampling_std_bound,
        note=SEVERAL if study.several else _note(result, limits),
        sums=sums,
        protocol=study.protocol,
        noise=study.noise,
        epsilon=float(study.exact_epsilon),
        delta=float(delta),
        coins=study.coins,
        degree=study.degree,
        edges=sizes.edges,
        sets=sizes.sets,
        max_degree=sizes.max_degree,
        records=sizes.records,
        nodes=len(study.nodes),
        max_colluding=study.max_colluding,
        adversary=study.adversary,
        backend=study.backend,
        preprocessing=study.preprocessing,
        **{**vars(measured), "timeline": list(measured.timeline)},
        **predicted,
        rounds_predicted=cost.rounds,
        bytes_online=measured.bytes_online,
        bytes_online_predicted=cost.bytes_online,
        bytes_offline_predicted=cost.bytes_offline,
        study_hash=study.hash.hex(),
        joint_seed=attempt.seed.hex() if attempt else "",
        records_by_node=[member.records for member in members],
        first_class_by_node=[member.first_class for member in members],
        fields=[field_text.to_dict() for field_text in study.fields],
        where=study.condition.text if study.condition else "",
        protected=study.protected,
        parts=list(_parts(study, sums, sizes, limits)),
        strata=study.stratum_field,
        missing=list(study.names_missing),
        person=study.people.column if study.people else "",
        classes=classes_of(study),
        coordinator=study.coordinator,
        sites=[node.name for node in study.nodes],
    )


def _parts(
    study: Study, sums: Sequence[SumReport], sizes: Sizes, limits: Limits
) -> Iterator[PartReport]:
    """Each of several values, from its own sums, as a study of this value alone has it."""
    shares = study.split_by_name if study.several else {}
    first = 0
    for part, alone in zip(study.several, study.single_statistics, strict=False):
        own = list(sums[first : first + part.sums])
        result, covering = estimated(alone, own, sizes.sets, sizes.edges)
        yield PartReport(
            statistic=part.name,
            stratum=part.stratum,
            estimator=part.estimator,
            epsilon=float(study.exact_epsilon * shares[part.name]),
            first_sum=first,
            sums=part.sums,
            estimate=result.value,
            noise_std=result.noise_std,
            noise_std_if_honest=_noise_if_honest(alone, own, sizes),
            **vars(covering),
            sampling_std_bound=result.sampling_std_bound,
            note=_note(result, limits),
        )
        first += part.sums


def _note(result: Estimate, limits: Limits) -> str:
    """The reason why there is no value; else what the interval does not cover, and what moved."""
    if result.value is None:
        return result.note
    return "; ".join(filter(None, (limits.note, result.note)))


def _noise_if_honest(study: Study, sums: Sequence[SumReport], sizes: Sizes) -> float | None:
    """The standard deviation of the estimate's noise, had the study been of grade honest."""
    stds = [
        entry.noise_std if entry.noise_std_if_honest is None else entry.noise_std_if_honest
        for entry in sums
    ]
    means = [entry.mean for entry in sums]
    zeros = [0.0] * len(sums)
    return estimate(study.estimator, means, stds, zeros, sizes.sets, study.pair_ends).noise_std


# --- possible -------------------------------------------------------------------------------------

Range = tuple[int, int]
"""The least and the largest possible number."""


def edge_range(study: Study, kernel: Kernel) -> Range:
    """The values that one edge can have in this study, in units of the kernel.

    This is the only place that says so: a grade that lets a liar flip bits widens the range here.
    """
    interval = edge_interval(kernel, study.edge_grade)
    return floor(interval.low / kernel.unit), ceil(interval.high / kernel.unit)


def sum_range(study: Study, kernel: Kernel, edges: int, tail: int) -> Range:
    """The values that a sum of this many edges can have with its noise, in units of the kernel."""
    low, high = edge_range(study, kernel)
    return edges * low - tail, edges * high + tail


def check_sums(sizes: Sizes, totals: Sequence[int], tails: Sequence[int]) -> None:
    """Whether every released sum is possible.

    Args:
        totals: the noisy sums, in units of their kernels.
        tails: a bound of each sum's noise in units, but for a probability of 2^-64.

    Raises: ImpossibleResult.
    """
    study = sizes.study
    for kernel, total, tail in zip(study.parsed_kernels, totals, tails, strict=True):
        low, high = sum_range(study, kernel, sizes.edges, tail)
        if not low <= total <= high:
            scale = kernel.unit / sizes.edges
            raise impossible(study, f"every possible mean {within(low * scale, high * scale)}")


def within(low: Fraction | float, high: Fraction | float) -> str:
    """A range in words."""
    return f"lies in [{float(low):.6g}, {float(high):.6g}], noise included"


def impossible(study: Study, limit: str) -> ImpossibleResult:
    """The refusal of a result. Args: limit: what is possible, as a clause."""
    return ImpossibleResult(
        f"the study {study.name!r} released a result that its records and its noise cannot give: "
        f"{limit}. A process deviated from the protocol, or its memory failed; the result does not "
        f"say which process. No estimate is shown, and the nodes have charged epsilon; find the "
        f"cause before the study is run again under a new name",
        step="release",
    )
