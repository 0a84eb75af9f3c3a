"""The bank study over slow lines, beside what `umpc plan` says: every server behind a line of its own (`proxy.py`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench.harness import Site, bank_table, cores, site
from bench.table import Figure, show
from umpc.coordinator.studyfile import load_study_file
from umpc.mpc.cost import predict
from umpc.planning.prediction import attempt_over
from umpc.planning.seconds import Network, measure_machine, predict_seconds

LINES = ((1, 1000), (20, 100), (80, 20), (20, 10))
"""One-way delay in milliseconds, megabits a second."""
RUNS = 5
WITHIN = 0.2


def main() -> list[Figure]:
    table, source = bank_table()
    rows, figures, machine = [], [], None
    with site(table, 2) as here:
        counts = ",".join(str(count) for count in (2260, 2261))
        for delay, megabits in LINES:
            with slow(here, delay, megabits) as addresses:
                reports = [here.study(addresses=addresses) for _ in range(RUNS)]
            attempt = attempt_over(
                load_study_file(here.folder / "study.toml").study("coordinator"), counts
            )
            machine = machine or measure_machine(attempt.study)
            network = Network(delay / 1e3, megabits * 125_000)
            predicted = predict_seconds(attempt, predict(attempt), machine, network, 3 / cores())
            for part in ("online", "offline", "total"):
                measured = median(report[f"seconds_{part}"] for report in reports)
                rows.append(
                    (
                        f"{delay} ms, {megabits} Mbit/s",
                        part,
                        f"{measured:.3f} s",
                        f"{getattr(predicted, part):.3f} s",
                    )
                )
            error = predicted.total / measured - 1
            name = f"bank over {delay} ms, {megabits} Mbit/s: predicted time"
            figures.append(
                Figure(name, f"{error:+.0%}", f"within ±{WITHIN:.0%}", abs(error) <= WITHIN)
            )
    show(
        f"{source}: Kendall, 2 nodes, |E| = 2n, medians of {RUNS}",
        ("line", "", "measured", "predicted"),
        rows,
    )
    return figures


@contextmanager
def slow(here: Site, delay: float, megabits: float) -> Iterator[dict[str, str]]:
    """Addresses behind lines of their own, for every server of the site."""
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
