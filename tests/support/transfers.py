"""Shared by the tests of oblivious transfers: channels, and a line that changes one message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.support.mpc_studies import seed_of
from umpc.crypto.rounds import Message, Protocol, run_in_memory
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.transfers.correlated_ot import (
    Blocks,
    CorrelatedReceiver,
    CorrelatedSender,
    fresh_delta,
    open_receiver,
    open_sender,
)

Change = Callable[[Message], Message]


def delta_of(label: str) -> np.ndarray:
    return fresh_delta(seed_of(f"delta {label}"))


def set_up(fold: int = 4, label: str = "setup") -> list[Protocol]:
    """Return the two sides: the sender, named “bob”, and the receiver, named “alice”."""
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
    """Run a party whose message of one step is changed on the way."""
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


def refusal(sides: list[Protocol], culprit: str, step: str) -> RemoteProtocolError | EncodingError:
    """Check that the run ends with an error that names culprit and step."""
    with pytest.raises((RemoteProtocolError, EncodingError)) as caught:
        run_in_memory(sides)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)
    return caught.value


def survives(sides: list[Protocol], culprit: str, step: str) -> None:
    """Check that the run ends well, or with an error that names culprit and step."""
    try:
        run_in_memory(sides)
    except (RemoteProtocolError, EncodingError) as error:
        assert (error.culprit, error.step) == (culprit, step)
