"""A terminal's live bar: one line for each step of a run, with the time left."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text


def live_bar(left: Callable[[], str]) -> Progress | None:
    """A bar on standard error that is not started yet; None where that is no terminal.

    Args: left: says the time left of the whole run.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        _Left(left),
    )
    return Progress(*columns, console=console, transient=True)


class _Left(ProgressColumn):
    """The time left of the whole run."""

    def __init__(self, left: Callable[[], str]) -> None:
        super().__init__()
        self._left = left

    def render(self, task: Task) -> Text:
        return Text("" if task.finished else self._left())
