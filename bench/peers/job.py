"""The job: Kendall's sum over 9,042 cross pairs of two fields of 0 to 127, between two owners.

Processes are warm: the nodes and the dealer have run since before the first turn, and this process
is the coordinator. Every turn is a whole study with real processes over TLS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import RECORDS, Site
from bench.peers.turns import Turn
from umpc.api.study import run_now
from umpc.cli.table import DemoTable
from umpc.coordinator.client import prepare_study, run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.transport.identity import load_identity

NODES = 2
EDGES = "4n"
"""With two equal nodes half of all pairs have records of both: 2n = 9,042 of 4n."""
VALUES = 128

WAYS: dict[str, dict[str, Any]] = {
    "umpc with a dealer": {"edges": EDGES, "backend": "shared"},
    "umpc without a dealer": {
        "edges": EDGES,
        "backend": "garbled",
        "preprocessing": "none",
        "dealer": None,
    },
}


def job_table() -> DemoTable:
    """A table of the bank data's size, with two made-up columns of 0 to 127."""
    rows = [(str(7919 * i % VALUES), str(104_729 * i // 3 % VALUES)) for i in range(RECORDS)]
    return DemoTable(("x", "y"), rows, bounds={name: (0, VALUES - 1) for name in "xy"})


def ways(site: Site) -> dict[str, Callable[[], Turn]]:
    """Name → a function that runs the job once; each also with what can be prepared ahead."""
    found: dict[str, Callable[[], Turn]] = {}
    for name, settings in WAYS.items():
        for is_ahead in (False, True):
            label = f"{name}, prepared ahead" if is_ahead else name
            found[label] = _way(site, settings, is_ahead)
    return found


def _way(site: Site, settings: dict[str, Any], is_ahead: bool) -> Callable[[], Turn]:
    return lambda: run_now(turn(site.study_file(**settings), is_ahead))


async def turn(path: Path, is_ahead: bool) -> Turn:
    """Run one study. Its preparation, if it has one, is outside the measured seconds.

    The report rounds its seconds, so a clock of this process takes them.
    """
    file = load_study_file(path)
    identity = load_identity(file.identity, "coordinator")
    study = file.study(identity.name)
    if is_ahead:
        await prepare_study(study, identity)
    times: dict[str, list[float]] = {}

    def note(node: str, step: str, done: int, total: int) -> None:
        times.setdefault(step, []).append(time.perf_counter())

    started = time.perf_counter()
    report = await run_study(study, identity, note=note)
    ended = time.perf_counter()
    reached = max(times["connect"])
    return Turn(
        connecting=reached - started,
        in_all=ended - reached,
        online=max(times["release"]) - min(times["evaluate"]),
        data_bytes=report.bytes_online,
        ahead_bytes=report.bytes_offline,
    )
