"""A large request is told to the dealer once, by one of the nodes that name it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256

import pytest

from umpc.dealer import told_requests
from umpc.dealer.told_requests import RequestName, ToldRequests
from umpc.errors import EncodingError, RemoteProtocolError, StepTimeout
from umpc.proto import member_codec
from umpc.proto.v1 import umpc_pb2 as pb

SIGNATURES = (bytes(64),) * 2000
LARGE = member_codec.large_request(b"{}", (), (), SIGNATURES)
DIGEST = LARGE.first.digest
NAME = RequestName(DIGEST)


async def pieces(*parts: pb.DealPiece) -> AsyncIterator[pb.DealPiece]:
    for part in parts or LARGE.pieces():
        yield part


async def named(here: ToldRequests, asked: list[int], number: int) -> pb.DealRequest:
    async for _ in here.awaited(NAME, f"node-{number}"):
        asked.append(number)
    return here.get(NAME)


def test_a_small_request_is_whole_and_a_large_one_is_its_digest():
    small = member_codec.large_request(b"{}", (), (), (bytes(64),))
    assert not small.body and small.first.study == b"{}" and not small.first.digest
    assert sha256(LARGE.body).digest() == DIGEST and not LARGE.first.signatures


def test_one_node_is_asked_and_all_others_wait_for_what_it_tells():
    async def scenario() -> None:
        here, asked = ToldRequests(), []
        waiting = [asyncio.create_task(named(here, asked, number)) for number in range(3)]
        await asyncio.sleep(0.01)
        assert asked == [0]
        await here.take(pieces(), "node-0")
        found = await asyncio.gather(*waiting)
        assert list(found[0].signatures) == list(SIGNATURES)
        assert all(each is found[0] for each in found) and asked == [0]

    asyncio.run(scenario())


def test_the_next_node_is_asked_if_one_goes_away_or_is_slow(monkeypatch):
    monkeypatch.setattr(told_requests, "TELL_SECONDS", 0.05)

    async def scenario() -> None:
        here, asked = ToldRequests(), []
        waiting = [asyncio.create_task(named(here, asked, number)) for number in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        while len(asked) < 3:
            await asyncio.sleep(0.01)
        await here.take(pieces(), "node-2")
        assert len({id(each) for each in await asyncio.gather(*waiting[1:])}) == 1
        assert asked == [0, 1, 2], "and node-3 got the request without being asked"
        await here.take(pieces(), "node-1")  # it was asked, and it is late
        assert not here._wanted

    asyncio.run(scenario())


def test_where_nobody_tells_those_that_were_asked_are_named(monkeypatch):
    monkeypatch.setattr(told_requests, "TELL_SECONDS", 0.01)
    monkeypatch.setattr(told_requests, "LONGEST_SECONDS", 0.02)

    async def scenario() -> None:
        here, asked = ToldRequests(), []
        found = await asyncio.gather(
            *(named(here, asked, number) for number in range(2)), return_exceptions=True
        )
        assert [type(each) for each in found] == [StepTimeout] * 2
        assert [each.culprit for each in found] == ["node-0", "node-1"] and asked == [0, 1]
        assert not here._wanted

    asyncio.run(scenario())


def test_what_nobody_asked_for_and_other_bytes_are_refused():
    async def scenario() -> None:
        here, asked = ToldRequests(), []
        with pytest.raises(RemoteProtocolError, match="not asked for") as refused:
            await here.take(pieces(), "node-1")
        assert refused.value.culprit == "node-1"
        waiting = asyncio.create_task(named(here, asked, 0))
        await asyncio.sleep(0)
        with pytest.raises(RemoteProtocolError, match="not asked for"):
            await here.take(pieces(), "node-1")
        with pytest.raises(EncodingError, match="not those of its digest"):
            await here.take(pieces(pb.DealPiece(digest=DIGEST, piece=b"other")), "node-0")
        assert not waiting.done()
        await here.take(pieces(), "node-0")
        assert list((await waiting).signatures) == list(SIGNATURES)

    asyncio.run(scenario())


def test_a_request_that_is_too_large_or_of_two_digests_is_refused(monkeypatch):
    async def scenario() -> None:
        here, asked = ToldRequests(), []
        waiting = asyncio.create_task(named(here, asked, 0))
        await asyncio.sleep(0)
        whole = LARGE.body
        mixed = [
            pb.DealPiece(digest=DIGEST, piece=whole[:10]),
            pb.DealPiece(digest=bytes(32), piece=whole[10:]),
        ]
        with pytest.raises(RemoteProtocolError, match="not asked for"):
            await here.take(pieces(*mixed), "node-0")
        monkeypatch.setattr(told_requests, "MOST_BYTES", len(whole) - 1)
        with pytest.raises(EncodingError, match="at most"):
            await here.take(pieces(), "node-0")
        monkeypatch.setattr(told_requests, "MOST_BYTES", len(whole))
        await here.take(pieces(), "node-0")
        await waiting

    asyncio.run(scenario())


def test_a_slow_node_may_tell_after_the_next_one_was_asked(monkeypatch):
    monkeypatch.setattr(told_requests, "TELL_SECONDS", 0.05)

    async def scenario() -> None:
        here, asked = ToldRequests(), []
        waiting = [asyncio.create_task(named(here, asked, number)) for number in range(2)]
        while len(asked) < 2:
            await asyncio.sleep(0.01)
        await here.take(pieces(), "node-0")
        assert len(await asyncio.gather(*waiting)) == 2

    asyncio.run(scenario())


def test_few_requests_are_kept():
    async def scenario() -> None:
        here = ToldRequests()
        for number in range(2 * told_requests.MOST_KEPT):
            large = member_codec.large_request(bytes([number]), (), (), SIGNATURES)
            asking = here.awaited(RequestName(large.first.digest), "node-0")
            await anext(asking)
            await here.take(pieces(*large.pieces()), "node-0")
            await asking.aclose()
        assert len(here._kept) == told_requests.MOST_KEPT and not here._wanted

    asyncio.run(scenario())
