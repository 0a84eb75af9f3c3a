"""The material of chunks, several computed at once, in the attempt's order.

Every node takes its material in that order, and bounded queues hold the dealer back. So no more
chunks are computed ahead than keep the workers busy. Chunks of a wave (`umpc/mpc/waves.py`) are
computed in batches, and each has frames of its own.

*Memory.* A dealer holds E, and 8 bytes for each wire of each record. All else has a bound for any
number of edges. A chunk's material is at most 1 MB for each of its owners that gets any. At most
so much of one attempt waits:

| where | how much |
|---|---|
| a node's queue (`frame_queue.py`) | QUEUE_BYTES and one chunk, so 9 MB for each node |
| here, computed or being computed | AHEAD full chunks and one batch, or a chunk for each worker |
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence

from umpc.compute.executor import SMALLEST_TASK, Executor
from umpc.dealer.session import DealerSession, Material, dealt
from umpc.mpc.chunks import Chunk
from umpc.protocols.base.protocol import Dealing

AHEAD = 64
"""Full chunks that are computed ahead. They keep eight threads busy, and a machine with more cores
takes no more memory. Python's lock lets fewer threads deal at the same time."""


async def dealt_in_order(
    session: Dealing,
    batches: Iterable[Sequence[Chunk]],
    workers: Executor | None,
) -> AsyncIterator[Material]:
    """Yield the material of each chunk.

    Args:
        batches: all chunks in the attempt's order; those of a batch may be computed together.
        workers: compute large batches of a `DealerSession`; None deals one after the other.
    """
    if workers is None or not isinstance(session, DealerSession):
        for batch in batches:
            for material in await asyncio.to_thread(dealt, session, batch):
                yield material
        return
    begun: deque[tuple[asyncio.Task[list[Material]], int]] = deque()
    ahead = 0
    most = max(AHEAD, workers.at_once)
    try:
        for batch in batches:
            task = asyncio.create_task(_deal(session, batch, workers))
            begun.append((task, _full_chunks(batch)))
            ahead += _full_chunks(batch)
            while len(begun) > workers.at_once or ahead > most:
                first, size = begun.popleft()
                for material in await first:
                    yield material
                ahead -= size
        while begun:
            first, _ = begun.popleft()
            for material in await first:
                yield material
    finally:
        for task, _ in begun:
            task.cancel()


def _full_chunks(batch: Sequence[Chunk]) -> int:
    """The most full chunks' worth of edges in a batch."""
    return 1 if batch[0].wave else len(batch)


async def _deal(
    session: DealerSession, batch: Sequence[Chunk], workers: Executor
) -> list[Material]:
    if sum(chunk.count for chunk in batch) < SMALLEST_TASK:
        return await asyncio.to_thread(dealt, session, batch)
    task = await asyncio.to_thread(session.task, *batch)
    payloads = await workers.deal(task)
    return [list(session.frames(*each)) for each in zip(batch, payloads, strict=True)]
