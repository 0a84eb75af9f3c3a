"""A session keeps its records until they are acknowledged, and asks in time: none stays for ever.

`two_ends.py` has both ends, and lets time pass.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from two_ends import Pair, begun

from umpc.errors import RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.session import ACK_SECONDS, PROBE_SECONDS, Session

WHILE = 60
"""Seconds in which a session would repeat whatever nobody acknowledges."""


def run(scenario: Callable[[], None]) -> None:
    async def main() -> None:
        scenario()

    asyncio.run(main())


def test_an_end_that_sends_nothing_acknowledges_before_it_is_asked():
    def scenario() -> None:
        pair = begun()
        pair.north.send(n.MESSAGE, b"x")
        pair.exchange()
        assert pair.pass_time(WHILE) == [], "no probe was due"
        assert pair.sent == {"north": 1, "south": 1}

    run(scenario)


def test_many_records_are_acknowledged_at_once():
    """The sender keeps every record until then, and a quick one would fill its memory."""

    def scenario() -> None:
        pair = begun()
        for _ in range(4 * n.ACK_RECORDS):
            pair.north.send(n.MESSAGE, b"")
            pair.exchange()
        assert pair.sent["south"] == 4

    run(scenario)


def test_a_window_is_opened_again_as_soon_as_its_bytes_are_taken():
    """Messages of four windows pass while no time does."""
    message = bytes(n.WINDOW // 8)

    async def main() -> None:
        pair = begun()
        writing = asyncio.create_task(write(pair.north))
        read = 0
        while read < 32:
            await asyncio.sleep(0)
            pair.exchange()
            while (came := await read_now(pair.south)) is not None:
                assert came == message
                read += 1
        await writing
        assert pair.sent["south"] <= read

    async def write(north: Session) -> None:
        for _ in range(32):
            await north.write(message)

    async def read_now(south: Session) -> bytes | None:
        reading = asyncio.create_task(south.read())
        await asyncio.sleep(0)
        if not reading.done():
            reading.cancel()
            return None
        return reading.result()

    async def limited() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(limited())


def test_a_lost_acknowledgement_is_asked_for_and_given_again():
    def scenario() -> None:
        pair = begun()
        pair.north.send(n.MESSAGE, b"x")
        pair.exchange()
        assert pair.pass_time(ACK_SECONDS, loses=lambda sender: sender == "south") == []
        assert pair.sent["south"] == 1, "which the line has lost"
        assert len(pair.pass_time(WHILE)) == 1, "one probe, and its answer"

    run(scenario)


def test_a_record_that_came_twice_is_acknowledged_again():
    north, south = (n.Numbering(name, lambda: 1, dropped) for name in ("south", "north"))
    north.append(n.MESSAGE, b"x")
    _, record = north.pull()
    assert south.take(record) == n.HubRecord(n.MESSAGE, b"x")
    south.settle()
    assert south.pull()[0] == n.ACK and south.pull() is None
    assert south.take(record) is None  # the line had lost the acknowledgement
    assert south.pull()[0] == n.ACK and south.pull() is None


def dropped() -> RemoteProtocolError:
    return RemoteProtocolError("the hub dropped a record")


@pytest.mark.parametrize("ends_it", ["south", "north"])
def test_a_call_that_has_ended_leaves_nothing_behind_although_no_time_passes(ends_it):
    """The side that ends the call keeps its last record until the other side has acknowledged."""

    def scenario() -> None:
        pair = begun()
        pair.south.cancelled = pair.south.close
        if ends_it == "south":
            pair.south.send(n.END, pb.HubEnd(code=0).SerializeToString())
            pair.south.close()
            pair.exchange()
            pair.north.close()
        else:
            pair.north.cancel()
        pair.exchange()
        assert pair.is_forgotten

    run(scenario)


def test_a_last_record_that_crosses_the_end_of_the_call_is_acknowledged_at_once():
    """A process that leaves waits until its records are received, for a second in every study."""

    def scenario() -> None:
        pair = begun()
        pair.south.send(n.END, pb.HubEnd(code=0).SerializeToString())
        pair.south.close()
        end = pair.south.next_frame().envelope
        pair.north.send(n.HALF_CLOSE)
        half_close = pair.north.next_frame().envelope
        pair.north.take(end)
        pair.north.close()
        pair.south.take(half_close)
        pair.exchange()
        assert pair.is_forgotten

    run(scenario)


def test_whoever_was_answered_late_waits_no_longer_the_next_time():
    """Each wait without any answer is twice as long as the one before it."""

    def scenario() -> None:
        pair = Pair()
        assert pair.pass_time(30, loses=lambda sender: True) == [1, 10, 30]
        pair.north.accepted(pair.accepts)
        pair.north.begin_call("method")
        first = int(PROBE_SECONDS)
        probes = [1, first, 3 * first]
        assert pair.pass_time(3 * first, loses=lambda sender: True) == probes
        pair.south.send(n.MESSAGE, b"it has not seen the call, and says so by what it sends")
        pair.exchange(loses=lambda sender: sender == "north")
        asked = [int(ACK_SECONDS), first]
        assert pair.pass_time(first, loses=lambda sender: True) == asked

    run(scenario)
