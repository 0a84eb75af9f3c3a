"""One run of an attempt at a shuffler: its participants, the order, and its end.

The first participant that calls makes the run. The run ends with the heap's last frame or with the
first failure: a participant that goes away before it has done its part, a violation, or a time
limit that passes. Every call of the run then ends with this failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from umpc.errors import LocalProtocolError, StepTimeout, StudyAborted, UmpcError
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.transport.patience import time_limit
from umpc_papers.ghazi_shuffle.shuffler import Seen, ShufflerAttempt

T = TypeVar("T")
PATIENCE_SECONDS = 30
"""Seconds that a shuffler waits longer than the coordinator.

The coordinator knows better which participant to name.
"""


class ShuffleRun:
    """One run of an attempt.

    Args:
        name: this shuffler's name.
        seen: digests of what the nodes delivered in earlier runs.
        ended: called once, with the run's error or None.
    """

    def __init__(
        self,
        study: Study,
        attempt: bytes,
        name: str,
        seen: Seen,
        ended: Callable[[ShuffleRun, UmpcError | None], None],
    ):
        loop = asyncio.get_running_loop()
        self.study = study
        self.attempt = attempt
        self.name = name
        self.is_collected = False
        self.seen = seen
        self._ended = ended
        self._joined: set[int] = set()
        self.seed: asyncio.Future[bytes] = loop.create_future()
        self._over: asyncio.Future[UmpcError | None] = loop.create_future()
        self._session: asyncio.Task[ShufflerAttempt] | None = None
        self._all_here = asyncio.Event()
        self._all_delivered = asyncio.Event()
        self._watch = asyncio.create_task(self._end_in_time())

    # ---- participants ------------------------------------------------------------------------

    async def join(self, attempt: Attempt, node: int) -> ShufflerAttempt:
        """Count a node as present, and return the session when the order is known.

        Raises: the error that ended the run, or as ShufflerAttempt.
        """
        self._joined.add(node)
        self._look_around()
        seed = await self.order()
        if self._session is None:
            making = asyncio.to_thread(ShufflerAttempt, attempt, self.name, seed, self.seen)
            self._session = asyncio.create_task(making)
        return await self.until(asyncio.shield(self._session))

    def collect(self) -> None:
        """Count the coordinator as present."""
        self.is_collected = True
        self._look_around()

    def delivered(self, session: ShufflerAttempt) -> None:
        """Count a node as one that has delivered."""
        if not session.missing:
            self._all_delivered.set()

    async def order(self) -> bytes:
        """Return the seed of the order, when it is known. Raises: the error that ended the run."""
        return await self.until(asyncio.shield(self.seed))

    async def complete(self) -> ShufflerAttempt:
        """Return the session when all nodes have delivered. Raises: the run's error."""
        await self.until(self._all_delivered.wait())
        return self._made()

    def _made(self) -> ShufflerAttempt:
        if self._session is None:
            raise LocalProtocolError("a run of the shuffler was used before its session was made")
        return self._session.result()

    # ---- end ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the run without an error, unless it has ended."""
        self._end(None)

    def fail(self, error: UmpcError) -> None:
        """End the run with this error, unless it has ended."""
        self._end(error)

    async def until(self, awaited: Awaitable[T]) -> T:
        """Return the awaited result, unless the run has ended. Raises: the run's error.

        The end counts also where the result is there at the same moment.
        """
        task: asyncio.Future[T] = asyncio.ensure_future(awaited)
        either: set[asyncio.Future[Any]] = {task, self._over}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self.check()
            return await task
        finally:
            task.cancel()

    def check(self) -> None:
        """Raises: the error that ended the run, if it has ended."""
        if self._over.done():
            raise self._over.result() or StudyAborted("the run is over: the heap was given")

    def _end(self, error: UmpcError | None) -> None:
        if not self._over.done():
            self._over.set_result(error)
            self._watch.cancel()
            self._ended(self, error)

    def _look_around(self) -> None:
        if self.is_collected and len(self._joined) == len(self.study.nodes):
            self._all_here.set()

    async def _end_in_time(self) -> None:
        """Fail the run if a participant is late.

        All participants and the order must be there within one step, and all deliveries after two
        more.
        """
        seconds = self.study.seconds_per_step + PATIENCE_SECONDS
        try:
            async with time_limit(seconds):
                await self._all_here.wait()
                await asyncio.shield(self.seed)
        except TimeoutError:
            absent = self._absent()
            self.fail(
                StepTimeout(f"{', '.join(absent)} did not come", culprit=absent[0], step="prepare")
            )
            return
        try:
            async with time_limit(2 * seconds):
                await self._all_delivered.wait()
        except TimeoutError:
            if missing := self._made().missing:
                late = f"{', '.join(missing)} did not deliver"
                self.fail(StepTimeout(late, culprit=missing[0], step="release"))
            else:  # the last one came at this moment
                self._all_delivered.set()

    def _absent(self) -> list[str]:
        """Return the names of the participants that are not there yet."""
        names = [node.name for node in self.study.nodes]
        absent = [name for number, name in enumerate(names) if number not in self._joined]
        if not self.is_collected:
            absent.append(self.study.coordinator)
        if not self.seed.done():
            absent.append(self.study.shufflers[0].name)
        return absent
