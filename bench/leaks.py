"""Memory and descriptors of every process, over many small studies one after the other.

`python -m bench.leaks --studies 300` prints a line every 30 studies: megabytes in use, open
descriptors, and the milliseconds of a study. The coordinator is this process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path

from bench.harness import Site, made_up, site
from bench.table import show
from umpc.cli.memory import tune_memory
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.transport.authority import load_identity

NODES = 2
RECORDS = 6
"""Records of each node."""
LINES = 10
COORDINATOR = "coordinator"


def main(studies: int, hub: bool) -> None:
    tune_memory()
    with site(made_up(NODES * RECORDS), NODES, hub=hub) as here:
        rows = asyncio.run(_measure(here, studies))
    columns = ("studies", *here.served, COORDINATOR, "a study")
    show("MiB in use / open descriptors, after so many studies", columns, rows)


async def _measure(here: Site, studies: int) -> list[tuple[str, ...]]:
    pids = {name: each.process.pid for name, each in here.served.items()}
    pids[COORDINATOR] = os.getpid()
    rows = []
    every = max(1, studies // LINES)
    begun = time.perf_counter()
    for number in range(1, studies + 1):
        await _study(here)
        if number % every == 0 or number == 1:
            seconds = (time.perf_counter() - begun) / (every if number > 1 else 1)
            used = [f"{_mebibytes(pid):.1f} / {_descriptors(pid)}" for pid in pids.values()]
            rows.append((str(number), *used, f"{seconds * 1e3:.0f} ms"))
            print(*rows[-1], sep="  ", flush=True)
            begun = time.perf_counter()
    return rows


async def _study(here: Site) -> None:
    """Run one small study with a dealer."""
    entries = load_study_file(here.study_file(backend="shared"))
    identity = load_identity(entries.identity, COORDINATOR)
    await run_study(entries.study(identity.name), identity)


def _mebibytes(pid: int) -> float:
    """A process's memory in use, without pages of files."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--hub", action="store_true", help="all processes dial a hub")
    given = parser.parse_args()
    main(given.studies, given.hub)
