"""Edges of k records: noise that covers degree k, single records without a message, talk only along
edges.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from tests.support.protocols import noise_of
from tests.support.studies import (
    LOUD,
    SKEWNESS,
    SPEARMAN,
    TRIPLE,
    Entropy,
    clear_sums,
    graph_of,
    make_attempt,
    make_study,
    random_tables,
    table,
)
from umpc.errors import TooFewRecords
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study.rules import MAX_DEGREE
from umpc.study.sizes import Sizes
from umpc.ustat.expression import RECORD_NAMES

NAMES = RECORD_NAMES[:MAX_DEGREE]


def joined(operator: str, degree: int) -> str:
    return operator.join(f"{name}.x" for name in NAMES[:degree])


SHAPES = {
    "sum": lambda degree: joined(" + ", degree),
    "product": lambda degree: joined(" * ", degree),
    "all equal": lambda degree: (
        " & ".join(f"(a.x == {name}.x)" for name in NAMES[1:degree]) or "a.x == 1"
    ),
    "constant": lambda degree: "3",
}


def check(study, tables, label: str):
    """The exact sum over the published E, at the predicted cost."""
    run = simulate(study, tables, Entropy(label))
    report = run.report
    assert noisy_sums(run.transcript.shares, len(study.kernels)) == clear_sums(
        study, tables, graph_of(study, report)
    )
    assert (report.rounds, report.bytes_online) == (
        report.rounds_predicted,
        report.bytes_online_predicted,
    )
    assert report.bytes_offline == report.bytes_offline_predicted
    return run


# --- noise ----------------------------------------------------------------------------------------
# ------------


@pytest.mark.parametrize("edges", ["all", "1", "1n", "2n", "5"])
@pytest.mark.parametrize("degree", range(1, MAX_DEGREE + 1))
def test_the_noise_covers_a_record_in_as_many_edges_as_there_can_be(degree, edges):
    """δ_max = ⌈k|E|/n⌉; for all edges that is C(n − 1, k − 1)."""
    study, counts = make_study(SHAPES["sum"](degree), 3, degree=degree, edges=edges), [4, 0, 6]
    sizes = Sizes(study, 10)
    assert sizes.sets == comb(10, degree)
    assert sizes.max_degree == -(-degree * sizes.edges // 10)
    if edges == "all":
        assert sizes.max_degree == comb(9, degree - 1)
    (noise,) = noise_of(sizes)
    assert noise.sensitivity == sizes.max_degree * 3 * degree == sizes.sensitivities[0]
    graph = make_attempt(study, counts, f"covers {degree} {edges}").hypergraph
    assert max(int(graph.degrees(node).max(initial=0)) for node in range(3)) == sizes.max_degree
    assert sum(int(graph.degrees(node).sum()) for node in range(3)) == degree * sizes.edges


@pytest.mark.parametrize("edges", ["all", "2", "5"])
@pytest.mark.parametrize("kernel", [TRIPLE, SKEWNESS, "a.x + b.x + c.x"])
def test_replacing_one_record_changes_a_sum_of_triples_by_at_most_the_sensitivity(kernel, edges):
    study = make_study(kernel, 2, degree=3, edges=edges, x=("0", "2"), y=("0", "0"))
    attempt, hit = make_attempt(study, [2, 3], f"replace {edges}"), 0
    (bound,) = attempt.sizes.sensitivities

    def total(xs) -> int:
        return clear_sums(
            study, [table(xs[:2], [0] * 2), table(xs[2:], [0] * 3)], attempt.hypergraph
        )[0]

    totals = {xs: total(xs) for xs in product(range(3), repeat=5)}
    for xs, before in totals.items():
        for place, value in product(range(5), range(3)):
            hit = max(hit, abs(totals[(*xs[:place], value, *xs[place + 1 :])] - before))
    assert hit <= bound <= 3 * hit, (
        "the bound is too small, or larger than a range can exceed one record's part of it"
    )


@pytest.mark.parametrize("degree", range(1, MAX_DEGREE + 1))
def test_the_report_names_degree_edges_and_possible_sets(degree):
    study = make_study("7", 2, degree=degree, edges="3")
    report = simulate(study, random_tables([5, 5], "named"), Entropy("named")).report
    assert (report.degree, report.edges, report.sets) == (degree, 3, comb(10, degree))
    assert report.estimate == 7.0 and report.noise_std == 0


# --- every degree
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(8,), (3, 6), (1, 0, 4, 3), (1,) * 8], ids=str)
@pytest.mark.parametrize("shape", ["sum", "product", "constant"])
@pytest.mark.parametrize("degree", range(1, MAX_DEGREE + 1))
def test_sums_of_every_degree_equal_the_clear_ones(degree, shape, counts):
    study = make_study(
        SHAPES[shape](degree), len(counts), degree=degree, x=("0", "2"), epsilon=LOUD, edges="1n"
    )
    run = check(
        study, random_tables(counts, f"{shape} {degree}", high=2), f"{shape} {degree} {counts}"
    )
    if counts == (1,) * 8:
        assert all(len(set(owners)) == degree for owners in run.attempt.hypergraph.cells)


@pytest.mark.parametrize("counts", [(2, 3), (1, 2, 2), (1, 1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("degree", [3, 4])
def test_comparisons_among_many_owners_equal_the_clear_ones(degree, counts):
    study = make_study(
        SHAPES["all equal"](degree), len(counts), degree=degree, x=("0", "1"), epsilon=LOUD
    )
    check(study, random_tables(counts, f"equal {degree}", high=1), f"equal {degree} {counts}")


@pytest.mark.parametrize("degree", range(2, MAX_DEGREE + 1))
def test_records_one_short_of_an_edge_are_refused(degree):
    study = make_study("7", 2, degree=degree, epsilon=LOUD)
    with pytest.raises(TooFewRecords, match=f"degree {degree} needs at least {degree} records"):
        simulate(study, random_tables([1, degree - 2], "short"), Entropy("short"))
    assert (
        simulate(study, random_tables([1, degree - 1], "enough"), Entropy("enough")).report.edges
        == 1
    )


# --- single records
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", ["all", "3", "1n"])
@pytest.mark.parametrize(
    "kernels", ["a.x", "a.x * a.y", "(a.x < a.y) * a.x", ("a.x * a.x", "a.x == a.y")], ids=str
)
def test_sums_of_single_records_need_no_dealer_and_no_message_between_nodes(kernels, edges):
    of = "mean" if isinstance(kernels, str) else "ratio"
    study = make_study(kernels, 3, degree=1, edges=edges, epsilon=LOUD, estimator=of)
    tables = random_tables([3, 0, 4], f"single {kernels}")
    run = check(study, tables, f"single {kernels} {edges}")
    assert run.transcript.offline == run.transcript.online == []
    assert not run.attempt.program.needs_dealer and all(node.peers == () for node in run.nodes)
    assert run.report.rounds == 1 and run.report.bytes_offline == 0
    assert run.report.bytes_online == 3 * run.attempt.ring.bytes * len(study.kernels)


def test_the_mean_of_all_records_is_their_mean():
    tables = random_tables([3, 0, 4], "mean")
    study = make_study("a.x", 3, degree=1, epsilon=LOUD)
    xs = np.concatenate([t["x"] for t in tables])
    assert simulate(study, tables, Entropy("mean")).report.estimate == xs.sum() / 7


def test_a_sum_of_single_records_is_still_noisy_and_masked():
    study = make_study("a.x", 2, degree=1, max_colluding=1)
    run = simulate(study, [table([2], [0]), table([1], [0])], Entropy("noisy"))
    (noise,) = noise_of(run.attempt.sizes)
    assert (noise.sensitivity, noise.honest) == (3, 1)
    assert all(int.from_bytes(share, "little") > 3 for share in run.transcript.shares)


# --- talk only along edges
# --------------------------------------------------------------------------------------

SPARSE = {"counts": (2, 2, 2, 2, 2), "edges": "3"}


def sparse_runs(kernel: str, degree: int):
    """Few edges over five nodes, with E of many joint seeds."""
    study = make_study(kernel, 5, degree=degree, edges=SPARSE["edges"], epsilon=LOUD)
    for number in range(8):
        label = f"sparse {number}"
        yield check(study, random_tables(SPARSE["counts"], label), label)


@pytest.mark.parametrize(
    "kernel", [TRIPLE, SKEWNESS, SPEARMAN], ids=["product", "skewness", "spearman"]
)
def test_nodes_are_neighbours_only_where_an_edge_joins_them(kernel):
    strangers = 0
    for run in sparse_runs(kernel, 3):
        graph, names = run.attempt.hypergraph, [node.name for node in run.attempt.study.nodes]
        joined = {
            (u, v)
            for owners, cell in graph.cells.items()
            for edge in cell.edges(0, cell.count).T
            for u, v in combinations(sorted(set(owners)), 2)
            if len(edge) == 3
        }
        links = {
            tuple(sorted((names.index(s), names.index(r)))) for s, r, _ in run.transcript.online
        }
        assert links == joined
        for node in range(5):
            neighbours = {other for pair in joined if node in pair for other in pair} - {node}
            assert set(run.nodes[node].peers) == neighbours == set(graph.neighbours(node))
        strangers += 10 - len(joined)
    assert strangers > 0, "no run had two nodes without a common edge"


@pytest.mark.parametrize(
    "kernel", [TRIPLE, SKEWNESS, SPEARMAN], ids=["product", "skewness", "spearman"]
)
def test_only_records_that_share_an_edge_with_the_receiver_are_sent_to_it(kernel):
    withheld = 0
    for run in sparse_runs(kernel, 3):
        names = [node.name for node in run.attempt.study.nodes]
        due = {(u, v): set() for u, v in product(range(5), repeat=2)}
        for owners, cell in run.attempt.hypergraph.cells.items():
            for edge in cell.edges(0, cell.count).T.tolist():
                for (u, row), v in product(zip(owners, edge, strict=True), owners):
                    if u != v:
                        due[u, v].add(row)
        for sender, receiver, frame in run.transcript.online:
            if frame.step == "masked_fields":
                pair = names.index(sender), names.index(receiver)
                assert frame.count == len(due[pair]) and set(frame.owners) == set(pair)
                assert run.attempt.hypergraph.shared_records(*pair).tolist() == sorted(due[pair])
                withheld += 2 - frame.count
    assert withheld > 0, "every record went everywhere: the runs show nothing"


def test_openings_of_a_cell_go_to_its_other_owners_only():
    for run in sparse_runs(SKEWNESS, 3):
        names = [node.name for node in run.attempt.study.nodes]
        for sender, receiver, frame in run.transcript.online:
            owners = {names.index(sender), names.index(receiver)}
            assert owners <= set(frame.owners)
        for _, receiver, frame in run.transcript.offline:
            assert frame.step == "node_seed" or names.index(receiver) in frame.owners
