"""The chunks of one node on their way: which start when, in which batches, and computed where.

Chunks start in the common order and continue as their peers' messages come in. All chunks of a wave
end before another wave or a large chunk starts (`umpc/mpc/chunks.py`).

A batch is of chunks that one node computes together; each chunk keeps its own messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from umpc.compute.executor import SMALLEST_TASK, GivenRounds, RoundsHere
from umpc.crypto.rounds import Finished
from umpc.errors import LocalProtocolError
from umpc.mpc.chunks import Chunk, in_batches
from umpc.mpc.masked.tasks import Heard, OwnerBatch
from umpc.node.run.context import PROGRESS_EVERY
from umpc.node.run.material import MaterialReader
from umpc.node.run.rounds import Rounds, Step, blaming
from umpc.node.spool import Spool
from umpc.transport.patience import task_group


async def evaluate_chunks(rounds: Rounds, chunks: Sequence[Chunk]) -> None:
    """Do the rounds of these chunks, the small ones in batches."""
    if not chunks:
        return
    attempt = rounds.session.attempt
    running = RunningChunks(rounds, len(chunks), attempt.program.chunks_in_flight)
    payloads = _PayloadsInOrder(chunks, rounds.material)
    wave = 0
    async with task_group() as group:
        for batch in in_batches(chunks, attempt.plan, rounds.session.index):
            if batch[0].wave != wave:
                await running.end_of_wave()
                wave = batch[0].wave
            await running.start(group, batch, await payloads.of(batch))


class RunningChunks:
    """The chunks of one `evaluate` that are on their way."""

    def __init__(self, rounds: Rounds, chunks: int, in_flight: int):
        self._rounds = rounds
        self._session = rounds.session
        self._chunks = chunks
        self._begun = 0
        self._room = asyncio.Semaphore(in_flight)
        self._workers = rounds.workers if chunks > 1 else None
        self._starting = asyncio.Semaphore(self._workers.at_once if self._workers else 1)
        self._wave: list[asyncio.Task[None]] = []
        own = rounds.session.attempt.members[rounds.session.index].name
        self._culprit = rounds.material.dealer if rounds.material else own

    async def start(
        self, group: asyncio.TaskGroup, batch: Sequence[Chunk], payloads: Sequence[bytes]
    ) -> None:
        """Start the rounds of a batch. Args: payloads: the material of each chunk."""
        # a wave never waits for room, or two nodes could wait for each other
        if not batch[0].wave:
            await self._room.acquire()
        with blaming(self._culprit, self._rounds.step):
            begun = await self._begin(group, batch, payloads)
        if batch[0].wave:
            self._wave += begun
        before = self._begun
        self._begun += len(batch)
        if self._begun // PROGRESS_EVERY > before // PROGRESS_EVERY:
            await self._rounds.tell(self._begun, self._chunks)

    async def end_of_wave(self) -> None:
        """Wait until all chunks of the wave are done. A failure ends the group's own waiting."""
        if self._wave:
            await asyncio.wait(self._wave)
        self._wave.clear()

    async def _begin(
        self, group: asyncio.TaskGroup, batch: Sequence[Chunk], payloads: Sequence[bytes]
    ) -> list[asyncio.Task[None]]:
        """Take the first steps of a batch together, or of each chunk in the session's own way."""
        is_given = self._workers is not None and batch[0].count >= SMALLEST_TASK
        if is_given or len(batch) > 1:
            task: OwnerBatch | None
            task = await self._rounds.briefly(self._session.batch, batch, payloads)
            if task is not None:
                given = await self._given(task)
                return [group.create_task(self.finish_given(batch, given))]
        begun = []
        for chunk, payload in zip(batch, payloads, strict=True):
            step = await self._rounds.compute(self._rounds.begin, chunk, payload)
            begun.append(group.create_task(self._finish(chunk, step)))
        return begun

    async def _given(self, task: OwnerBatch) -> GivenRounds:
        """Give a task to the workers; a small one stays with this run's own thread."""
        await self._starting.acquire()
        if self._workers is None or task.edge_count < SMALLEST_TASK:
            return RoundsHere(task, self._rounds.compute)
        return self._workers.begin(task)

    async def _finish(self, chunk: Chunk, step: Step) -> None:
        self._session.add(chunk, await self._rounds.finish(chunk, step))
        self._leave(chunk)

    async def finish_given(self, batch: Sequence[Chunk], given: GivenRounds) -> None:
        """Do the rounds of a task that was given away, and add its shares to the node's sums."""
        heard: Heard = ()
        try:
            with blaming(self._culprit, self._rounds.step):
                said = await given.after(())
            self._starting.release()  # for the start of another task
            while isinstance(said, list):
                replies = await self._rounds.exchange(batch, len(heard) + 1, said)
                heard = (*heard, tuple(tuple(each.values()) for each in replies))
                said = await given.after(heard)
        finally:
            given.drop()
        if not isinstance(said, Finished):
            raise LocalProtocolError("a batch says one message for each of its chunks")
        for chunk, shares in zip(batch, said.result, strict=True):
            self._session.add(chunk, shares)
            self._leave(chunk)

    def _leave(self, chunk: Chunk) -> None:
        if not chunk.wave:
            self._room.release()


class _PayloadsInOrder:
    """The material of chunks, which comes in the common order and is used batch by batch.

    A payload that comes before its batch waits here, beside the reader's window. There are at most
    those of a wave.
    """

    def __init__(self, chunks: Sequence[Chunk], material: MaterialReader | Spool | None):
        self._order = iter(chunks)
        self._material = material
        self._came: dict[Chunk, bytes] = {}

    async def of(self, batch: Sequence[Chunk]) -> list[bytes]:
        """The material of each chunk of a batch, once."""
        for chunk in batch:
            while chunk not in self._came:
                came = next(self._order)
                self._came[came] = await self._material.next() if self._material else b""
        return [self._came.pop(chunk) for chunk in batch]
