"""The material of chunks, several computed at once, in the attempt's order.

Every node takes its material in that order, and bounded queues hold the dealer back. So no more
chunks are computed ahead than keep the workers busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable

from umpc.compute.executor import SMALLEST_TASK, Executor
from umpc.dealer.session import DealerSession
from umpc.mpc.chunks import Chunk
from umpc.protocols.base.protocol import Dealing
from umpc.study.frames import Frame

Material = list[tuple[int, Frame]]
"""(node, frame) for each owner of a chunk."""


async def dealt_in_order(
    session: Dealing, chunks: Iterable[Chunk], workers: Executor | None
) -> AsyncIterator[Material]:
    """Yield the material of each chunk.

    Args: workers: compute large chunks of a `DealerSession`; None deals one chunk after the other.
    """
    if workers is None or not isinstance(session, DealerSession):
        for chunk in chunks:
            yield await asyncio.to_thread(_dealt, session, chunk)
        return
    begun: deque[asyncio.Task[Material]] = deque()
    try:
        for chunk in chunks:
            begun.append(asyncio.create_task(_deal(session, chunk, workers)))
            if len(begun) > workers.at_once:
                yield await begun.popleft()
        while begun:
            yield await begun.popleft()
    finally:
        for task in begun:
            task.cancel()


async def _deal(session: DealerSession, chunk: Chunk, workers: Executor) -> Material:
    if chunk.count < SMALLEST_TASK:
        return await asyncio.to_thread(_dealt, session, chunk)
    task = await asyncio.to_thread(session.task, chunk)
    return list(session.frames(chunk, await workers.deal(task)))


def _dealt(session: Dealing, chunk: Chunk) -> Material:
    return list(session.deal_one(chunk))
