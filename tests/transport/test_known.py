"""umpc.transport.known: a peer that was reached before is reached by one handshake."""

from __future__ import annotations

import asyncio
import re

import pytest
from transport_echo import CALL, serving

from umpc.errors import CertificateError, PeerUnavailable
from umpc.transport import channels
from umpc.transport.channels import connect
from umpc.transport.known import KNOWN, KnownCertificates


@pytest.fixture
def looks(monkeypatch):
    """The addresses that were looked at."""
    look, seen = channels.shown_certificate, []

    async def counted(address, *more):
        seen.append(address)
        return await look(address, *more)

    monkeypatch.setattr(channels, "shown_certificate", counted)
    return seen


async def called(client, address):
    """Connect to node 'a', and call it once."""
    channel = await connect(client, "a", "node", address, 15)
    try:
        return await channel.unary_unary(CALL)(b"hello", timeout=10)
    finally:
        await channel.close()


def test_a_peer_that_was_reached_is_looked_at_once(site, looks):
    async def scenario():
        async with serving(site("a")) as (address, _):
            return [await called(site("b"), address) for _ in range(3)]

    assert asyncio.run(scenario()) == [b"b.node hello"] * 3
    assert len(looks) == 1


def test_a_renewed_peer_is_looked_at_again_and_then_known(site, looks, authority, tmp_path):
    async def scenario():
        async with serving(site("a")) as (address, _):
            await called(site("b"), address)
            (tmp_path / "a" / "key.pem").unlink()
            authority.issue("a", "node", tmp_path / "a")
            return [await called(site("b"), address) for _ in range(2)]

    assert asyncio.run(scenario()) == [b"b.node hello"] * 2
    assert len(looks) == 2


def test_another_process_at_a_known_address_gets_no_call(site, looks):
    async def scenario():
        async with serving(site("a")) as (address, _):
            await called(site("b"), address)
        async with serving(site("c"), address) as (_, echo):
            with pytest.raises(CertificateError, match=re.escape("is c.node.umpc, expected a")):
                await called(site("b"), address)
            return echo.ran

    assert asyncio.run(scenario()) == []
    assert len(looks) == 2


def test_a_known_peer_that_is_away_is_missed_as_any_other(site):
    async def scenario():
        async with serving(site("a")) as (address, _):
            await called(site("b"), address)
        with pytest.raises(PeerUnavailable, match="connection refused"):
            await connect(site("b"), "a", "node", address, 0.5)
        place = (site("b").ca_pem, "node", "a", address)
        return KNOWN.get(place)

    assert asyncio.run(scenario()) is None


def test_a_certificate_that_does_not_serve_is_forgotten_unless_there_is_another():
    known = KnownCertificates()
    place = (b"authority", "node", "a", "here:1")
    known.put(place, b"first")
    assert known.get(place) == known.get(place) == b"first"
    known.put(place, b"second")
    known.forget(place, b"first")
    assert known.get(place) == b"second"
    known.forget(place, b"second")
    known.forget(place, b"second")
    assert known.get(place) is None


def test_the_certificates_that_served_longest_ago_are_forgotten():
    known = KnownCertificates(most=2)
    places = {name: (b"authority", "node", name, "here:1") for name in "abc"}
    known.put(places["a"], b"a")
    known.put(places["b"], b"b")
    assert known.get(places["a"]) == b"a"
    known.put(places["c"], b"c")
    assert len(known) == 2
    assert [known.get(place) for place in places.values()] == [b"a", None, b"c"]
