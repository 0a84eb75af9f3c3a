"""The result of a study: the estimate, its errors, its cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from itertools import chain
from typing import Any, TypedDict

from umpc.study.attempt import Attempt
from umpc.study.cost import NO_COST, Cost
from umpc.study.document import Study
from umpc.study.frames import STEPS
from umpc.study.interval import Limits, covers_all_sets, estimated
from umpc.study.messages import StepBytes
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import estimate

SEVERAL = (
    "the study reports several values, each with its own interval; a p-value of one of them is not "
    "corrected for their number"
)
"""The note of a report of several values."""

STEP_DIGITS = 1
"""Times of nodes' steps are rounded to tenths of a second."""

_OF_PART = (
    "estimator",
    "estimate",
    "noise_std",
    "noise_std_if_honest",
    "low",
    "high",
    "noise_low",
    "noise_high",
    "sampling_std",
    "sampling_std_bound",
    "note",
)
"""The entries of a report that each of several values has."""

TOTAL_DIGITS = 2
"""Totals of a whole run are rounded to hundredths of a second."""


@dataclass(frozen=True)
class Moment:
    """A step at one node, in seconds from the beginning: when it was asked, and had answered.

    Both are coarse: a report is passed on, and need not tell how fast each node is.
    """

    step: str
    node: str
    asked: float
    answered: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "asked", round(self.asked, STEP_DIGITS))
        object.__setattr__(self, "answered", round(self.answered, STEP_DIGITS))


class OnlineBytes(TypedDict):
    """Bytes on data: by node in the study's order, by step round by round, and by shuffler."""

    bytes_online_by_node: list[int]
    bytes_online_by_step: dict[str, int]
    bytes_online_by_shuffler: list[int]


@dataclass(frozen=True)
class Measured:
    """The cost of a run, as the processes counted it.

    Bytes of nodes are in the study's order, bytes of steps round by round. Shufflers send heaps.
    """

    rounds: int = 0
    bytes_online_by_node: list[int] = field(default_factory=list)
    bytes_online_by_step: dict[str, int] = field(default_factory=dict)
    bytes_offline: int = 0
    seconds_online: float = 0.0
    seconds_offline: float = 0.0
    seconds_total: float = 0.0
    replayed: bool = False
    prepared: bool = False
    timeline: tuple[Moment, ...] = ()
    bytes_online_by_shuffler: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("seconds_online", "seconds_offline", "seconds_total"):
            object.__setattr__(self, name, round(getattr(self, name), TOTAL_DIGITS))

    @property
    def bytes_online(self) -> int:
        return sum(self.bytes_online_by_node) + sum(self.bytes_online_by_shuffler)


@dataclass(frozen=True)
class SumReport:
    """One released sum: the mean of its kernel over E plus noise.

    epsilon: the part of ε that it took. The errors are in the unit of the mean.
    sampling_std_bound: of the mean over E instead of all sets, whatever the records are.
    noise_step: the distance of the mean's possible values; 0 where they have no grid.
    noise_shape: of the noise's law (`umpc/ustat/error_law.py`); 1 for the Laplace law.
    noise_std_if_honest: what noise_std would be in grade honest; None where grades cost nothing.
    """

    kernel: str
    mean: float
    epsilon: float
    noise_std: float
    sampling_std_bound: float
    noise_std_if_honest: float | None = None
    noise_step: float = 0.0
    noise_shape: float = 1.0


@dataclass(frozen=True)
class PartReport:
    """One value of a study that reports several.

    statistic: its name and columns. stratum: the category whose sets it is over; empty for none.
    epsilon: the part of ε that the statistic took, for all of its strata together.
    first_sum, sums: which of the report's sums are its own: the first one, from 0, and how many.
    Other entries are as in a report of one value.
    """

    statistic: str
    stratum: str
    estimator: str
    epsilon: float
    first_sum: int
    sums: int
    estimate: float | None
    noise_std: float | None
    noise_std_if_honest: float | None
    low: float | None
    high: float | None
    noise_low: float | None
    noise_high: float | None
    sampling_std: float | None
    sampling_std_bound: float | None
    note: str


@dataclass(frozen=True)
class Report:
    """One object for programs and for the table.

    estimate: what the study's estimator makes of the released means; None where that cannot be
        told, and `note` says why.
    low, high: the 95 % interval for what `interval_covers` says: noise and the sampling of E
        together (`umpc/ustat/intervals.py`).
    noise_std: the estimate's standard deviation from the noise, in its own unit.
    noise_std_if_honest: the same with the same setting of the noise in grade honest.
    noise_low, noise_high: the 95 % interval of the noise alone, for the value on the sampled sets.
    sampling_std: the standard deviation from taking E instead of all sets, at most, given the
        released means.
    sampling_std_bound: the same without the released means, which is larger (Sinh & Ramon 2025,
        D.1: E_inc).
    note: why there is no value, or what the interval does not cover; else empty.
    epsilon: against replacing one record.
    adversary, promise: the grade of the promise, and the promise in one sentence.
    coins: what a committee's noise is made of: "transfers", or "dealt" by the dealer; "none" where
        no committee draws it.
    replayed: the report is made from stored shares of an earlier run.
    prepared: `umpc study prepare` did everything before the data; bytes_offline counts it,
        seconds_offline does not.
    bytes_online: what nodes send to their peers or to shufflers on data, their shares and answers,
        the question put to them, and the heaps of shufflers.
    joint_seed, records_by_node, first_class_by_node: E follows from these, for whoever checks it.
    fields: each field as the study has it: its bounds, and its resolution or that it is whole, or
        its categories. A value between two steps counted as the nearer one.
    where: the condition on records, which others were left out by; empty without one.
    protected: what epsilon is for: one record, or all records of one person.
    timeline: when the coordinator asked which node for what, and was answered, in tenths of a
        second; node after node.
    parts: the values of a study that reports several; the report's own estimate is then None.
    strata: the field whose categories are the strata of the parts; empty without one.
    missing: the nodes that were lost before the release. Estimate, records and nodes are those of
        the others.
    """

    study: str
    statistic: str
    estimator: str
    estimate: float | None
    noise_std: float | None
    noise_std_if_honest: float | None
    low: float | None
    high: float | None
    interval_covers: str
    noise_low: float | None
    noise_high: float | None
    sampling_std: float | None
    sampling_std_bound: float | None
    note: str
    sums: list[SumReport]
    protocol: str
    noise: str
    epsilon: float
    delta: float
    coins: str
    degree: int
    edges: int
    sets: int
    max_degree: int
    records: int
    nodes: int
    max_colluding: int
    adversary: str
    promise: str
    backend: str
    preprocessing: str
    rounds: int
    rounds_predicted: int
    bytes_online: int
    bytes_online_predicted: int
    bytes_online_by_node: list[int]
    bytes_online_by_node_predicted: list[int]
    bytes_online_by_step: dict[str, int]
    bytes_online_by_step_predicted: dict[str, int]
    bytes_online_by_shuffler: list[int]
    bytes_online_by_shuffler_predicted: list[int]
    bytes_offline: int
    bytes_offline_predicted: int
    seconds_online: float
    seconds_offline: float
    seconds_total: float
    replayed: bool
    prepared: bool
    study_hash: str
    joint_seed: str
    records_by_node: list[int]
    first_class_by_node: list[int]
    fields: list[dict[str, Any]]
    where: str
    protected: str
    timeline: list[Moment]
    parts: list[PartReport] = field(default_factory=list, kw_only=True)
    strata: str = field(default="", kw_only=True)
    missing: list[str] = field(default_factory=list, kw_only=True)

    def of_part(self, place: int) -> Report:
        """The report of one of several values, as if the study had reported it alone.

        epsilon stays that of the whole study, because all of it was released.
        """
        part = self.parts[place]
        shared = {key: getattr(part, key) for key in _OF_PART}
        sums = self.sums[part.first_sum : part.first_sum + part.sums]
        statistic = part.statistic.partition("(")[0]  # by which tests know it
        covers = self.interval_covers
        if part.stratum:
            where = f" inside {self.strata} = {part.stratum!r}"
            statistic, covers = statistic + where, covers + where
        return replace(
            self,
            statistic=statistic,
            interval_covers=covers,
            sums=sums,
            parts=[],
            strata="",
            **shared,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        values = {
            "where": "",
            "protected": "one record",
            "parts": [],
            "strata": "",
            "missing": [],
            **values,
        }  # which earlier reports lack
        known = {each.name: values[each.name] for each in fields(cls)}
        known["sums"] = [SumReport(**entry) for entry in values["sums"]]
        known["timeline"] = [Moment(**entry) for entry in values["timeline"]]
        known["parts"] = [PartReport(**entry) for entry in values["parts"]]
        return cls(**known)


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
    result, covering = estimated(study, sums, sizes.sets)
    limits = limits or Limits(covers_all_sets(study))
    return Report(
        study=study.name,
        statistic=study.statistic,
        estimator=study.estimator,
        estimate=result.value,
        noise_std=result.noise_std,
        noise_std_if_honest=_noise_if_honest(study, sums, sizes),
        low=covering.low,
        high=covering.high,
        interval_covers=limits.covers,
        noise_low=result.low,
        noise_high=result.high,
        sampling_std=covering.sampling_std,
        sampling_std_bound=result.sampling_std_bound,
        note=SEVERAL if study.several else result.note or limits.note,
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
        promise=study.promise,
        backend=study.backend,
        preprocessing=study.preprocessing,
        rounds=measured.rounds,
        rounds_predicted=cost.rounds,
        bytes_online=measured.bytes_online,
        bytes_online_predicted=cost.bytes_online,
        bytes_online_by_node=measured.bytes_online_by_node,
        bytes_online_by_node_predicted=online["bytes_online_by_node"],
        bytes_online_by_step=measured.bytes_online_by_step,
        bytes_online_by_step_predicted=online["bytes_online_by_step"],
        bytes_online_by_shuffler=measured.bytes_online_by_shuffler,
        bytes_online_by_shuffler_predicted=online["bytes_online_by_shuffler"],
        bytes_offline=measured.bytes_offline,
        bytes_offline_predicted=cost.bytes_offline,
        seconds_online=measured.seconds_online,
        seconds_offline=measured.seconds_offline,
        seconds_total=measured.seconds_total,
        replayed=measured.replayed,
        prepared=measured.prepared,
        study_hash=study.hash.hex(),
        joint_seed=attempt.seed.hex() if attempt else "",
        records_by_node=[member.records for member in members],
        first_class_by_node=[member.first_class for member in members],
        fields=[field_text.to_dict() for field_text in study.fields],
        where=study.condition.text if study.condition else "",
        protected=study.protected,
        timeline=list(measured.timeline),
        parts=list(_parts(study, sums, sizes, limits)),
        strata=study.stratum_field,
        missing=list(study.names_missing),
    )


def _parts(
    study: Study, sums: Sequence[SumReport], sizes: Sizes, limits: Limits
) -> Iterator[PartReport]:
    """Each of several values, from its own sums, as a study of this value alone has it."""
    shares = study.split_by_name if study.several else {}
    first = 0
    for part, alone in zip(study.several, study.single_statistics, strict=False):
        own = list(sums[first : first + part.sums])
        result, covering = estimated(alone, own, sizes.sets)
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
            low=covering.low,
            high=covering.high,
            noise_low=result.low,
            noise_high=result.high,
            sampling_std=covering.sampling_std,
            sampling_std_bound=result.sampling_std_bound,
            note=result.note or limits.note,
        )
        first += part.sums


def _noise_if_honest(study: Study, sums: Sequence[SumReport], sizes: Sizes) -> float | None:
    """The standard deviation of the estimate's noise, had the study been of grade honest."""
    stds = [
        entry.noise_std if entry.noise_std_if_honest is None else entry.noise_std_if_honest
        for entry in sums
    ]
    means = [entry.mean for entry in sums]
    return estimate(study.estimator, means, stds, [0.0] * len(sums), sizes.sets).noise_std


def count_online(
    sent: Sequence[Sequence[StepBytes]],
    revealed: Sequence[int],
    asked: Sequence[int] = (),
    heaps: Sequence[int] = (),
) -> OnlineBytes:
    """Bytes by node, by step and by shuffler, as `Measured` has them.

    Args:
        sent: what each node sent, round by round.
        revealed: the size of each node's share and answer.
        asked: the size of the question to each node, if there is one.
        heaps: the size of each shuffler's heap.
    """
    lines = zip(sent, revealed, asked or [0] * len(sent), strict=True)
    by_node = [sum(each.bytes for each in own) + share + question for own, share, question in lines]
    by_step: dict[str, int] = {}
    for each in sorted(chain(*sent), key=lambda each: (STEPS[each.step], each.round)):
        label = f"{each.step} {each.round or ''}".rstrip()
        by_step[label] = by_step.get(label, 0) + each.bytes
    if heaps:
        by_step["heap"] = sum(heaps)
    elif revealed:
        by_step["reveal"] = sum(revealed)
    if asked:
        by_step["question"] = sum(asked)
    return {
        "bytes_online_by_node": by_node,
        "bytes_online_by_step": by_step,
        "bytes_online_by_shuffler": list(heaps),
    }
