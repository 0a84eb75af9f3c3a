"""Where the time of a job goes: the bank study over a million pairs, 4 nodes and a dealer.

`python -m bench.profile [EDGES [NODES]]`. EDGES is a study's setting; `all` takes all pairs.
Processor time comes from clocks in every process (`clocked.py`), by process and kind of work. The
rest of the cores' time is waiting, or other work on the machine.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.harness import bank_table, cores, site
from bench.table import show
from umpc.deployment.processes import Deployment

EDGES, NODES = "1000000", 4
PROCESSES = {"dealer": "dealer", "node": "nodes, together", "study": "coordinator"}
WORTH_A_LINE = 0.005
WRITTEN_SECONDS = 10


def main() -> None:
    edges = sys.argv[1] if len(sys.argv) > 1 else EDGES
    nodes = int(sys.argv[2]) if len(sys.argv) > 2 else NODES
    table, source = bank_table()
    with tempfile.TemporaryDirectory(prefix="umpc-clocked-") as name:
        folder = Path(name)
        os.environ["UMPC_CLOCKED"] = name
        Deployment.command = (sys.executable, "-m", "bench.clocked")
        with site(table, nodes) as here:
            here.study()  # work that a process does only once is not counted
            (folder / "counting").touch()
            time.sleep(0.1)
            report = here.study(edges=edges)
            (folder / "counting").unlink()
            taken = _read(folder, len(here.served) + 1)
    wall = report["seconds_total"]
    job = f"{source}: Kendall, |E| = {report['edges']:,}, {nodes} nodes"
    show(
        f"{job}: {wall:.2f} s on {cores()} cores; seconds of a processor",
        ("work", *PROCESSES.values(), "share"),
        _rows(taken, wall),
    )


def _read(folder: Path, processes: int) -> dict[str, Counter[str]]:
    """Seconds by category, for the dealer, all nodes together, and the coordinator."""
    deadline = time.monotonic() + WRITTEN_SECONDS
    while len(found := list(folder.glob("*.json"))) < processes and time.monotonic() < deadline:
        time.sleep(0.05)
    taken: dict[str, Counter[str]] = {name: Counter() for name in PROCESSES}
    for path in found:
        entry = json.loads(path.read_text())
        taken[entry["what"]].update(entry["seconds"])
    return taken


def _rows(taken: dict[str, Counter[str]], wall: float) -> list[tuple[str, ...]]:
    total = sum(taken.values(), Counter())
    used = total.total()
    rows = [
        (label, *(f"{seconds[label]:.2f}" for seconds in taken.values()), f"{spent / used:.1%}")
        for label, spent in total.most_common()
        if spent >= WORTH_A_LINE * used
    ]
    rows.append(
        ("all work", *(f"{seconds.total():.2f}" for seconds in taken.values()), f"{used:.2f} s")
    )
    idle = 1 - used / (wall * cores())
    return [*rows, ("waiting or other work, of all cores", *[""] * len(taken), f"{idle:.1%}")]


if __name__ == "__main__":
    main()
