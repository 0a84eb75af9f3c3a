"""What a person or a program sees: progress on standard error, the result on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from umpc.protocols.registry import find_protocol
from umpc.study.report import Report

if TYPE_CHECKING:
    from umpc.coordinator.conductor import Preparation
    from umpc.study.document import Study

Tell = Callable[[str, int, int], None]
SETS = {1: "records", 2: "pairs", 3: "triples", 4: "quadruples"}


class ProgressShow:
    """A live bar on a terminal, plain lines elsewhere; always on standard error."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._tasks: dict[str, int] = {}
        self._last = 0.0

    def __enter__(self) -> Tell:
        if self._console.is_terminal:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._bar.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def _tell(self, step: str, done: int, total: int) -> None:
        if self._bar is None:
            self._line(step, done, total)
            return
        if step not in self._tasks:
            self._tasks[step] = self._bar.add_task(step, total=total)
        self._bar.update(self._tasks[step], completed=done, total=total)

    def _line(self, step: str, done: int, total: int) -> None:
        """Each step's start and end, and in between at most a line a second."""
        now = time.monotonic()
        if done in (0, total) or now - self._last > 1:
            self._last = now
            print(f"{step}: {done} of {total}", file=sys.stderr, flush=True)


def print_report(report: Report, style: str, extra: dict | None = None) -> None:
    """The report as a table for people, or as one JSON object for programs."""
    values = {**report.to_dict(), **(extra or {})}
    if style == "json":
        print(json.dumps(values))
        return
    table = Table(
        title=f"{report.statistic} of study {report.study!r}",
        show_header=False,
        title_justify="left",
    )
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    for row in _rows(report, extra or {}):
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


def print_preparation(study: Study, preparation: Preparation, style: str) -> None:
    """What waits where and until when, as a line for people, or as one JSON object for programs."""
    until = datetime.now().astimezone() + timedelta(seconds=preparation.seconds)
    sizes = preparation.bytes_by_node
    if style == "json":
        facts = {"study": study.name, "study_hash": study.hash.hex(), "bytes_by_node": sizes}
        print(json.dumps({**facts, "until": until.isoformat(timespec="seconds")}))
        return
    where = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    print(
        f"study {study.name!r} is prepared: {sum(sizes.values()):,} bytes wait until {until:%Y-%m-%d %H:%M} ({where}); "
        f"epsilon {study.epsilon} is reserved"
    )


def _rows(report: Report, extra: dict) -> list[tuple[str, str, str]]:
    rows = [
        (
            "private estimate",
            _number(report.estimate),
            "replayed: stored shares" if report.replayed else "",
        )
    ]
    if report.note:
        rows.append(("no value, because", "", report.note))
    if "exact" in extra:
        rows += _exact_rows(report, extra)
    sampling = f"standard deviation from taking E, not all {SETS.get(report.degree, 'sets')}"
    protocol = find_protocol(report.protocol)
    if report.estimate is not None:
        rows += [
            (
                "95 % interval, noise",
                f"{report.low:.5g} … {report.high:.5g}",
                f"holds {protocol.interval_holds}",
            ),
            (
                "noise, standard deviation",
                f"{report.noise_std:.3g}",
                protocol.describe_noise(report.noise),
            ),
            ("sampling, at most", f"{report.sampling_std_bound:.3g}", sampling),
        ]
    for number, entry in enumerate(report.sums if len(report.sums) > 1 else (), 1):
        share = f"± {entry.noise_std:.2g} noise, epsilon {entry.epsilon:.3g}"
        rows.append((f"sum {number}, its mean", f"{entry.mean:.6g}", share))
    rows += [
        ("epsilon, delta", f"{report.epsilon:g}, {report.delta:.2g}", "replacing one record"),
        ("edges |E|", f"{report.edges:,}", f"of {report.sets:,} {SETS.get(report.degree, 'sets')}"),
        ("records", f"{report.records:,}", ""),
        ("most edges of a record", f"{report.max_degree:,}", ""),
        ("nodes", f"{report.nodes}", protocol.describe_collusion(report.max_colluding)),
        *protocol.describe_helpers(),
        ("study hash", report.study_hash[:16], ""),
    ]
    if report.replayed:
        return rows
    return [
        *rows,
        ("edges of several owners", report.backend, evaluated(report)),
        ("rounds", f"{report.rounds}", f"predicted {report.rounds_predicted}"),
        (
            "bytes online",
            f"{report.bytes_online:,}",
            f"predicted {report.bytes_online_predicted:,}",
        ),
        *_network(report),
        (
            "bytes offline",
            f"{report.bytes_offline:,}",
            f"predicted {report.bytes_offline_predicted:,}",
        ),
        (
            "seconds online",
            f"{report.seconds_online:.3f}",
            "first message on data to last share, charge included",
        ),
        (
            "seconds offline",
            f"{report.seconds_offline:.3f}",
            "of this run; prepared before"
            if report.prepared
            else "joint seed, E, material or transfers",
        ),
        ("seconds in all", f"{report.seconds_total:.3f}", "of the study; processes started before"),
    ]


def _network(report: Report) -> list[tuple[str, str, str]]:
    """Who sent how much, and when: all that is in the report in two lines."""
    nodes, steps = report.bytes_online_by_node, report.bytes_online_by_step
    are_equal = (
        nodes == report.bytes_online_by_node_predicted
        and steps == report.bytes_online_by_step_predicted
    )
    by_step = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in steps.items())
    fewest, most = (f"{choose(nodes, default=0):,}" for choose in (min, max))
    note = (
        "by node and by step as predicted"
        if are_equal
        else "by node or by step not as predicted: see --format json"
    )
    heaps = report.bytes_online_by_shuffler
    return [
        ("  of each node", most if fewest == most else f"{fewest} to {most}", note),
        *([("  of each shuffler", f"{max(heaps):,}", "to the coordinator")] if heaps else []),
        ("  of each step", "", by_step),
    ]


def evaluated(report: Report) -> str:
    """How sets of records of several owners were evaluated."""
    return find_protocol(report.protocol).describe_evaluation(report.backend)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _exact_rows(report: Report, extra: dict) -> list[tuple[str, str, str]]:
    exact, over_edges = extra["exact"], extra.get("quantised", extra["exact_over_edges"])
    shown = f"{exact:.6g}" if exact is not None else "not computed"
    rows = [(f"exact, all {SETS.get(report.degree, 'sets')}", shown, "only the demo can know it")]
    if over_edges is not None and report.estimate is not None:
        error = report.estimate - over_edges
        what = "exact, records' bins" if "quantised" in extra else "exact, same E"
        rows.append((what, f"{over_edges:.6g}", "pooled records, no noise"))
        rows.append(
            ("error from noise", f"{error:+.3g}", f"{_deviations(error, report.noise_std)}")
        )
    return rows


def _deviations(error: float, std: float) -> str:
    return f"{abs(error) / std:.1f} standard deviations" if std > 0 else ""
