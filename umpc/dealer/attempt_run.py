"""One attempt at the dealer: who is there, and the task that deals.

When all nodes are there, it generates chunk after chunk into each node's queue (`frame_queue.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable

from umpc.compute.executor import Executor
from umpc.dealer.frame_queue import FrameQueue
from umpc.dealer.in_order import dealt_in_order
from umpc.dealer.session import DealerSession
from umpc.errors import LocalProtocolError, RemoteProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.base.protocol import Dealing
from umpc.protocols.registry import protocol_of
from umpc.study.frames import Frame
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.dealer")

PART_OF_STEP = 0.9
"""The part of a step for which the dealer waits for all nodes.

The nodes wait for the whole step. So the dealer can tell them which node is missing.
"""


class AttemptRun:
    """One attempt: a queue for each node, and the task that fills them."""

    def __init__(
        self,
        attempt: SharedAttempt,
        ended: Callable[[UmpcError | None], None],
        workers: Executor | None = None,
    ):
        self.attempt = attempt
        self._workers = workers
        self._ended = ended
        self._queues = [FrameQueue() for _ in attempt.members]
        self._joined: set[int] = set()
        self._delivered: set[int] = set()
        self._over = False
        self._producer = asyncio.create_task(self._produce())
        self._all_here = asyncio.Event()

    def join(self, index: int) -> None:
        """Count a node as present. Raises: RemoteProtocolError if it asks a second time."""
        if index in self._joined:
            name = self.attempt.members[index].name
            raise RemoteProtocolError(
                f"{name} asked for its material a second time; it is dealt once", culprit=name
            )
        self._joined.add(index)
        if len(self._joined) == len(self.attempt.members):
            self._all_here.set()

    def waits_for(self, name: str) -> bool:
        """Whether this node has yet to ask for its material."""
        members = enumerate(self.attempt.members)
        return any(each.name == name and index not in self._joined for index, each in members)

    async def frames(self, index: int) -> AsyncIterator[list[Frame]]:
        """Yield a node's frames until the end, small ones together.

        Raises: the error that ended the attempt early.
        """
        while frames := await self._queues[index].get():
            yield frames
        self._delivered.add(index)
        if len(self._delivered) == len(self._queues):
            self._end(None)

    def fail(self, error: UmpcError) -> None:
        """End the attempt with this error, for all nodes that do not have everything yet."""
        self._producer.cancel()
        for queue in self._queues:
            queue.fail(error)
        self._end(error)

    def _end(self, error: UmpcError | None) -> None:
        if not self._over:
            self._over = True
            self._ended(error)

    async def _produce(self) -> None:
        try:
            await self._wait_for_all()
            await self._deal()
        except UmpcError as error:
            self.fail(error)
        except (MemoryError, ValueError, ArithmeticError, LookupError, TypeError) as error:
            log.exception("dealing failed")
            self.fail(LocalProtocolError(f"the dealer failed: {type(error).__name__}; see its log"))

    async def _wait_for_all(self) -> None:
        try:
            async with time_limit(PART_OF_STEP * self.attempt.study.seconds_per_step):
                await self._all_here.wait()
        except TimeoutError:
            names = [member.name for member in self.attempt.members]
            absent = [name for index, name in enumerate(names) if index not in self._joined]
            raise StepTimeout(
                f"{', '.join(absent)} did not ask for material", culprit=absent[0], step="prepare"
            ) from None

    async def _deal(self) -> None:
        session = await asyncio.to_thread(_session_of, self.attempt)
        failpoint("before-deal")
        for index, queue in enumerate(self._queues):
            await queue.put(session.seed_frame(index))
        batches = self.attempt.batches()
        async for frames in dealt_in_order(session, batches, self._workers):
            for index, frame in frames:
                await self._queues[index].put(frame)
            failpoint("during-deal")
        for queue in self._queues:
            await queue.put(None)


def _session_of(attempt: SharedAttempt) -> Dealing:
    """Make the masks of an attempt."""
    own = protocol_of(attempt.study).dealing(attempt, os.urandom)
    return own or DealerSession(attempt, os.urandom)
