"""The result of a study: the estimate, its error, its price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from itertools import chain
from math import sqrt

import numpy as np

from umpc.crypto.ring import Ring
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost, predict
from umpc.protocols.u_mpc.noise_binding import delta_of, noise_of, noise_tails
from umpc.study.document import Study
from umpc.study.frames import STEPS
from umpc.study.messages import StepBytes
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import estimate
from umpc.ustat.sampling import pairings_of


@dataclass(frozen=True)
class Moment:
    """A step at one node, in seconds from the beginning: when it was asked, and had answered."""

    step: str
    node: str
    asked: float
    answered: float


@dataclass(frozen=True)
class Measured:
    """What the run cost, as the processes counted it. Bytes of nodes in the study's order; of steps, round by round.

    Of shufflers: their heaps.
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

    @property
    def bytes_online(self) -> int:
        return sum(self.bytes_online_by_node) + sum(self.bytes_online_by_shuffler)


@dataclass(frozen=True)
class SumReport:
    """One released sum: the mean of its kernel over E plus noise, what of ε it took, its errors, all in its unit."""

    kernel: str
    mean: float
    epsilon: float
    noise_std: float
    sampling_std_bound: float


@dataclass(frozen=True)
class Report:
    """One object for programs and for the table.

    estimate: what the study's estimator makes of the released means; None where that cannot be told, and `note` says
    why. noise_std: its standard deviation from the noise, in its own unit; low, high: its 95 % interval from the noise.
    sampling_std_bound: an upper bound of the standard deviation from taking E instead of all sets (Sinh & Ramon
    2025, D.1: E_inc). epsilon is against replacing one record. replayed: stored shares of an earlier run.
    prepared: everything before the data was done by `umpc study prepare`; bytes_offline counts it, seconds_offline not.
    bytes_online: what nodes send to their peers or to shufflers on data, their shares and answers, the question put to
    them, and the heaps of shufflers.
    joint_seed, records_by_node and first_class_by_node: what E follows from, for whoever checks it. timeline: when the
    coordinator asked which node for what, and was answered; node after node, in the study's order.
    """

    study: str
    statistic: str
    estimator: str
    estimate: float | None
    noise_std: float | None
    low: float | None
    high: float | None
    sampling_std_bound: float | None
    note: str
    sums: list[SumReport]
    protocol: str
    noise: str
    epsilon: float
    delta: float
    degree: int
    edges: int
    sets: int
    max_degree: int
    records: int
    nodes: int
    max_colluding: int
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
    timeline: list[Moment]

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> Report:
        known = {each.name: values[each.name] for each in fields(cls)}
        known["sums"] = [SumReport(**entry) for entry in values["sums"]]
        known["timeline"] = [Moment(**entry) for entry in values["timeline"]]
        return cls(**known)


def build_report(
    study: Study, shares: Sequence[bytes], run: Attempt | Sizes, measured: Measured
) -> Report:
    """Add up the shares and say what the numbers mean. `run` is the attempt, or for a replay just the sizes."""
    attempt = run if isinstance(run, Attempt) else None
    cost = predict(attempt) if attempt else Cost(0, (), (), 0)
    return report_of(
        study, _sums(study, shares, attempt.sizes if attempt else run), run, cost, measured
    )


def report_of(
    study: Study, sums: list[SumReport], run: Attempt | Sizes, cost: Cost, measured: Measured
) -> Report:
    """The report, from what was released of each sum. cost: what was predicted."""
    attempt = run if isinstance(run, Attempt) else None
    sizes = attempt.sizes if attempt else run
    online = count_online(cost.sent, cost.revealed, cost.asked, cost.heaps)
    errors = [entry.noise_std for entry in sums], [entry.sampling_std_bound for entry in sums]
    result = estimate(study.estimator, [entry.mean for entry in sums], *errors, sizes.sets)
    return Report(
        study=study.name,
        statistic=study.statistic,
        estimator=study.estimator,
        estimate=result.value,
        noise_std=result.noise_std,
        low=result.low,
        high=result.high,
        sampling_std_bound=result.sampling_std_bound,
        note=result.note,
        sums=sums,
        protocol=study.protocol,
        noise=study.noise,
        epsilon=float(study.exact_epsilon),
        delta=float(delta_of(sizes)),
        degree=study.degree,
        edges=sizes.edges,
        sets=sizes.sets,
        max_degree=sizes.max_degree,
        records=sizes.records,
        nodes=len(study.nodes),
        max_colluding=study.max_colluding,
        backend=study.backend,
        preprocessing=study.preprocessing,
        rounds_predicted=cost.rounds,
        bytes_online=measured.bytes_online,
        bytes_online_predicted=cost.bytes_online,
        **{f"{name}_predicted": value for name, value in online.items()},
        bytes_offline_predicted=cost.bytes_offline,
        study_hash=study.hash.hex(),
        joint_seed=attempt.seed.hex() if attempt else "",
        records_by_node=[member.records for member in attempt.members] if attempt else [],
        first_class_by_node=[member.first_class for member in attempt.members] if attempt else [],
        **{**asdict(measured), "timeline": list(measured.timeline)},
    )


def count_online(
    sent: Sequence[Sequence[StepBytes]],
    revealed: Sequence[int],
    asked: Sequence[int] = (),
    heaps: Sequence[int] = (),
) -> dict[str, list[int] | dict[str, int]]:
    """Bytes by node, by step and by shuffler, as `Measured` has them.

    Args: sent: of each node. revealed: the size of its share, and of its answer. asked: of the question to it, if any.
    heaps: of each shuffler.
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
    shufflers = {"bytes_online_by_shuffler": list(heaps)}
    return {"bytes_online_by_node": by_node, "bytes_online_by_step": by_step, **shufflers}


def _sums(study: Study, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
    """What was released, sum by sum."""
    laws = noise_of(sizes)
    if study.noise_of_pairs:
        noisy = noisy_sums(shares, len(study.kernels), sizes.ring(noise_tails(sizes)))
        totals = [law.unbiased(total) for law, total in zip(laws, noisy, strict=True)]
    else:
        totals = noisy_sums(shares, len(study.kernels))
    rows = zip(totals, study.parsed_kernels, study.epsilons, laws, strict=True)
    return [
        SumReport(
            kernel=kernel.text,
            mean=float(Fraction(total) * kernel.unit / sizes.edges),
            epsilon=float(epsilon),
            noise_std=noise.std * float(kernel.unit) / sizes.edges,
            sampling_std_bound=_sampling_bound(float(kernel.interval.width), sizes),
        )
        for total, kernel, epsilon, noise in rows
    ]


def noisy_sums(shares: Sequence[bytes], sums: int, ring: Ring | None = None) -> list[int]:
    """Σ kernel over E plus noise, in units, for each sum: the shares added in their ring, read as signed integers.

    ring: of shares of every edge's value; else a share is one element a sum.
    """
    ring = ring or Ring(8 * len(shares[0]) // sums)
    rows = [
        np.frombuffer(share, dtype=ring.dtype.newbyteorder("<")).reshape(sums, -1)
        for share in shares
    ]
    totals = sum(row.sum(axis=1, dtype=ring.dtype) for row in rows)
    return [ring.decode(int(total)) for total in totals]


def _sampling_bound(width: float, sizes: Sizes) -> float:
    """Square root of a bound of the variance from taking E: (Δf)²/(4|E|) times what is left of it.

    Of P pairings, which are independent of each other, P times smaller than of one.
    """
    draws = pairings_of(sizes.study.edges) or 1
    left = _left(sizes.edges // draws, sizes)
    # In this order no factor leaves the floats' range, however many sets there are.
    return width * sqrt(float(left) / (4 * sizes.edges))


def _left(edges: int, sizes: Sizes) -> Fraction:
    """Of sets, and of pairs of two classes, (C − |E|)/(C − 1), C the number of possible ones.

    Sinh & Ramon 2025, D.1, E_inc, for edges drawn one by one without repetition. Pairs in a balanced E are not: let
    d = 2|E|/n. Hoeffding's decomposition splits the variance of f over all pairs in two parts. In g(x) + g(y) all
    cancels but that some records are in one pair more, a of them, a = d − ⌊d⌋. In the rest h, whose sums over the pairs
    of a record are 0, pairs that share a record have the covariance −σ²/(n − 2), disjoint ones σ²/C(n − 2, 2). The
    larger of both factors holds for any mixture.
    """
    n = sizes.records
    if sizes.study.degree == 2 and not sizes.study.two_sample and n > 3:
        degree = Fraction(2 * edges, n)
        more = degree - degree.numerator // degree.denominator
        return max((n - 1 - degree) / (n - 3), n * n * more * (1 - more) / (2 * (n - 2) * edges))
    return Fraction(sizes.sets - edges, sizes.sets - 1) if sizes.sets > 1 else Fraction(0)
