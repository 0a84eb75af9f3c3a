"""The files of two sites that commit 0f244e53 wrote, in `state_0f244e53`; its README says how.

`write_state` made them, with real processes of that commit. `copy_state` gives a test a copy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from umpc.deployment.processes import UMPC, Deployment, stop

FOLDER = Path(__file__).with_name("state_0f244e53")
NODES = ("node-1", "node-2")
NUMBERS = '[[fields]]\nname = "{}"\nlower = {}\nupper = {}\nwhole = true\n'
AGE = NUMBERS.format("age", 0, 127)
BELOW_0 = NUMBERS.format("age", -5, 127)
BALANCE = NUMBERS.format("balance", -50, 50)
TIME = NUMBERS.format("time", 0, 100)
EVENT = NUMBERS.format("event", 1, 2)
WARD = '[[fields]]\nname = "ward"\ncategories = [" east", "west "]\n'
STUDIES = {
    "usual": f'statistic = "kendall_tau"\ncolumns = ["age", "balance"]\n{AGE}{BALANCE}',
    "event-1-2": (
        'statistic = "concordance_index"\ncolumns = ["age", "time", "event"]\nbackend = "shared"\n'
        f'edges = "2n"\n{AGE}{TIME}{EVENT}'
    ),
    "gini-below-0": f'statistic = "gini_coefficient"\ncolumns = ["age"]\n{BELOW_0}',
    "blanks": (
        'statistic = "duplicate_pair_ratio"\ncolumns = ["ward"]\nbackend = "shared"\n'
        f'edges = "2n"\n{WARD}'
    ),
    "one-bin": (
        'statistic = "kendall_tau"\ncolumns = ["age", "balance"]\nprotocol = "bell-ldp"\n'
        f"{AGE}{BALANCE}[bins]\nage = 4\nbalance = 1\n"
    ),
    "curator": (
        f'statistic = "gini_mean_difference"\ncolumns = ["age"]\nprotocol = "central"\n{AGE}'
    ),
}
"""Each released study's text without its participants. New runs of some may be refused today."""
POLICY = "[policy]\nmin_records = 1\ntrusted_curator = true\n"
WAITING = "waiting"
"""The study that waits for the administrator of the second site."""


def study_text(name: str, addresses: dict[str, str]) -> str:
    """A study file. Args: addresses: of the nodes and the dealer, by name."""
    text = STUDIES["usual" if name == WAITING else name]
    head = f'name = "{name}"\nepsilon = 100\nidentity = "coordinator"\n{text}'
    if "protocol" not in text:
        head += f'[dealer]\nname = "dealer"\naddress = "{addresses["dealer"]}"\n'
    nodes = (f'[[nodes]]\nname = "{node}"\naddress = "{addresses[node]}"\n' for node in NODES)
    return head + "".join(nodes)


def estimates() -> dict[str, float]:
    """Each released study's estimate, as its report had it."""
    found: dict[str, float] = json.loads((FOLDER / "estimates.json").read_text())
    return found


def copy_state(folder: Path, name: str) -> Path:
    """Copy a node's files, for their owner only, and return the path of its ledger."""
    for file in FOLDER.glob(f"{name}*"):
        shutil.copy(file, folder / file.name)
        (folder / file.name).chmod(0o600)
    return folder / f"{name}-ledger.sqlite"


def write_state(folder: Path) -> None:
    """Run all studies over two new sites, with the code of this checkout, and keep their files."""
    here = Deployment(folder)
    here.start_dealer()
    for site, name in enumerate(NODES):
        rows = (
            f"{(7 * i + site) % 50},{(13 * i) % 90 - 40},{(11 * i) % 60},{1 + i % 2},"
            f"{(' east', 'west ')[i % 3 > 0]}\n"
            for i in range(12)
        )
        table = folder / f"{name}.csv"
        table.write_text(f"age,balance,time,event,ward\n{''.join(rows)}")
        here.start_node(name, table, "1000", delta="1e-3", more=POLICY)
    try:
        served = here.wait_until_ready()
        addresses = {name: each.address for name, each in served.items()}
        found = {name: _run(folder, name, addresses) for name in STUDIES}
        with (folder / f"{NODES[1]}.toml").open("a") as config:
            config.write("approval = true\n")
        _run(folder, WAITING, addresses)
    finally:
        stop(here.processes)
    (folder / "estimates.json").write_text(f"{json.dumps(found, indent=2)}\n")
    FOLDER.mkdir(exist_ok=True)
    for name in NODES:
        for file in (*folder.glob(f"{name}-ledger.sqlite*"), folder / f"{name}.csv"):
            if file.suffix == ".lock":
                continue
            shutil.copy(file, FOLDER / file.name)
    shutil.copy(folder / "estimates.json", FOLDER)


def _run(folder: Path, name: str, addresses: dict[str, str]) -> float:
    (folder / "study.toml").write_text(study_text(name, addresses))
    words = [*UMPC, "study", "run", str(folder / "study.toml"), "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ))
    if name == WAITING:
        return 0.0
    assert done.returncode == 0, done.stderr
    return float(json.loads(done.stdout)["estimate"])


if __name__ == "__main__":
    write_state(Path(sys.argv[1]))
