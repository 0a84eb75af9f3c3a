"""Shared by the tests of oblivious transfers: channels, and a line that changes one message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import BLOCK_BYTES
from umpc.crypto.rounds import Message, Protocol, run_in_memory
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.transfers import correlated_ot
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import (
    Blocks,
    CorrelatedReceiver,
    CorrelatedSender,
    fresh_delta,
)
from umpc.mpc.transfers.message_shapes import BLOCK_BITS, CHECK_BYTES, row_bytes
from umpc.mpc.transfers.ot_products import BitTriples
from umpc.testing import lying

Change = Callable[[Message], Message]
honest_extend = CorrelatedReceiver.extend


def lie_in_digits(*digits: int) -> Callable[..., tuple[Blocks, Message]]:
    """`CorrelatedReceiver.extend` with another first choice in some digits of Δ than in the others.

    Its proof is the best that there is: it holds if all bits of Δ in these digits are 0.
    """

    def extend(receiver: CorrelatedReceiver, choices: np.ndarray) -> tuple[Blocks, Message]:
        rows = BLOCK_BITS // receiver.fold

        def changed(sent: bytes) -> bytes:
            lie = bytearray(sent)
            for digit in digits:
                lie[digit * (len(sent) // rows)] ^= 1
            return bytes(lie)

        def after_the_lie(
            after: Callable, channel: bytes, batch: int, part: int, sent: bytes
        ) -> Any:
            return after(channel, batch, part, sent if part else changed(sent))

        with lying("node", after=after_the_lie):
            blocks, message = honest_extend(receiver, choices)
        size = rows * row_bytes(min(correlated_ot.PART, len(choices)))
        payload = changed(message.payload[:size]) + message.payload[size:]
        return blocks, replace(message, payload=payload)

    return extend


def extension_rows(extension: bytes, count: int, fold: int = 4) -> np.ndarray:
    """The rows of a batch of one part, without the additional choices and the proof.

    Returns: (digits, bytes) uint8.
    """
    rows = np.frombuffer(extension[:-CHECK_BYTES], np.uint8).reshape(BLOCK_BITS // fold, -1)
    return rows[:, : (count + 7) // 8]


def first_row(extension: bytes) -> np.ndarray:
    """The first digit's row of a batch of fold 4, of whole blocks of transfers: (bytes,) uint8."""
    digits = BLOCK_BITS // 4
    whole = digits * row_bytes(correlated_ot.PART) + CHECK_BYTES
    parts = [extension[start : start + whole] for start in range(0, len(extension), whole)]
    blocks = [(len(part) - CHECK_BYTES) // digits - BLOCK_BYTES for part in parts]
    rows = [extension_rows(part, 8 * size)[0] for part, size in zip(parts, blocks, strict=True)]
    return np.concatenate(rows)


def delta_of(label: str) -> np.ndarray:
    return fresh_delta(seed_of(f"delta {label}"))


def set_up(fold: int = 4, label: str = "setup") -> list[Protocol]:
    """Sender "bob" and receiver "alice", as each other calls them."""
    return [
        open_sender(seed_of(f"sender {label}"), delta_of(label), label.encode(), "alice", fold),
        open_receiver(seed_of(f"receiver {label}"), label.encode(), "bob", fold),
    ]


def open_channel(label: str, fold: int = 4) -> tuple[CorrelatedSender, CorrelatedReceiver]:
    return tuple(run_in_memory(set_up(fold, label))[0])


def correlated(q: Blocks, t: Blocks, choices: np.ndarray, delta: np.ndarray) -> bool:
    return q.start == t.start and np.array_equal(q.blocks ^ t.blocks, choices[:, None] * delta)


def bits_of(label: str, count: int) -> np.ndarray:
    return numbers_of(label, count).astype(np.uint8) & 1


def numbers_of(label: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(np.frombuffer(seed_of(label), dtype=np.uint64))
    return rng.integers(0, 2**64, count, dtype=np.uint64)


def altered(protocol: Protocol, step: str, change: Change) -> Protocol:
    """A party whose message of one step is changed on the way."""
    replies = None
    while True:
        try:
            message = protocol.send(replies)
        except StopIteration as stop:
            return stop.value
        replies = yield change(message) if message.step == step and message.width else message


def flip(place: int, mask: int) -> Change:
    def change(message: Message) -> Message:
        payload = bytearray(message.payload)
        payload[place % len(payload)] ^= mask
        return replace(message, payload=bytes(payload))

    return change


def cut(length: int) -> Change:
    return lambda message: replace(
        message, payload=message.payload[: length % len(message.payload)]
    )


WRONG_SHAPES: dict[str, Change] = {
    "one byte less": lambda message: replace(message, payload=message.payload[:-1]),
    "one byte more": lambda message: replace(message, payload=message.payload + b"\0"),
    "nothing": lambda message: replace(message, payload=b""),
    "one value less": lambda message: replace(message, count=message.count - 1),
    "a huge count": lambda message: replace(message, count=1 << 60),
    "a negative count": lambda message: replace(message, count=-1),
    "a wider value": lambda message: replace(message, width=message.width + 1),
    "no value": lambda message: replace(message, width=0),
    "another step": lambda message: replace(message, step="open"),
    "another round": lambda message: replace(message, round=message.round + 1),
}


changes = st.one_of(
    st.builds(flip, st.integers(0, 1 << 20), st.integers(1, 255)),
    st.builds(cut, st.integers(0, 1 << 20)),
    st.sampled_from(list(WRONG_SHAPES.values())),
)


class Damage(NamedTuple):
    """A change of one message on the way. kind: "flip", "cut" or "shape"."""

    kind: str
    change: Change


def damages(count: int, within: int | None = None) -> list[Damage]:
    """`count` flips of one bit and `count` cuts, spread over any payload, and every wrong shape.

    within: flips are in so many first bytes; default: in the whole payload.
    """
    places = [1013 * number for number in range(count)]
    flipped = [place % within for place in places] if within else places
    flips = [Damage("flip", flip(place, 1 << n % 8)) for n, place in enumerate(flipped)]
    cuts = [Damage("cut", cut(place)) for place in places]
    return flips + cuts + [Damage("shape", change) for change in WRONG_SHAPES.values()]


Outcomes = Counter[tuple[str, str]]
"""How often (kind of damage, outcome) was seen."""


def count_outcomes(
    count: int,
    is_harmless: Callable[[Change], bool],
    culprit: str,
    *steps: str,
    within: int | None = None,
) -> Outcomes:
    """Run a protocol once for each damage, and count its outcomes.

    is_harmless: runs the protocol with a change, and says whether its result is as good as it must
        be when nobody notices. within: as of `damages`.

    noticed: the run ended with an error that names culprit and one of the steps. harmless,
    harmful: it ended without an error.
    """
    outcomes: Outcomes = Counter()
    for kind, change in damages(count, within):
        try:
            outcome = "harmless" if is_harmless(change) else "harmful"
        except (RemoteProtocolError, EncodingError) as error:
            assert error.culprit == culprit and error.step in steps
            outcome = "noticed"
        outcomes[kind, outcome] += 1
    return outcomes


def due_outcomes(count: int, flips: str) -> Outcomes:
    """The outcomes that must be seen: all cuts and wrong shapes are noticed.

    flips: what all flips of a bit are.
    """
    return Counter(
        {
            ("flip", flips): count,
            ("cut", "noticed"): count,
            ("shape", "noticed"): len(WRONG_SHAPES),
        }
    )


def refusal(sides: list[Protocol], culprit: str, step: str) -> RemoteProtocolError | EncodingError:
    """The run ends with an error that names culprit and step."""
    with pytest.raises((RemoteProtocolError, EncodingError)) as caught:
        run_in_memory(sides)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)
    return caught.value


def triples(count: int, label: str) -> tuple[BitTriples, BitTriples]:
    """XOR shares of random a, b and of c = a ∧ b, as an honest dealer would deal them."""
    a, b, x, y, z = (bits_of(f"{label} {name}", count) for name in "abxyz")
    return BitTriples(x, y, z), BitTriples(a ^ x, b ^ y, (a & b) ^ z)
