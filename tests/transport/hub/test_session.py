"""umpc/transport/hub/session.py: who is waited for, and for how long."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from umpc.crypto.signing import MemoryAuthority
from umpc.errors import PeerLost
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import End, Opening, Parties, answer
from umpc.transport.hub.session import IDLE_SECONDS, Session

AUTHORITY = MemoryAuthority("consortium")
NORTH, SOUTH = End("node", "north"), End("node", "south")
GRACE = 30


@dataclass
class Line:
    """A connection that sends nothing."""

    is_up: bool = True
    grace: float = GRACE

    def ready(self, session):
        pass

    forget = refuse = ready


def session(line: Line | None = None) -> Session:
    """Return an open session of north with south, which has a record to send."""
    parties = Parties(b"s" * 16, NORTH, SOUTH, "relay")
    opening = Opening(parties, AUTHORITY.credentials("north", "node"))
    _, seal, _ = answer(parties, AUTHORITY.credentials("south", "node"), opening.message)
    made = Session(line or Line(), parties, pb.HubMember(role="node", name="south"), seal=seal)
    made.send(n.CALL, b"method")
    return made


def lives_through(
    made: Session, seconds: int, *, absent: bool = False, counted: float | None = None
) -> bool:
    for _ in range(seconds):
        if absent:
            made.ask(absent=True)
        made.tick(1.0, counted)
    return made.failure is None


def test_who_is_connected_may_be_slow_and_who_is_not_has_the_grace_time():
    async def scenario():
        slow = session()
        assert lives_through(slow, 20 * GRACE)
        assert lives_through(slow, GRACE, absent=True)
        assert not lives_through(slow, 1, absent=True)
        assert isinstance(slow.failure, PeerLost) and slow.failure.culprit == "south"

    asyncio.run(scenario())


def test_a_session_has_longer_to_begin_its_call_than_its_caller_may_be_away():
    """A node opens one with its dealer when it has agreed, and calls when all nodes have."""

    async def scenario():
        made = session()
        made.called = lambda method: None  # south waits for the call of north
        assert lives_through(made, int(IDLE_SECONDS))
        assert not lives_through(made, 1)

    asyncio.run(scenario())


def test_on_a_busy_machine_absence_counts_less():
    async def scenario():
        busy = session()
        assert lives_through(busy, 4 * GRACE, absent=True, counted=0.25)
        assert not lives_through(busy, 4, absent=True, counted=0.25)

    asyncio.run(scenario())


def test_a_hub_that_does_not_come_back_is_named():
    async def scenario():
        line = Line()
        cut = session(line)
        line.is_up = False
        cut.connection_lost()
        assert lives_through(cut, GRACE) and not lives_through(cut, 1)
        assert isinstance(cut.failure, PeerLost) and cut.failure.culprit == "relay"

    asyncio.run(scenario())


def sent_at(made: Session, seconds: int, kind: int) -> list[int]:
    """The seconds at which a session that nobody answers sends envelopes of a kind."""
    found = []
    for second in range(1, seconds + 1):
        made.tick(1.0)
        while (frame := made.next_frame()) is not None:
            if frame.envelope.kind == kind:
                found.append(second)
    return found


def test_what_nobody_answers_is_repeated_more_and_more_rarely():
    """Thousands of members that wait for one busy process would fill its queue with copies."""

    async def scenario():
        parties = Parties(b"s" * 16, NORTH, SOUTH, "relay")
        opening = Opening(parties, AUTHORITY.credentials("north", "node"))
        line = Line()
        opens = Session(line, parties, pb.HubMember(role="node", name="south"), opening=opening)
        assert sent_at(opens, 80, pb.HUB_OPEN) == [1, 10, 30, 70]

        asks = session()
        asks.ask()
        assert sent_at(asks, 32, pb.HUB_RESUME) == [1, 1 + 2, 3 + 4, 7 + 8, 15 + 8, 23 + 8]
        asks.connection_back()
        assert sent_at(asks, 3, pb.HUB_RESUME) == [1, 3], "a new connection begins anew"

        probes = session()
        assert sent_at(probes, 40, pb.HUB_SEALED) == [1, 5, 15, 35], "the record, and probes for it"

    asyncio.run(scenario())


def test_a_session_takes_another_turn_only_if_it_has_more_to_send():
    async def scenario():
        made = session()
        made.send(n.MESSAGE, b"one")
        assert made.next_frame() is not None and made.has_more
        assert made.next_frame() is not None and not made.has_more and made.next_frame() is None
        made.send(n.HALF_CLOSE)
        assert made.has_more
        made.close()
        assert made.next_frame() is not None and made.has_more, "it may leave once all has arrived"

    asyncio.run(scenario())


def test_a_peer_that_is_missed_is_told_with_the_seconds_that_passed_on_a_busy_machine_too():
    """A second counts as a quarter there."""

    async def scenario():
        busy = session()
        assert not lives_through(busy, 5 * GRACE, absent=True, counted=0.25)
        assert f"did not come back within {4 * GRACE + 1} s" in busy.failure.message

    asyncio.run(scenario())
