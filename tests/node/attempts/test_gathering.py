"""umpc.node.attempts.gathering: many frames are one wait, and the first failure ends it."""

from __future__ import annotations

import asyncio
import gc

import pytest

from umpc.errors import PeerLost, RemoteProtocolError
from umpc.node.attempts.gathering import all_of
from umpc.node.attempts.session_link import SessionLink
from umpc.study.frames import Frame


def frame(number: int, payload: bytes = b"\1") -> Frame:
    return Frame("open", (0, 1), number, 8, 1, payload, 1)


def links(count: int) -> list[SessionLink]:
    return [SessionLink(f"node-{number}") for number in range(count)]


def test_frames_come_in_any_order_before_and_after_they_are_asked_for():
    async def scenario() -> None:
        north, south = links(2)
        north._mailbox.put(frame(1))
        asked = [(south, frame(0).key), (north, frame(1).key), (north, frame(0).key)]
        waiting = asyncio.create_task(all_of(asked))
        await asyncio.sleep(0)
        assert north.is_awaited and south.is_awaited and not waiting.done()
        north._mailbox.put(frame(0, b"\2"))
        await asyncio.sleep(0)
        assert not north.is_awaited and not waiting.done()
        south._mailbox.put(frame(0, b"\3"))
        came = await waiting
        assert [each.payload for each in came] == [b"\3", b"\1", b"\2"]
        assert north.rounds_used == south.rounds_used == {("open", 1)}

    asyncio.run(scenario())


def test_nothing_is_awaited_where_all_frames_are_here_or_none_is_asked_for():
    async def scenario() -> None:
        (north,) = links(1)
        north._mailbox.put(frame(0))
        assert [each.key for each in await all_of([(north, frame(0).key)])] == [frame(0).key]
        assert await all_of([]) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_failure_ends_the_wait_whoever_else_is_awaited(first):
    async def scenario() -> None:
        both = links(2)
        waiting = asyncio.create_task(all_of([(each, frame(0).key) for each in both]))
        await asyncio.sleep(0)
        both[first].fail(PeerLost("gone", culprit=both[first].peer))
        both[1 - first].fail(PeerLost("gone, too", culprit="the second"))
        with pytest.raises(PeerLost) as caught:
            await asyncio.wait_for(waiting, 60)
        assert caught.value.culprit == both[first].peer
        assert not any(each.is_awaited for each in both)

    asyncio.run(scenario())


def test_a_link_that_has_failed_ends_the_wait_at_once_and_without_a_complaint(caplog):
    async def scenario() -> None:
        north, south = links(2)
        south.fail(RemoteProtocolError("lied", culprit="south", step="evaluate"))
        with pytest.raises(RemoteProtocolError, match="lied"):
            await all_of([(north, frame(0).key), (south, frame(0).key)])
        assert not north.is_awaited
        north.fail(PeerLost("gone", culprit="north"))
        gc.collect()

    asyncio.run(scenario())
    assert not caplog.records


def test_a_frame_that_comes_after_the_wait_was_given_up_is_kept_for_the_next_caller():
    async def scenario() -> None:
        (north,) = links(1)
        waiting = asyncio.create_task(all_of([(north, frame(0).key)]))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        north._mailbox.put(frame(0))
        assert (await north.receive(frame(0).key)).payload == b"\1"

    asyncio.run(scenario())
