"""Print tables, and at the end every figure beside its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Figure(NamedTuple):
    """One line of the last table: the measured value, the target, and whether it is met.

    failure: why the job has no measured value, in one line; empty for a job that ended well.
    """

    work: str
    measured: str
    target: str
    met: bool
    failure: str = ""

    @property
    def verdict(self) -> str:
        if self.failure:
            return "failed"
        return "met" if self.met else "missed"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table; the first column is text, the others are numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=118).print(table)


def show_targets(figures: Sequence[Figure]) -> None:
    """Print all targets in one table, if there are some, then a line for each job that failed."""
    if not figures:
        return
    rows = [(f.work, f.measured, f.target, f.verdict) for f in figures]
    show("Targets", ("work", "measured", "target", ""), rows)
    for figure in figures:
        if figure.failure:
            print(f"failed: {figure.work}: {figure.failure}", flush=True)
