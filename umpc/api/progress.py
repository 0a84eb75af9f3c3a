"""Show a run's progress: its steps, what it will take, and the time left.

A terminal has a live bar, a notebook one line that changes, and standard error elsewhere has lines.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from umpc.planning.forecast import Forecast
    from umpc.study.attempt import Attempt

Clock = Callable[[], float]
BAR = 20
"""Characters of a notebook's bar."""
FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""The variables by which rich takes standard error for a terminal, or not."""


PATIENCE_SECONDS = 5.0
"""Seconds for which a node may be silent until it is named; then twice as many each time."""
NAMED = 8
"""Nodes that are named in one line."""


class ProgressShow:
    """Progress on standard error, or in a notebook's cell.

    Args: clock: in seconds. nodes: the names of those that a run waits for.
    """

    def __init__(self, clock: Clock = time.monotonic, nodes: Iterable[str] = ()) -> None:
        self._clock = clock
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last = 0.0
        self._end: float | None = None
        self._cell: Any = None
        self._silent = dict.fromkeys(nodes, ("connect", clock())) if nodes else {}
        """Each node that is waited for: its step, and when it was heard last."""
        self._patience = PATIENCE_SECONDS
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> ProgressShow:
        if shown := notebook_display():
            self._cell = shown.display(shown.Pretty("starting"), display_id=True)
        elif may_be_terminal():
            from umpc.api.progress_bar import live_bar  # rich takes a while to load

            if bar := live_bar(self.left):
                self._bar = bar
                bar.start()
        if self._silent:
            self._look_later()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer:
            self._timer.cancel()
        if self._bar:
            self._bar.stop()

    def expect(self, attempt: Attempt) -> None:
        """Say what a run will take, if that is more than a minute."""
        from umpc.planning.forecast import forecast

        if found := forecast(attempt):
            self.announce(found)

    def announce(self, forecast: Forecast) -> None:
        """Say what a run will take. From now on the time left is shown."""
        self._end = self._clock() + forecast.seconds
        text = (
            f"this run takes about {in_words(forecast.seconds)}, {forecast.bytes:,} bytes and "
            f"{forecast.memory / 2**20:,.0f} MiB a process, with 10 ms between sites and lines of "
            f"100 Mbit/s; `umpc plan` says what other edges or protocols take"
        )
        if self._bar is None:
            _say(text)
        else:
            self._above_bar(text)

    def note(self, node: str, step: str, done: int, total: int) -> None:
        """Note how far a node is, so that one that is waited for in vain can be named."""
        if done < total:
            self._silent[node] = step, self._clock()
        else:
            self._silent.pop(node, None)
            self._patience = PATIENCE_SECONDS

    def name_silent(self) -> None:
        """Name the nodes that said nothing for long: a table that hangs is at one of them."""
        now = self._clock()
        late = {node: (step, now - at) for node, (step, at) in self._silent.items()}
        late = {node: found for node, found in late.items() if found[1] >= self._patience}
        if not late:
            return
        self._patience *= 2
        step, seconds = max(late.values(), key=lambda found: found[1])
        more = f" and {len(late) - NAMED} more" if len(late) > NAMED else ""
        text = (
            f"{step}: waiting for {', '.join(list(late)[:NAMED])}{more} since {in_words(seconds)}; "
            "`umpc node status` there shows what the node does"
        )
        if self._cell is not None and (shown := notebook_display()):
            self._cell.update(shown.Pretty(text))
        elif self._bar is None:
            _say(text)
        else:
            self._above_bar(text)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PATIENCE_SECONDS, self._look)

    def _look(self) -> None:
        self.name_silent()
        self._look_later()

    def _above_bar(self, text: str) -> None:
        assert self._bar is not None
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def left(self) -> str:
        """The time left in words; empty where it is not known, or is over."""
        rest = 0.0 if self._end is None else self._end - self._clock()
        return f"about {in_words(rest)} left" if rest > 0 else ""

    def tell(self, step: str, done: int, total: int) -> None:
        """Show that so many of the nodes have done a step."""
        if self._cell is not None and (shown := notebook_display()):
            left = f", {self.left()}" if self.left() else ""
            bar = "█" * (BAR * done // max(1, total))
            self._cell.update(shown.Pretty(f"{step:<10} {bar:░<{BAR}} {done} of {total}{left}"))
            return
        if self._bar is None:
            self._line(step, done, total)
            return
        if step not in self._tasks:
            self._tasks[step] = self._bar.add_task(step, total=total)
        self._bar.update(self._tasks[step], completed=done, total=total)

    def _line(self, step: str, done: int, total: int) -> None:
        """Print a step's start and end, and at most one line a second in between."""
        now = self._clock()
        if done in (0, total) or now - self._last > 1:
            self._last = now
            left = f", {self.left()}" if self.left() else ""
            _say(f"{step}: {done} of {total}{left}")


def may_be_terminal() -> bool:
    """Whether rich has to say if standard error is a terminal. It may be closed, or none."""
    look = getattr(sys.stderr, "isatty", None)
    with suppress(ValueError):
        return bool(look and look()) or any(name in os.environ for name in FORCED)
    return False


def _say(text: str) -> None:
    """Print a line on standard error, if there is one. Standard output has the result alone."""
    if sys.stderr is not None:
        with suppress(ValueError):
            print(text, file=sys.stderr, flush=True)


def notebook_display() -> Any:
    """IPython's module for showing things, inside a notebook; None elsewhere."""
    loaded = sys.modules.get("IPython")
    shell = loaded.get_ipython() if loaded else None
    return sys.modules.get("IPython.display") if hasattr(shell, "kernel") else None


def in_words(seconds: float) -> str:
    """A length of time in its usual unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86400:,.0f} days"
