"""Studies without a dealer, one after the other: processor ms of each node, over kept channels.

Run `python -m bench.chained`. The first study of each kind sets up its channel by curve points, the
later ones take the channel that was made after the one before (`node/attempts/next_channels.py`).
`checked` studies prove their transfers. Milliseconds are those of the node processes' processors,
without the coordinator's, which is this process. The making of the next channel counts too.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.bank import GARBLED
from bench.harness import Site, bank_table, site
from bench.table import show
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.study.report import Report
from umpc.transport.identity import load_identity

LATER = 8
PAUSE_SECONDS = 0.3
"""Seconds in which nodes make the next channel."""
KINDS: dict[str, dict[str, Any]] = {
    "unchecked": {},
    "checked": {"transfers": "checked"},
}


def main() -> None:
    table, source = bank_table()
    rows = []
    with site(table, 2, dealer=False) as here:
        _spent(here, **GARBLED)  # the first study reads the table and compiles
        for kind, changes in KINDS.items():
            spent = [_spent(here, **GARBLED, **changes) for _ in range(LATER + 1)][1:]
            rows.append((kind, *_cells(spent)))
    columns = ("transfers", "garbler, ms", "evaluator, ms", "least total, ms", "bytes", "predicted")
    title = f"{source}: Kendall's tau over 4n pairs, garbled; medians of {LATER} studies"
    show(title, columns, rows)


def _cells(spent: list[tuple[list[float], Report]]) -> list[str]:
    """The medians over all studies, and the bytes of the last one."""
    garbler, evaluator = map(median, zip(*(taken for taken, _ in spent), strict=True))
    least = min(report.seconds_total for _, report in spent)
    report = spent[-1][1]
    sent = report.bytes_online + report.bytes_offline
    told = report.bytes_online_predicted + report.bytes_offline_predicted
    return [
        f"{garbler:.0f}",
        f"{evaluator:.0f}",
        f"{1e3 * least:.0f}",
        f"{sent:,}",
        f"{told - sent:+,}",
    ]


def _spent(here: Site, **changes: Any) -> tuple[list[float], Report]:
    """Processor milliseconds of each node for one study and the next channel, and its report."""
    before = [_milliseconds(here, name) for name in here.names]
    file = load_study_file(here.study_file(**changes, dealer=None))
    identity = load_identity(file.identity, "coordinator")
    report = asyncio.run(run_study(file.study(identity.name), identity))
    time.sleep(PAUSE_SECONDS)
    after = [_milliseconds(here, name) for name in here.names]
    return [late - early for early, late in zip(before, after, strict=True)], report


def _milliseconds(here: Site, name: str) -> float:
    """Processor milliseconds of a node's threads that live: the scheduler's, to a microsecond."""
    tasks = Path(f"/proc/{here.served[name].process.pid}/task")
    spent = (int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())
    return sum(spent) / 1e6


if __name__ == "__main__":
    main()
