"""umpc.study.report: what the shares add up to, and what is said about it."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, sqrt

import numpy as np
import pytest

from tests.support.protocols import flat_study, noise_of, with_facts
from umpc.mpc.cost import predict
from umpc.protocols.registry import attempt_of
from umpc.protocols.u_mpc.sums import noisy_sums
from umpc.study import report as report_module
from umpc.study.attempt import commit
from umpc.study.document import Study
from umpc.study.messages import StepBytes
from umpc.study.parts import FieldText, Participant
from umpc.study.report import Measured, Report, build_report, count_online
from umpc.study.sizes import Member, Sizes
from umpc.ustat import sampling
from umpc.ustat.estimators import QUANTILE

STUDY = flat_study(
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
OPENING = bytes(32)
MEASURED = Measured(
    3, [60, 40], {"masked_fields": 80, "open 1": 12, "reveal": 8}, 200, 0.5, 0.25, 1.0, False
)


def attempt(study: Study = STUDY, counts=(4, 6)):
    members = [
        Member(node.name, count, commit(study.hash, node.name, OPENING), bytes(32))
        for node, count in zip(study.nodes, counts, strict=True)
    ]
    return attempt_of(study, members, [OPENING] * 2)


def shares(total: int, parts: int, size: int) -> list[bytes]:
    """`total` cut into shares of `size` bytes that look like anything."""
    modulus = 1 << (8 * size)
    values = [(0x9E3779B97F4A7C15 * (i + 1)) % modulus for i in range(parts - 1)]
    return [value.to_bytes(size, "little") for value in [*values, (total - sum(values)) % modulus]]


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("total", [0, 1, -1, 12345, -98765, (1 << 31) - 1, -(1 << 31)])
def test_shares_add_up_in_their_ring_to_a_signed_integer(total, parts, size):
    assert noisy_sums(shares(total, parts, size), 1) == [total]


def test_a_sum_beyond_half_the_ring_is_negative():
    assert noisy_sums([(1 << 31).to_bytes(4, "little")], 1) == [-(1 << 31)]
    assert noisy_sums([(1 << 31).to_bytes(8, "little")], 1) == [1 << 31]


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_sums_after_each_other_in_one_string_do_not_touch(parts, size):
    totals = [-1, 1 << 30, -(1 << 31), 0, 7]
    columns = [shares(total, parts, size) for total in totals]
    assert noisy_sums([b"".join(row) for row in zip(*columns, strict=True)], len(totals)) == totals


def test_the_estimate_is_the_mean_over_the_edges_in_the_kernels_unit():
    run = attempt()
    report = build_report(STUDY, shares(-87, 2, run.ring.bytes), run, MEASURED)
    assert report.edges == 20 and report.estimate == float(Fraction(-87, 20) * Fraction(1, 2))


def test_every_number_follows_from_study_and_attempt():
    run = attempt()
    report, cost = build_report(STUDY, shares(1, 2, run.ring.bytes), run, MEASURED), predict(run)
    assert (report.study, report.statistic, report.estimator) == (
        "report",
        "gini_mean_difference",
        "mean",
    )
    assert (report.degree, report.edges, report.sets) == (2, 20, 45)
    assert (report.epsilon, report.delta) == (1.0, 0.0)
    assert (report.records, report.nodes, report.max_colluding, report.max_degree) == (10, 2, 1, 4)
    assert (report.rounds, report.bytes_online, report.bytes_offline) == (3, 100, 200)
    assert (report.seconds_online, report.seconds_offline, report.seconds_total) == (0.5, 0.25, 1.0)
    assert report.rounds_predicted == cost.rounds
    assert (report.bytes_online_predicted, report.bytes_offline_predicted) == (
        cost.bytes_online,
        cost.bytes_offline,
    )
    assert (report.bytes_online_by_node, sum(report.bytes_online_by_step.values())) == (
        [60, 40],
        100,
    )
    assert sum(report.bytes_online_by_node_predicted) == cost.bytes_online
    assert list(report.bytes_online_by_step_predicted) == ["masked_fields", "open 1", "reveal"]
    assert sum(report.bytes_online_by_step_predicted.values()) == cost.bytes_online
    assert report.study_hash == STUDY.hash.hex() and report.joint_seed == run.seed.hex()
    assert report.records_by_node == [4, 6] and not report.replayed
    (entry,) = report.sums
    assert (entry.kernel, entry.epsilon) == (STUDY.kernels[0], 1.0)
    same = (entry.mean, entry.noise_std, entry.sampling_std_bound)
    assert same == (report.estimate, report.noise_std, report.sampling_std_bound)
    assert (report.low, report.high) == tuple(
        entry.mean + sign * QUANTILE * entry.noise_std for sign in (-1, 1)
    )


def test_the_noises_deviation_is_that_of_discrete_laplace_in_the_estimates_unit():
    """Each of N nodes adds a share of which h = N − t make a whole Laplace: variance × N/h, here 2."""
    report = build_report(STUDY, shares(0, 2, 4), attempt(), MEASURED)
    scale = 4 * 20  # δ_max · Δf in units, ε = 1
    q = np.exp(-1 / scale)
    assert report.noise_std == pytest.approx(sqrt(2 * 2 * q) / (1 - q) * 0.5 / 20)
    assert report.noise_std == pytest.approx(noise_of(Sizes(STUDY, 10))[0].std * 0.5 / 20)


LINEAR = np.add.outer(np.array([1, 0, 0, 0, 1, 1.0]), np.array([1, 0, 0, 0, 1, 1.0])) / 2
PRISM = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
"""A kernel of one's own values only, and one whose sums over a record's pairs are all the same."""


@pytest.mark.parametrize("kernel", [LINEAR, PRISM], ids=["linear", "degenerate"])
@pytest.mark.parametrize("edges", [1, 2, 3, 4, 5, 6, 9, 12, 14, 15])
def test_the_sampling_bound_of_pairs_holds_over_all_numberings(kernel, edges):
    """All 720 numberings of 6 records; with regular graphs the degenerate kernel's variance is the bound's, exactly."""
    study = with_facts(STUDY, edges=str(edges))
    sizes = Sizes(study, 6)
    graph = sampling._circulant(6, edges).T
    order = np.array(list(permutations(range(6))))
    means = kernel[order[:, graph[:, 0]], order[:, graph[:, 1]]].mean(axis=1)
    pairs = kernel[np.triu_indices(6, 1)]
    bound = report_module._sampling_bound(2 * pairs.std(), sizes)
    assert means.std() <= bound + 1e-12
    if kernel is PRISM and edges % 3 == 0:
        assert means.std() == pytest.approx(bound)


def test_pairings_are_independent_of_each_other():
    one, five = (Sizes(with_facts(STUDY, edges=rule), 10) for rule in ("1p", "5p"))
    bounds = [report_module._sampling_bound(10.0, sizes) for sizes in (one, five)]
    assert bounds == pytest.approx([sqrt(100 * 8 / 7 / 20), sqrt(100 * 8 / 7 / 100)])


def test_the_sampling_bound_holds_for_the_worst_table():
    """Half the records at each bound; all sets of |E| = 3 of the 6 pairs of 4 records."""
    values = [abs(x - y) for x, y in combinations([0, 0, 10, 10], 2)]
    means = [sum(chosen) / 3 for chosen in combinations(values, 3)]
    three = with_facts(STUDY, edges="3")
    report = build_report(three, shares(0, 2, 4), attempt(three, (2, 2)), MEASURED)
    assert np.std(means) <= report.sampling_std_bound + 1e-12


@pytest.mark.parametrize(
    ("degree", "edges"), [(1, "3"), (1, "1n"), (3, "2n"), (3, "7"), (4, "11"), (8, "1")]
)
def test_the_sampling_bound_counts_sets_of_the_studys_degree(degree, edges):
    kernel = " + ".join(f"{name}.x" for name in "abcdefgh"[:degree])
    study = with_facts(STUDY, kernels=(kernel,), degree=degree, edges=edges)
    report = build_report(study, shares(0, 2, 4), attempt(study), MEASURED)
    total, count, width = comb(10, study.degree), report.edges, 10 * study.degree
    assert (report.sets, report.degree) == (total, study.degree)
    expected = sqrt(width**2 * (total - count) / (4 * count * (total - 1)))
    assert report.sampling_std_bound == pytest.approx(expected)


@pytest.mark.parametrize("edges", ["3", "1n", "all"])
def test_the_sampling_bound_of_two_samples_counts_pairs_across_the_classes(edges):
    fields = (*STUDY.fields, FieldText.of_categories("label", ["p", "n"], public=True))
    study = with_facts(STUDY, fields=fields, sampling="two_sample", edges=edges)
    members = [
        Member(node.name, count, commit(study.hash, node.name, OPENING), bytes(32), first)
        for node, count, first in zip(study.nodes, (4, 6), (3, 1), strict=True)
    ]
    report = build_report(
        study, shares(0, 2, 4), attempt_of(study, members, [OPENING] * 2), MEASURED
    )
    total, count = 4 * 6, report.edges
    assert (report.sets, report.first_class_by_node) == (total, [3, 1])
    assert report.sampling_std_bound == pytest.approx(
        sqrt(10**2 * (total - count) / (4 * count * (total - 1)))
    )


def test_a_total_is_scaled_by_the_number_of_possible_sets():
    """The mean over E times all 45 pairs, whatever E is."""
    study = with_facts(STUDY, estimator="total")
    run = attempt(study)
    report = build_report(study, shares(-87, 2, run.ring.bytes), run, MEASURED)
    (entry,) = report.sums
    assert report.estimate == pytest.approx(45 * entry.mean) == pytest.approx(45 * -87 / 40)
    assert report.noise_std == pytest.approx(45 * entry.noise_std)
    assert report.sampling_std_bound == pytest.approx(45 * entry.sampling_std_bound)


@pytest.mark.parametrize("counts", [(4, 6), (1, 1), (2, 0)])
def test_all_pairs_leave_no_sampling_error(counts):
    every = with_facts(STUDY, edges="all")
    assert (
        build_report(every, shares(0, 2, 4), attempt(every, counts), MEASURED).sampling_std_bound
        == 0
    )


def test_bytes_are_counted_by_node_and_by_step_in_the_order_of_the_rounds():
    north = (StepBytes("masked_fields", 0, 10), StepBytes("open", 1, 3), StepBytes("open", 10, 5))
    south = (StepBytes("open", 2, 7), StepBytes("labels", 0, 1))
    counted = count_online([north, south, ()], [4, 4, 8])
    assert counted["bytes_online_by_node"] == [22, 12, 8]
    steps = {"masked_fields": 10, "open 1": 3, "open 2": 7, "open 10": 5, "labels": 1, "reveal": 16}
    assert list(counted["bytes_online_by_step"].items()) == list(steps.items())


def test_a_replay_needs_only_the_sizes():
    report = build_report(STUDY, shares(40, 2, 4), Sizes(STUDY, 10), Measured(replayed=True))
    assert (
        report.replayed
        and report.estimate == 1.0
        and report.joint_seed == ""
        and report.records_by_node == []
    )
    assert (
        report.rounds_predicted,
        report.bytes_online_predicted,
        report.bytes_offline_predicted,
    ) == (0, 0, 0)
    assert report.noise_std == build_report(STUDY, shares(0, 2, 4), attempt(), MEASURED).noise_std


def test_a_report_survives_json_and_ignores_what_it_does_not_know():
    report = build_report(STUDY, shares(40, 2, 4), attempt(), MEASURED)
    values = json.loads(json.dumps(report.to_dict()))
    assert Report.from_dict(values | {"exact_all_pairs": 1.0}) == report
