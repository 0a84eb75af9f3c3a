"""Calls of one run to its compute thread, handed over together.

A call to another thread wakes that thread, and its result wakes the event loop: about 0.1 ms of a
processor. A node with many peers makes several calls for each of them, most of them in the same
turn of the event loop. So the calls of one turn go to the thread as one, and their results come
back together. A result waits for those of later calls for at most TELL_SECONDS of computing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")

TELL_SECONDS = 0.002
"""Seconds of computing after which the event loop gets the results that are there."""
Call = tuple[Callable[[], Any], asyncio.Future[Any]]
Done = tuple[asyncio.Future[Any], Any, BaseException | None]
"""A call's future, and its result or its error."""


class ComputeCalls:
    """The calls of one run, which are computed one at a time and in order.

    Args: thread: an executor with one thread, which other runs may use too.
    """

    def __init__(self, thread: Executor):
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Call] = []
        self._batches = 0

    @property
    def is_busy(self) -> bool:
        """Whether a call waits, or the thread computes one, be its caller cancelled or not."""
        return bool(self._waiting) or self._batches > 0

    async def run(self, function: Callable[[], Result]) -> Result:
        """Compute in the thread. A call that is cancelled before it begins is left out."""
        future: asyncio.Future[Result] = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._hand_over)
        self._waiting.append((function, future))
        return await future

    def close(self) -> None:
        """Drop the calls that the thread does not have yet."""
        for _, future in self._waiting:
            future.cancel()
        self._waiting = []

    def _hand_over(self) -> None:
        calls, self._waiting = self._waiting, []
        if calls:
            self._batches += 1
            self._thread.submit(self._compute, calls)

    def _compute(self, calls: list[Call]) -> None:
        """In the thread: compute these calls, and tell their results now and then."""
        done: list[Done] = []
        told = time.perf_counter()
        for place, (function, future) in enumerate(calls, 1):
            if future.cancelled():
                continue
            try:
                done.append((future, function(), None))
            except BaseException as error:  # it belongs to the caller, whatever it is
                done.append((future, None, error))
            if place < len(calls) and time.perf_counter() - told >= TELL_SECONDS:
                self._tell(done)
                done, told = [], time.perf_counter()
        self._tell(done, is_last=True)

    def _tell(self, done: list[Done], *, is_last: bool = False) -> None:
        with suppress(RuntimeError):  # the event loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(partial(self._told, done, is_last))

    def _told(self, done: list[Done], is_last: bool) -> None:
        self._batches -= is_last
        _settle(done)


def _settle(done: list[Done]) -> None:
    """In the event loop: give each caller its result."""
    for future, result, error in done:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
