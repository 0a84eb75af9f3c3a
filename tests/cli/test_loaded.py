"""The modules that a command loads, and those that it leaves alone: names, no seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
name = "first"
statistic = "kendall_tau"
columns = ["x", "y"]
epsilon = 1
identity = "coordinator"
edges = "2n"
dealer = {name = "dealer", address = "dealer:1"}
nodes = [{name = "north", address = "north:1"}, {name = "south", address = "south:1"}]
fields = [
    {name = "x", lower = 0, upper = 127, resolution = 1},
    {name = "y", lower = 0, upper = 127, resolution = 1},
]
"""
HELPED = "from umpc.cli.main import umpc; umpc([{option!r}], standalone_mode=False)"
READ = """
import umpc.cli.study, umpc.cli.shared
from umpc.api.study import ProposedStudy
ProposedStudy.load({file!r}).file.study("coordinator")
"""
LIBRARIES = ("asyncio", "cryptography", "duckdb", "flint", "grpc", "msgspec", "numpy", "rich")
OTHER_PROTOCOLS = (
    "bell_2pc",
    "central",
    "ghazi_rounds",
    "ghazi_shuffle",
    "gopa",
    "grid.protocol",
    "hajek_grid",
    "local",
    "vector",
)
NOT_BEFORE_A_RUN = (
    "duckdb",
    "nacl",
    "rich",
    "scipy",
    "umpc.dealer",
    "umpc.inference",
    "umpc.mpc.garbled",
    "umpc.mpc.masked.tasks",
    "umpc.mpc.transfers.channel_set_up",
    "umpc.mpc.transfers.correlated_ot",
    "umpc.mpc.triples",
    "umpc.native.garbled",
    "umpc.node",
    "umpc.api.progress",
    "umpc.protocols.auto",
    "umpc.protocols.base.node",
    "umpc.protocols.u_mpc.node",
    "umpc.reporting",
    *(f"umpc.protocols.{name}" for name in OTHER_PROTOCOLS),
)


def loaded(program: str, names: tuple[str, ...]) -> set[str]:
    """Those of these modules that a program loads, each with all that is in it."""
    shown = f"{program}\nimport sys; print('loaded:', *sys.modules)"
    ended = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    modules = ended.stdout.rpartition("loaded:")[2].split()
    assert "umpc" in modules
    return {name for name in names for module in modules if f"{module}.".startswith(f"{name}.")}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_library_and_nothing_of_a_study(option):
    unwanted = (*LIBRARIES, "umpc.protocols", "umpc.study", "umpc.transport", "umpc.ustat")
    assert loaded(HELPED.format(option=option), unwanted) == set()


def test_a_study_of_the_usual_protocol_loads_nothing_of_others_before_it_calls_a_node(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    program = READ.format(file=str(file))
    assert loaded(program, NOT_BEFORE_A_RUN) == set()
    assert loaded(program, ("grpc", "numpy", "umpc.coordinator.client", "umpc.mpc.masked.plan"))


def test_a_study_that_leaves_the_choice_open_loads_the_grid(tmp_path):
    file = Path(tmp_path / "study.toml")
    file.write_text(STUDY.replace('edges = "2n"', 'backend = "auto"'))
    wanted = ("umpc.protocols.auto", "umpc.protocols.grid.protocol")
    assert loaded(READ.format(file=str(file)), wanted) == set(wanted)


def test_the_forecast_of_a_run_loads_trials_and_the_bar_only_where_they_are_needed():
    program = "import umpc.api.progress, umpc.api.progress"
    unwanted = ("rich", "umpc.planning.seconds", "umpc.planning.seconds", "umpc.simulation")
    assert loaded(program, unwanted) == set()
