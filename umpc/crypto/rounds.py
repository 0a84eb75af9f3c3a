"""How a protocol talks: generators that yield what they send and are resumed with what the others sent.

    theirs = yield Message("open", bits, …)      # one round

A protocol never sees a network, a clock or hidden randomness: inputs, material and seeds are its arguments, so a
party is a deterministic function of its arguments and of the messages it gets. `run_in_memory` drives all
parties in lockstep and keeps an exact transcript; a node drives the same generators over gRPC.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from umpc.errors import LocalProtocolError, RemoteProtocolError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Message:
    """One round's broadcast of one party to the others of its cell: `count` values of `width` bits, packed.

    A message of width 0 says nothing and is not sent. round: which of several rounds of one step, from 1.
    """

    step: str
    payload: bytes
    count: int
    width: int
    round: int = 0

    def __repr__(self) -> str:
        return f"Message({self.step}, {self.count} × {self.width} bits)"


Protocol = Generator[Message, list[Message], Result]
"""Yields this party's message of a round, gets the others' in party order, returns this party's result."""


def check_reply(reply: Message, expected: Message, culprit: str) -> None:
    """A reply must have the shape of what was due in the same round.

    Raises: RemoteProtocolError naming the sender.
    """
    came, wanted = ((m.step, m.round, m.count, m.width, len(m.payload)) for m in (reply, expected))
    if came != wanted:
        raise RemoteProtocolError(
            f"{culprit} sent {reply!r} of {len(reply.payload)} bytes where {expected!r} of "
            f"{len(expected.payload)} bytes was due",
            culprit=culprit,
            step=expected.step,
        )


@dataclass(frozen=True)
class SentMessage:
    """One line of a transcript."""

    round: int
    party: int
    message: Message


def run_in_memory(parties: Sequence[Protocol[Result]]) -> tuple[list[Result], list[SentMessage]]:
    """Run all parties of one protocol in lockstep: (results in party order, transcript)."""
    results: dict[int, Result] = {}
    transcript: list[SentMessage] = []
    incoming: list[list[Message] | None] = [None] * len(parties)
    for round_number in range(1, 1000):
        sent = {}
        for party, protocol in enumerate(parties):
            try:
                sent[party] = protocol.send(incoming[party])
            except StopIteration as stop:
                results[party] = stop.value
        if len(results) == len(parties):
            return [results[party] for party in range(len(parties))], transcript
        if results or len(sent) != len(parties):
            raise LocalProtocolError(
                f"parties {sorted(results)} ended before the others, in round {round_number}"
            )
        transcript += [
            SentMessage(round_number, party, message)
            for party, message in sent.items()
            if message.width
        ]
        incoming = [[sent[other] for other in sent if other != party] for party in sent]
    raise LocalProtocolError("a protocol did not end within 1000 rounds")
