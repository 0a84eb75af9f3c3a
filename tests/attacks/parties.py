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

A coordinator lies through `telling`: it tells each node its own version of a message. Its lies have
the strategy that the test names.

Every message of a liar goes through `told`, which writes down where it differs from the honest one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tests.attacks.lies import told
from tests.support.one_chunk import dealt_part, encoded_part, expanded_shares
from umpc.coordinator.links import Encoded, encoded
from umpc.crypto.rounds import Message
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.material import DealtPart
from umpc.mpc.transfers.message_shapes import FACTOR, TossPlan
from umpc.proto import codec
from umpc.study.messages import Frame, Key
from umpc.testing import lying
from umpc_papers.testing import lying as lying_in_papers

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


def lies(node: Any, way: str) -> bool:
    return strategy(node.study.name) == way


# --- a node of u-mpc that changes what it sends; its own records and noise stay as they are

running: list[str] = [""]
"""The name of the study that runs."""


def beginning(honest: Any, node: Any, *given: Any) -> Any:
    running[0] = node.study.name
    return honest(node, *given)


def taking_the_seed(honest: Any, node: Any, node_seed: bytes) -> None:
    honest(node, node_seed)
    if lies(node, "amplify"):
        amplify(node)


def amplify(node: Any) -> None:
    """Change the first record. The second time undoes the first."""
    node.cells.masked[node.index][0][0] ^= np.uint64(1 << AMPLIFIED_BIT)


def amplified_fields(honest: Any, node: Any, peer: int) -> list[Message]:
    sent = honest(node, peer)
    if not lies(node, "amplify"):
        return sent
    amplify(node)
    truth = honest(node, peer)
    amplify(node)
    return told("amplify", node.study.name, "masked_fields", truth, sent)


def flipped_chunk(honest: Any, node: Any, chunk: Chunk, *rest: Any) -> Any:
    protocol = honest(node, chunk, *rest)
    if lies(node, "widen") and not chunk.noise:
        return flipping(node.study.name, protocol, believed=True)
    flips = lies(node, "coin" if chunk.noise else "flip")
    return flipping(node.study.name, protocol) if flips else protocol


def flips_alone(honest: Any, node: Any) -> bool:
    """A node that flips bits evaluates chunk by chunk, where the rounds of one go through it."""
    return strategy(node.study.name) in ("widen", "coin", "flip") or honest(node)


def biased_toss(honest: Any, node: Any) -> Any:
    protocol = honest(node)
    if protocol is not None and lies(node, "coin"):
        return flipping_coins(node.study.name, protocol, node.attempt.toss_plan.rounds)
    if protocol is not None and lies(node, "choose"):
        return choosing_twice(node.study.name, protocol, node.attempt.toss_plan)
    return protocol


LYING_NODE: dict[str, Callable[..., Any]] = {
    "begin": beginning,
    "receive_seed": taking_the_seed,
    "fields_for": amplified_fields,
    "protocol": flipped_chunk,
    "evaluates_in_own_way": flips_alone,
    "toss": biased_toss,
}
"""The steps of a node that lies."""


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


former: dict[tuple[str, Key], Frame] = {}
"""(peer, place of a frame) → the frame that was sent to it last."""


async def replaying(honest: Any, link: Any, frame: Frame) -> None:
    """Remember what is sent, and send it again in the study `replay`."""
    study, old = running[0], former.get((link.peer, frame.key))
    if strategy(study) == "replay" and old is not None and old.payload != frame.payload:
        await honest(link, told("replay", study, frame.step, frame, old))
    former[link.peer, frame.key] = frame
    await honest(link, frame)


# --- a dealer whose material does not follow the protocol


def dealing_lies(
    honest: Any, dealer: Any, chunk: Chunk, payloads: Any
) -> Iterator[tuple[int, Frame]]:
    study = dealer.attempt.study.name
    lie = LIES.get(strategy(study))
    for node, frame in honest(dealer, chunk, payloads):
        sent = frame
        if lie is not None and frame.payload:
            sent = replace(frame, payload=lie(dealer, chunk, node, frame.payload))
        yield node, told(strategy(study), study, frame.step, frame, sent)


def random_material(dealer: Any, chunk: Chunk, node: int, payload: bytes) -> bytes:
    """Random bytes. The padding after packed bits stays zero, so that the bytes decode."""
    if chunk.noise:
        return payload
    plan = dealer.attempt.plan(chunk)
    party = chunk.parties.index(node)
    part = dealt_part(plan, payload, party, chunk.count)
    if part.shares is None:
        return payload
    kind = part.shares.elements.dtype
    size = part.shares.elements.size
    elements = memoryview(os.urandom(size * kind.itemsize)).cast(kind.char)
    changed = part.shares.elements.copy()
    changed.flat[:] = list(elements)
    return encoded_part(DealtPart(part.keys, replace(part.shares, elements=changed)))


def one_bit(dealer: Any, chunk: Chunk, node: int, payload: bytes) -> bytes:
    """One bit of the first product of every edge: 2^12 in the first, 2^13 in the next, …."""
    plan = dealer.attempt.plan(chunk)
    party = chunk.parties.index(node)
    if chunk.noise or party < plan.parties - 1 or chunk.number:
        return payload
    part = dealt_part(plan, payload, party, chunk.count)
    assert part.shares is not None
    changed = part.shares.elements.copy()
    for edge in range(chunk.count):
        changed[0, edge] ^= changed.dtype.type(1 << 12 + edge % 16)
    return encoded_part(DealtPart(part.keys, replace(part.shares, elements=changed)))


def silent_coins(dealer: Any, chunk: Chunk, node: int, payload: bytes) -> bytes:
    """Rows of zeros for every coin: the last party gets the complement of all others' shares."""
    plan = dealer.attempt.plan(chunk)
    party = chunk.parties.index(node)
    if not chunk.noise or party < plan.parties - 1:
        return payload
    part = dealt_part(plan, payload, party, chunk.count)
    assert part.shares is not None
    tables = [rows * 0 for rows in part.shares.tables]
    for other in chunk.parties[:-1]:
        seed = dealer.attempt.chunk_seed(dealer.seed_frame(other).payload, chunk)
        for rows, known in zip(
            tables, expanded_shares(plan, seed, chunk.count).tables, strict=True
        ):
            rows ^= known
    return encoded_part(DealtPart(part.keys, replace(part.shares, tables=tuple(tables))))


LIES = {"random": random_material, "bit": one_bit, "silent": silent_coins}


def changed_heap(honest: Any, shuffler: Any) -> Iterator[Frame]:
    """A shuffler's heap with another number. The first number of a heap has its low bits first."""
    first, *others = honest(shuffler)
    study, sent = shuffler.attempt.study.name, first
    if strategy(study) == "heap" and shuffler.place == 0:
        place, bit = divmod(first.width - 1, 8)
        sent = replace(first, payload=flipped(first.payload, place, bit))
    yield told("heap", study, first.step, first, sent)
    yield from others


def telling(tale: Tale, study: str) -> Callable[..., Any]:
    """How a coordinator asks nodes of this study, of which each is told what `tale` says."""

    def ask(honest: Any, link: Any, step: str, message: Encoded, *rest: Any, **named: Any) -> Any:
        truth = codec.decode_coordinator(*message)
        lie = told(strategy(study), study, step, truth, tale(link.node.name, truth))
        return honest(link, step, encoded(lie), *rest, **named)

    return ask


@contextmanager
def lying_dealer() -> Iterator[None]:
    with lying("dealer", frames=dealing_lies):
        yield


@contextmanager
def lying_shuffler() -> Iterator[None]:
    with lying_in_papers("shuffler", heap=changed_heap):
        yield


if __name__ == "__main__":
    from umpc.cli.main import main

    with lying("node", **LYING_NODE, send=replaying), lying_dealer(), lying_shuffler():
        main()
