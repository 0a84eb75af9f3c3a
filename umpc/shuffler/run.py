"""One run of an attempt at a shuffler: who is there, the order, and the one end that all its calls have.

Whoever comes first makes the run. It ends with the heap's last frame, or with the first failure: a participant that
goes away before it has done its part, a violation, or time that is up; every call of the run then ends with that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from umpc.errors import StepTimeout, StudyAborted, UmpcError
from umpc.protocols.ghazi_shuffle.shuffler import Seen, ShufflerSession
from umpc.study.attempt import Attempt
from umpc.study.document import Study

T = TypeVar("T")
PATIENCE_SECONDS = 30
"""How much longer a shuffler waits than the coordinator, which knows better whom to name."""


class Run:
    """Args: seen: what nodes delivered in earlier runs. ended: called once, with the run's error or None."""

    def __init__(
        self,
        study: Study,
        attempt: bytes,
        name: str,
        seen: Seen,
        ended: Callable[[Run, UmpcError | None], None],
    ):
        self.study, self.attempt, self.name = study, attempt, name
        self.is_collected = False
        self._seen, self._ended = seen, ended
        self._joined: set[int] = set()
        self.seed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._over: asyncio.Future[UmpcError | None] = asyncio.get_running_loop().create_future()
        self._session: asyncio.Task[ShufflerSession] | None = None
        self._all_here, self._all_delivered = asyncio.Event(), asyncio.Event()
        self._watch = asyncio.create_task(self._end_in_time())

    # ---- who is there --------------------------------------------------------------------------------------

    async def join(self, attempt: Attempt, node: int) -> ShufflerSession:
        """A node's part in the run, once the order is known. Raises: what ended the run, or as ShufflerSession."""
        self._joined.add(node)
        self._look_around()
        seed = await self.order()
        if self._session is None:
            making = asyncio.to_thread(ShufflerSession, attempt, self.name, seed, self._seen)
            self._session = asyncio.create_task(making)
        return await self.until(asyncio.shield(self._session))

    def collect(self) -> None:
        """The coordinator is there."""
        self.is_collected = True
        self._look_around()

    def delivered(self, session: ShufflerSession) -> None:
        """A node has delivered."""
        if not session.missing:
            self._all_delivered.set()

    async def order(self) -> bytes:
        """The seed of the order."""
        return await self.until(asyncio.shield(self.seed))

    async def complete(self) -> ShufflerSession:
        """The session, when all nodes have delivered."""
        await self.until(self._all_delivered.wait())
        return self._session.result()

    # ---- its end -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        self._end(None)

    def fail(self, error: UmpcError) -> None:
        self._end(error)

    async def until(self, what: Awaitable[T]) -> T:
        """What is waited for, unless the run ends before. Raises: what ended it."""
        task = asyncio.ensure_future(what)
        try:
            await asyncio.wait({task, self._over}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise self._over.result() or StudyAborted("the run is over: the heap was given")
            return await task
        finally:
            task.cancel()

    def _end(self, error: UmpcError | None) -> None:
        if not self._over.done():
            self._over.set_result(error)
            self._watch.cancel()
            self._ended(self, error)

    def _look_around(self) -> None:
        if self.is_collected and len(self._joined) == len(self.study.nodes):
            self._all_here.set()

    async def _end_in_time(self) -> None:
        """All come within a step, the order too, and have delivered after two more."""
        seconds = self.study.seconds_per_step + PATIENCE_SECONDS
        try:
            async with asyncio.timeout(seconds):
                await self._all_here.wait()
                await asyncio.shield(self.seed)
        except TimeoutError:
            absent = [
                node.name
                for number, node in enumerate(self.study.nodes)
                if number not in self._joined
            ]
            absent += [] if self.is_collected else [self.study.coordinator]
            absent += [] if self.seed.done() else [self.study.shufflers[0].name]
            self.fail(
                StepTimeout(f"{', '.join(absent)} did not come", culprit=absent[0], step="prepare")
            )
            return
        try:
            async with asyncio.timeout(2 * seconds):
                await self._all_delivered.wait()
        except TimeoutError:
            missing = self._session.result().missing
            self.fail(
                StepTimeout(
                    f"{', '.join(missing)} did not deliver", culprit=missing[0], step="release"
                )
            )
