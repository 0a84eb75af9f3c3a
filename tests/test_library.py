"""Every statistic of the library under shares equals the clear backend over the same E, at its predicted cost."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest

from umpc.mpc.attempt import edges_of
from umpc.simulation import simulate
from umpc.study import FieldText, Participant, Study
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

LOW, HIGH = -20, 30
"""Bounds of both columns, in steps of 1/2."""
RECORDS = 17


def study_of(name: str, nodes: int, edges: str) -> Study:
    columns = ["x", "y"][: len(LIBRARY[name].arguments)]
    return Study(
        name="library",
        statistic=name,
        kernel=to_text(LIBRARY[name].expression(columns)),
        fields=tuple(FieldText(column, str(LOW / 2), str(HIGH / 2), "1/2") for column in columns),
        epsilon="1e9",
        edges=edges,
        max_colluding=nodes - 1,
        coordinator="coordinator",
        dealer=Participant("dealer", "d:1"),
        nodes=tuple(Participant(f"n{number}", "n:1") for number in range(nodes)),
    )


TABLES = {
    "random": np.random.default_rng(3).integers(LOW, HIGH + 1, (RECORDS, 2)),
    "ties": np.random.default_rng(4).integers(-1, 2, (RECORDS, 2)),
    "bounds": np.random.default_rng(5).choice([LOW, HIGH], (RECORDS, 2)),
    "all equal": np.full((RECORDS, 2), 7),
}


@pytest.mark.parametrize("edges", ["2n", "all"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("nodes", [1, 2, 3, 5, RECORDS])
@pytest.mark.parametrize("name", LIBRARY)
def test_under_shares_as_in_the_clear(name, nodes, table, edges):
    study = study_of(name, nodes, edges)
    parts = np.array_split(TABLES[table], nodes)
    columns = [field.name for field in study.fields]
    tables = [{column: part[:, i].astype(np.int64) for i, column in enumerate(columns)} for part in parts]
    report = simulate(study, tables, os.urandom).report
    graph = edges_of(study, bytes.fromhex(report.joint_seed), report.records_by_node)
    total = 0
    for owners, cell in graph.cells.items():
        index = cell.edges(0, cell.count)
        sides = [{c: tables[owner][c][rows] for c in columns} for owner, rows in zip(owners, index, strict=True)]
        total += int(study.parsed_kernel.evaluate(sides).sum())
    assert Fraction(report.estimate).limit_denominator(10**6) == total * study.parsed_kernel.unit / graph.edge_count
    assert (report.bytes_online, report.bytes_offline) == (
        report.bytes_online_predicted,
        report.bytes_offline_predicted,
    )
    assert report.rounds == report.rounds_predicted
