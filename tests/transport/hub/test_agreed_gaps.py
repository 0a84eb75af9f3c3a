"""Sessions of a meeting: cancelled writes, gaps that a hub makes, and a hub that is away."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreed_ends import Pair
from behind_hub import run

from umpc.errors import PeerLost, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n


def is_record(envelope: pb.HubEnvelope) -> bool:
    return envelope.kind == pb.HUB_SEALED


def test_the_right_to_a_gap_is_used_up_by_the_first_one_although_no_record_came():
    """Else a hub that drops the first record for ever would make both ends ask for ever."""
    pair = Pair()
    pair.north.write_now(b"one")
    pair.exchange(loses=is_record)
    pair.north.write_now(b"two")
    first: list[pb.HubEnvelope] = []

    def loses_the_first_again(envelope: pb.HubEnvelope) -> bool:
        if is_record(envelope) and len(first) < 2:  # "two", and "one" for the second time
            first.append(envelope)
            return len(first) == 2
        return False

    pair.exchange(loses=loses_the_first_again)
    (failure,) = pair.users[1].failures
    assert isinstance(failure, RemoteProtocolError) and failure.culprit == "relay"
    assert "missing" in failure.message and pair.users[1].got == []


def test_a_write_that_is_cancelled_between_two_parts_ends_all_writing():
    """A later message would continue this one, and the other end would blame the writer."""

    async def scenario() -> None:
        pair = Pair()
        pair.users[1].takes_some = False
        filling = n.WINDOW - n.PART_BYTES - 2 * n.RECORD_BYTES
        while filling > 0:
            assert pair.north.write_now(bytes(min(filling, n.PART_BYTES)))
            filling -= n.PART_BYTES + n.RECORD_BYTES
        pair.exchange()
        before = pair.north._numbering._next
        writing = asyncio.create_task(pair.north.write(bytes(2 * n.PART_BYTES)))
        while pair.north._numbering._next == before:
            await asyncio.sleep(0)
        pair.exchange()
        assert not writing.done(), "its second part has no room"
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        pair.users[1].takes_some = True
        pair.south.deliver()
        pair.exchange()
        assert not pair.north.write_now(b"another one")
        with pytest.raises(EOFError):
            await pair.north.write(b"another one")
        pair.exchange()
        assert b"another one" not in b"".join(pair.users[1].got) and not pair.users[1].failures

    run(scenario())


def test_a_hub_that_is_away_for_longer_than_the_grace_is_named():
    pair = Pair()
    for line, end in zip(pair.lines, (pair.north, pair.south), strict=True):
        line.is_up = False
        end.connection_lost()
    for _ in range(int(pair.lines[0].grace) + 1):
        pair.north.tick(1.0)
    (failure,) = pair.users[0].failures
    assert isinstance(failure, PeerLost) and failure.culprit == "relay"
    assert not pair.users[1].failures, "its own clock stood still"


def test_a_message_longer_than_a_part_is_not_written_in_one_piece():
    """Sessions share a connection fairly, part by part."""

    async def scenario() -> None:
        pair = Pair()
        assert not pair.north.write_now(bytes(n.PART_BYTES + 1))
        await pair.north.write(bytes(n.PART_BYTES + 1))
        assert pair.exchange() == 2
        assert pair.users[1].got == [bytes(n.PART_BYTES + 1)]

    run(scenario())


def test_a_writer_without_room_hears_that_its_session_has_failed():
    async def scenario() -> None:
        pair = Pair()
        pair.users[1].takes_some = False
        while pair.north.write_now(bytes(n.PART_BYTES)):
            pass
        writing = asyncio.create_task(pair.north.write(bytes(n.PART_BYTES)))
        await asyncio.sleep(0)
        pair.north.fail(PeerLost("south went away", culprit="south"), tell=False)
        with pytest.raises(PeerLost):
            await writing

    run(scenario())


def test_a_message_that_is_refused_after_it_had_waited_ends_the_session():
    pair = Pair()
    pair.users[1].takes_some = False
    pair.north.write_now(b"not a frame")
    pair.exchange()
    pair.users[1].takes_some = True
    pair.south.deliver()
    (failure,) = pair.users[1].failures
    assert isinstance(failure, RemoteProtocolError) and failure.culprit == "north"
    assert pair.lines[1].gone and pair.lines[1].refused
