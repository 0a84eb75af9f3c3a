"""Predicted cost equals what is measured, to the byte and the round."""

from __future__ import annotations

import pytest

from tests.support.garbled import without_points
from tests.support.limits import small_chunks
from tests.support.mpc_studies import LEANING
from tests.support.studies import (
    GINI,
    KENDALL,
    LOUD,
    Entropy,
    clear_sums,
    make_attempt,
    make_study,
    random_tables,
)
from umpc.mpc import attempt
from umpc.mpc.backends import predict
from umpc.simulation import simulate
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

SPLITS = {
    "one node": [9],
    "two nodes": [5, 6],
    "a node with one record": [9, 1],
    "a node with none": [6, 0, 5],
    "two single records": [1, 1],
    "uneven": [1, 0, 17, 4, 2],
    "sixteen nodes": [1, 3] * 8,
}


@pytest.mark.parametrize("edges", ["2n", "all", "1", "7"])
@pytest.mark.parametrize("counts", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("kernel", [KENDALL, GINI], ids=["kendall", "gini"])
def test_library_statistics_cost_what_was_predicted(kernel, counts, edges):
    if edges == "7" and sum(counts) < 5:
        edges = "1"
    check(make_study(kernel, len(counts), edges=edges), counts)


@pytest.mark.parametrize(
    "kernel",
    [
        "a.x + b.x",
        "5",
        "a.x * b.x",
        "(a.x < 2) * (b.x < 2)",
        "(a.x == b.x) * (a.y == b.y)",
        "abs(a.x - b.x) * 1000000000",
    ],
)
def test_other_kernels_cost_what_was_predicted(kernel):
    check(make_study(kernel, 3, edges="2n"), [4, 3, 2])


OF_DEGREE = {
    1: ["a.x", "a.x * a.y - 3"],
    2: [
        "a.x * b.x < 3",
        "abs(a.x - b.x) < 2",
        "(a.x < b.x) & (a.y < b.y) ^ (b.x < a.x) & (b.y < a.y)",
    ],
    3: [
        "a.x * b.x * c.x",
        LEANING,
        "abs(a.x - b.x) + abs(b.x - c.x) + abs(a.x - c.x)",
        " + ".join(f"(abs({p}.x - {q}.x) < {r}.y)" for p, q, r in ("abc", "acb", "bca")),
        to_text(LIBRARY["spearman_rho"].expressions(["x", "y"])[0]),
    ],
    4: [
        "a.x * b.x * c.x * d.x",
        "abs(a.x + b.x + c.x + d.x - 6)",
        "(a.x == b.x) & (b.x == c.x) & (c.x == d.x)",
    ],
}
NODES = {2: [3, 4], 3: [3, 0, 4], 5: [2, 1, 1, 2, 1]}


@pytest.mark.parametrize("edges", ["all", "5"])
@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize(
    ("degree", "number"), [(k, n) for k, texts in OF_DEGREE.items() for n in range(len(texts))]
)
def test_edges_of_one_to_four_records_cost_what_was_predicted(degree, number, nodes, edges):
    if degree == 1:
        edges = "all"
    check(
        make_study(OF_DEGREE[degree][number], nodes, degree=degree, edges=edges, epsilon=LOUD),
        NODES[nodes],
    )


@pytest.mark.parametrize("nodes", NODES)
def test_several_sums_cost_what_was_predicted(nodes):
    check(
        make_study(
            [KENDALL, "a.x == b.x", "a.y == b.y"], nodes, estimator="geometric_ratio", epsilon=LOUD
        ),
        NODES[nodes],
    )


@pytest.mark.parametrize("nodes", [2, 3, 5])
@pytest.mark.parametrize("kernel", ["(sign(b.x - a.x) + 1) * (1/2)", "a.x * b.y"])
def test_two_samples_cost_what_was_predicted(kernel, nodes):
    """Cells (u, v) and (v, u) are two, and frames of both travel between the same nodes."""
    study = make_study(kernel, nodes, sampling="two_sample", epsilon=LOUD)
    check(
        study,
        [4] * nodes,
        random_tables([4] * nodes, f"two samples {kernel} {nodes}", classes=True),
    )


@pytest.mark.parametrize("coins", ["transfers", "dealt"])
@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_noise_of_a_committee_costs_what_was_predicted(nodes, coins):
    kernels = ["a.x == b.x", "a.y == b.y"]
    study = make_study(kernels, nodes, estimator="ratio", noise="in_mpc", coins=coins)
    with without_points():
        check(study, NODES[nodes])


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("nodes", [2, 4])
def test_wide_fields_cost_what_was_predicted_by_pieces_and_by_keys(limit, nodes, few):
    """A study above FEW_EDGES has one round more."""
    limit(attempt, FEW_EDGES=few)
    study = make_study(KENDALL, nodes, x=("0", "127"), y=("0", "131071"), edges="2n")
    check(study, [3, 5, 2, 7][:nodes])
    run = simulate(study, random_tables([3] * nodes, "wide"), Entropy("wide"))
    assert run.attempt.program.rounds == (2 if few else 3)


def test_many_chunks_cost_what_was_predicted(monkeypatch, limit):
    small_chunks(limit, field_bytes=20)
    check(make_study(KENDALL, 3), [9, 30, 5])
    check(make_study(LEANING, 3, degree=3), [4, 6, 5])


def check(study, counts, tables=None) -> None:
    """And where there is no noise, the shares add up to the sums over E."""
    label = f"cost {study.kernels} {counts} {study.edges}"
    tables = tables or random_tables(counts, label)
    run = simulate(study, tables, Entropy(label))
    cost, report = predict(run.attempt), run.report
    assert (cost.rounds, cost.bytes_online, cost.bytes_offline) == (
        report.rounds,
        report.bytes_online,
        report.bytes_offline,
    ), label
    assert (report.rounds_predicted, report.bytes_online_predicted) == (
        cost.rounds,
        cost.bytes_online,
    )
    assert report.bytes_offline_predicted == cost.bytes_offline
    assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
    assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
    assert (
        sum(report.bytes_online_by_node)
        == sum(report.bytes_online_by_step.values())
        == report.bytes_online
    )
    if study.epsilon == LOUD:
        sums = zip(
            clear_sums(study, tables, run.attempt.hypergraph), study.parsed_kernels, strict=True
        )
        assert [float(total * kernel.unit / report.edges) for total, kernel in sums] == [
            s.mean for s in report.sums
        ]


def test_an_edge_of_kendall_costs_eight_bits_online():
    """docs/protocol.md: 4 bits each way, beside the masked fields once per record."""
    study, costs = make_study(KENDALL), []
    for rows in (80, 160):
        counts = [rows, 80]
        run = simulate(study, random_tables(counts, "bits"), Entropy("bits"))
        costs.append(sum(len(f.payload) for _, _, f in run.transcript.online if f.step == "open"))
    assert costs == [80 * 80, 160 * 80]


def test_a_comparison_of_three_owners_opens_as_many_bits_as_it_has_pieces():
    """x + x' + x'' − 4 in −4..5 takes 4 bits: a piece of three, whose bit is the result."""
    study = make_study("a.x + b.x + c.x < 4", 3, degree=3)
    run = simulate(study, random_tables([8, 2, 2], "bits of three"), Entropy("bits of three"))
    opened = [f for _, _, f in run.transcript.online if f.step == "open" and f.owners == (0, 1, 2)]
    (plan,) = [plan for pattern, plan in run.attempt.program.plans.items() if pattern == (0, 1, 2)]
    assert {f.width for f in opened} == {1} and len(plan.layers) == 1
    assert sum(len(f.payload) for f in opened) == 3 * 2 * 32 // 8


def test_an_attempt_keeps_its_costs_with_and_without_a_preparation():
    """A forecast and a report ask for the same one."""
    ways = (False, True)
    attempt, *others = (make_attempt(make_study(KENDALL, 2), [5, 4]) for _ in range(3))
    first, again = ([predict(attempt, prepared=way) for way in ways] for _ in range(2))
    assert all(each is kept for each, kept in zip(first, again, strict=True))
    assert first == [predict(other, prepared=way) for other, way in zip(others, ways, strict=True)]
