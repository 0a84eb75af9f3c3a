"""The material of chunks, several computed at once, in the attempt's order.

Every node takes its material in that order, and bounded queues hold the dealer back. So no more
chunks are computed ahead than keep the workers busy. Small chunks are computed in batches
(`umpc/mpc/waves.py`), and each of them has frames of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence

from umpc.compute.executor import SMALLEST_TASK, Executor
from umpc.dealer.session import DealerSession, Material, deals_in_own_way, dealt
from umpc.mpc.chunks import Chunk
from umpc.protocols.base.protocol import Dealing


async def dealt_in_order(
    session: Dealing,
    batches: Iterable[Sequence[Chunk]],
    workers: Executor | None,
    is_brief: bool = False,
) -> AsyncIterator[Material]:
    """Yield the material of each chunk.

    Args:
        batches: all chunks in the attempt's order; those of a batch may be computed together.
        workers: compute large batches of a `DealerSession`; None deals one after the other.
        is_brief: all of it takes a moment, so it is computed in place.
    """
    if is_brief or workers is None or not isinstance(session, DealerSession):
        async for material in _one_by_one(session, batches, is_brief):
            yield material
        return
    begun: deque[asyncio.Task[list[Material]]] = deque()
    try:
        for batch in batches:
            begun.append(asyncio.create_task(_deal(session, batch, workers)))
            if len(begun) > workers.at_once:
                for material in await begun.popleft():
                    yield material
        while begun:
            for material in await begun.popleft():
                yield material
    finally:
        for task in begun:
            task.cancel()


async def _one_by_one(
    session: Dealing, batches: Iterable[Sequence[Chunk]], is_brief: bool
) -> AsyncIterator[Material]:
    for batch in batches:
        each = dealt(session, batch) if is_brief else await asyncio.to_thread(dealt, session, batch)
        for material in each:
            yield material


async def _deal(
    session: DealerSession, batch: Sequence[Chunk], workers: Executor
) -> list[Material]:
    if deals_in_own_way(session) or sum(chunk.count for chunk in batch) < SMALLEST_TASK:
        return await asyncio.to_thread(dealt, session, batch)
    task = await asyncio.to_thread(session.task, *batch)
    payloads = await workers.deal(task)
    return [list(session.frames(*each)) for each in zip(batch, payloads, strict=True)]
