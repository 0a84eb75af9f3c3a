"""The bank study over slow lines, beside the seconds that `umpc plan` predicts.

Every server is behind a line of its own (`proxy.py`). The first study over a line opens all
connections and sets up channels. Those that follow find them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from bench.harness import Site, bank_table, cores, site
from bench.table import show
from umpc.coordinator.studyfile import load_study_file
from umpc.mpc.backends import predict
from umpc.planning.prediction import attempt_over
from umpc.planning.seconds import Machine, Network, measure_machine, predict_seconds

LINES = ((1, 1000), (20, 100), (80, 20), (20, 10))
"""Each line's one-way delay in milliseconds, and its megabits a second."""
COUNTS = "2260,2261"
"""Records of the two nodes."""
FOLLOWING = 4


def main() -> None:
    table, source = bank_table()
    with site(table, 2) as here:
        lines = Lines(here)
        for delay, megabits in LINES:
            lines.measure(delay, megabits)
    show(
        f"{source}: Kendall, 2 nodes, |E| = 2n; a first study, and medians of {FOLLOWING} more",
        ("line", "seconds", "measured", "predicted", "off by"),
        lines.rows,
    )


@dataclass
class Lines:
    """Studies over slow lines. rows: the table so far. machine: its speed, from the first line."""

    here: Site
    rows: list[tuple[str, ...]] = field(default_factory=list)
    machine: Machine | None = None

    def measure(self, delay: int, megabits: int) -> None:
        """Measure the study over one line, and compare the seconds with the predicted ones."""
        with slow(self.here, delay, megabits) as addresses:
            first, *more = [self.here.study(addresses=addresses) for _ in range(1 + FOLLOWING)]
        file = load_study_file(self.here.folder / "study.toml")
        attempt = attempt_over(file.study("coordinator"), COUNTS)
        self.machine = self.machine or measure_machine(attempt.study)
        network = Network(delay / 1e3, megabits * 125_000)
        share = 3 / cores()
        predicted = predict_seconds(attempt, predict(attempt), self.machine, network, share)
        name = f"{delay} ms, {megabits} Mbit/s"
        following = median(report["seconds_total"] for report in more)
        rows = [
            ("online", median(report["seconds_online"] for report in more), predicted.online),
            ("offline", first["seconds_offline"], predicted.offline),
            ("in all", first["seconds_total"], predicted.total),
            ("in all, of a following study", following, predicted.following),
        ]
        for part, measured, expected in rows:
            off = f"{expected / measured - 1:+.0%}"
            self.rows.append((name, part, f"{measured:.2f}", f"{expected:.2f}", off))


@contextmanager
def slow(here: Site, delay: float, megabits: float) -> Iterator[dict[str, str]]:
    """Put every server of the site behind a line of its own, and yield their new addresses."""
    names = list(here.served)
    command = [sys.executable, "-m", "bench.proxy", str(delay), str(megabits)]
    command += [here.served[name].address for name in names]
    proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield {name: proxy.stdout.readline().strip() for name in names}
    finally:
        proxy.stdin.close()
        proxy.wait(10)
        proxy.stdout.close()
