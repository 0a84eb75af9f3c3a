"""A figure beside its target."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table; the first column is text, the others numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=118).print(table)
