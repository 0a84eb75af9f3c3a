"""A node that lies with the number of the session that it shares with its peer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreed_ends import MEETING, SECRET, User, ends_of, link_of
from behind_hub import echo_behind, hub_of, run

from umpc.errors import RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.credentials import credentials_of
from umpc.transport.hub.early import MOST_EACH, EarlySessions
from umpc.transport.hub.sealing import End, Opening, Parties, agree

A, B = End("node", "a"), End("node", "b")


async def reached(name: str, sender: str) -> None:
    """Wait until all that a member sent to another one has come: the hub keeps the order."""
    word = b"w" * 16
    link_of(sender).refuse(
        pb.HubEnvelope(
            target=pb.HubMember(role="node", name=name),
            session=word,
            kind=pb.HUB_SEALED,
            early=True,
        )
    )
    while not link_of(name)._early.forget(("node", sender, word)):
        await asyncio.sleep(0.01)


def opening_of(link, other: End) -> pb.HubEnvelope:
    """Return a handshake's first message that has the number of a meeting's session."""
    number = agree(SECRET, MEETING, (A, B), "relay", initiates=True).parties.session
    parties = Parties(number, End("node", link.identity.name), other, "relay")
    opening = Opening(parties, credentials_of(link.identity))
    target = pb.HubMember(role=other.role, name=other.name)
    return pb.HubEnvelope(
        target=target, session=parties.session, kind=pb.HUB_OPEN, body=opening.message
    )


def test_a_handshake_takes_no_place_of_a_session_of_a_meeting(site):
    """A node that shares both with its peer gets a refusal, and the meeting's session goes on."""

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            (one, two), users = ends_of("a", "b")
            link_of("a").refuse(opening_of(link_of("a"), B))
            await reached("b", "a")
            assert link_of("b").sessions[two.key] is two
            one.write_now(b"one")
            assert await users[1].until(1) == [b"one"]

    run(scenario())


def test_a_handshake_before_the_meeting_is_the_fault_of_the_node_that_made_it(site):
    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            link_of("a")._arrivals._unknown = lambda envelope: None  # it does not refuse the answer
            link_of("a").refuse(opening_of(link_of("a"), B))
            await reached("b", "a")
            with pytest.raises(RemoteProtocolError) as caught:
                link_of("b").agree("a", "b", MEETING, SECRET, User())
            assert caught.value.culprit == "a"

    run(scenario())


def test_a_session_that_is_made_leaves_nothing_among_the_early_ones():
    early = EarlySessions()
    for name in "ab":
        for number in range(2 * MOST_EACH):
            early.add(("node", name, bytes([number])))
    assert len(early) == 2 * MOST_EACH
    assert not early.forget(("node", "a", bytes([0]))), "the oldest left"
    for number in range(MOST_EACH, 2 * MOST_EACH):
        assert early.forget(("node", "a", bytes([number])))
    assert len(early) == MOST_EACH and list(early._of) == [("node", "b")]


def test_an_answer_to_a_handshake_that_never_was_changes_nothing(site):
    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            (one, _), users = ends_of("a", "b")
            answer = opening_of(link_of("a"), B)
            answer.kind = pb.HUB_ACCEPT
            link_of("a").refuse(answer)
            await reached("b", "a")
            one.write_now(b"one")
            assert await users[1].until(1) == [b"one"] and not users[1].failures

    run(scenario())
