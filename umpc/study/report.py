"""The result of a study: the estimate, its errors, its cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from umpc.decoding import convert
from umpc.study.cost import Moment

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


@dataclass(frozen=True)
class SumReport:
    """One released sum: the mean of its kernel over E plus noise.

    epsilon: the part of ε that it took. The errors are in the unit of the mean.
    sampling_std_bound: of the mean over E instead of all sets, whatever the records are.
    noise_step: the distance of the noise's possible values; 0 where they have no grid.
    noise_shape: of the noise's law (`umpc/ustat/error_law.py`); 1 for the Laplace law, 0 for the
        heavy tails of a protocol whose noise has a law of its own.
    noise_shift: the most by which the noise lies beside that grid; documents leave out a 0.
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
    noise_shift: float = 0.0


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
class CountedAxis:
    """One field of a table of counts.

    cuts: inner cut points in the field's unit, ascending; a value lies in the bin whose number is
        the number of cuts that are not above it.
    words: the categories instead of bins; empty for numbers.
    lower, upper: the public bounds.
    step: the field's resolution.
    """

    field: str
    lower: float
    upper: float
    step: float
    cuts: list[float]
    words: list[str]


@dataclass(frozen=True)
class CountsReport:
    """The released table.

    statistic: the counted statistic asked for ("counts" for none), whose roles are `axes` in order.
    values: noisy counts, row-major over the axes, the last one fastest.
    tree: the axis that has a dyadic tree, or -1. With a tree `values` lists levels from the leaves
        up: for each level a table whose tree axis is half as long, rounded up, each row-major.
    noise: "laplace" or "gaussian".
    scale: for laplace s/ε, so that P(x) ∝ exp(-|x|/scale) for one draw; for gaussian σ² of all
        nodes' noise.
    shape: n/h of laplace, the sum of that many discrete Laplace laws' worth
        (`DistributedLaplace.shape`); 1 in a committee.
    people: most records of one person, 1 without a person column.
    """

    statistic: str
    axes: list[CountedAxis]
    values: list[int]
    tree: int
    noise: str
    scale: float
    shape: float
    people: int


@dataclass(frozen=True)
class Report:
    """One object for programs and for the table.

    estimate: what the study's estimator makes of the released means; None where that cannot be
        told, and `note` says why.
    low, high: the 95 % interval for what `interval_covers` says: noise and the sampling of E
        together (`umpc/ustat/intervals.py`).
    noise_std: the estimate's standard deviation from the noise, in its own unit. Where it depends
        on the records it is estimated from the answers, and rather too large.
    noise_std_if_honest: the same with the same setting of the noise in grade honest.
    noise_low, noise_high: the 95 % interval of the noise alone, for the value on the sampled sets;
        None where the interval has no such end.
    sampling_std: the standard deviation from taking E instead of all sets, at most, given the
        released means.
    sampling_std_bound: the same without the released means, which is larger (Sinh & Ramon 2025,
        D.1: E_inc).
    note: why there is no value, or what the interval does not cover, and whether noise moved the
        estimate beyond all possible values; else empty.
    epsilon: against replacing one record.
    adversary: the grade of the promise, which the protocol's object writes in words.
    coins: what a committee's noise is made of: "transfers", or "dealt" by the dealer; "none" where
        no committee draws it.
    replayed: the report is made from stored shares of an earlier run. rounds: 0 for a replay, and
    where a node came back during the release: then no cost was counted.
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
    classes: label → what its classes mean, such as which one should score higher.
    missing: the nodes that were lost before the release. Estimate, records and nodes are those of
        the others.
    person: the column that tells people apart, which a record must have, too; empty without one.
    finished: when the coordinator had the result, in UTC; of a replay, when it was shown again.
    prepared_at: when the study was prepared ahead, in UTC: its records are those of that time.
        Empty where it was not, or where a node does not say.
    coordinator, sites: the names in the study. version: of the coordinator's program.
    policies: site → which of its rules let the study through, in the site's own words; without
        sites of earlier versions, which do not say. Reports of earlier versions have none of these.
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
    person: str = field(default="", kw_only=True)
    finished: str = field(default="", kw_only=True)
    prepared_at: str = field(default="", kw_only=True)
    classes: dict[str, str] = field(default_factory=dict, kw_only=True)
    counts: CountsReport | None = field(default=None, kw_only=True)
    coordinator: str = field(default="", kw_only=True)
    sites: list[str] = field(default_factory=list, kw_only=True)
    version: str = field(default="", kw_only=True)
    policies: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def half_width(self) -> float | None:
        """Half the 95 % interval, of several values in the mean; None where there is none."""
        ends = [(each.low, each.high) for each in self.parts] or [(self.low, self.high)]
        known = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
        return sum(known) / len(known) if known else None

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
        """All entries as plain values, without a shift of the noise where there is none.

        Processes of before know no shift, and read all other reports.
        """
        values = asdict(self)
        for entry in values["sums"]:
            if not entry["noise_shift"]:
                del entry["noise_shift"]
        if self.counts is None:  # in documents of all other studies
            del values["counts"]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        lacking = {"where": "", "protected": "one record", "timeline": []}  # in earlier reports
        return convert({**lacking, **values}, cls)
