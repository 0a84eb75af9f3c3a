"""Two samples with public labels: only pairs across the classes, in tables sorted by class, and the
AUC exactly.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.protocols import coordinator_of, make_node, noise_of
from tests.support.signed import signed
from tests.support.studies import (
    AUC,
    CLASSES,
    LOUD,
    Entropy,
    by_class,
    clear_sums,
    generator,
    graph_of,
    library_study,
    make_attempt,
    make_members,
    make_study,
    random_tables,
    table,
)
from umpc.errors import RemoteProtocolError, TooFewRecords
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study import messages as m
from umpc.study.sizes import Sizes

COUNTS, FIRST = [4, 3, 0, 5], [1, 3, 0, 2]
"""Records of the nodes, and how many of them are of the first class."""


def auc_study(nodes: int = 4, **changes):
    return make_study(AUC, nodes, **{"sampling": "two_sample", "epsilon": LOUD, **changes})


def rows_of(study, graph) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """All edges as ((node, row of its table), …)."""
    found = []
    for owners, cell in graph.cells.items():
        for edge in cell.edges(0, cell.count).T.tolist():
            found.append(tuple(zip(owners, edge, strict=True)))
    return found


# --- E --------------------------------------------------------------------------------------------
# ----------


@pytest.mark.parametrize("edges", ["all", "1", "7", "2n", "35"])
def test_every_edge_is_a_record_of_the_first_class_and_one_of_the_second(edges):
    attempt = make_attempt(auc_study(edges=edges), COUNTS, f"across {edges}", FIRST)
    rows = rows_of(attempt.study, attempt.hypergraph)
    assert all(row < FIRST[node] for (node, row), _ in rows)
    assert all(FIRST[node] <= row < COUNTS[node] for _, (node, row) in rows)
    assert len(set(rows)) == len(rows) == attempt.sizes.edges == attempt.hypergraph.edge_count


def test_all_edges_are_all_pairs_across_the_classes():
    attempt = make_attempt(auc_study(), COUNTS, "all", FIRST)
    first = [(node, row) for node, count in enumerate(FIRST) for row in range(count)]
    second = [(node, row) for node in range(4) for row in range(FIRST[node], COUNTS[node])]
    assert sorted(rows_of(attempt.study, attempt.hypergraph)) == sorted(product(first, second))
    assert attempt.sizes.sets == attempt.sizes.edges == 36 == len(first) * len(second)


@pytest.mark.parametrize("edges", range(1, 36))
@pytest.mark.parametrize(("records", "first"), [(12, 6), (13, 4), (13, 9)])
def test_the_sensitivity_is_the_larger_classs_degree_times_the_range(edges, records, first):
    """max(⌈|E|/n₀⌉, ⌈|E|/n₁⌉)·Δf, and no record is in more edges; some record is in so many."""
    study = auc_study(2, edges=str(edges))
    sizes = Sizes(study, records, first)
    degree = max(-(-edges // first), -(-edges // (records - first)))
    assert (sizes.max_degree, sizes.sensitivities) == (degree, (degree * 2,))
    (noise,) = noise_of(sizes)
    assert noise.sensitivity == degree * 2
    split = [first // 2, first - first // 2]
    graph = make_attempt(study, [5, records - 5], f"degree {edges}", split).hypergraph
    assert max(int(graph.degrees(node).max()) for node in (0, 1)) == degree


@pytest.mark.parametrize("edges", ["all", "3", "5"])
def test_replacing_one_record_changes_the_sum_by_at_most_the_sensitivity(edges):
    """A replaced record keeps its class, which is public: every replacement of every record."""
    study = auc_study(2, edges=edges, x=("0", "2"))
    attempt, hit = make_attempt(study, [2, 3], f"replace {edges}", [1, 1]), 0
    labels = [[0, 1], [0, 1, 1]]
    (bound,) = attempt.sizes.sensitivities

    def total(xs):
        tables = [table(xs[:2], [0] * 2, labels[0]), table(xs[2:], [0] * 3, labels[1])]
        return clear_sums(study, tables, attempt.hypergraph)[0]

    for xs in product(range(3), repeat=5):
        before = total(xs)
        for place, value in product(range(5), range(3)):
            hit = max(hit, abs(total([*xs[:place], value, *xs[place + 1 :]]) - before))
    assert hit == bound


# --- tables
# -------------------------------------------------------------------------------------------------


def session_of(study, columns, number: int = 0) -> UMpcNode:
    return make_node(
        study.nodes[number].name, study, columns, len(columns["x"]), Entropy(f"session {number}")
    )


def test_a_nodes_table_is_sorted_by_class_and_otherwise_as_it_was():
    columns = table([5, 6, 7, 8, 9], [0, 1, 2, 3, 4], [1, 0, 1, 0, 0])
    session = session_of(auc_study(x=("0", "9"), y=("0", "9")), columns)
    assert {name: column.tolist() for name, column in session.columns.items()} == {
        "x": [6, 8, 9, 5, 7],
        "y": [1, 3, 4, 0, 2],
        "label": [0, 0, 0, 1, 1],
    }
    assert (session.accept().records, session.accept().first_class, session.accept().classes) == (
        5,
        3,
        (3, 2),
    )


@pytest.mark.parametrize(("labels", "first"), [([], 0), ([0, 0], 2), ([1, 1, 1], 0)])
def test_a_node_may_have_one_class_only_or_nothing(labels, first):
    zeros = [0] * len(labels)
    assert session_of(auc_study(), table(zeros, zeros, labels)).accept().first_class == first


def test_without_public_labels_a_table_stays_as_it_is_and_nothing_is_said_of_classes():
    study = make_study("a.x == b.x", fields=(*make_study().fields, replace_public(CLASSES)))
    session = session_of(study, table([1, 0], [0, 0], [1, 0]))
    assert session.accept().first_class == 0 and session.columns["x"].tolist() == [1, 0]


def replace_public(field):
    return type(field)(field.name, field.lower, field.upper, field.resolution, field.categories)


# --- identity
# -----------------------------------------------------------------------------------------------


def test_the_number_of_each_class_is_part_of_the_attempts_identity():
    """Same study, same openings, same number of records: other classes are another attempt."""
    study = auc_study()
    attempts = [
        make_attempt(study, COUNTS, "identity", first)
        for first in (FIRST, [2, 2, 0, 2], [2, 3, 0, 2])
    ]
    assert len({attempt.seed for attempt in attempts}) == 1
    assert len({attempt.id for attempt in attempts}) == 3


def test_a_node_that_states_two_numbers_of_a_class_is_found_before_anything_is_prepared():
    """node-2 signs both, and the coordinator passes on a different one to node-1."""
    study = auc_study(3)
    tables = random_tables([3, 4, 3], "equivocation", classes=True)
    nodes = [session_of(study, columns, number) for number, columns in enumerate(tables)]
    members = [node.accept() for node in nodes]
    other = members[2].first_class - 1 if members[2].first_class else 1
    told = [members, [*members[:2], signed(study, members[2], first_class=other)], members]
    openings = [node.agree(of) for node, of in zip(nodes, told, strict=True)]
    signatures = [node.sign_members() for node in nodes]
    for node in nodes:
        with pytest.raises(RemoteProtocolError, match="has not signed these members") as caught:
            node.check_agreed(signatures)
        assert caught.value.culprit == "coordinator"
    coordinator = coordinator_of(study)
    coordinator.agree([m.Accepted(study.hash, member) for member in members])
    with pytest.raises(RemoteProtocolError, match="has not signed all members") as caught:
        coordinator.begin([m.Opened(*each) for each in zip(openings, signatures, strict=True)])
    assert caught.value.culprit == "node-1"


def test_the_classes_are_announced_and_reported():
    tables = random_tables([4, 0, 5], "announced", classes=True)
    report = simulate(auc_study(3), tables, Entropy("announced")).report
    assert report.first_class_by_node == [int((t["label"] == 0).sum()) for t in tables]
    assert report.records_by_node == [4, 0, 5]
    assert (report.edges, report.degree, report.records) == (report.sets, 2, 9)
    first = sum(report.first_class_by_node)
    assert report.sets == first * (9 - first) and report.max_degree == max(first, 9 - first)


# --- what comes out
# -----------------------------------------------------------------------------------------

tables_of_any_shape = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=5), min_size=1, max_size=4
).filter(lambda nodes: {label for rows in nodes for _, label in rows} == {0, 1})


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(tables_of_any_shape)
def test_the_auc_over_all_pairs_is_scikit_learns(nodes):
    """The first class scores above the second, ties half."""
    from sklearn.metrics import roc_auc_score

    tables = [
        table([x for x, _ in rows], [0] * len(rows), [label for _, label in rows]) for rows in nodes
    ]
    report = simulate(auc_study(len(nodes)), tables, Entropy(repr(nodes))).report
    score, label = (np.concatenate([t[name] for t in tables]) for name in ("x", "label"))
    assert report.estimate == pytest.approx(roc_auc_score(label == 0, score), abs=1e-12)
    above = Fraction(
        sum(
            2 * (p > q) + (p == q) for p, q in product(score[label == 0], score[label == 1])
        ).item(),
        2,
    )
    assert report.estimate == float(above / report.sets)


def test_the_auc_of_random_scores_of_many_records():
    from sklearn.metrics import roc_auc_score

    tables = random_tables([120, 90, 150], "many", high=40, classes=True)
    report = simulate(auc_study(3, x=("0", "40"), y=("0", "40")), tables, Entropy("many")).report
    score, label = (np.concatenate([t[name] for t in tables]) for name in ("x", "label"))
    assert abs(report.estimate - roc_auc_score(label == 0, score)) < 1e-12


def test_mann_and_whitneys_u_is_scipys():
    tables = random_tables([7, 5], "u", classes=True)
    study = library_study("mann_whitney_u", (*make_study().fields[:1], CLASSES), 2, ["x"])
    columns = [{name: t[name] for name in ("x", "label")} for t in tables]
    x, label = (np.concatenate([t[name] for t in tables]) for name in ("x", "label"))
    expected = stats.mannwhitneyu(x[label == 0], x[label == 1]).statistic
    assert simulate(study, columns, Entropy("u")).report.estimate == pytest.approx(
        expected, abs=1e-9
    )


@pytest.mark.parametrize(
    "kernel", ["a.x < b.x", "a.x - b.y * 2", "(a.x == b.y) * a.y", "abs(a.x - b.x) + a.y"]
)
@pytest.mark.parametrize("edges", ["all", "1n", "2"])
def test_kernels_need_not_be_symmetric(kernel, edges):
    study = make_study(kernel, 3, sampling="two_sample", epsilon=LOUD, edges=edges)
    tables = random_tables([4, 3, 5], f"asymmetric {kernel}", classes=True)
    run = simulate(study, tables, Entropy(f"{kernel} {edges}"))
    assert noisy_sums(run.transcript.shares, 1) == clear_sums(
        study, tables, graph_of(study, run.report)
    )
    report = run.report
    assert (
        report.bytes_online == report.bytes_online_predicted
        and report.rounds == report.rounds_predicted
    )
    assert report.bytes_offline == report.bytes_offline_predicted


def test_both_orders_of_two_nodes_are_cells_of_their_own():
    """With a label each, node 0 owns the first record of some edges and the second of others."""
    study, tables = auc_study(2), [table([0, 3], [0, 0], [0, 1]), table([1, 2], [0, 0], [1, 0])]
    run = simulate(study, tables, Entropy("orders"))
    assert set(run.attempt.hypergraph.cells) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert run.report.estimate == Fraction(1, 4)


def test_by_class_of_these_tests_is_the_nodes_own_order():
    study, rng = auc_study(1), generator("order")
    columns = table(*rng.integers(0, 4, (2, 30)), rng.integers(0, 2, 30))
    (mine,) = by_class(study, [columns])
    assert all(
        np.array_equal(mine[name], of) for name, of in session_of(study, columns).columns.items()
    )


# --- refusals
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [[0, 0], [3, 4]])
def test_a_class_without_records_at_any_node_is_refused_before_any_opening(first):
    study = auc_study(2)
    members, _ = make_members(study, [3, 4], first=first)
    with pytest.raises(TooFewRecords, match=f"there are {sum(first)} of the first class"):
        coordinator_of(study).agree([m.Accepted(study.hash, member) for member in members])


def test_a_class_may_be_absent_at_a_node():
    tables = [table([3, 2], [0, 0], [0, 0]), table([1, 0], [0, 0], [1, 1])]
    run = simulate(auc_study(2), tables, Entropy("apart"))
    assert run.report.estimate == 1.0 and set(run.attempt.hypergraph.cells) == {(0, 1)}
