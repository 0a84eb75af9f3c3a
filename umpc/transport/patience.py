"""Time limits that count this process's own running time only.

A process that the system does not let run cannot read what its peers have sent. A limit that went
on meanwhile would blame them. `OwnLag` measures how late the timers of an event loop are, and
`time_limit` gives a step as much more time. A timer is late where other programs hold the
processors, where the process itself was stopped, and where a computation holds the interpreter.

*Structured concurrency.* Run tasks concurrently; the first failure cancels the rest.

*Given up.* Readings that nobody waits for any more: they end, and so do their queries.

A study ends while its table is read, for example because its step's time is over. The thread that
reads would go on for as long as the database lets it wait, and each further study would take one
more thread and one more connection. So whoever waits for a reading says so around the call:

    with waited_for():
        records = await read_apart(partial(load, study))

A reading asks `check_waited_for` between its parts. Around a call that may take long it names what
ends the call, by `ended_by`. Where nobody has said that he waits, as in a command, a reading is
never given up. A call that nothing ends, as of a network disk that hangs, keeps its thread, which
does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from umpc.errors import StudyAborted

TICK = 0.25
"""Seconds between two looks at the clock."""
UNNOTICED = 0.02
"""Seconds that a timer may be late on an idle machine. They do not count as lag."""

RUN_QUEUE = Path("/proc/loadavg")
"""Linux: its fourth field has the number of threads that run or wait for a processor now."""
SHARE_SECONDS = 0.5
"""Seconds for which one look at the run queue serves all connections."""
LEAST_SHARE = 0.25
"""However busy the machine is, a peer's time goes on at least this fast."""

Loop = asyncio.AbstractEventLoop


class OwnLag:
    """The seconds by which the timers of one event loop were late so far.

    It measures only while somebody needs it, so an idle process sleeps.
    """

    def __init__(self, loop: Loop):
        self._loop = loop
        self._users = 0
        self._seconds = 0.0
        self._due = 0.0
        self.timer: asyncio.TimerHandle | None = None
        """Its next look at the clock; None while nobody needs it."""

    def begin(self) -> float:
        """Start to measure, and return the reading, from which `since` counts."""
        self._users += 1
        if self.timer is None:
            self._wait()
        return self._seconds

    def since(self, reading: float) -> float:
        """Return the seconds of lag since a reading, with those of the tick that is late now."""
        return self._seconds + self._late() - reading

    def end(self) -> None:
        """Stop to measure, unless somebody else needs it."""
        self._users -= 1
        if not self._users and self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _late(self) -> float:
        late = self._loop.time() - self._due
        return late if late > UNNOTICED else 0.0

    def _wait(self) -> None:
        self._due = self._loop.time() + TICK
        self.timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self._seconds += self._late()
        self._wait()


_OF_LOOPS: WeakKeyDictionary[Loop, OwnLag] = WeakKeyDictionary()


def own_lag() -> OwnLag:
    """Return the measure of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _OF_LOOPS:
        _OF_LOOPS[loop] = OwnLag(loop)
    return _OF_LOOPS[loop]


def processor_share() -> float:
    """Return the speed at which a peer's time goes on, at most 1: less where this machine is busy.

    Our own timers may be in time while a peer on the same machine waits for a processor: the
    system prefers threads that sleep most of the time. It is 1 for up to two threads a processor.
    """
    return _share_at(RUN_QUEUE, int(time.monotonic() / SHARE_SECONDS))


@lru_cache(maxsize=1)
def _share_at(queue: Path, moment: int) -> float:
    """Read the share once a moment, for all connections of this process."""
    try:
        with queue.open("rb", buffering=0) as file:  # without a decoder: it is read every second
            waiting = int(file.read(200).split()[3].partition(b"/")[0])
    except (OSError, ValueError, IndexError):
        return 1.0
    share = 2 * (os.cpu_count() or 1) / max(1, waiting)
    return max(LEAST_SHARE, min(1.0, share))


async def counted_sleep(seconds: float) -> float:
    """Sleep. Returns: the seconds of it that count against a peer that is silent meanwhile.

    Those by which this process was late do not, since what the peer has said may wait to be read,
    and fewer do on a busy machine (`processor_share`).
    """
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    await asyncio.sleep(seconds)
    late = loop.time() - due
    counted = seconds - late if late > UNNOTICED else seconds
    return max(0.0, counted) * processor_share()


@asynccontextmanager
async def time_limit(
    seconds: float, expiring: Callable[[], None] | None = None
) -> AsyncIterator[None]:
    """Limit the time of a block to seconds in which this process could run.

    Args: expiring: called before the block is cancelled, while its futures still wait: it can see
        for whom.

    Raises: TimeoutError.
    """
    loop = asyncio.get_running_loop()
    lag = own_lag()
    begun = lag.begin()
    given = 0.0
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal given, timer
        owed = lag.since(begun) - given
        if owed > UNNOTICED:
            given += owed
            timer = loop.call_later(owed, look)
            return
        if expiring is not None:
            expiring()
        limit.reschedule(loop.time())

    timer = loop.call_later(seconds, look)
    try:
        async with asyncio.timeout(None) as limit:
            yield
    finally:
        timer.cancel()
        lag.end()


# --- structured concurrency -----------------------------------------------------------------------


async def together(jobs: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all jobs at once. The first failure cancels the others and is raised."""
    async with task_group() as group:
        for job in jobs:
            group.create_task(job)


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """An asyncio.TaskGroup that raises the first failure itself, not a group of failures."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks that have not ended, and wait for all. Their failures are not raised."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- given up -------------------------------------------------------------------------------------

Result = TypeVar("Result")
End = Callable[[], None]
"""Ends a call of another thread. It may take some seconds. Its errors count for nothing, because
the call may have ended meanwhile."""


class ReadersWait:
    """Whether somebody still waits for a reading. Every method may run in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[End] = []
        self.is_over = False

    def add(self, end: End) -> None:
        """Call this when nobody waits any more. Raises: StudyAborted if that is so already."""
        with self._lock:
            self.check()
            self._ends.append(end)

    def remove(self, end: End) -> None:
        """Do not call this any more."""
        with self._lock:
            if end in self._ends:
                self._ends.remove(end)

    def check(self) -> None:
        """Raises: StudyAborted if nobody waits any more."""
        if self.is_over:
            raise StudyAborted("the study ended while its table was read, so the reading ends")

    def give_up(self) -> None:
        """Say that nobody waits any more. Each call is ended in a thread of its own."""
        with self._lock:
            self.is_over = True
            ends, self._ends = self._ends, []
        for end in ends:
            threading.Thread(
                target=_quietly,
                args=(end,),
                name="umpc-given-up",
                daemon=True,
            ).start()


def _quietly(end: End) -> None:
    with suppress(Exception):
        end()


_WAITING: ContextVar[ReadersWait | None] = ContextVar("waiting", default=None)


@contextmanager
def waited_for() -> Iterator[None]:
    """Wait for readings inside the block, also of threads by `read_apart`."""
    waiting = ReadersWait()
    token = _WAITING.set(waiting)
    try:
        yield
    finally:
        _WAITING.reset(token)
        waiting.give_up()


def check_waited_for() -> None:
    """Raises: StudyAborted if nobody waits for this reading any more."""
    waiting = _WAITING.get()
    if waiting is not None:
        waiting.check()


@contextmanager
def ended_by(end: End) -> Iterator[None]:
    """Call `end` if nobody waits any more for what runs inside the block.

    Raises: StudyAborted if that is so already.
    """
    waiting = _WAITING.get()
    if waiting is None:
        yield
        return
    waiting.add(end)
    try:
        yield
    finally:
        waiting.remove(end)


async def read_apart(reading: Callable[[], Result]) -> Result:
    """Read in a thread of its own, as `asyncio.to_thread`. The process does not wait for its end.

    Raises: as the reading.
    """
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()  # nobody can take it back
    context = copy_context()

    def read() -> None:
        try:
            future.set_result(context.run(reading))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=read, name="umpc-reading", daemon=True).start()
    return await asyncio.wrap_future(future)
