"""Tasks on their way to a cluster: one call of it carries several.

A call costs the node, the scheduler and the worker far more processor time than a chunk's edges.
So tasks that wait for room go together, and so do later rounds of tasks that began together. A call
takes what is there when it starts. It never waits for a certain task or message, so two nodes never
wait for each other, however each of them forms its bundles.

| class | what it is |
|---|---|
| `Bundles` | the tasks that wait, and how many calls are under way |
| `Bundle` | tasks that began together: their state is one result at one worker |
| `RoundsAtCluster` | the rounds of one task |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from umpc.compute import cluster_tasks
from umpc.compute.cluster_tasks import GivenTasks, HeardMessages, TaskFailure
from umpc.mpc.masked.tasks import DealTask, Heard, OwnerBatch, OwnerTask, Said

TASKS_OF_CALL = 8
"""The most tasks of a call."""
BYTES_OF_CALL = 8_000_000
"""The most bytes of a call's tasks, unless it is one task. Dask warns from 10 MB on."""
LINGER_SECONDS = 0.002
"""Tasks and messages that come within this time go together; a call takes ten times as long."""

CallAtCluster: TypeAlias = Any
"""A `distributed.Future`, a class of an extra that may be missing."""


class TakesCalls(Protocol):
    """A cluster that computes calls."""

    async def submit(self, function: Any, *arguments: Any) -> CallAtCluster:
        """Give a call to the cluster. Raises: PeerUnavailable."""
        ...

    async def result(self, call: CallAtCluster) -> Any:
        """Return a call's result. Raises: the call's failure; PeerUnavailable."""
        ...


class Bundles:
    """The tasks of one event loop for a cluster, in the order in which they came.

    Args: calls: how many calls with new tasks are under way at the same time.
    """

    def __init__(self, cluster: TakesCalls, calls: int):
        self.cluster = cluster
        self._calls = calls
        self._under_way: set[asyncio.Task[None]] = set()
        self._waiting: deque[_Waiting] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def begin(self, rounds: RoundsAtCluster, heard: Heard) -> Said:
        """Begin an owner's task, and return what the owner says after these rounds."""
        task = rounds.task
        assert task is not None
        said: Said = await self._answer(_Waiting(task, task.size, rounds, heard))
        return said

    async def deal(self, task: DealTask) -> list[list[bytes]]:
        """For each chunk of a task the material of each owner."""
        payloads: list[list[bytes]] = await self._answer(_Waiting(task, task.size))
        return payloads

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do some work beside its caller."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _answer(self, waiting: _Waiting) -> Any:
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            self.run(self._start_soon())
        try:
            return await waiting.answer
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    async def _start_soon(self) -> None:
        await asyncio.sleep(LINGER_SECONDS)
        self._start()

    def _start(self) -> None:
        """Begin as many calls as there is room for. Tasks are divided among the free places."""
        for left in [waiting for waiting in self._waiting if waiting.answer.done()]:
            self._waiting.remove(left)
        while self._waiting and (free := self._calls - self._count_under_way()) > 0:
            most = -(-len(self._waiting) // free)
            call = self.run(self._call(self._next(min(most, TASKS_OF_CALL))))
            self._under_way.add(call)
            call.add_done_callback(self._end)

    def _count_under_way(self) -> int:
        # A task that was cancelled is done before its callback has run.
        return sum(not call.done() for call in self._under_way)

    def _end(self, call: asyncio.Task[None]) -> None:
        self._under_way.discard(call)
        self._start()

    def _next(self, most: int) -> list[_Waiting]:
        """The first of the tasks that wait, of one kind."""
        found = [self._waiting.popleft()]
        size = found[0].size
        while self._waiting and len(found) < most:
            size += self._waiting[0].size
            if size > BYTES_OF_CALL or self._waiting[0].is_dealt != found[0].is_dealt:
                break
            found.append(self._waiting.popleft())
        return found

    async def _call(self, together: Sequence[_Waiting]) -> None:
        if together[0].is_dealt:
            await self._deal(together)
        else:
            await Bundle(self).begin(together)

    async def _deal(self, together: Sequence[_Waiting]) -> None:
        tasks = GivenTasks([waiting.task for waiting in together])
        with _Answers(waiting.answer for waiting in together) as answers:
            call = await self.cluster.submit(cluster_tasks.deal, tasks)
            answers.give(await self.cluster.result(call))


class Bundle:
    """Tasks of owners that began together. Their state is one result, at one worker."""

    def __init__(self, bundles: Bundles):
        self._bundles = bundles
        self._cluster = bundles.cluster
        self._state: CallAtCluster | None = None
        self._last: CallAtCluster | None = None
        self._asked: dict[int, tuple[Heard, asyncio.Future[Said]]] = {}
        self._here = 0

    async def begin(self, together: Sequence[_Waiting]) -> None:
        """Begin the tasks, and answer what their owners say after what they have heard."""
        self._here = len(together)
        for place, waiting in enumerate(together):
            assert waiting.rounds is not None
            waiting.rounds.enter(self, place)
        heard = {place: waiting.heard for place, waiting in enumerate(together)}
        tasks = GivenTasks([waiting.task for waiting in together])
        with _Answers(waiting.answer for waiting in together) as answers:
            self._state = await self._cluster.submit(cluster_tasks.begin, tasks)
            self._forget_if_left()
            if self._here:
                answers.give(await self._after(heard))

    async def after(self, place: int, heard: Heard) -> Said:
        """Return what the owner of a task says after these rounds."""
        answer: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self._asked[place] = heard, answer
        if len(self._asked) == 1:
            self._bundles.run(self._call())
        return await answer

    async def _call(self) -> None:
        await asyncio.sleep(LINGER_SECONDS)
        asked, self._asked = self._asked, {}
        if not self._here:
            return
        with _Answers(answer for _, answer in asked.values()) as answers:
            heard = {place: heard for place, (heard, _) in asked.items()}
            answers.give(await self._after(heard))

    async def _after(self, heard: dict[int, Heard]) -> list[Said | TaskFailure]:
        """Return what the owners at these places say."""
        call = await self._cluster.submit(cluster_tasks.after, self._state, HeardMessages(heard))
        self._last = call
        self._forget_if_left()
        said: list[Said | TaskFailure] = await self._cluster.result(call)
        return said

    def leave(self) -> None:
        """One of the tasks is no longer needed. After the last one, the workers forget them all."""
        self._here -= 1
        self._forget_if_left()

    def _forget_if_left(self) -> None:
        if self._here:
            return
        for call in (self._last, self._state):
            if call is not None:
                call.release() if call.done() else call.cancel()
        self._last = self._state = None


class RoundsAtCluster:
    """The rounds of a task whose state is at a worker."""

    def __init__(self, bundles: Bundles, task: OwnerTask | OwnerBatch):
        self.task: OwnerTask | OwnerBatch | None = task
        self._bundles = bundles
        self._bundle: Bundle | None = None
        self._place = 0
        self._is_dropped = False

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds."""
        if self._bundle is None:
            return await self._bundles.begin(self, heard)
        return await self._bundle.after(self._place, heard)

    def enter(self, bundle: Bundle, place: int) -> None:
        """The task is in a bundle from now on. The scheduler keeps it as long as the bundle."""
        self.task = None
        if self._is_dropped:
            bundle.leave()
        else:
            self._bundle, self._place = bundle, place

    def drop(self) -> None:
        """Let the workers forget the task, also while they compute it."""
        self._is_dropped = True
        if self._bundle is not None:
            self._bundle.leave()
        self._bundle = None


@dataclass(eq=False)
class _Waiting:
    """A task that waits for a call: of an owner, with what it has heard; or of the dealer."""

    task: OwnerTask | OwnerBatch | DealTask
    size: int
    rounds: RoundsAtCluster | None = None
    heard: Heard = ()

    def __post_init__(self) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def is_dealt(self) -> bool:
        return self.rounds is None


class _Answers:
    """Those who wait for the results of a call. They also get the call's own failure."""

    def __init__(self, waiting: Iterable[asyncio.Future[Any]]):
        self._waiting = list(waiting)

    def __enter__(self) -> _Answers:
        return self

    def give(self, found: Sequence[Any]) -> None:
        """Give each its result, or the failure of its own task."""
        for answer, result in zip(self._waiting, found, strict=True):
            if answer.done():
                continue
            if isinstance(result, TaskFailure):
                answer.set_exception(result.error)
            else:
                answer.set_result(result)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        for answer in self._waiting:
            if error is not None and not answer.done():
                answer.set_exception(error) if isinstance(error, Exception) else answer.cancel()
        return isinstance(error, Exception)  # those who wait have it
