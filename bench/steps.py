"""Where the time of a small job goes, step by step, in processes that are warm.

`python -m bench.steps [STUDIES [EDGES]]` runs Kendall's tau on the bank table over 2 nodes and a
dealer, again and again; the coordinator is this process. The first table has the milliseconds of
each step, the second the processor's milliseconds of each process in a study. The first studies
are not counted: they open connections and compile.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.harness import Site, bank_table, cores, site
from bench.table import show
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.transport.identity import Identity, load_identity

NODES = 2
WARM_UP = 3
STEPS = ("connect", "propose", "agree", "prepare", "evaluate", "release")
COORDINATOR = "coordinator"


@dataclass
class StepClock:
    """The moments at which the steps of one study began and ended, as `tell` hears of them.

    begun, ended: seconds of `time.perf_counter`, by step.
    """

    begun: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    def tell(self, step: str, done: int, total: int) -> None:
        """Take note of a step that begins, or that its last node has answered."""
        if done == 0:
            self.begun[step] = time.perf_counter()
        elif done == total:
            self.ended[step] = time.perf_counter()

    def seconds(self, step: str) -> float:
        return self.ended[step] - self.begun[step]


def main(studies: int, edges: str) -> None:
    table, source = bank_table()
    with site(table, NODES) as here:
        clocks, used = asyncio.run(_measure(here, studies, edges))
    job = f"{source}, {edges} edges, {NODES} nodes and a dealer, {studies} warm studies"
    show(f"{job}: milliseconds by step", ("step", "least", "median", "most"), _rows(clocks))
    rows = [(name, f"{1e3 * seconds / studies:.0f}") for name, seconds in used.items()]
    rows.append(("all", f"{1e3 * sum(used.values()) / studies:.0f}"))
    show(f"a processor's milliseconds a study, {cores()} cores", ("process", "ms"), rows)


async def _measure(
    here: Site, studies: int, edges: str
) -> tuple[list[StepClock], dict[str, float]]:
    """Run the studies. Returns: the clock of each, and processor seconds by process."""
    identity: Identity | None = None
    clocks: list[StepClock] = []
    before: dict[str, float] = {}
    for number in range(WARM_UP + studies):
        if number == WARM_UP:
            before = here.processor_seconds() | {COORDINATOR: time.process_time()}
        entries = load_study_file(here.study_file(edges=edges))
        identity = identity or load_identity(entries.identity, COORDINATOR)
        study = entries.study(identity.name)
        clock = StepClock()
        clock.begun["connect"] = time.perf_counter()
        await run_study(study, identity, clock.tell)
        clock.ended["connect"] = clock.begun["propose"]
        clocks.append(clock)
    after = here.processor_seconds() | {COORDINATOR: time.process_time()}
    return clocks[WARM_UP:], {name: after[name] - before[name] for name in after}


def _rows(clocks: Sequence[StepClock]) -> list[tuple[str, ...]]:
    """The least, median and most milliseconds of each step, and of all steps together."""
    found = [(step, [1e3 * clock.seconds(step) for clock in clocks]) for step in STEPS]
    whole = [1e3 * (clock.ended["release"] - clock.begun["propose"]) for clock in clocks]
    found.append(("propose to release", whole))
    return [
        (step, f"{min(taken):.1f}", f"{median(taken):.1f}", f"{max(taken):.1f}")
        for step, taken in found
    ]


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 20, given[1] if len(given) > 1 else "2n")
