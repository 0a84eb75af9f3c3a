"""Frames between nodes: each once, in any order, and nobody waits for a peer that is gone."""

from __future__ import annotations

import asyncio

import pytest

from umpc.errors import PeerLost, RemoteProtocolError
from umpc.mpc.frames import Frame
from umpc.node import peers
from umpc.node.peers import Mailbox


def frame(chunk: int = 0, payload: bytes = b"\x01") -> Frame:
    return Frame("open_bits", (0, 1), chunk, 8 * len(payload), 1, payload)


def test_a_frame_is_handed_out_whether_it_came_before_or_after_it_was_asked_for():
    async def scenario() -> None:
        box = Mailbox("north")
        box.put(frame(1))
        assert await box.get(frame(1).key) == frame(1)
        waiting = asyncio.create_task(box.get(frame(2).key))
        await asyncio.sleep(0)
        assert box.is_awaited
        box.put(frame(2))
        assert await waiting == frame(2)
        assert not box.is_awaited

    asyncio.run(scenario())


def test_the_same_frame_twice_is_accepted_and_a_different_one_names_the_peer():
    async def scenario() -> None:
        box = Mailbox("north")
        box.put(frame())
        box.put(frame())
        with pytest.raises(RemoteProtocolError, match=r"open_bits of cell .* chunk 0 from north came twice") as caught:
            box.put(frame(payload=b"\x02"))
        assert (caught.value.culprit, caught.value.step) == ("north", "open_bits")
        assert await box.get(frame().key) == frame()

    asyncio.run(scenario())


def test_a_repeated_frame_is_not_handed_out_twice():
    async def scenario() -> None:
        box = Mailbox("north")
        box.put(frame())
        await box.get(frame().key)
        box.put(frame())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await box.get(frame().key)

    asyncio.run(scenario())


def test_a_peer_that_is_gone_ends_all_waiting_now_and_later():
    async def scenario() -> None:
        box = Mailbox("north")
        waiting = asyncio.create_task(box.get(frame(1).key))
        box.put(frame(2))
        await asyncio.sleep(0)
        box.fail(PeerLost("north went away", culprit="north"))
        box.fail(PeerLost("a later reason"))
        for job in (waiting, box.get(frame(3).key)):
            with pytest.raises(PeerLost, match="north went away"):
                await job
        assert await box.get(frame(2).key) == frame(2), "what had come is still good"

    asyncio.run(scenario())


def test_a_peer_cannot_fill_the_memory(monkeypatch):
    monkeypatch.setattr(peers, "MAX_WAITING", 100)

    async def scenario() -> None:
        box = Mailbox("north")
        for chunk in range(10):
            box.put(frame(chunk, bytes(10)))
        with pytest.raises(RemoteProtocolError, match="100 bytes wait"):
            box.put(frame(10, bytes(1)))
        await box.get(frame(0).key)
        box.put(frame(11, bytes(10)))

    asyncio.run(scenario())
