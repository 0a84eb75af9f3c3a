"""A protocol of another package runs over real processes: it has an entry point, nothing more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.conftest import command
from umpc.coordinator.studyfile_text import write_study_file
from umpc.deployment.processes import Deployment, stop
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

ROOT = Path(__file__).parents[2]
INSTALLED = {"PYTHONPATH": os.pathsep.join((str(ROOT / "tests" / "toy"), str(ROOT)))}
"""The package of the protocol, with its entry point, and the tests themselves."""
VALUES = {"north": [1, 5, 9], "south": [2, 2], "west": [7, 0, 3, 4]}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command where the package of the toy protocol is installed.

    Args: more: environment variables.
    """
    return subprocess.run(
        [sys.executable, "-m", "umpc.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, **INSTALLED, **more},
    )


def write_study(folder: Path, addresses: dict[str, str]) -> Path:
    """Write the study file of the toy protocol. Args: addresses: node → where it listens."""
    entries = {
        "name": "toy",
        "protocol": "toy-sum",
        "epsilon": "1e9",
        "identity": "coordinator",
        "statistic": "mean",
        "columns": ["x"],
        "width": 12,
        "fields": [{"name": "x", "lower": 0, "upper": 10, "whole": True}],
        "nodes": [{"name": name, "address": at} for name, at in addresses.items()],
    }
    return write_study_file(folder, entries)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study whose nodes nobody asks."""
    Deployment(tmp_path)
    return write_study(tmp_path, {name: f"127.0.0.1:{at}" for at, name in enumerate(VALUES, 1)})


def start_nodes(deployment: Deployment) -> Path:
    """Start three nodes and write a study of them."""
    for name, values in VALUES.items():
        table = deployment.folder / f"{name}.csv"
        table.write_text("x\n" + "".join(f"{value}\n" for value in values))
        deployment.start_node(name, table, "1000000000000")
    served = deployment.wait_until_ready()
    return write_study(deployment.folder, {name: served[name].address for name in VALUES})


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """Processes that know the toy protocol."""
    made = Deployment(tmp_path, dict.fromkeys(VALUES, INSTALLED))
    made.plugins = ["toy-sum"]
    yield made
    stop(made.processes)


@pytest.fixture
def running(deployment: Deployment) -> Path:
    """A study of three nodes that wait for it."""
    return start_nodes(deployment)


def test_it_runs_over_real_processes_and_is_replayed(running: Path):
    first = run("study", "run", str(running), "--format", "json")
    assert first.returncode == 0, first.stderr
    report = json.loads(first.stdout)
    pooled = [value for values in VALUES.values() for value in values]
    assert report["estimate"] == sum(pooled) / len(pooled)
    assert (report["protocol"], report["noise"], report["records"]) == ("toy-sum", "toy-sum", 9)
    assert report["bytes_online"] == report["bytes_online_predicted"] == 3 * 12
    again = json.loads(run("study", "run", str(running), "--format", "json").stdout)
    assert again["replayed"] and again["estimate"] == report["estimate"]


def test_a_rule_for_new_runs_refuses_no_repetition(
    deployment: Deployment, running: Path, monkeypatch: pytest.MonkeyPatch
):
    def asked(name: str, **more: str) -> subprocess.CompletedProcess[str]:
        running.write_text(running.read_text().replace('name = "toy"', f'name = "{name}"'))
        done = run("study", "run", str(running), "--format", "json", **more)
        running.write_text(running.read_text().replace(f'name = "{name}"', 'name = "toy"'))
        return done

    def spent() -> list[int]:
        places = (Place.of(running.parent / f"{name}-ledger.sqlite") for name in VALUES)
        return [int(read_beside(place).account.epsilon().spent) for place in places]

    first = json.loads(asked("toy").stdout)["estimate"]
    before = spent()

    # The coordinator has the rule, and the nodes do not have it yet.
    again = json.loads(asked("toy", TOY_REFUSES="1").stdout)
    assert again["replayed"] and again["estimate"] == first
    refused = asked("other", TOY_REFUSES="1")
    assert '"toy-sum" has no new runs' in refused.stderr and spent() == before
    assert "no epsilon was charged" in refused.stderr
    assert "no new runs" in run("study", "check", str(running), TOY_REFUSES="1").stderr

    # The nodes have it, and the coordinator does not.
    stop(deployment.processes)
    monkeypatch.setenv("TOY_REFUSES", "1")
    start_nodes(deployment)
    monkeypatch.delenv("TOY_REFUSES")
    again = json.loads(asked("toy").stdout)
    assert again["replayed"] and again["estimate"] == first
    refused = asked("other")
    assert '"toy-sum" has no new runs' in refused.stderr and spent() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("study", "check", "--records", "3,2,4"),
        ("plan", "--records", "3,2,4"),
    ],
)
def test_the_commands_describe_it(study: Path, arguments: tuple[str, ...]):
    place = 2 if arguments[0] == "study" else 1
    shown = run(*arguments[:place], str(study), *arguments[place:])
    assert shown.returncode == 0, shown.stderr
    assert "toy-sum" in shown.stdout and "36" in shown.stdout


def test_a_command_without_the_package_refuses_it(study: Path):
    refused = command("study", "check", str(study))
    assert refused.returncode != 0
    assert "protocol must be one of u-mpc" in refused.stderr and "'toy-sum'" in refused.stderr


def test_a_setting_of_another_protocol_cannot_be_written(study: Path, tmp_path: Path):
    text = study.read_text().replace("width = 12", 'width = 12\nedges = "2n"')
    other = tmp_path / "study.toml"
    other.write_text(text.replace('"coordinator"', json.dumps(str(study.parent / "coordinator"))))
    refused = run("study", "check", str(other))
    assert refused.returncode != 0
    assert "`edges` is not a key of a study of protocol = 'toy-sum', which has" in refused.stderr


def test_a_node_refuses_it_if_its_file_does_not_name_it(tmp_path: Path):
    deployment = Deployment(tmp_path, dict.fromkeys(VALUES, INSTALLED))
    try:
        for name in VALUES:
            (tmp_path / f"{name}.csv").write_text("x\n1\n2\n")
            deployment.start_node(name, tmp_path / f"{name}.csv", "1000000000000")
        served = deployment.wait_until_ready()
        file = write_study(tmp_path, {name: served[name].address for name in VALUES})
        refused = run("study", "run", str(file))
    finally:
        stop(deployment.processes)
    assert refused.returncode != 0 and "toy-sum" in refused.stderr


def test_nothing_of_the_package_knows_it():
    files = [path for path in (ROOT / "umpc").rglob("*.py")]
    assert files and not [path for path in files if "toy" in path.read_text(encoding="utf-8")]
    assert os.path.isdir(ROOT / "tests" / "toy")
