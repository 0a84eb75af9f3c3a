"""One process that runs many nodes: each is a node of its own to everybody else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.conftest import TABLE, Lab, command, costs_what_was_predicted
from umpc.coordinator.client import run_study
from umpc.errors import ConfigError
from umpc.node.budget.ledger_place import Place as LedgerPlace
from umpc.node.budget.ledgerfile import read_beside
from umpc.study.parts import FieldText

HOSTS = {"host-1": (1, 2, 3, 4), "host-2": (5, 6)}
ALONE = 7
LABELS = [f"{number:04}" + "x" * 60 for number in range(1200)]
"""Labels enough that the study's own bytes are named, and then told to the dealer once."""
FIELDS = [FieldText.of_categories("colour", LABELS)]


@pytest.fixture
def hosted(tmp_path) -> Iterator[Lab]:
    """Provide a dealer, six nodes of one record each in two processes, and one that is alone."""
    lab = Lab(tmp_path, 7)
    try:
        lab.deployment.start_dealer()
        for host, numbers in (*HOSTS.items(), ("", (ALONE,))):
            tables = {f"node-{number}": lab.table(f"node-{number}") for number in numbers}
            for number, table in zip(numbers, tables.values(), strict=True):
                row = TABLE.splitlines()[number]
                table.write_text(f"age,balance,colour\n{row},{LABELS[number % 2]}\n")
            if host:
                lab.deployment.start_many(host, tables, "9" + "0" * 12)
        alone = f"node-{ALONE}"
        lab.deployment.start_node(alone, lab.table(alone), "9" + "0" * 12)
        lab.served.update(lab.deployment.wait_until_ready())
        yield lab
    finally:
        lab.stop()


def test_nodes_of_one_process_run_a_study_as_nodes_of_their_own(hosted):
    processes = {served.process.pid for served in hosted.served.values()}
    assert len(processes) == 4 and len({each.address for each in hosted.served.values()}) == 8
    facts = {
        "epsilon": "1e9",
        "noise": "distributed",
        "edges": "all",
        "columns": ["colour"],
        "statistic": "duplicate_pair_ratio",
        "fields": FIELDS,
    }
    report = hosted.lead(run_study, **facts)
    assert report.estimate == pytest.approx(9 / 21, abs=1e-6)  # groups of four and of three
    costs_what_was_predicted(report, rounds=report.rounds_predicted)
    assert hosted.loud_lines() == []
    for host, numbers in HOSTS.items():
        for number in numbers:
            name = f"node-{number}"
            assert f"node {name} study=" in hosted.log(host)
            ledger = LedgerPlace.of(hosted.folder / host / f"{name}-ledger.sqlite")
            assert len(read_beside(ledger).account.charged) == 1
    assert hosted.lead(run_study, **facts).replayed
    assert hosted.loud_lines() == []


def test_a_folder_that_cannot_be_served_is_refused_by_its_file(tmp_path):
    empty = command("node", "start", "--many", str(tmp_path))
    assert empty.returncode == ConfigError.exit_code and "has none" in empty.stderr
    both = command("node", "start", "--many", str(tmp_path), "--config", "node.toml")
    assert both.returncode == 2 and "give either" in both.stderr
