"""umpc.node.server: when a node checks its administrator's rules, and how it sees a change."""

from __future__ import annotations

import logging
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.studies import make_study
from umpc.errors import ApprovalPending, ConfigError, DataError, PolicyRefused, UmpcError
from umpc.node.approvals import ACCEPTED
from umpc.node.config import IDENTITY_FILES, load_node_config
from umpc.node.policy import ANYTHING
from umpc.node.server import SCHEMAS, NodeServer, _public
from umpc.study.document import Study

TAU = make_study()


class AtNode:
    """A node's server without a network, its file of rules and its table."""

    def __init__(self, folder: Path):
        self.file, self.table = folder / "node.toml", folder / "t.csv"
        for name in IDENTITY_FILES:
            (folder / name).write_text("pem")
        self.table.write_text("x,y\n1,2\n3,0\n,1\n")
        self.write("")
        self.server = NodeServer(
            load_node_config(self.file), SimpleNamespace(name="north"), None, lambda error: None
        )

    def write(self, rules: str, budget: str = "5", more: str = "") -> None:
        data = '[data]\npath = "t.csv"\n'
        top = f'name = "north"\nidentity = "."\n{more}{data}[budget]\nepsilon = {budget}\n'
        self.file.write_text(f"{top}[policy]\n{rules}\n")

    def ask(self, study: Study = TAU) -> str:
        """What the node says."""
        try:
            return f"{self.server.site.load(study).count} records"
        except UmpcError as error:
            return type(error).__name__


@pytest.fixture
def node(tmp_path) -> AtNode:
    return AtNode(tmp_path)


def test_a_change_of_the_rules_counts_at_the_next_proposal(node, caplog):
    caplog.set_level(logging.INFO)
    assert node.ask() == "2 records" and not caplog.messages
    node.write("min_nodes = 3")
    assert node.ask() == node.ask() == "PolicyRefused"
    assert caplog.messages == [f"{node.file} changed; its [policy] counts from now on"]
    node.write("min_nodes = 2")
    assert node.ask() == "2 records"


def test_a_file_that_is_being_written_in_pieces_is_read_until_it_is_whole(node, monkeypatch):
    node.write("min_nodes = 3")
    whole, before = load_node_config(node.file), node.server.config
    assert before.policy == ANYTHING
    torn = replace(whole, policy=ANYTHING, epsilon=Fraction(7))
    readings = iter([torn, whole, whole])
    monkeypatch.setattr("umpc.node.server.load_node_config", lambda file: next(readings))
    assert node.ask() == "PolicyRefused" and next(readings, None) is None


def test_other_changes_wait_for_a_restart_and_the_log_says_so(node, caplog):
    node.write("min_nodes = 3", budget="6", more='listen = "127.0.0.1:7000"\n')
    assert node.ask() == node.ask() == "PolicyRefused"
    assert caplog.messages == [
        f"{node.file}: listen, budget.epsilon changed, and counts from the next start on"
    ]
    assert node.server.config.epsilon == 5


@pytest.mark.parametrize("text", ["", "[policy", None])
def test_a_broken_file_refuses_all_and_only_the_administrator_reads_why(node, text):
    whole = node.file.read_text()
    node.file.unlink() if text is None else node.file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        node.server.site.load(TAU)
    assert str(node.file) in caught.value.message
    assert _public(caught.value, "north").message == (
        "north: its configuration has an error, which only its administrator can correct; "
        "see the node's own log"
    )
    node.file.write_text(whole)
    assert node.ask() == "2 records"


def test_rules_come_before_approval_approval_before_the_table_and_min_records_after(node):
    node.table.write_text("no table at all")
    node.write("approval = true\nmin_nodes = 3\nmin_records = 3")
    assert node.ask() == "PolicyRefused" and node.server.approvals.entries() == []
    node.write("approval = true\nmin_records = 3")
    assert node.ask() == "ApprovalPending"
    node.server.approvals.decide(TAU.hash.hex(), ACCEPTED)
    with pytest.raises(DataError):
        node.server.site.load(TAU)
    node.table.write_text("x,y\n1,2\n3,0\n,1\n")
    with pytest.raises(PolicyRefused, match="fewer complete records"):
        node.server.site.load(TAU)
    node.write("approval = true\nmin_records = 2")
    assert node.ask() == "2 records"


def test_studies_that_are_refused_use_up_none_of_the_schemas_that_may_be_tried(node):
    node.write("approval = true")
    for upper in range(4, SCHEMAS + 8):
        with pytest.raises(ApprovalPending):
            node.server.site.load(make_study(x=("0", str(upper))))
    node.write("")
    assert node.ask() == "2 records"
