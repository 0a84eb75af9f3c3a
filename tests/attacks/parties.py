"""Small liars around the real sides: `python -m tests.attacks.parties …` is `umpc` with them.

The first word of a study's name says how the process lies; in any other study it is honest.

| word | who lies | how |
|---|---|---|
| `amplify` | node | adds 2^25 to the first masked value of its first record, or subtracts it |
| `flip` | node | flips the first bit of everything that it opens, for the others only |
| `widen` | node | flips the same bit, and goes on with the flipped bit itself |
| `coin` | node | flips a bit of everything that it opens while a committee draws noise |
| `replay` | node | sends frames of a former study before its own |
| `random` | dealer | deals random bytes |
| `bit` | dealer | flips one high bit of a product of masks in every edge |
| `heap` | shuffler | flips the high bit of the first number of its heap |
| `silent` | dealer | deals one-hot rows of zeros for coins |

A coordinator lies through `LyingLink`: it tells each node its own version of a message. Its lies
have the strategy that the test names.

Every message of a liar goes through `told`, which writes down where it differs from the honest one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tests.attacks.lies import told
from umpc.coordinator.links import Encoded, NodeLink, encoded
from umpc.crypto.rounds import Message
from umpc.dealer.session import DealerSession
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.material import DealtPart, Shares
from umpc.mpc.transfers.toss_plan import FACTOR, TossPlan
from umpc.node.attempts.peers import PeerLink
from umpc.proto import codec
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.protocol import UMpc
from umpc.study.frames import Frame, Key
from umpc_papers.ghazi_shuffle.shuffler import ShufflerSession

AMPLIFIED_BIT = 25
Tale = Callable[[str, Any], Any]
"""(node, message) → what this node is told."""


def strategy(name: str) -> str:
    """The first word of a study's name."""
    return name.partition("-")[0]


def flipped(payload: bytes, place: int, bit: int) -> bytes:
    """The payload with one bit flipped, if it is that long."""
    if place >= len(payload):
        return payload
    return payload[:place] + bytes([payload[place] ^ 1 << bit]) + payload[place + 1 :]


class LyingNode(UMpcNode):
    """A node of u-mpc that changes what it sends. Its own records and noise stay as they are."""

    now: ClassVar[str] = ""
    """The name of the study that runs."""

    def begin(self, *arguments: Any) -> Any:
        LyingNode.now = self.study.name
        return super().begin(*arguments)

    def receive_seed(self, node_seed: bytes) -> None:
        super().receive_seed(node_seed)
        if self._lies("amplify"):
            self._amplify()

    def _amplify(self) -> None:
        """Change the first record. The second time undoes the first."""
        self.cells.masked[self.index][0][0] ^= np.uint64(1 << AMPLIFIED_BIT)

    def fields_for(self, peer: int) -> list[Message]:
        sent = super().fields_for(peer)
        if not self._lies("amplify"):
            return sent
        self._amplify()
        honest = super().fields_for(peer)
        self._amplify()
        return told("amplify", self.study.name, "masked_fields", honest, sent)

    def protocol(self, chunk: Chunk, *rest: Any) -> Any:
        honest = super().protocol(chunk, *rest)
        if self._lies("widen") and not chunk.noise:
            return flipping(self.study.name, honest, believed=True)
        lies = self._lies("coin" if chunk.noise else "flip")
        return flipping(self.study.name, honest) if lies else honest

    def toss(self) -> Any:
        honest = super().toss()
        if honest is not None and self._lies("coin"):
            return flipping_coins(self.study.name, honest, self.attempt.toss_plan.rounds)
        if honest is not None and self._lies("choose"):
            return choosing_twice(self.study.name, honest, self.attempt.toss_plan)
        return honest

    def _lies(self, way: str) -> bool:
        return strategy(self.study.name) == way


def changed(study: str, message: Message, bit: int) -> Message:
    """A lie: the message with one bit of its payload flipped, if it is that long."""
    lie = replace(message, payload=flipped(message.payload, bit // 8, bit % 8))
    return told(strategy(study), study, message.step, message, lie)


def flipping(study: str, protocol: Any, *, believed: bool = False) -> Any:
    """The party's protocol, whose openings have their first bit flipped.

    Args: believed: the party takes the flipped bit for the opened one, as all others do. Its
        shares then fit theirs. A flip of a reply's bit does that, for a bit is the sum of all.
    """
    message = next(protocol)
    while True:
        try:
            first, *others = yield changed(study, message, 0)
            if believed:
                first = replace(first, payload=flipped(first.payload, 0, 0))
            message = protocol.send([first, *others])
        except StopIteration as stop:
            return stop.value


def flipping_coins(study: str, mesh: Any, rounds: int) -> Any:
    """Turn the first coin: flip its bit in the last round, and believe what the others then see."""
    messages = next(mesh)
    for _ in range(rounds - 1):
        messages = mesh.send((yield messages))
    came = dict((yield {to: changed(study, message, 0) for to, message in messages.items()}))
    first = min(came)
    came[first] = replace(came[first], payload=flipped(came[first].payload, 0, 0))
    try:
        mesh.send(came)
    except StopIteration as stop:
        return stop.value


def choosing_twice(study: str, mesh: Any, plan: TossPlan) -> Any:
    """Choose other bits in eight digits of Δ than in the others, where bits become numbers."""
    lies = {}
    end = -32  # a commitment ends the message, and the extension's last rows go before it
    start = end - FACTOR * len(plan.thresholds)
    for to, message in next(mesh).items():
        rows = bytes(each ^ 255 for each in message.payload[start:end])
        payload = message.payload[:start] + rows + message.payload[end:]
        lies[to] = told("choose", study, message.step, message, replace(message, payload=payload))
    messages = lies
    while True:
        try:
            messages = mesh.send((yield messages))
        except StopIteration as stop:
            return stop.value


class ReplayingLink(PeerLink):
    """A link that remembers what it sent, and sends it again in the study `replay`."""

    former: ClassVar[dict[tuple[str, Key], Frame]] = {}

    async def send(self, frame: Frame) -> None:
        old = self.former.get((self.peer, frame.key))
        if strategy(LyingNode.now) == "replay" and old is not None and old.payload != frame.payload:
            await super().send(told("replay", LyingNode.now, frame.step, frame, old))
        self.former[self.peer, frame.key] = frame
        await super().send(frame)


class LyingDealer(DealerSession):
    """A dealer whose material does not follow the protocol."""

    def deal_one(self, chunk: Chunk) -> Iterator[tuple[int, Frame]]:
        study = self.attempt.study.name
        lie = LIES.get(strategy(study))
        for node, frame in super().deal_one(chunk):
            sent = frame
            if lie is not None and frame.payload:
                sent = replace(frame, payload=lie(self, chunk, node, frame.payload))
            yield node, told(strategy(study), study, frame.step, frame, sent)


def random_material(dealer: LyingDealer, chunk: Chunk, node: int, payload: bytes) -> bytes:
    """Random bytes. The padding after packed bits stays zero, so that the bytes decode."""
    if chunk.noise:
        return payload
    plan = dealer.attempt.plan(chunk)
    party = chunk.parties.index(node)
    part = DealtPart.decode(plan, payload, party, chunk.count)
    if part.shares is None:
        return payload
    kind = part.shares.elements.dtype
    size = part.shares.elements.size
    elements = memoryview(os.urandom(size * kind.itemsize)).cast(kind.char)
    changed = part.shares.elements.copy()
    changed.flat[:] = list(elements)
    return DealtPart(part.keys, replace(part.shares, elements=changed)).encode()


def one_bit(dealer: LyingDealer, chunk: Chunk, node: int, payload: bytes) -> bytes:
    """One bit of the first product of every edge: 2^12 in the first, 2^13 in the next, …."""
    plan = dealer.attempt.plan(chunk)
    party = chunk.parties.index(node)
    if chunk.noise or party < plan.parties - 1 or chunk.number:
        return payload
    part = DealtPart.decode(plan, payload, party, chunk.count)
    assert part.shares is not None
    changed = part.shares.elements.copy()
    for edge in range(chunk.count):
        changed[0, edge] ^= changed.dtype.type(1 << 12 + edge % 16)
    return DealtPart(part.keys, replace(part.shares, elements=changed)).encode()


def silent_coins(dealer: LyingDealer, chunk: Chunk, node: int, payload: bytes) -> bytes:
    """Rows of zeros for every coin: the last party gets the complement of all others' shares."""
    plan = dealer.attempt.plan(chunk)
    party = chunk.parties.index(node)
    if not chunk.noise or party < plan.parties - 1:
        return payload
    part = DealtPart.decode(plan, payload, party, chunk.count)
    assert part.shares is not None
    tables = [rows * 0 for rows in part.shares.tables]
    for other in chunk.parties[:-1]:
        seed = dealer.attempt.chunk_seed(dealer._seeds[other], chunk)
        for rows, known in zip(tables, Shares.expand(plan, seed, chunk.count).tables, strict=True):
            rows ^= known
    return DealtPart(part.keys, replace(part.shares, tables=tuple(tables))).encode()


LIES = {"random": random_material, "bit": one_bit, "silent": silent_coins}


class LyingShuffler(ShufflerSession):
    """A shuffler that changes its heap. The first number of a heap has its low bits first."""

    def heap(self) -> Iterator[Frame]:
        first, *others = super().heap()
        study, sent = self.attempt.study.name, first
        if strategy(study) == "heap" and self.place == 0:
            place, bit = divmod(first.width - 1, 8)
            sent = replace(first, payload=flipped(first.payload, place, bit))
        yield told("heap", study, first.step, first, sent)
        yield from others


class LyingLink(NodeLink):
    """A coordinator's stream to a node. `tale` says what this node is told, in a study `study`."""

    tale: ClassVar[Tale] = staticmethod(lambda node, message: message)
    study: ClassVar[str] = ""

    async def ask(self, step: str, message: Encoded, *rest: Any, **named: Any) -> Any:
        honest = codec.decode_coordinator(*message)
        tale = type(self).tale(self.node.name, honest)
        lie = told(strategy(self.study), self.study, step, honest, tale)
        return await super().ask(step, encoded(lie), *rest, **named)


def lie() -> None:
    """Put the liars in the places of the honest sides of this process."""
    from umpc.dealer import attempt_run as dealer
    from umpc.node.attempts import links
    from umpc_papers.shuffler import run as shuffler

    # `node.py` compares a node's class with UMpcNode, so that name must keep its meaning.
    UMpc.node = lambda self, *given: LyingNode(*given)  # type: ignore[method-assign]
    links.PeerLink = ReplayingLink  # type: ignore[misc]
    dealer.DealerSession = LyingDealer  # type: ignore[misc]
    shuffler.ShufflerSession = LyingShuffler  # type: ignore[misc]


if __name__ == "__main__":
    from tests.attacks import parties
    from umpc.cli.main import main

    parties.lie()
    main()
