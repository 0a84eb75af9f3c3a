"""umpc.node.told_order: a demo computes in the clear over the records as its nodes numbered them.

E follows from the joint seed and the numbers of records. The records that meet in it follow from
each node's secret order too.
"""

from __future__ import annotations

import stat

import pytest

from tests.node.test_admission import TAU, AtNode
from umpc.cli.table import exact_value, pooled
from umpc.mpc.attempt import edges_of
from umpc.node.told_order import VARIABLE, describe, order_beside, orders_told

ROWS = 40
EDGES = "60"


@pytest.fixture
def node(tmp_path) -> AtNode:
    node = AtNode(tmp_path)
    lines = [f"{row % 7},{row * row % 11}" for row in range(ROWS)]
    node.table.write_text("\n".join(["x,y", *lines]) + "\n")
    return node


def test_the_exact_value_is_over_the_records_that_met_at_the_node(node, monkeypatch):
    """The demo once took the table's order, and compared with another sum where E is a sample."""
    monkeypatch.setenv(VARIABLE, orders_told([node.table])["t"][VARIABLE])
    study = TAU.replaced(edges=EDGES)
    graph = edges_of(study, bytes(32), [(0, ROWS)])
    (by_table,) = pooled(study, [node.table])
    differ = 0
    for _ in range(5):
        columns = node.admission.load(study).columns
        (told,) = pooled(study, [node.table])
        assert {name: values.tolist() for name, values in columns.items()} == {
            name: values.tolist() for name, values in told.items()
        }
        differ += exact_value(study, [told], graph) != exact_value(study, [by_table], graph)
    assert differ, "the order matters to a sample of pairs"


def test_only_its_owner_reads_the_order_and_only_where_it_was_asked_for(node, monkeypatch):
    place = order_beside(node.table)
    assert node.ask() == f"{ROWS} records"
    assert not place.exists() and describe() == ""
    monkeypatch.setenv(VARIABLE, str(place))
    node.ask()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert str(place) in describe()
