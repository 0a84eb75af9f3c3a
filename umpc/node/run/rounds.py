"""The rounds of an attempt at one node: protocols driven over links, with the dealer's material.

A protocol is a generator that yields this node's message of a round and gets its peers' messages.

*Field rounds.* Round 1 of an attempt: each node sends each of its peers the masked records that
they share.

A node with many peers has little for each of them. It sends all that first, and then waits for the
messages of all these peers together. A peer with more to exchange has a task of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from umpc.compute.executor import Executor
from umpc.crypto.rounds import Finished, Message, Outgoing, check_reply, resume, silence
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.plan import Program as MaskedProgram
from umpc.mpc.transfers.message_shapes import FEW_ANDS
from umpc.node.run.context import PROGRESS_EVERY
from umpc.node.run.link import PeerLink, all_of
from umpc.node.run.material import MaterialReader
from umpc.node.spool import Spool
from umpc.protocols.base.node import MeshSide
from umpc.study.messages import Frame, frame_of, key_of
from umpc.transport.patience import task_group, together

log = logging.getLogger("umpc.node")
T = TypeVar("T")
Said = Message | Outgoing
"""A chunk's message of a round to all its other parties, or one for each of them."""
Step = tuple[Generator[Any, Any, Any], Said | Finished[Any]]
"""A chunk's protocol after one step: itself, and its next message or its result."""


@dataclass(eq=False)
class Rounds:
    """The rounds of one attempt.

    Args:
        in_thread: runs computation off the event loop, one call at a time and in order.
        briefly: as in_thread, for work that is short where the study is small.
        tell: shows progress. Arguments: chunks done, all chunks.
        workers: computes large chunks, several at once; None computes all of them `in_thread`.
    """

    session: MeshSide
    links: Mapping[int, PeerLink]
    material: MaterialReader | Spool | None
    in_thread: Callable[..., Awaitable[Any]]
    briefly: Callable[..., Awaitable[Any]]
    tell: Callable[[int, int], Awaitable[None]]
    workers: Executor | None = None
    step: str = "prepare"
    """The study's step, which failures name: noise is drawn in `prepare`."""

    def __post_init__(self) -> None:
        self._tree_hash = self.session.attempt.tree_hash()

    @property
    def compute(self) -> Callable[..., Awaitable[Any]]:
        """Runs a step of a chunk: masked values of a small study take a moment, gates do not."""
        is_masked = isinstance(self.session.attempt.program, MaskedProgram)
        return self.briefly if is_masked else self.in_thread

    def begin_step(self, step: str) -> None:
        """Go on to another step of the study, on all links."""
        self.step = step
        for link in self.links.values():
            link.step = step

    async def set_up(self, *peers: int) -> None:
        """Do the rounds between this node and these peers that come before all data.

        In each of these rounds, one of the two nodes is silent.
        """
        begun = []
        for peer in peers:
            link = self.links[peer]
            if link.channel is not None:
                self.session.take_up(peer, link.channel.channel)
                log.debug("the channel to %s is from after an earlier study", link.peer)
                continue
            protocol = self.session.set_up(peer)
            if protocol is not None:
                begun.append(drive(link, protocol, self.owners(peer), self.in_thread))
        await together(begun)

    async def toss(self) -> None:
        """Draw the committee's noise, where its coins come from transfers.

        Each message takes one frame, whose chunk number is the round.
        """
        protocol = await self.briefly(self.session.toss)
        plan = self.session.attempt.toss_plan
        if protocol is None or plan is None:
            return
        compute = self.briefly if plan.work <= FEW_ANDS else self.in_thread
        committee = self.session.attempt.committee
        own = committee.index(self.session.index)
        due = {
            number: plan.shapes(number, own) for number in range(len(committee)) if number != own
        }
        messages: Any = await compute(resume, protocol, None)
        for round_number in range(plan.rounds):
            for number, message in messages.items():
                await self.links[committee[number]].send(frame_of(message, (), round_number))
            failpoint("during-toss")
            replies = {}
            for number, shapes in due.items():
                if (shape := shapes[round_number]).width:
                    frame = frame_of(shape, (), round_number)
                    replies[number] = await self.links[committee[number]].receive(frame.key)
            messages = await compute(resume, protocol, replies)

    def owners(self, peer: int) -> tuple[int, int]:
        """This node and a peer, in the study's order."""
        return min(self.session.index, peer), max(self.session.index, peer)

    async def make_ahead(self, chunks: Sequence[Chunk], spool: Spool) -> None:
        """Do the rounds of these chunks that need no data; their results wait on the disk.

        Chunks start in the common order. Their results are kept in it, for a run takes them so.
        """
        at_once = self.session.attempt.program.chunks_in_flight
        begun: deque[asyncio.Task[bytes]] = deque()

        async def make(chunk: Chunk) -> bytes:
            made = await self.finish(chunk, await self.in_thread(self.begin, chunk, b""))
            return bytes(made)

        async with task_group() as group:
            for done, chunk in enumerate(chunks):
                begun.append(group.create_task(make(chunk)))
                if len(begun) == at_once:
                    await self.in_thread(spool.add, await begun.popleft())
                if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                    await self.tell(done + 1, len(chunks))
            while begun:
                await self.in_thread(spool.add, await begun.popleft())

    async def finish(self, chunk: Chunk, step: Step) -> Any:
        """The rounds of a chunk after its first step, and its result."""
        protocol, said = step
        round_number = 0
        while not isinstance(said, Finished):
            round_number += 1
            (heard,) = await self.exchange([chunk], round_number, [said])
            # where messages differ from peer to peer, they are told by party
            replies: Any = {party: reply for party, reply in heard.items() if reply.width}
            if isinstance(said, Message):
                replies = [*heard.values()]
            said = await self.compute(resume, protocol, replies)
        return said.result

    async def exchange(
        self, batch: Sequence[Chunk], round_number: int, said: Sequence[Said]
    ) -> list[dict[int, Message]]:
        """Do one round of chunks with the same plan, in which this node is the same party.

        Every message of a round is sent before any of that round is waited for
        (`umpc/mpc/chunks.py`).

        Returns: for each chunk the messages of its other owners, by party, in party order.
        """
        plan = self.session.attempt.plan(batch[0])
        own = batch[0].parties.index(self.session.index)
        others = [
            {party: self.links[node] for party, node in enumerate(chunk.parties) if party != own}
            for chunk in batch
        ]
        for chunk, links, spoken in zip(batch, others, said, strict=True):
            sent = dict.fromkeys(links, spoken) if isinstance(spoken, Message) else spoken
            for party, message in sent.items():
                if message.width:
                    await links[party].send(frame_of(message, chunk.place, chunk.number))
        failpoint("during-rounds")
        kinds = {
            (party, chunk.count)
            for chunk, links in zip(batch, others, strict=True)
            for party in links
        }
        due = {
            (party, count): plan.shape_to(round_number, party, own, count) for party, count in kinds
        }
        asked = [
            (link, key_of(shape, chunk.place, chunk.number))
            for chunk, links in zip(batch, others, strict=True)
            for party, link in links.items()
            if (shape := due[party, chunk.count]).width
        ]
        came = iter(await all_of(asked))
        replies: list[dict[int, Message]] = []
        for chunk, links in zip(batch, others, strict=True):
            replies.append({})
            for party, link in links.items():
                shape = due[party, chunk.count]
                reply = next(came).message if shape.width else shape
                check_reply(reply, shape, link.peer)
                replies[-1][party] = reply
        return replies

    def begin(self, chunk: Chunk, payload: bytes) -> Step:
        """A chunk's first step, which this run's own thread computes."""
        protocol: Any = self.session.protocol(chunk, payload, self._tree_hash)
        return protocol, resume(protocol, None)


async def drive(
    link: PeerLink,
    protocol: Generator[Message, Any, T],
    owners: tuple[int, ...],
    compute: Callable[..., Awaitable[Any]],
    number: int = 0,
) -> T:
    """Do the rounds of a set-up over a link, in each of which one end is silent.

    Args: compute: runs each step. number: of the chunk in whose name the frames go.

    Returns: the result of the protocol.
    """
    said: Message | Finished[T] = await compute(resume, protocol, None)
    while not isinstance(said, Finished):
        reply, frame = silence(said.step, said.round), frame_of(said, owners, number)
        if said.width:
            await link.send(frame)
        else:
            reply = await link.receive(frame.key)
        said = await compute(resume, protocol, [reply])
    return said.result


# --- field rounds ---------------------------------------------------------------------------------

LITTLE = 1 << 14
"""Bytes for one peer that are sent before anything is read: every line's buffers have room."""


async def exchange_fields(rounds: Rounds, peers: Sequence[int]) -> None:
    """Do round 1 with these peers.

    Each side sends its own records, so the two messages differ in count.
    """
    waiting: list[int] = []
    large: dict[int, list[Frame]] = {}
    said = await rounds.briefly(_said, rounds.session, peers)
    for peer, messages in zip(peers, said, strict=True):
        owners = rounds.owners(peer)
        frames = [frame_of(message, owners, number) for number, message in enumerate(messages)]
        if sum(len(frame.payload) for frame in frames) > LITTLE:
            large[peer] = frames
            continue
        for frame in frames:
            await rounds.links[peer].send(frame)
        waiting.append(peer)
    jobs = [_exchange(rounds, peer, frames) for peer, frames in large.items()]
    if waiting:
        jobs.append(_receive(rounds, waiting))
    if len(jobs) == 1:
        await jobs[0]
    else:
        await together(jobs)


def _said(session: MeshSide, peers: Sequence[int]) -> list[list[Message]]:
    return [session.fields_for(peer) for peer in peers]


async def _exchange(rounds: Rounds, peer: int, frames: Sequence[Frame]) -> None:
    """Do round 1 with a peer for which there is much.

    Send while receiving: two nodes that first sent everything would fill both mailboxes.
    """
    sending = asyncio.create_task(_send_all(rounds.links[peer], frames))
    try:
        await _receive(rounds, [peer])
        await sending
    finally:
        sending.cancel()


async def _send_all(link: PeerLink, frames: Sequence[Frame]) -> None:
    for frame in frames:
        await link.send(frame)


async def _receive(rounds: Rounds, peers: Sequence[int]) -> None:
    """Wait for the records of these peers, and take them."""
    due = {peer: rounds.session.due_fields(peer) for peer in peers}
    asked = [
        (rounds.links[peer], key_of(shape, rounds.owners(peer), number))
        for peer, shapes in due.items()
        for number, shape in enumerate(shapes)
    ]
    came = iter(await all_of(asked))
    heard: list[tuple[int, str, list[Message]]] = []
    for peer, shapes in due.items():
        name = rounds.links[peer].peer
        replies = [next(came).message for _ in shapes]
        for reply, shape in zip(replies, shapes, strict=True):
            check_reply(reply, shape, name)
        heard.append((peer, name, replies))
    await rounds.briefly(_take, rounds, heard)


def _take(rounds: Rounds, heard: Sequence[tuple[int, str, Sequence[Message]]]) -> None:
    for peer, name, replies in heard:
        with blaming(name, rounds.step):
            rounds.session.receive_fields(peer, replies)


@contextmanager
def blaming(culprit: str, step: str) -> Iterator[None]:
    """Turn an EncodingError into the sender's violation. Raises: RemoteProtocolError."""
    try:
        yield
    except EncodingError as error:
        raise RemoteProtocolError(
            f"{culprit}: {error.message}", culprit=culprit, step=step
        ) from error
