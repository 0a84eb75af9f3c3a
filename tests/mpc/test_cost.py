"""Predicted cost equals what is measured, to the byte and the round."""

from __future__ import annotations

import pytest

from umpc.mpc.cost import predict
from umpc.simulation import simulate

from .studies import GINI, KENDALL, Entropy, make_study, random_tables

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


def test_many_chunks_cost_what_was_predicted(monkeypatch):
    monkeypatch.setattr("umpc.mpc.plan.MAX_CHUNK", 8)
    monkeypatch.setattr("umpc.mpc.evaluation.FIELDS_BYTES", 20)
    check(make_study(KENDALL, 3), [9, 30, 5])


def check(study, counts) -> None:
    label = f"cost {study.kernel} {counts} {study.edges}"
    run = simulate(study, random_tables(counts, label), Entropy(label))
    cost, report = predict(run.attempt), run.report
    assert (cost.rounds, cost.bytes_online, cost.bytes_offline) == (
        report.rounds,
        report.bytes_online,
        report.bytes_offline,
    ), label
    assert (report.rounds_predicted, report.bytes_online_predicted) == (cost.rounds, cost.bytes_online)


def test_an_edge_of_kendall_costs_eight_bits_online():
    """docs/protocol.md: 4 bits each way, beside the masked fields once per record."""
    study, costs = make_study(KENDALL), []
    for rows in (80, 160):
        counts = [rows, 80]
        run = simulate(study, random_tables(counts, "bits"), Entropy("bits"))
        costs.append(sum(len(f.payload) for _, _, f in run.transcript.online if f.step == "open_bits"))
    assert costs == [80 * 80, 160 * 80]
