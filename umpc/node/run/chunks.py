"""The chunks of one node on their way: which start when, in which batches, and computed where.

Chunks start in the common order and continue as their peers' messages come in. All chunks of a wave
end before another wave or a large chunk starts (`umpc/mpc/chunks.py`).

*Batch rounds.* The rounds of chunks that one node computes together; each chunk keeps its own
messages.

Every message of a round is sent before any of that round is waited for (`umpc/mpc/chunks.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from umpc.compute.executor import SMALLEST_TASK, GivenRounds, RoundsHere
from umpc.crypto.rounds import Finished, Message, check_reply
from umpc.errors import LocalProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, in_batches
from umpc.mpc.masked.tasks import Heard, OwnerBatch, Said
from umpc.node.run.context import PROGRESS_EVERY
from umpc.node.run.link import PeerLink, all_of
from umpc.node.run.material import MaterialReader
from umpc.node.run.rounds import Rounds, Step, blaming
from umpc.node.spool import Spool
from umpc.study.messages import frame_of, key_of
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
                given = await self._give(task)
                return [group.create_task(self._finish_given(batch, given))]
        begun = []
        for chunk, payload in zip(batch, payloads, strict=True):
            step = await self._rounds.compute(self._rounds.begin, chunk, payload)
            begun.append(group.create_task(self._finish(chunk, step)))
        return begun

    async def _give(self, task: OwnerBatch) -> GivenRounds:
        """Give a task to the workers; a small one stays with this run's own thread."""
        if self._workers is None or task.edge_count < SMALLEST_TASK:
            return RoundsHere(task, self._rounds.compute)
        await self._starting.acquire()
        return _Starting(self._workers.begin(task), self._starting.release)

    async def _finish(self, chunk: Chunk, step: Step) -> None:
        self._session.add(chunk, await self._rounds.finish(chunk, step))
        self._leave(chunk)

    async def _finish_given(self, batch: Sequence[Chunk], given: GivenRounds) -> None:
        attempt, own = self._session.attempt, self._session.index
        driver = BatchRounds(attempt, own, self._rounds.links, batch, given.after)
        try:
            with blaming(self._culprit, self._rounds.step):
                said = await given.after(())
            results = await driver.finish(said)
        finally:
            given.drop()
        for chunk, shares in zip(batch, results, strict=True):
            self._session.add(chunk, shares)
            self._leave(chunk)

    def _leave(self, chunk: Chunk) -> None:
        if not chunk.wave:
            self._room.release()


class _Starting:
    """A given task that makes room for the start of another when its first message is there."""

    def __init__(self, given: GivenRounds, started: Callable[[], None]):
        self._given = given
        self._started: Callable[[], None] | None = started

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds."""
        said = await self._given.after(heard)
        if self._started is not None:
            self._started()
            self._started = None
        return said

    def drop(self) -> None:
        """Nobody needs the task any more."""
        self._given.drop()


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


# --- batch rounds ---------------------------------------------------------------------------------


class BatchRounds:
    """The rounds of one batch over links.

    Args:
        node: this node's index.
        batch: chunks with the same plan, in which this node is the same party.
        after: computes what this node says after all messages so far, as `TaskRounds.after` does.
    """

    def __init__(
        self,
        attempt: SharedAttempt,
        node: int,
        links: Mapping[int, PeerLink],
        batch: Sequence[Chunk],
        after: Callable[[Heard], Awaitable[Said]],
    ):
        self._batch = batch
        self._after = after
        self._plan = attempt.plan(batch[0])
        self._own = batch[0].parties.index(node)
        self._others = [
            [(party, links[other]) for party, other in enumerate(chunk.parties) if other != node]
            for chunk in batch
        ]

    async def finish(self, said: Said) -> list[list[int]]:
        """Do all rounds and return each chunk's result. Args: said: the messages of round 1."""
        heard: Heard = ()
        while isinstance(said, list):
            replies = await self._exchange(len(heard) + 1, said)
            heard = (*heard, replies)
            said = await self._after(heard)
        if not isinstance(said, Finished):
            raise LocalProtocolError("a batch says one message for each of its chunks")
        results: list[list[int]] = said.result
        return results

    async def _exchange(
        self, round_number: int, messages: Sequence[Message]
    ) -> tuple[tuple[Message, ...], ...]:
        """Do one round. Returns: for each chunk the other owners' messages, in party order."""
        for chunk, others, message in zip(self._batch, self._others, messages, strict=True):
            if message.width:
                frame = frame_of(message, chunk.place, chunk.number)
                for _, link in others:
                    await link.send(frame)
        failpoint("during-rounds")
        due = self._due(round_number)
        chunks = list(zip(self._batch, self._others, due, strict=True))
        came = await all_of(
            [
                (link, key_of(shape, chunk.place, chunk.number))
                for chunk, others, shapes in chunks
                for (_, link), shape in zip(others, shapes, strict=True)
                if shape.width
            ]
        )
        rest = iter(came)
        replies = []
        for _, others, shapes in chunks:
            of_chunk = [next(rest).message if shape.width else shape for shape in shapes]
            for (_, link), shape, reply in zip(others, shapes, of_chunk, strict=True):
                check_reply(reply, shape, link.peer)
            replies.append(tuple(of_chunk))
        return tuple(replies)

    def _due(self, round_number: int) -> list[list[Message]]:
        """The other owners' messages of a round with zero bytes as content, for each chunk."""
        made: dict[tuple[int, int], Message] = {}
        for chunk, others in zip(self._batch, self._others, strict=True):
            for party, _ in others:
                if (party, chunk.count) not in made:
                    made[party, chunk.count] = self._plan.shape_to(
                        round_number, party, self._own, chunk.count
                    )
        return [
            [made[party, chunk.count] for party, _ in others]
            for chunk, others in zip(self._batch, self._others, strict=True)
        ]
