"""Reports of a small study from made-up shares, as a coordinator makes them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.protocols import flat_study, noise_of
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import predict
from umpc.protocols.registry import attempt_of, delta_of
from umpc.protocols.u_mpc.settings import noisy_sums, sum_reports
from umpc.study.attempt import commit
from umpc.study.cost import NO_COST, Measured
from umpc.study.document import Study
from umpc.study.making_report import released_sums, report_of
from umpc.study.parts import FieldText, Participant
from umpc.study.report import Report, SumReport
from umpc.study.sizes import Member, Sizes
from umpc.ustat.released_means import ReleasedStatistic, joint_values

GINI_STUDY = flat_study(
    name="report",
    statistic="gini_mean_difference",
    kernels=("abs(a.x - b.x)",),
    fields=(FieldText("x", "0", "10", "0.5"),),
    epsilon="1",
    edges="2n",
    max_colluding=1,
    coordinator="coordinator",
    dealer=Participant("dealer", "dealer:1"),
    nodes=(Participant("north", "north:1"), Participant("south", "south:1")),
)
"""Two nodes, x from 0 to 10 in steps of 1/2."""
OPENING = bytes(32)


def attempt_over(
    study: Study = GINI_STUDY, counts: Sequence[int] = (4, 6), first: Sequence[int] = (0, 0)
) -> SharedAttempt:
    """An attempt over so many records at each node. Args: first: records of the first class."""
    members = [
        Member(node.name, count, commit(study.hash, node.name, OPENING), bytes(32), of_first)
        for node, count, of_first in zip(study.nodes, counts, first, strict=True)
    ]
    return attempt_of(study, members, [OPENING] * len(members))


def shares_of(total: int, parts: int, size: int) -> list[bytes]:
    """`total` cut into shares of `size` bytes that look like any numbers."""
    modulus = 1 << (8 * size)
    values = [(0x9E3779B97F4A7C15 * (i + 1)) % modulus for i in range(parts - 1)]
    return [value.to_bytes(size, "little") for value in [*values, (total - sum(values)) % modulus]]


def build_report(
    study: Study, shares: Sequence[bytes], run: SharedAttempt | Sizes, measured: Measured
) -> Report:
    """The report of these shares. Args: run: the attempt; for a replay the sizes alone."""
    sizes = run.sizes if isinstance(run, SharedAttempt) else run
    cost = predict(run) if isinstance(run, SharedAttempt) else NO_COST
    totals = noisy_sums(shares, len(study.kernels))
    sums = sum_reports(sizes, totals, noise_of(sizes))
    return report_of(study, sums, run, delta_of(sizes), measured, cost)


def statistic_of(study: Study, sums: Sequence[SumReport], edges: int = 0) -> ReleasedStatistic:
    """The released sums, as intervals take them."""
    points = joint_values(study.parsed_kernels)
    return ReleasedStatistic(released_sums(sums, study.parsed_kernels), points, edges=edges)
