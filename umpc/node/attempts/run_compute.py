"""The computation of one run: in a thread of its own, or in place where it takes a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.node.attempts.compute_threads import COMPUTE_THREADS

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

FEW_NODES = 8
"""The most nodes whose signatures the event loop checks itself: a millisecond's work."""
SMALL_STUDY = 1 << 15
"""The largest study whose brief computations the event loop does itself: its edges, its records,
or its cells as if they were edges."""


class RunCompute:
    """The computation of one run. The thread is taken when it is first needed."""

    def __init__(self) -> None:
        self.is_small = False
        """The attempt with other nodes has a size of at most SMALL_STUDY."""
        self._thread: ThreadPoolExecutor | None = None
        self._calls: list[Future[Any]] = []
        """Those that wait or are computed, and some that have ended."""
        self._is_closed = False

    async def in_thread(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Computation off the event loop, one at a time, in order.

        A call that is cancelled before it begins is left out.
        """
        if self._is_closed:
            raise LocalProtocolError("a run that has ended wanted to compute")
        if self._thread is None:
            self._thread = COMPUTE_THREADS.take()
        call = self._thread.submit(partial(function, *arguments, **named))
        self._calls = [each for each in self._calls if not each.done()]
        self._calls.append(call)
        return await asyncio.wrap_future(call)

    async def briefly(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Computation in proportion to the attempt's size: in place where that is small.

        A change of threads and back takes longer than a millisecond's work on a busy machine, and
        a small study has dozens. Never while another computation of this run goes on.
        """
        is_computing = any(not each.done() for each in self._calls)
        if self.is_small and not is_computing and not self._is_closed:
            return function(*arguments, **named)
        return await self.in_thread(function, *arguments, **named)

    async def for_nodes(
        self, function: Callable[[Sequence[Any]], Result], given: Sequence[Any]
    ) -> Result:
        """Computation in proportion to the number of nodes: in place where these are few.

        Args: given: the function's argument, which has an item for each node.
        """
        if len(given) <= FEW_NODES:
            return function(given)
        return await self.in_thread(function, given)

    def close(self) -> None:
        """Drop the calls that wait, and give the thread to other runs."""
        self._is_closed = True
        for call in self._calls:
            call.cancel()
        if self._thread is not None:
            COMPUTE_THREADS.give_back(self._thread)
            self._thread = None


def is_small(attempt: SharedAttempt) -> bool:
    """Whether work in proportion to the attempt's records, edges or cells takes a moment only."""
    return attempt.size <= SMALL_STUDY
