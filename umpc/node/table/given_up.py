"""Readings that nobody waits for any more: they end, and so do their queries in a database.

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
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import TypeVar

from umpc.errors import StudyAborted

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
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()
    context = copy_context()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # it has one, where no error is

    def read() -> None:
        result, failure = None, None
        try:
            result = context.run(reading)
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the process has ended its loop
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=read, name="umpc-reading", daemon=True).start()
    return await future
