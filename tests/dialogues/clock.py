"""An event loop whose time passes only when nothing else can happen.

Its clock stands still while a task can run, a thread works, or a future of a thread waits. Then it
goes on to the next timer at once. So a step that takes an hour takes no time here, a peer is never
late because this machine is busy, and a test waits for what happens and never for a time.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
from collections.abc import Callable
from typing import Any

POLL = 0.0005
"""Seconds between two looks at threads that still run."""
MOST_LOOKS = 400_000
"""Looks after which a thread hangs: some minutes, in which no test computes."""


class StandingClock(asyncio.SelectorEventLoop):
    """Work that is given to threads by `run_in_executor` is done in place, one by one."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: set[asyncio.Future[Any]] = set()
        """Futures of threads of others."""
        self._quiet: list[asyncio.Future[None]] = []
        self._others: set[threading.Thread] = set()
        """Threads that were there before this loop began to run: they are of other tests."""
        self._own: set[threading.Thread] = set()
        """Threads that were begun while it ran, and go on."""
        super().__init__(Idle(self))

    def run_forever(self) -> None:
        self._others = set(threading.enumerate()) - self._own
        try:
            super().run_forever()
        finally:
            self._own = set(threading.enumerate()) - self._others

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[Any]:
        future = super().create_future()
        if sys._getframe(1).f_code.co_name == "wrap_future":
            self._waiting.add(future)
            future.add_done_callback(self._waiting.discard)
        return future

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        future = super().create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_soon(work)
        return future

    async def quiet(self) -> None:
        """Wait until nothing more happens before time passes."""
        future = super().create_future()
        self._quiet.append(future)
        await future

    @property
    def works(self) -> bool:
        """Whether a thread has something to do for this loop."""
        return bool(self._waiting) or any(map(self._works, threading.enumerate()))

    def _works(self, thread: threading.Thread) -> bool:
        return thread not in self._others and not is_of_pool(thread)

    def pass_time(self, seconds: float | None) -> None:
        """Let time pass, since nothing else can happen."""
        while self._quiet:
            future = self._quiet.pop()
            if not future.done():
                future.set_result(None)
                return
        if seconds is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        self.now += seconds


def is_of_pool(thread: threading.Thread) -> bool:
    """Whether a thread waits for work of a pool, which knows what it has to do by futures."""
    target = getattr(thread, "_target", None)
    return getattr(target, "__name__", "") == "_worker"


class Idle(selectors.DefaultSelector):
    """Passes the time of a clock where the loop would sleep."""

    def __init__(self, clock: StandingClock):
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        looks = 0
        # A thread says what it has done before it ends. So it is looked at before the loop's files.
        while self._clock.works:
            if found := super().select(POLL):
                return found
            looks += 1
            if looks == MOST_LOOKS:
                raise AssertionError(f"a thread never ends: {threading.enumerate()}")
        if not (found := super().select(0)):
            self._clock.pass_time(timeout)
        return found
