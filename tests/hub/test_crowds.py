"""A hub of many processes: silence and absence may be longer, for it hears one after the other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from umpc.hub import server
from umpc.hub.relay import Seat
from umpc.hub.server import HubServer
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import connection
from umpc.transport.hub.connection import HubConnection
from umpc.transport.hub.crowd import MANY, MOST, patience_for


def seat(number: int) -> Seat:
    return Seat(("node", f"node-{number}", b"i"), listens=True, since=0.0)


class Known:
    """A hub's or member's identity, of which nothing is asked."""

    revoked = None

    def latest(self) -> Known:
        return self


@pytest.mark.parametrize(
    ("processes", "expected"),
    [(0, 1.0), (2, 1.0), (MANY, 1.0), (3 * MANY, 3.0), (10**9, MOST)],
)
def test_patience_grows_with_the_processes_up_to_a_bound(processes, expected):
    assert patience_for(processes) == expected


@pytest.mark.parametrize(("processes", "times"), [(2, 1), (4 * MANY, 4)])
def test_a_hub_looks_as_many_times_longer_before_it_ends_a_silent_connection(
    processes, times, monkeypatch
):
    monkeypatch.setattr(server, "PULSE_SECONDS", 1e-4)
    monkeypatch.setattr(server, "SILENT_SECONDS", 10e-4)
    monkeypatch.setattr(server, "processor_share", lambda: 1.0)
    looks = []
    monkeypatch.setattr(server, "peer_of", lambda *_, **__: looks.append(1))
    hub = HubServer(Known(), 30)
    hub.relay.seats = {each.key: each for each in map(seat, range(processes))}
    asyncio.run(hub._watch(seat(0), None))
    assert len(looks) == pytest.approx(10 * times, abs=times)


def test_those_that_may_come_back_count_as_well():
    hub = HubServer(Known(), 30)
    for number in range(2 * MANY):
        join = pb.HubJoin(instance=bytes(16), listens=True)
        hub.relay.join("node", f"node-{number}", join, 0.0)
    for each in list(hub.relay.seats.values())[:MANY]:
        hub.relay.leave(each, for_good=False)
    assert hub.relay.expected == 2 * MANY and hub._patience() == 2.0
    for each in list(hub.relay.seats.values()):
        hub.relay.leave(each, for_good=True)
    assert hub.relay.expected == MANY


class Line:
    """The messages of a hub, one after the other."""

    def __init__(self, *said: pb.HubFrame) -> None:
        self.said = list(said)

    async def write(self, frame: pb.HubFrame) -> None: ...

    async def read(self) -> pb.HubFrame | None:
        return self.said.pop(0) if self.said else None


async def next_of(line: Line) -> pb.HubFrame | None:
    return await line.read()


class Joining(Line):
    """A member that joins, and whose connection then breaks. written: what the hub says to it."""

    def __init__(self) -> None:
        super().__init__(pb.HubFrame(join=pb.HubJoin(instance=bytes(16), listens=True)))
        self.written: list[pb.HubFrame] = []

    async def write(self, frame: pb.HubFrame) -> None:
        self.written.append(frame)


@pytest.mark.parametrize(("grace", "crowd", "longer"), [(30, 4, 120), (30, 32, 600), (900, 4, 900)])
def test_a_hub_says_how_many_it_expects_and_expects_them_longer(grace, crowd, longer, monkeypatch):
    monkeypatch.setattr(server, "peer_of", lambda *_, **__: SimpleNamespace(role="node", name="n"))
    monkeypatch.setattr(server, "read", next_of)
    monkeypatch.setattr(server, "PULSE_SECONDS", 1e-4)
    delays = []

    async def scenario() -> list[pb.HubFrame]:
        hub, line = HubServer(Known(), grace), Joining()
        hub.relay.seats = {each.key: each for each in map(seat, range(crowd * MANY - 1))}

        async def served(*parts) -> bool:
            writing = asyncio.create_task(hub._write(*parts))
            while len(line.written) < 2:
                await asyncio.sleep(0)
            writing.cancel()
            return False

        monkeypatch.setattr(hub, "_serve", served)
        loop = asyncio.get_running_loop()
        later = loop.call_later
        monkeypatch.setattr(
            loop, "call_later", lambda delay, *rest: (delays.append(delay), later(delay, *rest))[1]
        )
        await hub.Join(None, line)
        return line.written

    welcome, pulse = asyncio.run(scenario())
    assert welcome.welcome.expected == pulse.pulse.expected == crowd * MANY
    assert delays[-1] == pytest.approx(longer, rel=0.01)


class Member:
    """The user of a member's connection, who only counts what comes."""

    def __init__(self) -> None:
        self.taken = []

    def take(self, frame: pb.HubFrame) -> None:
        self.taken.append(frame)

    def came_up(self) -> None: ...


def test_a_member_learns_from_welcome_and_pulses_how_many_a_hub_hears(monkeypatch):
    monkeypatch.setattr(connection, "read", next_of)

    async def scenario():
        monkeypatch.setattr(asyncio, "create_task", lambda coroutine: coroutine.close())
        link = HubConnection(None, None, Member(), listens=True)
        welcome = pb.HubFrame(welcome=pb.HubWelcome(grace_seconds=30, expected=1))
        await link._join(Line(), Line(welcome))
        assert (link.grace, link.patience) == (30, 1.0)
        await link._read(Line(pb.HubFrame(pulse=pb.HubPulse(expected=4 * MANY))))
        assert (link.grace, link.patience) == (120, 4.0)
        again = pb.HubFrame(welcome=pb.HubWelcome(grace_seconds=30, expected=1))
        await link._join(Line(), Line(again))
        assert link.grace == 120, "a hub that was started again expects few at first"
        await link._read(Line(pb.HubFrame(pulse=pb.HubPulse(expected=(1 << 32) - 1))))
        assert (link.grace, link.patience) == (connection.MOST_GRACE, MOST)

    asyncio.run(scenario())


@pytest.mark.parametrize(("patience", "ticks"), [(1.0, 11), (4.0, 41)])
def test_a_member_waits_as_much_longer_for_a_silent_hub(patience, ticks, monkeypatch):
    monkeypatch.setattr(connection, "TICK_SECONDS", 2**-12)
    monkeypatch.setattr(connection, "SILENT_SECONDS", 10 * 2**-12)
    monkeypatch.setattr(connection, "processor_share", lambda: 1.0)
    passed = []

    class Waiting(Member):
        def passed(self, seconds: float, counted: float) -> None:
            passed.append(seconds)

    async def scenario():
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "create_task", lambda coroutine: coroutine.close())
            link = HubConnection(None, None, Waiting(), listens=True)
        link.is_up, link.patience = True, patience
        ticking = asyncio.create_task(link._tick())
        link._call = SimpleNamespace(cancel=ticking.cancel)
        await asyncio.gather(ticking, return_exceptions=True)

    asyncio.run(scenario())
    assert len(passed) == ticks
