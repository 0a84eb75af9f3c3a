"""Light nodes: what they have not loaded while they wait, and the studies that load them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.system.conftest import TABLE, Lab, command, costs_what_was_predicted
from umpc.coordinator.client import run_study
from umpc.errors import ConfigError, LedgerError
from umpc.node.budget.ledger_place import Place as LedgerPlace
from umpc.node.budget.ledger_place import locked
from umpc.node.budget.ledger_reading import read_beside

LATER = ("numpy", "flint", "duckdb", "_sodium")
"""Libraries that a node needs for studies only, as the names of their files have them."""
MOST_MEBIBYTES = 60
EXACT = {"epsilon": "1e9", "noise": "distributed", "edges": "all"}
BUDGET = "9" + "0" * 12


@pytest.fixture
def light(tmp_path) -> Iterator[Lab]:
    """Provide a dealer, a light node, and a light host of two; nothing of umpc is imported yet."""
    lab = Lab(tmp_path, 3)
    start = lab.deployment._start

    def start_light(name: str, arguments: list[str], serves: Sequence[str] = ()) -> None:
        if arguments[0] == "node":
            lab.deployment.popen = subprocess.Popen
            arguments = [*arguments, "--light"]
        start(name, arguments, serves)

    lab.deployment._start = start_light
    try:
        lab.deployment.start_dealer()
        for name in lab.names:
            lab.table(name).write_text(TABLE)
        one, *others = lab.names
        lab.deployment.start_node(one, lab.table(one), BUDGET)
        lab.deployment.start_many("host", {name: lab.table(name) for name in others}, BUDGET)
        lab.served.update(lab.deployment.wait_until_ready())
        yield lab
    finally:
        lab.stop()


def ledger(lab: Lab, name: str) -> Path:
    """Return the path of a node's ledger."""
    folder = lab.folder if name == lab.names[0] else lab.folder / "host"
    return folder / f"{name}-ledger.sqlite"


def loaded(lab: Lab, name: str) -> list[str]:
    """Return those of LATER of which a process has a file in its memory."""
    maps = Path(f"/proc/{lab.served[name].process.pid}/maps").read_text()
    return [library for library in LATER if library in maps]


def mebibytes(lab: Lab, name: str) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{lab.served[name].process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_a_light_node_loads_itself_at_its_first_study(light):
    for name in light.names:
        assert loaded(light, name) == []
        assert mebibytes(light, name) < MOST_MEBIBYTES
        with pytest.raises(LedgerError, match="another one holds"):
            locked(ledger(light, name))
    file = light.folder / "host" / "node-2.toml"
    whole = file.read_text()
    file.write_text("name = ")
    with pytest.raises(ConfigError, match="node-2: its configuration has an error") as caught:
        light.lead(run_study, **EXACT, name="refused")
    assert caught.value.culprit == "node-2"
    file.write_text(whole)
    report = light.lead(run_study, **EXACT, name="run")
    costs_what_was_predicted(report, rounds=4)
    for name in light.names:
        assert loaded(light, name) == [*LATER]
        assert len(read_beside(LedgerPlace.of(ledger(light, name))).account.charged) == 1
    assert light.lead(run_study, **EXACT, name="run").replayed


def test_a_fault_of_a_light_nodes_file_is_found_at_its_start(tmp_path):
    file = tmp_path / "node.toml"
    file.write_text('name = "north"\nunknown = 1\n')
    usual = command("node", "start", "--config", str(file))
    assert usual.returncode == ConfigError.exit_code and "unknown" in usual.stderr
    light = command("node", "start", "--light", "--config", str(file))
    assert (light.returncode, light.stderr) == (usual.returncode, usual.stderr)
    folder = command("node", "start", "--light", "--many", str(tmp_path))
    assert folder.returncode == usual.returncode and "unknown" in folder.stderr
