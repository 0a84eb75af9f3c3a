"""Protocols as generators: a party yields its message of a round and is resumed with the others'.

    theirs = yield Message("open", bits, …)      # one round

A protocol never sees a network, a clock or hidden randomness. Inputs, material and seeds are its
arguments, so a party is a deterministic function of its arguments and of the messages that it
gets. `run_in_memory` drives all parties in lockstep and keeps an exact transcript. A node drives
the same generators over gRPC.

*Mesh.* Protocols of several parties whose messages differ from peer to peer. They are generators,
too, with one message for each peer in a round:

    came = yield {1: to_one, 2: to_two}      # one round

Parties are numbered. A party leaves out each peer to which it sends nothing, and each peer that
sent it nothing is missing from the messages that came. A party that is silent in a round yields {}
and is resumed when the round is over. `run_mesh` drives all parties in lockstep. A node drives the
same generators over its links.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, zip_longest
from typing import Any, Generic, TypeAlias, TypeVar

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


def resume_all(
    protocols: Mapping[int, Generator[Sent, Received, Result]],
    incoming: Mapping[int, Received | None],
    results: dict[int, Any],
) -> dict[int, Sent]:
    """Each party's output of its next round. The results of those that end go into `results`.

    Args: incoming: what each party that goes on received; as in `resume`.
    """
    sent: dict[int, Sent] = {}
    for party, received in incoming.items():
        answer = resume(protocols[party], received)
        if isinstance(answer, Finished):
            results[party] = answer.result
        else:
            sent[party] = answer
    return sent


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

    def others(party: int, sent: Mapping[int, Message]) -> list[Message]:
        return [message for other, message in sent.items() if other != party]

    results, rounds = _in_lockstep(parties, others)
    lines = [
        SentMessage(number, party, message)
        for number, sent in enumerate(rounds, 1)
        for party, message in sent.items()
        # silence takes no bytes, so it is no line
        if message.width
    ]
    return results, lines


def _in_lockstep(
    parties: Sequence[Generator[Sent, Received, Result]],
    received_by: Callable[[int, Mapping[int, Sent]], Received],
) -> tuple[list[Result], list[dict[int, Sent]]]:
    """The results of all parties, in order, and what each of them sent in each round.

    Args: received_by: what a party receives of what all of them sent.
    """
    protocols = dict(enumerate(parties))
    results: dict[int, Result] = {}
    rounds: list[dict[int, Sent]] = []
    incoming: dict[int, Received | None] = dict.fromkeys(protocols)
    while len(rounds) <= MAX_ROUNDS:
        # all speak before anybody hears: rounds are simultaneous
        sent = resume_all(protocols, incoming, results)
        if len(results) == len(parties):
            return [results[party] for party in protocols], rounds
        check_lockstep(results, len(rounds) + 1)
        rounds.append(sent)
        incoming = {party: received_by(party, sent) for party in sent}
    raise LocalProtocolError(f"a protocol did not end within {MAX_ROUNDS} rounds")


def check_lockstep(ended: dict[int, Result], number: int) -> None:
    """Raises: LocalProtocolError where some parties have ended and others still send in a round."""
    if ended:
        raise LocalProtocolError(
            f"parties {sorted(ended)} ended before the others, in round {number}"
        )


# --- mesh -----------------------------------------------------------------------------------------

Outgoing: TypeAlias = dict[int, Message]
"""One party's messages of one round, by receiver."""
Incoming: TypeAlias = Mapping[int, Message]
"""The messages that one party gets in one round, by sender."""

Mesh: TypeAlias = Generator[Outgoing, Incoming, Result]
"""Yields this party's messages of a round by receiver, receives the others' messages by sender, and
returns this party's result."""


def side_by_side(protocols: Mapping[int, Protocol[Result]]) -> Mesh[dict[int, Result]]:
    """Run protocols of two parties in the same rounds, one with each peer.

    Args: protocols: by peer. All take the same number of rounds.
    Returns: the results, by peer.
    Raises: LocalProtocolError where one of the protocols ends before the others.
    """
    results: dict[int, Result] = {}
    replies: dict[int, list[Message] | None] = dict.fromkeys(protocols)
    while replies:
        sent: Outgoing = resume_all(protocols, replies, results)
        # side by side means: as many rounds
        if sent and results:
            raise LocalProtocolError(
                f"protocols with {sorted(results)} ended before those with {sorted(sent)}"
            )
        if not sent:
            break
        # silence is not sent
        came = yield {peer: message for peer, message in sent.items() if message.width}
        replies = {peer: [came.get(peer, silence(message.step))] for peer, message in sent.items()}
    return results


def to_all(protocol: Protocol[Result], peers: Sequence[int]) -> Mesh[Result]:
    """Run a protocol in which every party sends one message to all peers.

    Args: peers: the other parties. The protocol gets their replies in this order.
    """
    replies: list[Message] | None = None
    while True:
        message = resume(protocol, replies)
        if isinstance(message, Finished):
            return message.result
        came = yield dict.fromkeys(peers, message)
        replies = [came.get(peer, silence(message.step)) for peer in peers]


def beside(
    step: str,
    protocols: Sequence[Mesh[Any]],
    due: Mapping[int, Sequence[Sequence[Message]]],
    names: Sequence[str],
) -> Mesh[list[Any]]:
    """Run protocols of the same parties in the same rounds. Some may end before others.

    All that a party tells another one in a round is one message (`joined`).

    Args:
        step: the name of a message that holds several.
        due: for each peer, its messages to this party in each protocol, round by round, with zero
            bytes as content.
        names: of all parties, for errors.

    Raises: RemoteProtocolError on a message of another shape.
    """
    results: dict[int, Any] = {}
    numbered = dict(enumerate(protocols))
    incoming: Mapping[int, Incoming | None] = dict.fromkeys(numbered)
    for number in count():
        said = resume_all(numbered, incoming, results)
        if not said:
            return [results[place] for place in numbered]
        sent = {
            # all that one tells another in a round is one message
            peer: joined(step, [each.get(peer, silence(step)) for each in said.values()])
            for peer in due
        }
        replies = yield {peer: message for peer, message in sent.items() if message.width}
        heard: dict[int, dict[int, Message]] = {place: {} for place in said}
        for peer, reply in replies.items():
            # where to cut: lengths are public
            shapes = [due[peer][place][number] for place in said]
            parts = _parts(step, reply, shapes, names[peer])
            for place, part in zip(said, parts, strict=True):
                if part.width:
                    heard[place][peer] = part
        incoming = heard
    raise LocalProtocolError("protocols side by side ended without a result")


def joined(step: str, messages: Sequence[Message]) -> Message:
    """Messages as one, in bytes. A message alone stays as it is, and silence is silence."""
    spoken = [message for message in messages if message.width]
    if len(spoken) <= 1:
        return spoken[0] if spoken else silence(step)
    payload = b"".join(message.payload for message in spoken)
    return Message(step, payload, len(payload), 8)


def joined_rounds(step: str, *protocols: Sequence[Message]) -> list[Message]:
    """The messages of `beside`, from those of its protocols, round by round."""
    rounds = zip_longest(*protocols, fillvalue=silence(step))
    return [joined(step, messages) for messages in rounds]


def _parts(step: str, reply: Message, shapes: Sequence[Message], culprit: str) -> list[Message]:
    """The messages that were joined, from their shapes. Raises: RemoteProtocolError."""
    check_reply(reply, joined(step, shapes), culprit)
    parts = []
    start = 0
    for shape in shapes:
        stop = start + len(shape.payload)
        parts.append(replace(shape, payload=reply.payload[start:stop]))
        start = stop
    return parts


@dataclass(frozen=True)
class MeshLine:
    """One line of a mesh's transcript. round: from 1."""

    round: int
    sender: int
    receiver: int
    message: Message


def run_mesh(parties: Sequence[Mesh[Result]]) -> tuple[list[Result], list[MeshLine]]:
    """Run all parties of one mesh in lockstep.

    Returns: the results in party order, and the transcript.
    Raises: LocalProtocolError where a party ends before the others, or none ends in time.
    """

    def addressed_to(party: int, sent: Mapping[int, Outgoing]) -> Incoming:
        return {sender: messages[party] for sender, messages in sent.items() if party in messages}

    results, rounds = _in_lockstep(parties, addressed_to)
    lines = [
        MeshLine(number, sender, receiver, message)
        for number, sent in enumerate(rounds, 1)
        for sender, messages in sent.items()
        for receiver, message in messages.items()
    ]
    return results, lines
