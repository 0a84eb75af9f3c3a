"""Memory, descriptors and latency of every process, over many small studies one after the other.

`python -m bench.leaks --studies 1000` prints ten lines while it runs: megabytes in use and open
descriptors of each process, the least and the mean milliseconds of a study since the line before,
and the processor milliseconds of a study in all processes together. With `--hub` all processes dial
a hub. The coordinator is this process.

The last line is a verdict against the first look after SETTLED studies: each process's memory must
stay within MOST_GROWTH of it, no process may keep more descriptors, and the least time of a study
must stay within MOST_SLOWER. The least time says little about other work of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Site, made_up, processor_seconds, site
from bench.table import show
from umpc.cli.memory import COLLECT_SECONDS, tune_memory
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.transport.identity import load_identity

NODES = 2
RECORDS = 6
"""Records of each node."""
LINES = 10
COORDINATOR = "coordinator"
SETTLED = 100
"""Studies after which memory is to be flat."""
MOST_GROWTH = 5.0
"""MiB by which a process may grow afterwards."""
MOST_SLOWER = 1.25
"""The least time of a study, against that of the first studies afterwards."""
REST_SECONDS = 2 * COLLECT_SECONDS
"""Seconds without a study before a look: servers collect what a study left after a second."""


@dataclass(frozen=True)
class Look:
    """The state of all processes after a number of studies.

    Args: memory: MiB by process. files: open descriptors by process. least, mean, processor:
        seconds of a study since the look before.
    """

    studies: int
    memory: dict[str, float]
    files: dict[str, int]
    least: float
    mean: float
    processor: float

    def row(self) -> tuple[str, ...]:
        used = [f"{self.memory[name]:.1f} / {self.files[name]}" for name in self.memory]
        times = [f"{each * 1e3:.0f} ms" for each in (self.least, self.mean, self.processor)]
        return (str(self.studies), *used, *times)


def main(studies: int, hub: bool) -> None:
    tune_memory()
    with site(made_up(NODES * RECORDS), NODES, hub=hub) as here:
        looks = asyncio.run(_measure(here, studies))
    columns = ("studies", *looks[0].memory, "least", "mean", "processor")
    rows = [look.row() for look in looks]
    show("MiB in use / open descriptors, and a study's time, after so many studies", columns, rows)
    print("\n".join(verdict(looks)))


def verdict(looks: Sequence[Look]) -> list[str]:
    """Return a line for each process and one for the time, each with "met" or "missed"."""
    later = [look for look in looks if look.studies >= SETTLED]
    if len(later) < 2:
        return [f"no verdict: it takes more than {SETTLED} studies"]
    first, half = later[0], later[len(later) // 2 :]
    lines = []
    for name in first.memory:
        growth = max(look.memory[name] for look in later) - first.memory[name]
        more = min(look.files[name] for look in half) - first.files[name]
        lines.append(
            f"{_word(growth <= MOST_GROWTH and more <= 0)}: {name} grew by {growth:.1f} MiB at "
            f"most after {first.studies} studies (target {MOST_GROWTH:.0f}), and kept "
            f"{max(0, more)} descriptors more"
        )
    slower = half[-1].least / first.least
    lines.append(
        f"{_word(slower <= MOST_SLOWER)}: the least time of a study is {slower:.2f} times that at "
        f"{first.studies} studies (target {MOST_SLOWER})"
    )
    return lines


def _word(is_met: bool) -> str:
    return "met" if is_met else "missed"


async def _measure(here: Site, studies: int) -> list[Look]:
    pids = {name: each.process.pid for name, each in here.served.items()}
    pids[COORDINATOR] = os.getpid()
    looks: list[Look] = []
    every = max(1, studies // LINES)
    times: list[float] = []
    used = _processor(pids)
    for number in range(1, studies + 1):
        begun = time.perf_counter()
        await _study(here)
        times.append(time.perf_counter() - begun)
        if number % every == 0 or number == 1:
            await asyncio.sleep(REST_SECONDS)
            gc.collect()  # as the servers do
            now = _processor(pids)
            spent, used = now - used, now
            looks.append(_look(number, pids, times, spent))
            print(*looks[-1].row(), sep="  ", flush=True)
            times = []
    return looks


def _look(number: int, pids: dict[str, int], times: list[float], spent: float) -> Look:
    return Look(
        studies=number,
        memory={name: _mebibytes(pid) for name, pid in pids.items()},
        files={name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in pids.items()},
        least=min(times),
        mean=sum(times) / len(times),
        processor=spent / len(times),
    )


async def _study(here: Site) -> None:
    """Run one small study with a dealer."""
    entries = load_study_file(here.study_file(backend="shared"))
    identity = load_identity(entries.identity, COORDINATOR)
    await run_study(entries.study(identity.name), identity)


def _processor(pids: dict[str, int]) -> float:
    return sum(map(processor_seconds, pids.values()))


def _mebibytes(pid: int) -> float:
    """A process's memory in use, without pages of files."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--hub", action="store_true", help="all processes dial a hub")
    given = parser.parse_args()
    main(given.studies, given.hub)
