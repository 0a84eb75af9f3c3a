"""A session keeps its records until they are acknowledged, and asks in time: none stays for ever.

Two ends of a session, on a line that delivers at once or loses what it is told to. Time passes by
ticks of a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from umpc.crypto.signing import MemoryAuthority
from umpc.errors import RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import End, Opening, Parties, answer
from umpc.transport.hub.session import ACK_SECONDS, PROBE_SECONDS, Session

AUTHORITY = MemoryAuthority("consortium")
NORTH, SOUTH = End("node", "north"), End("node", "south")
WHILE = 60
"""Seconds in which a session would repeat whatever nobody acknowledges."""


class Here:
    """The connection of one process, which is up. `gone`: the sessions that it was told to forget.

    They are all that it has: a session that is not forgotten takes memory for ever.
    """

    is_up, grace = True, 30.0

    def __init__(self) -> None:
        self.gone: list[Session] = []

    def ready(self, session: Session) -> None: ...

    def refuse(self, envelope: pb.HubEnvelope) -> None: ...

    def forget(self, session: Session) -> None:
        self.gone.append(session)


class Pair:
    """North, which calls, and south. `sent`: the number of envelopes of each."""

    def __init__(self) -> None:
        parties = Parties(b"s" * 16, NORTH, SOUTH, "relay")
        opening = Opening(parties, AUTHORITY.credentials("north", "node"))
        message, seal, _ = answer(parties, AUTHORITY.credentials("south", "node"), opening.message)
        self.accepts = pb.HubEnvelope(
            source=pb.HubMember(role="node", name="south", instance=b"i" * 16), body=message
        )
        self.lines = Here(), Here()
        to_south = pb.HubMember(role="node", name="south")
        to_north = pb.HubMember(role="node", name="north")
        self.north = Session(self.lines[0], parties, to_south, opening=opening)
        self.south = Session(self.lines[1], parties, to_north, seal=seal)
        self.south.called = lambda method: None
        self.sent = {"north": 0, "south": 0}

    def exchange(self, loses: Callable[[str], bool] = lambda sender: False) -> None:
        """Deliver all that is due. Args: loses: whether the line loses an envelope of this end."""
        is_moving = True
        while is_moving:
            is_moving = False
            for name, source, target in (
                ("north", self.north, self.south),
                ("south", self.south, self.north),
            ):
                while (envelope := source.pull()) is not None:
                    is_moving = True
                    self.sent[name] += 1
                    if not loses(name):
                        target.take(envelope)

    def pass_time(self, seconds: float, **line: Callable[[str], bool]) -> list[int]:
        """Let time pass. Returns: the seconds in which north sent something."""
        found = []
        for second in range(1, int(seconds) + 1):
            before = self.sent["north"]
            self.north.tick(1.0)
            self.south.tick(1.0)
            self.exchange(**line)
            if self.sent["north"] > before:
                found.append(second)
        return found

    @property
    def is_forgotten(self) -> bool:
        """Neither process keeps anything of the session."""
        return all(line.gone for line in self.lines)


def begun() -> Pair:
    """An open session with a call that has begun, and nothing to acknowledge any more."""
    pair = Pair()
    pair.north.accepted(pair.accepts)
    pair.north.begin_call("method", lasts=False)
    pair.exchange()
    pair.pass_time(ACK_SECONDS + 1)
    pair.sent = {"north": 0, "south": 0}
    return pair


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
        end = pair.south.pull()
        pair.north.send(n.HALF_CLOSE)
        half_close = pair.north.pull()
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
        pair.north.begin_call("method", lasts=False)
        first = int(PROBE_SECONDS)
        probes = [1, first, 3 * first]
        assert pair.pass_time(3 * first, loses=lambda sender: True) == probes
        pair.south.send(n.MESSAGE, b"it has not seen the call, and says so by what it sends")
        pair.exchange(loses=lambda sender: sender == "north")
        asked = [int(ACK_SECONDS), first]
        assert pair.pass_time(first, loses=lambda sender: True) == asked

    run(scenario)
