"""Sessions of a meeting over a hub: they end, processes are started again, and the hub lies."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreed_ends import Pair, ends_of, link_of
from behind_hub import changed, echo_behind, hub_of, redirecting, run

from umpc.errors import CertificateError, PeerLost, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb


def test_an_envelope_of_a_session_that_is_over_ends_the_writers_end(site):
    """Its run ended: nothing was said, and whoever writes hears it."""

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            (one, two), users = ends_of("a", "b")
            two.write_now(b"hello")
            await users[0].until(1)
            two.drop()
            assert one.write_now(b"late")
            await users[0].until(2)
            (failure,) = users[0].failures
            assert isinstance(failure, PeerLost) and failure.culprit == "b"
            assert not link_of("a").sessions and not link_of("b").sessions

    run(scenario())


def test_a_process_that_was_started_again_is_lost_at_once(site):
    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")):
            async with echo_behind(hub, site("b")):
                (one, two), users = ends_of("a", "b")
                two.write_now(b"hello")
                await users[0].until(1)
            async with echo_behind(hub, site("b")):
                one.write_now(b"late")
                await users[0].until(2)
            (failure,) = users[0].failures
            assert isinstance(failure, PeerLost) and failure.culprit == "b"

    run(scenario())


# ---- lies of a hub --------------------------------------------------------------------------


LIES = {
    "alter": (lambda e: [changed(e, body=e.body[:-1] + bytes([e.body[-1] ^ 1]))], "altered"),
    "number": (lambda e: [changed(e, number=e.number + 1)], "altered"),
    "kind": (lambda e: [changed(e, kind=pb.HUB_RESUME)], "altered"),
    "no kind": (lambda e: [changed(e, kind=0)], "altered"),
    "repeat": (lambda e: [e, e], "second time"),
    "drop": (lambda e: [], "missing"),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_of_a_hub_is_noticed_and_blamed_on_it(site, lie):
    tells, words = LIES[lie]

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            (one, _), users = ends_of("a", "b")
            one.write_now(b"0")
            await users[1].until(1)
            hub.relay.mangle = lambda e: tells(e) if e.number == 2 else [e]
            one.write_now(b"1")
            one.write_now(b"2")
            await users[1].until(9)
            failure = users[1].failures[0]
            assert isinstance(failure, RemoteProtocolError) and failure.culprit == "relay"
            assert re.search(words, failure.message)
            assert users[1].got in ([b"0"], [b"0", b"1"])

    run(scenario())


def test_an_envelope_is_good_for_its_direction_and_its_session_only():
    pair, other = Pair(), Pair(b"n" * 32)
    pair.north.write_now(b"one")
    envelope = pair.north.pull()
    for target, user in (
        (pair.north, pair.users[0]),
        (other.south, other.users[1]),
        (other.north, other.users[0]),
    ):
        target.take(envelope)
        assert user.failures[0].culprit == "relay" and user.got == []


def test_a_hub_that_redirects_is_named_once_all_have_met(site):
    async def scenario():
        relay = site("relay", "hub")
        names = [site(name) for name in "abc"]
        async with (
            hub_of(relay) as hub,
            echo_behind(hub, names[0]),
            echo_behind(hub, names[1]),
            echo_behind(hub, names[2]),
        ):
            (one, _), users = ends_of("a", "b")
            hub.relay.mangle = redirecting("b", to="c")
            one.is_early = False
            one.write_now(b"one")
            await users[0].until(1)
            (failure,) = users[0].failures
            assert isinstance(failure, CertificateError) and failure.culprit == "relay"

    run(scenario())


def test_the_hub_sees_neither_the_content_nor_anything_but_messages(site):
    seen = []

    async def scenario():
        relay = site("relay", "hub")
        async with hub_of(relay) as hub, echo_behind(hub, site("a")), echo_behind(hub, site("b")):
            hub.relay.mangle = lambda e: (seen.append(changed(e)), [e])[1]
            (one, two), users = ends_of("a", "b")
            one.write_now(b"secret words")
            two.write_now(b"secret words")
            await users[0].until(1)
            await users[1].until(1)
            one.drop()
            two.drop()

    run(scenario())
    assert [envelope.kind for envelope in seen] == [pb.HUB_SEALED] * 2
    assert not any(b"secret words" in envelope.SerializeToString() for envelope in seen)
