"""An administrator's rules over real processes: they hold without a restart.

Meanwhile a person may decide.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.system.conftest import Lab, Outcome, command
from umpc.cli.main import umpc
from umpc.errors import ApprovalPending, ConfigError, PolicyRefused
from umpc.reporting.page import page
from umpc.study.report import Report

NEEDS_APPROVAL = "[policy]\napproval = true\n"


def config(here: Lab, name: str) -> Path:
    return here.folder / f"{name}.toml"


def rules(here: Lab, name: str, text: str) -> None:
    """Edit the section [policy] of a running node's file."""
    top = config(here, name).read_text().partition("[policy]")[0]
    config(here, name).write_text(f"{top}[policy]\n{text}\n")


def approve(here: Lab, name: str, what: str, *arguments: str) -> str:
    return command(
        "approve", what, "--config", str(config(here, name)), *arguments, check=True
    ).stdout


def refused(outcome: Outcome, error: type, *words: str) -> None:
    assert outcome.code == error.exit_code, outcome.error
    assert [word for word in words if word not in outcome.last_line] == [], outcome.last_line
    assert outcome.last_line.endswith(
        "Nothing was released and no epsilon was charged in this run."
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Provide two nodes; each test leaves node-1's rules empty."""
    here = Lab(tmp_path_factory.mktemp("lab"), 2)
    try:
        yield here.start(more="[policy]\n")
    finally:
        here.stop()


def test_a_study_waits_is_accepted_and_then_runs(lab):
    here = lab(2).start(more=NEEDS_APPROVAL)
    refused(here.run(), ApprovalPending, "waits for approval by its administrator; ask again later")
    asked = command("study", "check", str(here.study_file()), "--contact")
    assert asked.returncode == ApprovalPending.exit_code, asked.stderr
    last = asked.stderr.splitlines()[-1]
    assert last.startswith("error: node-1 calls nobody for a study that its administrator"), last
    for name in here.names:
        here.wait_for_log(name, "waits for approval")
        (line,) = approve(here, name, "list").splitlines()[1:]
        state, digits, *_ = line.split()
        assert state == "pending"
        assert "the library's kendall_tau" in approve(here, name, "show", digits)
    approve(here, "node-1", "accept", digits)
    refused(here.run(), ApprovalPending, "node-2")
    approve(here, "node-2", "reject", digits, "--reason", "not before May")
    refused(here.run(), PolicyRefused, "node-2", "not before May")
    assert all(here.reserved_by_the_living(name) == 0 for name in here.names)
    approve(here, "node-2", "accept", digits[:4])
    first = here.run()
    assert first.code == 0, first.error
    assert all("a person accepts" in told for told in first.report["policies"].values())
    rules(here, "node-2", "coordinators = []")
    again = here.run()
    assert again.code == 0 and again.report["replayed"] is True
    assert again.report["estimate"] == first.report["estimate"]
    approve(here, "node-1", "reject", digits, "--reason", "withdrawn")
    refused(here.run(), PolicyRefused, "node-1", "withdrawn")
    here.stop()
    assert all(here.spent(name) == 1 for name in here.names)


EDITS = {
    "statistics": ('statistics = ["mean"]', 'statistics = ["mean", "kendall_tau"]'),
    "coordinators": ('coordinators = ["alice"]', 'coordinators = ["alice", "coordinator"]'),
    "fields": ('fields = ["age"]', 'fields = ["age", "balance"]'),
    "max_epsilon": ("max_epsilon = 0.0009999", "max_epsilon = 0.001"),
    "min_records": ("min_records = 61", "min_records = 60"),
    "min_nodes": ("min_nodes = 3", "min_nodes = 2"),
    "min_colluding": ("min_colluding = 2", "min_colluding = 1"),
}


@pytest.mark.parametrize("rule", EDITS)
def test_the_rules_are_edited_between_two_runs(running, rule):
    study = {"name": f"edited-{rule.replace('_', '-')}", "epsilon": "0.001"}
    before, after = EDITS[rule]
    try:
        rules(running, "node-1", before)
        outcome = running.run(**study)
        refused(outcome, PolicyRefused, "node-1", f"{rule} under [policy]")
        if rule == "min_records":
            assert "60" not in outcome.last_line and "61" not in outcome.last_line
            assert "60 complete records, min_records = 61" in running.log("node-1")
        rules(running, "node-1", after)
        outcome = running.run(**study)
        assert outcome.code == 0, outcome.error
    finally:
        rules(running, "node-1", "")


def test_a_report_has_the_rules_that_let_the_study_through_also_when_it_is_shown_again(running):
    study = {"name": "told", "epsilon": "0.001"}
    listed = 'coordinators = ["carol", "coordinator"]\nmin_records = 59\nmax_epsilon = 0.5'
    try:
        rules(running, "node-1", listed)
        first = running.run(**study)
        assert first.code == 0, first.error
        rules(running, "node-1", "")
        again = running.run(**study)
        assert again.report["replayed"] is True
    finally:
        rules(running, "node-1", "")
    noise = "the noise withstands all other sites that collude"
    told = {
        "node-1": "own lists say which coordinators are allowed; a study costs at most epsilon "
        f"0.5; {noise}; enough complete rows; no person is asked",
        "node-2": f"{noise}; no person is asked",
    }
    for outcome in (first, again):
        assert outcome.report["policies"] == told
        shown = page(Report.from_dict(outcome.report))
        assert all(f"its rules: {text}" in shown for text in told.values())
        assert not re.search("carol|59", told["node-1"])


def test_a_file_that_is_broken_meanwhile_refuses_and_tells_only_the_administrator_why(running):
    try:
        rules(running, "node-1", 'statistics = ["kendal_tau"]')
        outcome = running.run(name="broken", epsilon="0.001")
        refused(
            outcome, ConfigError, "node-1: its configuration has an error", "see the node's own log"
        )
        assert (
            "kendal_tau" not in outcome.last_line and str(running.folder) not in outcome.last_line
        )
        running.wait_for_log("node-1", "key 'policy.statistics'")
    finally:
        rules(running, "node-1", "")
    assert running.run(name="broken", epsilon="0.001").code == 0


def test_status_and_doctor_say_that_a_running_node_must_start_again_for_changed_keys(lab):
    here = lab(1).start()
    config = here.folder / "node-1.toml"
    words = [["status"], ["doctor"]]

    def told() -> list[str]:
        asked = [["node", *each, "--config", str(config)] for each in words]
        shown = [CliRunner().invoke(umpc, each).output for each in asked]
        return [text for text in shown if "start it again" in " ".join(text.split())]

    assert told() == []
    config.write_text(config.read_text() + "[policy]\nmin_records = 1\n")
    assert told() == [], "rules count at once"
    config.write_text(config.read_text().replace('epsilon = "10"', 'epsilon = "12"'))
    assert len(told()) == 2 and all("budget.epsilon changed" in text for text in told())
    here.stop()
    assert told() == [], "the next start takes it"
