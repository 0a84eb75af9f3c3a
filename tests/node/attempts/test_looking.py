"""umpc.node.attempts.looking: what a node asks its coordinator for, and how it takes answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.signed import signed_members
from tests.support.studies import KENDALL, make_members, make_study
from umpc.crypto.signing import Verify
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.attempts.looking import Looking
from umpc.proto import member_codec
from umpc.proto.member_codec import PIECE_BYTES
from umpc.simulation import AUTHORITY
from umpc.study import messages as m
from umpc.study.member_tree import MOST_SHOWN, show
from umpc.study.statements import attempt_id

NODES = 5
STUDY = make_study(KENDALL, NODES, noise="distributed", members_checked=2)
MEMBERS, OPENINGS = make_members(STUDY, [4] * NODES, "looking")
SIGNATURES = signed_members(STUDY, MEMBERS)
ATTEMPT = attempt_id(STUDY, MEMBERS, OPENINGS)
FORMER, FORMER_OPENINGS = make_members(STUDY, [4] * NODES, "a former run")


def told(
    members: Any = MEMBERS, openings: Any = OPENINGS, signatures: Any = SIGNATURES
) -> list[bytes]:
    """The attempt for the dealer, in pieces."""
    facts = STUDY.encode(), tuple(members), tuple(openings), tuple(signatures)
    large = member_codec.large_request(*facts, ATTEMPT)
    return [piece.piece for piece in large.pieces()]


class Talk:
    """A node's stream, with a coordinator that answers each question."""

    def __init__(self, answer: Callable[[m.NodeMessage], list[Any]]):
        self.said: list[m.NodeMessage] = []
        self._answer = answer
        self._due: list[Any] = []
        self.stream = CoordinatorStream("node-0", STUDY.coordinator, self._receive, self._send)
        self.stream.proposed = STUDY
        self.looking = Looking(self.stream)

    async def _send(self, message: m.NodeMessage) -> None:
        self.said.append(message)
        self._due += self._answer(message)

    async def _receive(self) -> Any:
        return self._due.pop(0)


def pieces_of(parts: list[bytes]) -> Callable[[m.NodeMessage], list[Any]]:
    return lambda message: [m.AttemptPiece(part) for part in (*parts, b"")]


def fetch(talk: Talk, verify: Verify = AUTHORITY.verify) -> bytes:
    async def checked() -> bytes:
        found = await talk.looking.attempt()
        await talk.looking.check(found, ATTEMPT, verify)
        return found

    return asyncio.run(checked())


def test_the_whole_attempt_is_what_the_dealer_is_told():
    talk = Talk(pieces_of(told()))
    assert fetch(talk) == b"".join(told())
    assert talk.said == [m.WantAttempt()]


LIES: dict[str, list[bytes]] = {
    "no attempt": [],
    "bytes that are no attempt": [b"\xff" * 40],
    "a former run of the study": told(FORMER, FORMER_OPENINGS, signed_members(STUDY, FORMER)),
    "another opening": told(openings=[*OPENINGS[:4], bytes(32)]),
    "an opening too few": told(openings=OPENINGS[:4]),
    "no signature": told(signatures=[*SIGNATURES[:4], bytes(64)]),
    "fewer members": told(MEMBERS[:4], OPENINGS[:4], SIGNATURES[:4]),
}


@pytest.mark.parametrize("lie", LIES)
def test_another_attempt_names_the_coordinator_before_the_dealer_sees_it(lie):
    with pytest.raises(RemoteProtocolError) as refused:
        fetch(Talk(pieces_of(LIES[lie])))
    assert refused.value.culprit == STUDY.coordinator


def test_a_certificate_that_does_not_count_is_found_by_the_node_that_tells():
    talk = Talk(pieces_of(told()))

    def verify(certificate: bytes) -> Any:
        raise CertificateError("expired", culprit="node-3")

    with pytest.raises(CertificateError) as refused:
        fetch(talk, verify)
    assert refused.value.culprit == "node-3"


def test_an_attempt_without_end_is_refused(monkeypatch):
    from umpc.node.attempts import looking

    monkeypatch.setattr(looking, "MOST_BYTES", 3 * PIECE_BYTES)
    endless = [bytes(PIECE_BYTES)] * 4
    with pytest.raises(RemoteProtocolError, match="more than") as refused:
        fetch(Talk(pieces_of(endless)))
    assert refused.value.culprit == STUDY.coordinator


def test_many_members_are_asked_for_some_at_a_time_and_so_are_their_signatures():
    places = tuple(range(2 * MOST_SHOWN + 3))
    one = show(STUDY, MEMBERS, OPENINGS, SIGNATURES, [0])

    def answer(message: m.NodeMessage) -> list[Any]:
        assert isinstance(message, m.Look) and len(message.places) <= MOST_SHOWN
        count = len(message.places)
        return [m.Signed((bytes(64),) * count) if message.signed else m.Shown(one * count)]

    taken: list[Any] = []
    side: Any = SimpleNamespace(look=lambda root: places, take_shown=taken.extend)
    talk = Talk(answer)

    async def scenario() -> list[bytes]:
        await talk.looking.look(side, m.BeginInShort(bytes(32)))
        return await talk.looking.signed()

    assert len(asyncio.run(scenario())) == len(taken) == len(places)
    asked = [message.places for message in talk.said if not message.signed]
    assert tuple(place for each in asked for place in each) == places
    assert len(talk.said) == 2 * 3


def test_an_answer_of_another_kind_names_the_coordinator():
    side: Any = SimpleNamespace(look=lambda root: (0,), take_shown=lambda shown: None)
    talk = Talk(lambda message: [m.Release()])
    with pytest.raises(RemoteProtocolError, match="where Shown was due") as refused:
        asyncio.run(talk.looking.look(side, m.BeginInShort(bytes(32))))
    assert refused.value.culprit == STUDY.coordinator
