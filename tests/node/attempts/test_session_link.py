"""Links over sessions that two nodes make by themselves: frames, violations, greetings, ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.support.hub_wire import Wire, frame, run
from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError, MpcError, PeerLost, RemoteProtocolError
from umpc.node.attempts.session_link import SessionLink
from umpc.proto import frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame, Key


def asked_of(link: SessionLink, key: Key) -> asyncio.Future[Frame]:
    """A frame that is not there yet."""
    wanted = link.wanted(key)
    assert not wanted.done()
    return wanted


def test_a_frame_is_one_envelope_and_counts_with_its_bytes():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        for each in (frame(), frame(1), frame(round=2)):
            await north.send(each)
        wire.exchange()
        assert len(wire.sent) == 3
        for each in (frame(round=2), frame(), frame(1)):
            assert await south.receive(each.key) == Message("open", b"\x01", 8, 1, each.round)
        due = (frame(), frame(1), frame(round=2))
        assert north.bytes_sent == sum(each.wire_bytes for each in due)
        assert north.rounds_used == south.rounds_used == {("open", 1), ("open", 2)}

    run(scenario)


def test_a_caller_that_waits_makes_its_peer_awaited_until_the_frame_comes():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        asked = asked_of(south, frame().key)
        assert south.is_awaited
        await north.send(frame())
        wire.exchange()
        assert await asked == frame()
        assert not south.is_awaited

    run(scenario)


BROKEN = {
    "bytes that are no frame": (b"\xff\xff\xff", "no frame came"),
    "an unknown step": (pb.Frame(step=99).SerializeToString(), "unknown step 99"),
    "too few bytes": (
        pb.Frame(step=pb.OT_EXTEND, count=9, width=8).SerializeToString(),
        "do not take 0 bytes",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_peer_that_sends_no_frame_is_named_and_ends_the_study_at_once(case):
    message, words = BROKEN[case]

    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        alarms: list[MpcError] = []
        south.on_violation(alarms.append)
        south.step = "evaluate"
        assert north.session is not None and north.session.write_now(message)
        wire.exchange()
        (error,) = alarms
        assert isinstance(error, RemoteProtocolError) and words in error.message
        assert (error.culprit, error.step) == ("north", "evaluate")
        with pytest.raises(RemoteProtocolError):
            await south.receive(frame().key)
        with pytest.raises(PeerLost) as caught:  # north hears that its session is over
            await north.receive(frame().key)
        assert (caught.value.culprit, caught.value.step) == ("south", "prepare")

    run(scenario)


def test_two_frames_that_differ_name_the_peer_although_nobody_waits():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        alarms: list[MpcError] = []
        south.on_violation(alarms.append)
        await north.send(frame())
        await north.send(frame(payload=b"\x02"))
        wire.exchange()
        assert "came twice" in alarms[0].message and alarms[0].culprit == "north"

    run(scenario)


def test_an_error_of_any_kind_ends_the_link_and_not_the_connection(monkeypatch):
    def fails(_: Any) -> Frame:
        raise ArithmeticError("a fault of the decoder")

    monkeypatch.setattr(frame_codec, "decode_frame", fails)

    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        await north.send(frame())
        wire.exchange()
        with pytest.raises(RemoteProtocolError, match="no frame came"):
            await south.receive(frame().key)

    run(scenario)


def test_a_link_with_a_window_takes_no_more_than_has_room_unless_somebody_waits():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        south.window = 1500  # one frame, with what it takes besides
        for chunk in range(4):
            await north.send(frame(chunk))
        wire.exchange()
        assert len(south._mailbox._waiting) == 2
        assert await south.receive(frame(3).key)
        assert len(south._mailbox._waiting) <= 3

    run(scenario)


def test_a_closed_link_says_nothing_and_its_peer_hears_when_it_writes():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        await north.send(frame())
        wire.exchange()
        south.close(keep=True)
        wire.exchange()
        await south.ended()
        assert len(wire.sent) == 1 and not wire.lines[1].sessions
        with pytest.raises(PeerLost):
            await south.send(frame(1))
        asked = asked_of(north, frame(1).key)
        north.step = "evaluate"
        await north.send(frame(2))
        wire.exchange()
        with pytest.raises(PeerLost, match="south went away") as caught:
            await asked
        assert (caught.value.culprit, caught.value.step) == ("south", "evaluate")

    run(scenario)


def test_whoever_waits_on_a_link_that_is_closed_waits_no_longer():
    async def scenario(wire: Wire) -> None:
        _, south = wire.links()
        asked = asked_of(south, frame().key)
        south.close()
        for waiting in (asked, south.receive(frame(1).key)):
            with pytest.raises(PeerLost) as caught:
                await waiting
            assert caught.value.culprit == "north"

    run(scenario)


def test_before_all_have_signed_a_peer_that_is_not_there_yet_is_waited_for():
    async def scenario(wire: Wire) -> None:
        north = wire.link(0)
        await north.send(frame())
        wire.exchange()
        assert not wire.lines[0].controls and north.session is not None
        assert north.session.failure is None
        south = wire.link(1)
        wire.exchange()
        assert await south.receive(frame().key) == frame().message

    run(scenario)


def test_a_link_that_finishes_waits_until_its_last_frame_has_left():
    """The last message of a channel for the next study comes right before the link's end."""

    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        await north.send(frame())
        finishing = asyncio.create_task(north.finish())
        await asyncio.sleep(0)
        assert not finishing.done()
        wire.exchange()
        await finishing
        north.close(keep=True)
        assert await south.receive(frame().key) == frame().message

    run(scenario)


def test_whoever_waits_for_a_greeting_hears_that_the_link_is_lost():
    async def scenario(wire: Wire) -> None:
        north, south = wire.links()
        waiting = asyncio.create_task(north.greeting())
        await asyncio.sleep(0)
        assert south.session is not None
        south.session.refuse()
        wire.exchange()
        with pytest.raises(PeerLost) as caught:
            await waiting
        assert caught.value.culprit == "south"
        with pytest.raises(PeerLost):
            await north.greeting()

    run(scenario)


def test_a_link_is_used_after_it_is_made():
    with pytest.raises(LocalProtocolError, match="before it was made"):
        asyncio.run(SessionLink("south").send(replace(frame())))
