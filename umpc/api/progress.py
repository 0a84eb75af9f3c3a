"""Show a run's progress: its steps, what it will take, and the time left.

A terminal has a live bar, a notebook one line that changes, and standard error elsewhere has lines.

The forecast of a run that is about to begin: seconds, bytes and memory, from the plan's model.

The members' numbers of records and the joint seed are known by then, so bytes are exact. Delays and
lines are those that `umpc plan` takes when nothing is said about them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.registry import protocol_of
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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
            self._bar = live_bar(self.left)
            if self._bar:
                self._bar.start()
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
        if found := forecast(attempt):
            self.announce(found)

    def announce(self, forecast: Forecast) -> None:
        """Say what a run will take. From now on the time left is shown."""
        self._end = self._clock() + forecast.seconds
        self._print(
            f"this run takes about {in_words(forecast.seconds)}, {forecast.bytes:,} bytes and "
            f"{forecast.memory / 2**20:,.0f} MiB a process, with 10 ms between sites and lines of "
            f"100 Mbit/s; `umpc plan` says what other edges or protocols take"
        )

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
        else:
            self._print(text)

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PATIENCE_SECONDS, self._look)

    def _look(self) -> None:
        self.name_silent()
        self._look_later()

    def _print(self, text: str) -> None:
        """Print a line on standard error, above the bar if there is one."""
        if self._bar is None:
            _say(text)
        else:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def left(self) -> str:
        """The time left in words; empty where it is not known, or is over."""
        rest = 0.0 if self._end is None else self._end - self._clock()
        return f"about {in_words(rest)} left" if rest > 0 else ""

    def _rest(self) -> str:
        left = self.left()
        return f", {left}" if left else ""

    def tell(self, step: str, done: int, total: int) -> None:
        """Show that so many of the nodes have done a step."""
        if self._cell is not None and (shown := notebook_display()):
            bar = "█" * (BAR * done // max(1, total))
            self._cell.update(
                shown.Pretty(f"{step:<10} {bar:░<{BAR}} {done} of {total}{self._rest()}")
            )
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
            _say(f"{step}: {done} of {total}{self._rest()}")


def live_bar(left: Callable[[], str]) -> Progress | None:
    """A bar on standard error that is not started yet; None where that is no terminal.

    Args: left: says the time left of the whole run.
    """
    from rich import progress  # it takes a while to load
    from rich.console import Console
    from rich.text import Text

    class Left(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            return Text("" if task.finished else left())

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TimeElapsedColumn(),
        Left(),
    )
    return progress.Progress(*columns, console=console, transient=True)


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


# --- forecast of long runs ------------------------------------------------------------------------


USUAL_DELAY, USUAL_BANDWIDTH = 0.01, 12_500_000
"""10 ms one way and 100 Mbit/s, as `umpc plan` assumes."""
LONG = 60.0
"""A run that takes longer, in seconds, is announced."""
BRIEF_EDGES = 10_000
BRIEF_BYTES = 4_000_000
BRIEF_RECORDS = 50_000
"""A run with no more of each takes less than LONG, and needs no trial."""


@dataclass(frozen=True)
class Forecast:
    """The cost of a run. memory: of the largest process, in bytes."""

    seconds: float
    bytes: int
    memory: int


def forecast(attempt: Attempt) -> Forecast | None:
    """The cost of a run that takes longer than LONG; None for a shorter one.

    A trial of the study's kernels runs in this process for a fraction of a second, unless the
    numbers alone show that the run is short.
    """
    cost = protocol_of(attempt.study).cost(attempt)
    if _is_brief(attempt, cost):
        return None
    # These load the trials of all protocols, which would hold up a brief run.
    from umpc.planning.prediction import reference_table_of
    from umpc.planning.seconds import Network, predict_memory, seconds_of

    network = Network(USUAL_DELAY, USUAL_BANDWIDTH)
    table = reference_table_of(attempt, None, ",")
    seconds = seconds_of(attempt, cost, table, network, {}).total
    if seconds <= LONG:
        return None
    return Forecast(seconds, cost.bytes_online + cost.bytes_offline, predict_memory(attempt, cost))


def _is_brief(attempt: Attempt, cost: Cost) -> bool:
    if max(cost.most_sent, cost.bytes_dealt) > BRIEF_BYTES:
        return False
    if not isinstance(attempt, SharedAttempt):
        return attempt.sizes.records <= BRIEF_RECORDS
    edges = sum(cell.count for cell in attempt.hypergraph.shared_cells.values())
    return edges <= BRIEF_EDGES
