"""A column of decimals without a resolution cannot give a wrong tau (docs/study.md)."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from tests.support.protocols import one_node_study
from umpc.cli.table import DemoTable, exact_over_all, pooled
from umpc.errors import StudyError
from umpc.node.records import load_records
from umpc.node.table.source import TableSource
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.study.parts import FieldText

KENDALL = "sign(a.x - b.x) * sign(a.y - b.y)"
ROWS = [
    (f"0.{(37 * i) % 100:02}", f"{100 - (37 * i + i % 5 * 7) % 100 / 100:.2f}")
    for i in range(1, 60)
]
TABLE = DemoTable(("x", "y"), ROWS)
"""Decimals between 0 and 1, and between 99 and 100: whole numbers keep few of their ranks."""


def tau(rows) -> float:
    signs = [
        ((a > c) - (a < c)) * ((b > d) - (b < d))
        for (a, b), (c, d) in combinations([(float(x), float(y)) for x, y in rows], 2)
    ]
    return sum(signs) / len(signs)


def study(fields: tuple[FieldText, ...]) -> Study:
    return one_node_study(fields, (KENDALL,))


def fields(**step) -> tuple[FieldText, ...]:
    return (FieldText("x", "0", "1", **step), FieldText("y", "99", "100", **step))


def computed(found: Study, folder: Path) -> float | None:
    return exact_over_all(found, pooled(found, TABLE.split(folder, 1)))


def test_the_study_is_refused_from_its_document_alone():
    with pytest.raises(StudyError, match="field 'x': a resolution, or whole = true, was expected"):
        checked(study(fields()))


def test_the_resolution_that_the_table_gives_keeps_every_rank(tmp_path):
    assert computed(checked(study(TABLE.fields())), tmp_path) == pytest.approx(tau(ROWS))


def test_a_wrong_declaration_changes_tau_and_the_node_tells_its_administrator(tmp_path):
    wrong = checked(study(fields(whole=True)))
    assert abs(computed(wrong, tmp_path) - tau(ROWS)) > 0.1
    source = TableSource(tmp_path / "node-1.csv")
    records = load_records(source, [each.schema() for each in wrong.fields], node="node-1")
    assert [misfit.name for misfit in records.misfits] == ["x", "y"]
    assert all(len(misfit.rounded) >= len(ROWS) - 1 for misfit in records.misfits)
    assert records.count == len(ROWS)  # the coordinator hears this number, as of any table


@pytest.mark.parametrize("step", [{"resolution": "0.01"}, {"resolution": "1/100"}])
def test_a_stated_resolution_that_holds_the_values_leaves_nothing_to_say(tmp_path, step):
    right = checked(study(fields(**step)))
    assert computed(right, tmp_path) == pytest.approx(tau(ROWS))
    source = TableSource(tmp_path / "node-1.csv")
    assert not load_records(source, [e.schema() for e in right.fields], node="node-1").misfits
