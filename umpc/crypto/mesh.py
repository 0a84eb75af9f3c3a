"""Protocols of several parties whose messages differ from peer to peer: as rounds.py, but for a message for each.

    came = yield {1: to_one, 2: to_two}      # one round: what this party says to each, and what each said to it

Parties are numbered. Who has nothing to say to a party leaves it out, and from whom nothing comes is left out of what
came; who is silent in a round yields {} and is resumed when the round is over. `run_mesh` drives all parties in
lockstep; a node drives the same generators over its links.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from umpc.crypto.rounds import Message, Protocol
from umpc.errors import LocalProtocolError
from umpc.mpc.transfers.base_ot import silence

Result = TypeVar("Result")
Mesh = Generator[dict[int, Message], Mapping[int, Message], Result]
"""Yields this party's messages of a round by receiver, gets the others' by sender, returns this party's result."""


def side_by_side(protocols: Mapping[int, Protocol[Result]]) -> Mesh[dict[int, Result]]:
    """Protocols of two parties, one with each peer, round by round together; all take the same number of rounds."""
    messages = {peer: next(protocol) for peer, protocol in protocols.items()}
    results: dict[int, Result] = {}
    while messages:
        came = yield {peer: message for peer, message in messages.items() if message.width}
        replies = {peer: came.get(peer, silence(mine.step)) for peer, mine in messages.items()}
        messages = {}
        for peer, reply in replies.items():
            try:
                messages[peer] = protocols[peer].send([reply])
            except StopIteration as stop:
                results[peer] = stop.value
        if messages and results:
            raise LocalProtocolError(
                f"protocols with {sorted(results)} ended before those with {sorted(messages)}"
            )
    return results


def to_all(protocol: Protocol[Result], peers: Sequence[int]) -> Mesh[Result]:
    """A protocol in which everybody says the same to everybody: its replies are in the order of peers."""
    replies = None
    while True:
        try:
            message = protocol.send(replies)
        except StopIteration as stop:
            return stop.value
        came = yield dict.fromkeys(peers, message)
        replies = [came.get(peer, silence(message.step)) for peer in peers]


@dataclass(frozen=True)
class MeshLine:
    """One line of a mesh's transcript. round: from 1."""

    round: int
    sender: int
    receiver: int
    message: Message


def run_mesh(parties: Sequence[Mesh[Result]]) -> tuple[list[Result], list[MeshLine]]:
    """Run all parties in lockstep: (results in party order, transcript)."""
    results: dict[int, Result] = {}
    transcript: list[MeshLine] = []
    incoming: list[dict[int, Message] | None] = [None] * len(parties)
    for number in range(1, 1000):
        sent = {}
        for party, protocol in enumerate(parties):
            try:
                sent[party] = protocol.send(incoming[party])
            except StopIteration as stop:
                results[party] = stop.value
        if len(results) == len(parties):
            return [results[party] for party in range(len(parties))], transcript
        if results:
            raise LocalProtocolError(
                f"parties {sorted(results)} ended before the others, in round {number}"
            )
        transcript += [
            MeshLine(number, party, to, message)
            for party, said in sent.items()
            for to, message in said.items()
        ]
        incoming = [{p: said[party] for p, said in sent.items() if party in said} for party in sent]
    raise LocalProtocolError("a protocol did not end within 1000 rounds")
