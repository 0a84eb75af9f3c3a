"""Correlated transfers of the real shapes, made by a trusted memory instead of a protocol.

Both ends of a channel know Δ and the stream of blocks, so a test of many small chunks does not pay
for real set-ups and forks, which take milliseconds each. Nothing here hides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations

import numpy as np

from umpc.crypto.prg import Stream, digest
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.mpc.transfers.channels import CommitteeMember
from umpc.mpc.transfers.correlated_ot import Blocks, fresh_delta
from umpc.mpc.transfers.message_shapes import extend_shape, set_up_shapes
from umpc.testing import lying


class IdealEnd:
    """Either end of a channel: q_j from a stream that the channel's name fixes."""

    def __init__(self, origin: bytes, session: bytes, peer: str, labels: tuple = ()):
        self.session = session
        self.peer = peer
        self.delta = fresh_delta(origin)
        self._origin, self._labels = origin, labels
        name = digest(b"ideal", origin, *(str(label).encode() for label in labels))
        self._stream = Stream(name)
        self._batch = self._done = 0

    def fork(self, *labels: str | int, session: bytes = b"") -> IdealEnd:
        name = session or self.session
        return type(self)(self._origin, name, self.peer, (*self._labels, "/", *labels))

    def _next(self, count: int) -> Blocks:
        batch = Blocks(self._done, self._stream.words(2 * count).reshape(count, 2))
        self._batch += 1
        self._done += count
        return batch


class IdealSender(IdealEnd):
    def extend(self, message: Message, count: int) -> Blocks:
        check_reply(message, extend_shape(count, self._batch + 1), self.peer)
        return self._next(count)


class IdealReceiver(IdealEnd):
    def extend(self, choices: np.ndarray) -> tuple[Blocks, Message]:
        batch = self._next(len(choices))
        blocks = batch.blocks ^ choices[:, None] * self.delta
        return Blocks(batch.start, blocks), extend_shape(len(choices), self._batch)


def _rounds(is_sender: bool) -> Iterator[Message]:
    for sender_speaks, message in set_up_shapes():
        yield message if sender_speaks == is_sender else silence(message.step)


def _open_sender(
    honest: Callable, seed: bytes, delta: np.ndarray, session: bytes, peer: str
) -> Protocol:
    yield from _rounds(is_sender=True)
    return IdealSender(session, session, peer)


def _open_receiver(honest: Callable, seed: bytes, session: bytes, peer: str) -> Protocol:
    yield from _rounds(is_sender=False)
    return IdealReceiver(session, session, peer)


def ideal_seats(members: int, label: str) -> list[CommitteeMember]:
    """The places of members whose channels are ideal."""
    names = [f"node-{number}" for number in range(members)]
    ends = {
        (one, other): (f"{label} {min(one, other)} {max(one, other)}".encode(), names[other])
        for one, other in permutations(range(members), 2)
    }
    return [
        CommitteeMember(
            own,
            names,
            {o: IdealSender(n, n, peer) for (i, o), (n, peer) in ends.items() if i == own < o},
            {o: IdealReceiver(n, n, peer) for (i, o), (n, peer) in ends.items() if i == own > o},
        )
        for own in range(members)
    ]


@contextmanager
def ideal_transfers() -> Iterator[None]:
    """Replace the channels between nodes that share edges by triples, or toss coins."""
    with lying("everybody", open_sender=_open_sender, open_receiver=_open_receiver):
        yield
