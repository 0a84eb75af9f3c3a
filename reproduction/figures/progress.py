"""One line for each finished batch: the number of batches so far, and the time that is left."""

from __future__ import annotations

import time

from rich.console import Console

from reproduction.figures.figure import Point


class Progress:
    """Progress of one figure. The times are coloured in a terminal, and plain in a file."""

    def __init__(self, figure: str, batches: int, console: Console | None = None):
        self.figure, self.batches, self.done = figure, batches, 0
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.started = time.monotonic()

    def finished(self, point: Point, number: int, seconds: float) -> None:
        self.done += 1
        passed = time.monotonic() - self.started
        left = passed / self.done * (self.batches - self.done)
        what = f"batch {number + 1}" if number >= 0 else "theory"
        self.console.print(
            f"{self.figure}  {self.done}/{self.batches}  [cyan]{shown(passed)}, about "
            f"{shown(left)} left[/cyan]  {point.series} at {point.x:g}, {what}: {seconds:.1f} s"
        )


def shown(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
