"""The seconds that a user waits for, beside targets: `python -m bench targets`, `make bench`.

| job | what a user waits for |
|---|---|
| `first` | the first study of processes that have been idle since their start |
| `run` | `umpc study run`, from the shell to the report, where all processes are warm |
| `demo` | `umpc demo`, from the shell to its end |
| `hub` | a study of 64 nodes with 100 records each, through a hub |
| `grid` | all pairs of 10^6 and of 10^7 records, by the grid |
| `people` | a million people's keys; dealing; a study of people after its last message |
| `verified` | all pairs by the grid where nodes may lie, beside grade honest; a node's memory |
| `pairs` | 10^7 sampled pairs of two nodes |
| `garbled` | about 9,042 pairs of two nodes, without a dealer |
| `warm` | milliseconds of small studies, without a target |

`python -m bench.targets demo hub` runs some of them. Seconds are of the wall's clock, from the
start of the coordinator's process to its end. Targets are about three times the seconds of one run
on two cores of a virtual machine that had other work (`bench/README.md` has them), so a machine
half as fast meets them, too. Those of `verified` are tighter: they leave out the start of the
coordinator's process, and are for two free cores. The milliseconds of a warm study depend on the
machine's disk and processor, so they have no target.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.grid import BINS, FIELDS, GRID, MANY, MORE, VERIFIED
from bench.grid import NODES as GRID_NODES
from bench.grid import verified as measure_verified
from bench.harness import Site, bank_table, cores, made_up, site
from bench.jobs import Job
from bench.jobs import figures_of as figures_of_job
from bench.large import NARROW, LargeTable
from bench.limits import aes_blocks_per_second
from bench.peers.job import NODES, WAYS, job_table, turn
from bench.peers.machine import fsync_seconds
from bench.peers.turns import COLUMNS, Turn, round_robin, row
from bench.people import WORK as OF_PEOPLE
from bench.people import main as measure_people
from bench.table import Figure, show, show_targets
from umpc.api.study import run_now
from umpc.cli.memory import tune_memory
from umpc.deployment.fork_server import fork_server
from umpc.deployment.processes import Deployment

RUNS, TURNS = 5, 10
IDLE_SECONDS = 2
PAUSE_SECONDS = 0.3
"""Between two warm studies processes do what they do while idle."""
HUB_NODES, HUB_RECORDS = 64, 100
SAMPLED = 10_000_000
MAY_LIE = "where nodes may lie"
DEALER, ALONE = (WAYS[f"umpc {name} a dealer"] for name in ("with", "without"))
TARGETS = {
    "first study of idle processes": 3,
    "`umpc study run`": 2,
    "`umpc demo`": 10,
    f"{HUB_NODES} nodes × {HUB_RECORDS} records through a hub": 20,
    f"{MANY:,} records by the grid": 4,
    f"{MORE:,} records by the grid": 10,
    **{f"{work}, {MAY_LIE}": most for work, most in zip(VERIFIED, (0.5, 3, 15), strict=True)},
    **dict(zip(OF_PEOPLE, (6, 3, 3), strict=True)),
    f"{SAMPLED:,} sampled pairs": 10,
    "9,042 pairs without a dealer": 2,
}
"""Each kind of waiting, and the most seconds."""
GIBIBYTES = 1.2
"""The most memory of a node of a million records in 2^17 cells, where nodes may lie."""


def main(names: Sequence[str] = ()) -> list[Figure]:
    """Run all jobs, or those of these names, and return their figures."""
    tune_memory()  # this process is the coordinator of warm studies, as that of `umpc study run`
    print(f"AES-128 on one core: {aes_blocks_per_second() / 1e6:.0f} M blocks/s")
    print(f"4 KiB and fsync, median: {1e3 * fsync_seconds():.2f} ms; {cores()} cores")
    found = []
    for name in names or JOBS:
        figures = figures_of_job(f"job {name}", JOBS[name])
        for each in figures:
            print(f"{each.verdict}: {each.work}: {each.measured or each.failure}", flush=True)
        found += figures
    return found


def within(work: str, seconds: float) -> Figure:
    """A target's line: the seconds that a user waited for one kind of work."""
    most = TARGETS[work]
    return Figure(work, f"{seconds:.2f} s", f"at most {most} s", seconds <= most)


def first() -> list[Figure]:
    table, _ = bank_table()
    with site(table, NODES) as here:
        time.sleep(IDLE_SECONDS)
        return [within("first study of idle processes", here.study()["wall"])]


def run() -> list[Figure]:
    table, _ = bank_table()
    with site(table, NODES) as here:
        here.study()
        return [within("`umpc study run`", median(here.study()["wall"] for _ in range(RUNS)))]


def demo() -> list[Figure]:
    started = time.perf_counter()
    subprocess.run([*Deployment.command, "demo"], check=True, capture_output=True)
    return [within("`umpc demo`", time.perf_counter() - started)]


def hub() -> list[Figure]:
    table = made_up(HUB_NODES * HUB_RECORDS)
    with fork_server() as popen, site(table, HUB_NODES, hub=True, popen=popen) as here:
        report = here.study(noise="distributed", edges="2n")
    name = f"{HUB_NODES} nodes × {HUB_RECORDS} records through a hub"
    return [within(name, report["wall"])]


def grid() -> list[Figure]:
    found = []
    for records in (MANY, MORE):
        with site(LargeTable(records, FIELDS, NARROW), GRID_NODES) as here:
            report = here.study(**GRID, bins=BINS)
            found.append(within(f"{records:,} records by the grid", report["wall"]))
    return found


def verified() -> list[Figure]:
    """Seconds of studies without the start of the coordinator's process, and a node's memory."""
    found = measure_verified()
    figures = [within(f"{work}, {MAY_LIE}", seconds) for work, (seconds, _) in found.items()]
    memory = found[VERIFIED[1]][1] / 2**30
    work, target = f"a node's memory: {VERIFIED[1]}, {MAY_LIE}", f"at most {GIBIBYTES} GiB"
    return [*figures, Figure(work, f"{memory:.2f} GiB", target, memory <= GIBIBYTES)]


def people() -> list[Figure]:
    """Seconds on two cores that are free: messages of people come from the same machine."""
    return [within(work, seconds) for work, seconds in measure_people().items()]


def pairs() -> list[Figure]:
    table, _ = bank_table()
    with site(table, NODES) as here:
        return [within(f"{SAMPLED:,} sampled pairs", here.study(edges=str(SAMPLED))["wall"])]


def garbled() -> list[Figure]:
    with site(job_table(), NODES, dealer=False) as here:
        return [within("9,042 pairs without a dealer", here.study(**ALONE)["wall"])]


def warm() -> None:
    """Milliseconds of small studies, each after one that is not counted."""
    with site(job_table(), NODES) as here, site(job_table(), NODES, dealer=False) as alone:
        jobs = {
            "with a dealer": _way(here, DEALER),
            "with a dealer, prepared ahead": _way(here, DEALER, is_ahead=True),
            "without a dealer": _way(alone, ALONE),
        }
        taken = round_robin(jobs, TURNS)
    table, source = bank_table()
    with site(table, GRID_NODES) as here:
        taken |= round_robin({"grid of 2^17 cells": _way(here, {**GRID, "bins": BINS})}, TURNS)
    title = f"Warm small studies, the grid over {source}; min–median–max of {TURNS}"
    show(title, COLUMNS, [row(name, each) for name, each in taken.items()])


def _way(here: Site, settings: Mapping[str, Any], is_ahead: bool = False) -> Callable[[], Turn]:
    def take() -> Turn:
        time.sleep(PAUSE_SECONDS)
        return run_now(turn(here.study_file(**settings), is_ahead))

    return take


JOBS: dict[str, Job] = {
    each.__name__: each
    for each in (first, run, demo, hub, grid, verified, people, pairs, garbled, warm)
}

if __name__ == "__main__":
    show_targets(main(sys.argv[1:]))
