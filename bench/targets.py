"""Small studies in milliseconds beside their targets: `python -m bench targets`.

The job is that of `make peers`: Kendall's sum over 9,042 pairs of records of two owners, real
processes over TLS that are warm. The grid takes all pairs of the bank table in 2^17 cells, over
four nodes. Each figure is a median of TURNS studies in a round robin, after one that is not
counted. Between two studies is a pause, in which processes that wait do what they do while idle.
The machine's AES and fsync figures are printed beside them: every study waits for both.
`garbled_targets.py` has the studies without a dealer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import garbled_targets
from bench.grid import BINS, GRID
from bench.grid import NODES as GRID_NODES
from bench.harness import Site, bank_table, cores, site
from bench.limits import aes_blocks_per_second
from bench.peers.job import NODES, WAYS, job_table, turn
from bench.peers.machine import fsync_seconds
from bench.peers.turns import COLUMNS, Turn, round_robin, row
from bench.table import Figure, show
from umpc.api.event_loop import run_now
from umpc.cli.memory import tune_memory
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.cost import predict
from umpc.study.attempt import Attempt
from umpc.transport.identity import load_identity

TURNS = 20
PAUSE_SECONDS = 0.3
DEALER = WAYS["umpc with a dealer"]
PLAIN, AHEAD, CELLS = "with a dealer", "prepared ahead", "grid of 2^17 cells"
Measure = Callable[[Turn], float]
TARGETS: tuple[tuple[str, str, Measure, float], ...] = (
    (PLAIN, "in all", lambda turn: turn.in_all, 21),
    (PLAIN, "with connecting", lambda turn: turn.with_connecting, 50),
    (PLAIN, "online", lambda turn: turn.online, 8),
    (AHEAD, "in all", lambda turn: turn.in_all, 12),
    (CELLS, "in all", lambda turn: turn.in_all, 60),
)
"""The way, what of it is measured, how, and the most milliseconds."""
MOST_DEALT = 130
"""Bytes from the dealer for each pair of records of two owners."""


def main(turns: int = TURNS) -> list[Figure]:
    tune_memory()  # this process is the coordinator, as that of `umpc study run`
    print(f"AES-128 on one core: {aes_blocks_per_second() / 1e6:.0f} M blocks/s")
    print(f"4 KiB and fsync, median: {1e3 * fsync_seconds():.2f} ms; {cores()} cores")
    with site(job_table(), NODES) as here:
        jobs = {PLAIN: _way(here, DEALER, False), AHEAD: _way(here, DEALER, True)}
        taken = round_robin(jobs, turns)
        dealt = run_now(dealt_an_edge(here.study_file(**DEALER)))
    table, source = bank_table()
    with site(table, GRID_NODES) as here:
        taken |= round_robin({CELLS: _way(here, {**GRID, "bins": BINS}, False)}, turns)
    title = f"Small studies, the grid over {source}; min–median–max of {turns}"
    show(title, COLUMNS, [row(name, each) for name, each in taken.items()])
    return [*figures_of(taken, dealt), *garbled_targets.main(turns)]


def figures_of(taken: Mapping[str, Sequence[Turn]], dealt: float) -> list[Figure]:
    """Every target's line. Args: taken: the turns of each way. dealt: bytes an edge."""
    found = []
    for way, what, measure, most in TARGETS:
        middle = 1e3 * median(map(measure, taken[way]))
        shown = f"{middle:.1f} ms"
        found.append(Figure(f"{way}: {what}", shown, f"at most {most:g} ms", middle <= most))
    name = f"{PLAIN}: dealt for an edge"
    target = f"at most {MOST_DEALT} bytes"
    return [*found, Figure(name, f"{dealt:.1f} bytes", target, dealt <= MOST_DEALT)]


def _way(here: Site, settings: dict[str, Any], is_ahead: bool) -> Callable[[], Turn]:
    def take() -> Turn:
        time.sleep(PAUSE_SECONDS)
        return run_now(turn(here.study_file(**settings), is_ahead))

    return take


async def dealt_an_edge(path: Path) -> float:
    """Run one study, and return its dealt bytes for each edge that two nodes share."""
    file = load_study_file(path)
    identity = load_identity(file.identity, "coordinator")
    attempts: list[Attempt] = []
    await run_study(file.study(identity.name), identity, expect=attempts.append)
    (attempt,) = attempts
    assert isinstance(attempt, SharedAttempt)
    edges = sum(cell.count for cell in attempt.hypergraph.shared_cells.values())
    return predict(attempt).bytes_dealt / edges


if __name__ == "__main__":
    from bench.table import show_targets

    show_targets(main())
