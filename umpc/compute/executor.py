"""A place that computes tasks: this thread, and threads of this process.

| class | computes in | for |
|---|---|---|
| `Executor` | the caller | tests, and to compare others with |
| `CoreThreads` | threads, one for each core | one machine |
| `cluster.DaskCluster` | workers of a Dask cluster | several machines of a site |

On one machine a task shares all arrays with its caller. AES, numpy's loops and the compiled sign
gate release the interpreter's lock. Short loops give little: the thread takes the lock again before
another one is awake (docs/cluster.md).

No task is given away that is smaller than its way there and back (`SMALLEST_TASK`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, ParamSpec, Protocol, TypeVar

from umpc.mpc.masked.tasks import Heard, OwnerBatch, Said, TaskRounds

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SMALLEST_TASK = 1024
"""Edges of the smallest chunk that is given away."""


class GivenRounds(Protocol):
    """The rounds of an owner's task that was given away."""

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds. Raises: as `TaskRounds`; EncodingError."""
        ...

    def drop(self) -> None:
        """Nobody needs the task any more."""
        ...


class Executor:
    """This thread: a task is computed where it is awaited. Other places derive from it."""

    at_once = 1
    """The number of tasks that keep the place busy."""

    def begin(self, task: OwnerBatch) -> GivenRounds:
        """Give an owner's task away."""
        return RoundsHere(task, self.run)

    async def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """A function's result. Function and arguments may go to another machine of the site.

        Each call is given back once, however often it is computed.
        """
        return function(*arguments, **named)

    def close(self) -> None:
        """Let go of the place. Threads stay: other nodes of this process may use the same ones."""


class CoreThreads(Executor):
    """Threads of this process. Args: cores: how many compute at the same time.

    A thread begins when there is work for it, and ends with the object.
    """

    def __init__(self, cores: int):
        self.threads = ThreadPoolExecutor(cores, thread_name_prefix="chunks")
        self.at_once = cores

    async def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """A function's result, from one of the threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: function(*arguments, **named))


class RoundsHere:
    """The rounds of a task in this process. Args: run: computes, and is awaited."""

    def __init__(self, task: OwnerBatch, run: Callable[..., Any]):
        self._task = task
        self._run = run
        self._rounds: TaskRounds | None = None

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds."""
        said: Said = await self._run(self._after, heard)
        return said

    def _after(self, heard: Heard) -> Said:
        if self._rounds is None:
            self._rounds = TaskRounds(self._task)
        return self._rounds.after(heard)

    def drop(self) -> None:
        """Forget masks and shares."""
        self._rounds = None


@cache
def threads_of_process(cores: int) -> CoreThreads:
    """Return the threads of this process, the same for all nodes that it runs."""
    return CoreThreads(cores)
