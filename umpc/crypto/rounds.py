"""Protocols as generators: a party yields its message of a round and is resumed with the others'.

    theirs = yield Message("open", bits, …)      # one round

A protocol never sees a network, a clock or hidden randomness. Inputs, material and seeds are its
arguments, so a party is a deterministic function of its arguments and of the messages that it
gets. `run_in_memory` drives all parties in lockstep and keeps an exact transcript. A node drives
the same generators over gRPC.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from umpc.errors import LocalProtocolError, RemoteProtocolError

Result = TypeVar("Result")
"""The result of one party at the end of a protocol."""
Sent = TypeVar("Sent")
"""The output of one party in one round."""
Received = TypeVar("Received")
"""The other parties' output in one round, as one party gets it."""

MAX_ROUNDS = 1000
"""An in-memory run with more rounds than this is taken for one that never ends."""


@dataclass(frozen=True)
class Message:
    """One party's broadcast of one round to the other owners of its cell.

    The payload is `count` values of `width` bits each, packed. A message of width 0 carries
    nothing and is not sent.

    Args: step: the round's name. round: which of several rounds of one step, from 1; 0 where the
    step has a single round.
    """

    step: str
    payload: bytes
    count: int
    width: int
    round: int = 0

    def __repr__(self) -> str:
        return f"Message({self.step}, {self.count} × {self.width} bits)"


Protocol: TypeAlias = Generator[Message, list[Message], Result]
"""Yields this party's message of a round, receives the other parties' messages in party order, and
returns this party's result."""


def silence(step: str, round: int = 0) -> Message:
    """The message of a party that only listens in this round: no payload, width 0."""
    return Message(step, b"", 0, 0, round)


@dataclass(frozen=True)
class Finished(Generic[Result]):
    """The end of one party's protocol, with its result."""

    result: Result

    def __repr__(self) -> str:
        return "Finished(<redacted>)"


def resume(
    protocol: Generator[Sent, Received, Result], received: Received | None
) -> Sent | Finished[Result]:
    """One party's output of its next round, or its result.

    Args: received: the other parties' output of the round before; None starts the protocol.
    """
    try:
        return next(protocol) if received is None else protocol.send(received)
    except StopIteration as stop:
        return Finished(stop.value)


def check_reply(reply: Message, expected: Message, culprit: str) -> None:
    """Check that a reply has the shape of the message that was due in the same round.

    Raises: RemoteProtocolError naming the sender.
    """
    if _shape(reply) != _shape(expected):
        raise RemoteProtocolError(
            f"{culprit} sent {reply!r} of {len(reply.payload)} bytes where {expected!r} of "
            f"{len(expected.payload)} bytes was due",
            culprit=culprit,
            step=expected.step,
        )


def _shape(message: Message) -> tuple[str, int, int, int, int]:
    return message.step, message.round, message.count, message.width, len(message.payload)


@dataclass(frozen=True)
class SentMessage:
    """One line of a transcript. round: from 1. party: the sender's index."""

    round: int
    party: int
    message: Message


def run_in_memory(parties: Sequence[Protocol[Result]]) -> tuple[list[Result], list[SentMessage]]:
    """Run all parties of one protocol in lockstep.

    Returns: the results in party order, and the transcript without the messages of width 0.
    Raises: LocalProtocolError where a party ends before the others, or none ends in time.
    """
    results: dict[int, Result] = {}
    transcript: list[SentMessage] = []
    incoming: list[list[Message] | None] = [None] * len(parties)
    for number in range(1, MAX_ROUNDS + 2):
        sent: dict[int, Message] = {}
        for party, protocol in enumerate(parties):
            answer = resume(protocol, incoming[party])
            if isinstance(answer, Finished):
                results[party] = answer.result
            else:
                sent[party] = answer
        if len(results) == len(parties):
            return [results[party] for party in range(len(parties))], transcript
        check_lockstep(results, number)
        transcript += [
            SentMessage(number, party, message) for party, message in sent.items() if message.width
        ]
        incoming = [[sent[other] for other in sent if other != party] for party in sent]
    raise LocalProtocolError(f"a protocol did not end within {MAX_ROUNDS} rounds")


def check_lockstep(ended: dict[int, Result], number: int) -> None:
    """Raises: LocalProtocolError where some parties have ended and others still send in a round."""
    if ended:
        raise LocalProtocolError(
            f"parties {sorted(ended)} ended before the others, in round {number}"
        )
