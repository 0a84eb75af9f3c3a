"""Round 1 of an attempt: each node sends each of its peers the masked records that they share.

A node with many peers has little for each of them. It sends all that first, and then waits for the
messages of all these peers together. A peer with more to exchange has a task of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from umpc.crypto.rounds import Message, check_reply
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.node.attempts.peers import PeerLink, all_of
from umpc.protocols.base.node import MeshSide
from umpc.study.frames import Frame, frame_of, key_of
from umpc.transport.structured_concurrency import together

LITTLE = 1 << 14
"""Bytes for one peer that are sent before anything is read: every line's buffers have room."""


class FieldSide(Protocol):
    """The part of an attempt's `Rounds` that round 1 uses."""

    @property
    def session(self) -> MeshSide: ...

    @property
    def links(self) -> Mapping[int, PeerLink]: ...

    @property
    def briefly(self) -> Callable[..., Awaitable[Any]]: ...

    @property
    def step(self) -> str: ...

    def owners(self, peer: int) -> tuple[int, int]: ...


async def exchange_fields(rounds: FieldSide, peers: Sequence[int]) -> None:
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


async def _exchange(rounds: FieldSide, peer: int, frames: Sequence[Frame]) -> None:
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


async def _receive(rounds: FieldSide, peers: Sequence[int]) -> None:
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


def _take(rounds: FieldSide, heard: Sequence[tuple[int, str, Sequence[Message]]]) -> None:
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
