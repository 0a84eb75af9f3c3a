"""Pairs without a dealer: garbled, under shares and in the clear every sum over one E is the same,
at its cost.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocols.u_mpc.test_library import (
    TABLES,
    check_cost,
    counts_of,
    drawn_tables,
    run_and_check,
    sampled,
    study_of,
    tables_of,
)
from tests.support.garbled import garbled_study, without_dealer, without_points
from tests.support.limits import small_garbled_chunks, small_garbled_messages
from tests.support.studies import (
    AUC,
    GINI,
    KENDALL,
    LOUD,
    Entropy,
    clear_sums,
    compiled_once,
    random_tables,
)
from umpc.mpc.backends import predict
from umpc.mpc.garbled.plan import NodePair
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.ustat.statistics import LIBRARY

PAIRS = [name for name, statistic in LIBRARY.items() if statistic.degree <= 2]
by_statistic = pytest.mark.parametrize("name", PAIRS)


@pytest.fixture(autouse=True, scope="module")
def fast():
    with compiled_once(), without_points():
        yield


@cache
def garbled_of(name: str, nodes: int, edges: str = "all"):
    return without_dealer(study_of(name, nodes, edges))


def check_three(name: str, nodes: int, edges: str, tables, label: str) -> None:
    """One joint seed gives all three runs the same E; the garbled run's costs are the predicted
    ones.
    """
    garbled = run_and_check(garbled_of(name, nodes, edges), tables, label)
    shared = simulate(study_of(name, nodes, edges), tables, Entropy(label))
    assert garbled.report.joint_seed == shared.report.joint_seed
    sums = [noisy_sums(run.transcript.shares, len(run.report.sums)) for run in (garbled, shared)]
    assert (
        sums[0] == sums[1] == clear_sums(garbled.attempt.study, tables, shared.attempt.hypergraph)
    ), label
    assert (
        garbled.report.sums == shared.report.sums
        and garbled.report.estimate == shared.report.estimate
    )


@pytest.mark.parametrize(
    ("nodes", "sampling", "kind"),
    [
        *((2, "all", kind) for kind in TABLES),
        (3, "sampled", "random"),
        (3, "all", "ties"),
        (5, "sampled", "bounds"),
    ],
)
@by_statistic
def test_garbled_as_under_shares_and_in_the_clear(name, nodes, sampling, kind):
    edges = sampled(name) if sampling == "sampled" else "all"
    label = f"garbled {name} {nodes} {kind}"
    tables = tables_of(study_of(name, nodes, edges), kind, counts_of(name, nodes), label)
    check_three(name, nodes, edges, tables, label)


@pytest.mark.parametrize("counts", [[5, 0], [0, 3, 2]], ids=str)
@by_statistic
def test_a_node_without_records_has_no_part_in_it_but_its_zero_share(name, counts):
    study, label = garbled_of(name, len(counts)), f"garbled none {name} {counts}"
    run = run_and_check(study, tables_of(study, "ties", counts, label), label)
    absent = counts.index(0)
    talkers = {node for *both, _ in run.transcript.online + run.transcript.offline for node in both}
    assert run.nodes[absent].peers == () and study.nodes[absent].name not in talkers
    assert any(run.transcript.shares[absent])


@by_statistic
@settings(max_examples=5, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_tables_at_any_nodes(name, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=3))
    counts[0] += max(0, 2 - sum(counts))
    study = study_of(name, len(counts))
    tables = drawn_tables(data, study, counts)
    edges = data.draw(st.sampled_from(["all", "1", "1n"]))
    check_three(name, len(counts), edges, tables, f"garbled any {name} {counts} {edges}")


OTHERS = {
    "reads the first class only": ("a.x", {"sampling": "two_sample"}),
    "reads the second class only": ("b.x * b.y", {"sampling": "two_sample"}),
    "reads unlike fields": ("a.x * b.y", {"sampling": "two_sample"}),
    "linear": ("a.x + b.x", {}),
    "a constant": ("3", {}),
    "products": ("a.x * b.x * a.y * b.y", {}),
    "two sums": ((KENDALL, GINI), {"estimator": "ratio"}),
}


@pytest.mark.parametrize("counts", [[6, 7], [4, 0, 5], [1, 2, 3, 4]], ids=str)
@pytest.mark.parametrize("name", OTHERS)
def test_other_kernels(name, counts):
    kernels, changes = OTHERS[name]
    check(
        garbled_study(kernels, len(counts), epsilon=LOUD, **changes),
        counts,
        f"other {name} {counts}",
    )


def check(study, counts, label):
    tables = random_tables(counts, label, classes=study.two_sample)
    for number, one in enumerate(tables if study.two_sample else ()):
        one["label"][:1] = number % 2
    run = simulate(study, tables, Entropy(label))
    expected = clear_sums(study, tables, run.attempt.hypergraph)
    assert noisy_sums(run.transcript.shares, len(study.kernels)) == expected, label
    check_cost(run)
    return run


@pytest.mark.parametrize(
    "kernel", [{"kernels": KENDALL}, {"kernels": AUC, "sampling": "two_sample"}], ids=str
)
def test_many_chunks_and_messages_give_the_same_as_one(limit, kernel):
    study = garbled_study(nodes=3, epsilon=LOUD, **kernel)
    one = check(study, [9, 30, 5], "chunks")
    small_garbled_messages(limit, labels=7, choices=24, payload=4000)
    many = check(study, [9, 30, 5], "chunks")
    assert many.report.sums == one.report.sums
    assert len(many.transcript.online) > 2 * len(one.transcript.online)
    assert max(len(frame.payload) for *_, frame in many.transcript.online) <= 4000


def test_comparisons_by_pieces_are_exact_in_both_cells_of_two_samples(limit):
    """The garbler has argument a in one cell, and argument b in the other."""
    small_garbled_chunks(limit, 15)
    study = garbled_study(AUC, 2, sampling="two_sample", x=("-100", "100"), epsilon=LOUD)
    tables = random_tables([12, 11], "both cells", -100, 100)
    for each, cases in zip(tables, (5, 7), strict=True):
        each["label"] = np.repeat([0, 1], [cases, len(each["x"]) - cases])
    run = simulate(study, tables, Entropy("both cells"))
    (plan,) = set(run.attempt.program.plans.values())
    cells = NodePair.of(run.attempt, 0, 1).cells
    assert len(plan.pieces) == 2 and set(cells) == {(0, 1), (1, 0)}
    assert all(cell.count > plan.chunk_edges for cell in cells.values())
    expected = clear_sums(study, tables, run.attempt.hypergraph)
    assert noisy_sums(run.transcript.shares, 1) == expected
    check_cost(run)


def test_no_message_is_larger_than_a_frame_and_no_edge_has_the_number_of_another():
    """A link of two samples has two cells: under one Δ and key their edges are numbered through."""
    study = garbled_study(AUC, 3, sampling="two_sample", epsilon=LOUD)
    run = check(study, [9, 8, 7], "numbers")
    for pair in ((0, 1), (0, 2), (1, 2)):
        link = NodePair.of(run.attempt, *pair)
        numbers = [
            link.first_edge(owners) + i
            for owners, cell in link.cells.items()
            for i in range(cell.count)
        ]
        assert sorted(numbers) == list(range(len(numbers))) and len(link.cells) == 2
        assert link.garbler == pair[0]


def test_a_dealer_says_nothing_and_rounds_are_labels_tables_and_the_reveal():
    run = check(garbled_study(KENDALL, 3, epsilon=LOUD), [4, 3, 2], "steps")
    steps = {frame.step for *_, frame in run.transcript.online}
    assert steps == {"ot_extend", "labels", "garbled"} and run.report.rounds == 3
    assert [f.step for *_, f in run.transcript.offline] == ["ot_offer", "ot_choice", "ot_trees"] * 3
    assert (
        not run.attempt.needs_dealer
        and predict(run.attempt).bytes_offline == run.report.bytes_offline
    )
    for sender, receiver, frame in run.transcript.online:
        later = sender > receiver
        assert (frame.step == "ot_extend") == later, "the first of two nodes garbles"


@pytest.mark.parametrize(
    "noise", [{"noise": "distributed"}, {"noise": "skellam", "delta": "1e-6"}], ids=str
)
def test_noise_that_every_node_adds_itself(noise):
    study = garbled_study(KENDALL, 3, **noise)
    tables = random_tables([5, 4, 3], "noise")
    report = simulate(study, tables, Entropy("noise")).report
    assert abs(report.estimate) <= 1 + 12 * report.noise_std and report.noise_std > 0
