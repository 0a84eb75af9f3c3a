"""The rounds of an attempt at one node: its protocols driven over links, with the dealer's material."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from umpc.crypto.rounds import Message, Protocol, check_reply
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.failpoints import failpoint
from umpc.mpc.chunks import Chunk
from umpc.node.attempts.material import MaterialReader
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.spool import Spool
from umpc.protocols.base.node import MeshSide
from umpc.study.frames import Frame, frame_of
from umpc.transport.structured_concurrency import task_group

T = TypeVar("T")

PROGRESS_EVERY = 64
"""Chunks between two calls of `tell`."""


class Rounds:
    """Args: in_thread: runs computation off the event loop, in order. tell: progress, as (done, of)."""

    def __init__(
        self,
        session: MeshSide,
        links: Mapping[int, PeerLink],
        material: MaterialReader | Spool | None,
        in_thread: Callable[..., Awaitable],
        tell: Callable[[int, int], Awaitable[None]],
    ):
        self.session, self.links, self.material = session, links, material
        self.in_thread, self.tell = in_thread, tell
        self._tree_hash = session.attempt.tree_hash()

    async def set_up(self, peer: int) -> None:
        """What goes before all data between this node and one peer; in each round one of the two is silent."""
        link, owners = self.links[peer], self._link(peer)
        protocol = self.session.set_up(peer)
        message, _ = await self.in_thread(resume, protocol, None) if protocol else (None, None)
        while message is not None:
            reply = Message(message.step, b"", 0, 0, message.round)
            if message.width:
                await link.send(frame_of(message, owners, 0))
            else:
                reply = await link.receive(frame_of(message, owners, 0).key)
            message, _ = await self.in_thread(resume, protocol, [reply])

    async def toss(self) -> None:
        """The committee's noise where nothing is dealt: a frame for each message, numbered by rounds."""
        protocol = await self.in_thread(self.session.toss)
        if protocol is None:
            return
        plan, committee = self.session.attempt.toss_plan, self.session.attempt.committee
        own = committee.index(self.session.index)
        due = {
            number: plan.shapes(number, own) for number in range(len(committee)) if number != own
        }
        messages, _ = await self.in_thread(resume, protocol, None)
        for round_number in range(plan.rounds):
            for number, message in messages.items():
                await self.links[committee[number]].send(frame_of(message, (), round_number))
            failpoint("during-toss")
            replies = {}
            for number, shapes in due.items():
                if (shape := shapes[round_number]).width:
                    frame = frame_of(shape, (), round_number)
                    replies[number] = await self.links[committee[number]].receive(frame.key)
            messages, _ = await self.in_thread(resume, protocol, replies)

    def _link(self, peer: int) -> tuple[int, int]:
        return min(self.session.index, peer), max(self.session.index, peer)

    async def exchange_fields(self, peer: int) -> None:
        """Round 1 with one peer. Each side sends its own records, so the two messages differ in count."""
        link, owners = self.links[peer], self._link(peer)
        messages = await self.in_thread(self.session.fields_for, peer)
        # Beside the receiving: two nodes that first send everything would fill each other's mailbox.
        sending = asyncio.create_task(
            _send_all(link, [frame_of(m, owners, n) for n, m in enumerate(messages)])
        )
        try:
            replies = await self._receive_fields(peer, owners)
            await sending
        finally:
            sending.cancel()
        with blaming(link.peer, "evaluate"):
            await self.in_thread(self.session.receive_fields, peer, replies)

    async def _receive_fields(self, peer: int, owners: tuple[int, int]) -> list[Message]:
        link, replies = self.links[peer], []
        for number, due in enumerate(self.session.due_fields(peer)):
            reply = await link.receive(frame_of(due, owners, number).key)
            check_reply(reply, due, link.peer)
            replies.append(reply)
        return replies

    async def evaluate(self, chunks: Sequence[Chunk]) -> None:
        """The rounds of the chunks: they leave in the common order, and go on as their peers' messages come in."""
        own = self.session.accept().name
        room = asyncio.Semaphore(self.session.attempt.program.chunks_in_flight)

        async def finish(
            chunk: Chunk, protocol: Protocol[list[int]], message: Message | None, result
        ) -> None:
            while message is not None:
                replies = await self._exchange(chunk, message)
                message, result = await self.in_thread(resume, protocol, replies)
            self.session.add(chunk, result)
            room.release()

        async with task_group() as group:
            for done, chunk in enumerate(chunks):
                await room.acquire()
                payload = await self.material.next() if self.material else b""
                with blaming(self.material.dealer if self.material else own, "evaluate"):
                    protocol, message, result = await self.in_thread(self._start, chunk, payload)
                group.create_task(finish(chunk, protocol, message, result))
                if done % PROGRESS_EVERY == PROGRESS_EVERY - 1:
                    await self.tell(done + 1, len(chunks))

    async def _exchange(self, chunk: Chunk, message: Message) -> list[Message]:
        """One round of a chunk with all its other owners: their messages in party order."""
        plan = self.session.attempt.plan(chunk)
        others = [
            (party, node) for party, node in enumerate(chunk.parties) if node != self.session.index
        ]
        if message.width:
            for _, node in others:
                await self.links[node].send(frame_of(message, chunk.place, chunk.number))
        replies = []
        for party, node in others:
            due, link = plan.shape(message.round, party, chunk.count), self.links[node]
            if due.width:
                reply = await link.receive(frame_of(due, chunk.place, chunk.number).key)
                check_reply(reply, due, link.peer)
            replies.append(reply if due.width else due)
        return replies

    def _start(self, chunk: Chunk, payload: bytes) -> tuple:
        protocol = self.session.protocol(chunk, payload, self._tree_hash)
        return protocol, *resume(protocol, None)


async def _send_all(link: PeerLink, frames: Sequence[Frame]) -> None:
    for frame in frames:
        await link.send(frame)


def resume(protocol: Protocol[T], replies: list[Message] | None) -> tuple[Message | None, T | None]:
    """A generator's next message, or its result."""
    try:
        return protocol.send(replies), None
    except StopIteration as stop:
        return None, stop.value


@contextmanager
def blaming(culprit: str, step: str) -> Iterator[None]:
    """Bytes that do not decode are their sender's fault."""
    try:
        yield
    except EncodingError as error:
        raise RemoteProtocolError(
            f"{culprit}: {error.message}", culprit=culprit, step=step
        ) from error
