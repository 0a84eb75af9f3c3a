"""A figure beside its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table


class Figure(NamedTuple):
    """One line of the last table: what was measured, what it should be, and whether it is."""

    work: str
    measured: str
    target: str
    met: bool


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table; the first column is text, the others numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=118).print(table)


def show_targets(figures: Sequence[Figure]) -> None:
    """All targets in one table."""
    rows = [(*figure[:3], "met" if figure.met else "missed") for figure in figures]
    show("Targets", ("work", "measured", "target", ""), rows)
