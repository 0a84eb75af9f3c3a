"""Links over sessions that two nodes make by themselves: frames, violations, greetings, ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError, MpcError, PeerLost, PeerUnavailable, RemoteProtocolError
from umpc.node.attempts.agreed_links import AgreedLinks
from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.run_links import RunLinks
from umpc.node.attempts.session_link import SessionLink
from umpc.proto import frame_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame
from umpc.transport.hub import routes
from umpc.transport.hub.address import HubAddress
from umpc.transport.hub.link import HubLink

HUB = HubAddress("relay", "127.0.0.1:7000")
MEETING, SECRET = b"m" * 32, b"s" * 32
NAMES = ("north", "south")


class Line(HubLink):
    """A process at a hub without a connection: `Wire` takes what it sends to the other one."""

    def __init__(self, name: str):
        identity: Any = SimpleNamespace(role="node", name=name)
        listener: Any = object()
        super().__init__(identity, HUB, listener)
        for task in self.connection._tasks:
            task.cancel()
        self.controls: list[pb.HubFrame] = []
        connection: Any = SimpleNamespace(
            want=lambda: None, control=self.controls.append, is_up=True, grace=30
        )
        self.connection = connection


class Wire:
    """Two processes, and the links of both nodes to each other. sent: all envelopes."""

    def __init__(self) -> None:
        self.lines = [Line(name) for name in NAMES]
        for line in self.lines:
            routes.register(line)
        self.sent: list[pb.HubEnvelope] = []

    def link(self, at: int, meeting: bytes = MEETING) -> SessionLink:
        own = AgreedLinks(self.lines[at].identity)
        hub = self.lines[at]
        return own.link(hub, NAMES[1 - at], meeting, SECRET, is_later=not at)

    def links(self) -> tuple[SessionLink, SessionLink]:
        return self.link(0), self.link(1)

    def exchange(self) -> None:
        is_moving = True
        while is_moving:
            is_moving = False
            for at, line in enumerate(self.lines):
                waiting = [*line.controls]
                line.controls.clear()
                while (frame := line.next_frame()) is not None:
                    waiting.append(frame)
                for frame in waiting:
                    is_moving = True
                    envelope = frame.envelope
                    envelope.source.role, envelope.source.name = "node", NAMES[at]
                    envelope.source.instance = b"i" * 16
                    self.sent.append(envelope)
                    self.lines[1 - at].take(frame)


def frame(chunk: int = 0, payload: bytes = b"\x01", round: int = 1) -> Frame:
    return Frame("open", (0, 1), chunk, 8 * len(payload), 1, payload, round)


def run(scenario) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await scenario(Wire())

    asyncio.run(main())


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
        asked = south.ask(frame().key)
        assert south.is_awaited
        await north.send(frame())
        wire.exchange()
        assert isinstance(asked, asyncio.Future) and await asked == frame()
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
        asked = north.ask(frame(1).key)
        north.step = "evaluate"
        await north.send(frame(2))
        wire.exchange()
        with pytest.raises(PeerLost, match="south went away") as caught:
            await asked  # type: ignore[misc]
        assert (caught.value.culprit, caught.value.step) == ("south", "evaluate")

    run(scenario)


def test_whoever_waits_on_a_link_that_is_closed_waits_no_longer():
    async def scenario(wire: Wire) -> None:
        _, south = wire.links()
        asked = south.ask(frame().key)
        south.close()
        assert isinstance(asked, asyncio.Future)
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


# ---- the links of a run ----------------------------------------------------------------------


class Channels:
    """The channels of one node. has: the names of those that it has."""

    def __init__(self, *has: bytes):
        self.has = has

    async def offer(self, peer: str):
        return SimpleNamespace(name=self.has[0]) if self.has else None

    async def accept(self, peer: str, name: bytes):
        return SimpleNamespace(name=name) if name in self.has else None


def study_of(*addresses: str) -> Any:
    nodes = [
        SimpleNamespace(name=name, address=address)
        for name, address in zip((*NAMES, "west"), addresses, strict=False)
    ]
    return SimpleNamespace(nodes=nodes, index_of=lambda name: [n.name for n in nodes].index(name))


def mesh_of(index: int) -> Any:
    attempt = SimpleNamespace(program=SimpleNamespace(window=None))
    return SimpleNamespace(
        index=index,
        peers=(1 - index,),
        attempt=attempt,
        secrets_with=lambda peers, meeting: dict.fromkeys(peers, SECRET),
    )


def site_of(wire: Wire, at: int) -> Any:
    return SimpleNamespace(agreed=AgreedLinks(wire.lines[at].identity), dial=None, await_link=None)


@pytest.mark.parametrize(
    ("offers", "has", "taken"),
    [((b"one",), (b"one",), b"one"), ((b"one",), (), None), ((), (b"one",), None)],
)
def test_a_channel_is_taken_if_both_ends_have_it(offers, has, taken):
    async def scenario(wire: Wire) -> None:
        study = study_of(str(HUB), str(HUB))
        runs = [RunLinks(ViolationGuard()), RunLinks(ViolationGuard())]
        meetings = []
        for at, own in enumerate((Channels(*offers), Channels(*has))):
            given: Any = {1 - at: own}
            meeting = runs[at].connect(site_of(wire, at), mesh_of(at), study, MEETING, given)
            meetings.append(asyncio.create_task(meeting))
        while runs[1].waited_for() != ["north"]:
            await asyncio.sleep(0)
        while not all(each.done() for each in meetings):
            await asyncio.sleep(0)
            wire.exchange()
        for at in range(2):
            await meetings[at]
            channel = runs[at].made[1 - at].channel
            assert (channel.name if channel else None) == taken
            assert runs[at].waited_for() == []

    run(scenario)


def test_a_channel_that_was_not_offered_names_the_peer():
    async def scenario(wire: Wire) -> None:
        runs = RunLinks(ViolationGuard())
        given: Any = {1: Channels(b"one")}
        study = study_of(str(HUB), str(HUB))
        meeting = asyncio.create_task(
            runs.connect(site_of(wire, 0), mesh_of(0), study, MEETING, given)
        )
        wire.link(1).greet(b"two")
        while not meeting.done():
            await asyncio.sleep(0)
            wire.exchange()
        with pytest.raises(RemoteProtocolError, match="not offered") as caught:
            await meeting
        assert caught.value.culprit == "south"

    run(scenario)


def test_links_are_made_when_they_are_begun_and_nothing_is_sent_for_them():
    async def scenario(wire: Wire) -> None:
        runs = RunLinks(ViolationGuard())
        study = study_of(str(HUB), str(HUB))
        runs.begin_to_connect(site_of(wire, 0), mesh_of(0), study, MEETING)
        assert set(runs.made) == {1} and runs.has_begun
        await runs.connected()
        wire.exchange()
        assert wire.sent == []
        runs.close(keep=True)
        assert not wire.lines[0].sessions

    run(scenario)


def test_only_nodes_at_one_hub_agree():
    async def scenario(wire: Wire) -> None:
        own = AgreedLinks(wire.lines[0].identity)
        hub = str(HUB)
        assert list(own.reached(study_of(hub, hub), [1])) == [1]
        assert list(own.reached(study_of(hub, "hub:relay@another.address:1"), [1])) == [1]
        assert not own.reached(study_of(hub, "hub:another@127.0.0.1:7000"), [1])
        assert not own.reached(study_of(hub, "127.0.0.1:1"), [1])
        assert not own.reached(study_of("127.0.0.1:1", hub), [1])
        elsewhere = AgreedLinks(replace_name(wire.lines[0].identity, "west"))
        with pytest.raises(PeerUnavailable, match="west listens elsewhere"):
            elsewhere.reached(study_of(hub, hub, hub), [0])

    run(scenario)


def test_the_links_of_a_run_hold_back_a_peer_that_is_faster():
    async def scenario(wire: Wire) -> None:
        runs, mesh = RunLinks(ViolationGuard()), mesh_of(0)
        mesh.attempt.program.window = 1500
        runs.agree(site_of(wire, 0), mesh, study_of(str(HUB), str(HUB)), MEETING)
        assert runs.made[1].window == 1500

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


def test_members_of_one_process_meet_inside_it():
    """Their messages stay in its memory, as decision 74 says."""

    async def scenario(wire: Wire) -> None:
        own, hub = AgreedLinks(wire.lines[0].identity), str(HUB)
        servers: list[Any] = [
            SimpleNamespace(identity=line.identity, hub=HUB) for line in wire.lines
        ]
        routes.host(servers[0])
        assert list(own.reached(study_of(hub, hub), [1])) == [1]
        routes.host(servers[1])
        assert not own.reached(study_of(hub, hub), [1])

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


def replace_name(identity: Any, name: str) -> Any:
    return SimpleNamespace(role=identity.role, name=name)


def test_a_link_is_used_after_it_is_made():
    with pytest.raises(LocalProtocolError, match="before it was made"):
        asyncio.run(SessionLink("south").send(replace(frame())))
