"""How a hub reads: a message has few frames, and a process without room is not read at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from umpc.errors import RemoteProtocolError
from umpc.hub import server
from umpc.hub.relay import MEMBER_BYTES, MOST_SEATS, Seat
from umpc.hub.server import HubServer
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.testing import lying
from umpc.transport.heartbeat import SILENT_SECONDS
from umpc.transport.hub.connection import MOST_FRAMES
from umpc.transport.hub.numbering import PART_BYTES, WINDOW
from umpc.transport.tls import EOF


def seat(name: str) -> Seat:
    return Seat(("node", name, b"i"), listens=True, since=0.0)


@dataclass
class Sender:
    """The hub's end of a stream of gRPC: what a process sends, and then the stream's end.

    before_last: called when the last message is read.
    """

    messages: list[pb.HubFrame]
    before_last: Callable[[], None] = lambda: None

    async def read(self) -> object:
        if len(self.messages) == 1:
            self.before_last()
        return self.messages.pop(0) if self.messages else EOF


@pytest.mark.parametrize("is_allowed", [True, False])
def test_one_message_has_no_more_frames_than_a_member_sends(is_allowed):
    """A message of 30,000 small envelopes would hold up all others for half a second."""
    hub, member = HubServer(None, 30), seat("north")
    hub.relay.seats[member.key] = member
    message = pb.HubFrame()
    for _ in range(MOST_FRAMES + (not is_allowed)):
        message.batch.frames.add().leave.SetInParent()
    context = Sender([message])
    if is_allowed:
        assert asyncio.run(hub.read_from(member, context))
    else:
        with pytest.raises(RemoteProtocolError, match=f"at most {MOST_FRAMES} were expected"):
            asyncio.run(hub.read_from(member, context))


def paused(monkeypatch, frames: int, body: int, processes: int) -> float:
    """The seconds for which a hub does not read after a message in which nothing finds room."""
    pauses = []
    sleep = asyncio.sleep

    async def scenario() -> None:
        hub = HubServer(None, 30)
        instance = [bytes([number]) * 16 for number in range(processes)]
        sender, *_ = (
            hub.relay.join("node", "north", pb.HubJoin(instance=each), 0.0)[0] for each in instance
        )
        slow, _ = hub.relay.join("node", "slow", pb.HubJoin(instance=bytes(16), listens=True), 0.0)
        target = pb.HubMember(role="node", name="slow")
        full = pb.HubFrame()
        for number in range(frames):
            envelope = full.batch.frames.add().envelope
            envelope.target.CopyFrom(target)
            envelope.session = number.to_bytes(16, "big")
            envelope.kind, envelope.body = pb.HUB_OPEN, bytes(body)
        sealed = pb.HubEnvelope(target=target, session=bytes(16), kind=pb.HUB_SEALED)

        def fill():
            slow.waiting = MEMBER_BYTES

        async def pause(seconds):
            pauses.append(seconds)
            await sleep(0)

        monkeypatch.setattr(asyncio, "sleep", pause)
        came = [pb.HubFrame(envelope=sealed), full]
        assert not await hub.read_from(sender, Sender(came, fill))

    asyncio.run(scenario())
    (found,) = pauses
    return found


def test_a_hub_does_not_read_at_once_from_a_process_for_which_there_is_no_room(monkeypatch):
    found = paused(monkeypatch, MOST_FRAMES, 10, 3)
    assert 3 * server.CONGESTED_SECONDS <= found < 1.1 * 3 * server.CONGESTED_SECONDS


@pytest.mark.parametrize("processes", [1, 24, MOST_SEATS])
def test_a_coordinator_of_many_studies_with_a_slow_node_is_heard_by_the_others(
    monkeypatch, processes
):
    """A session's window is on its way when a queue is full: eight messages of one part each."""
    found = paused(monkeypatch, 1, PART_BYTES, processes)
    assert WINDOW // PART_BYTES * found < SILENT_SECONDS / 2


@pytest.mark.parametrize(
    ("processes", "body", "pauses"),
    [
        (2, 10, [2 * server.GATHER_EACH]),
        (1000, 10, [server.GATHER_SECONDS]),
        (1000, server.FEW_BYTES, []),
    ],
)
def test_a_hub_waits_a_moment_for_more_by_the_number_of_its_processes(
    monkeypatch, processes, body, pauses
):
    """A message costs it, and the process that reads it, more than the envelopes in it."""
    found, written = [], []

    async def pause(seconds):
        found.append(seconds)

    class Lines:
        async def write(self, frame):
            written.append(frame)
            member.is_replaced = True

    monkeypatch.setattr(asyncio, "sleep", pause)
    hub, member = HubServer(None, 30), seat("north")
    hub.relay.seats = {number: member for number in range(processes)}
    member.put(pb.HubFrame(envelope=pb.HubEnvelope(body=bytes(body))), body)
    asyncio.run(hub.write_to(member, asyncio.Event(), Lines()))
    assert found == pauses and len(written) == 1


class Known:
    """A hub's identity, of which nothing is asked."""

    revoked = None

    def latest(self) -> Known:
        return self


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_a_hub_ends_a_connection_after_silence_in_seconds_that_it_had_itself(share):
    looks = []

    async def slept(_, seconds):
        return share * seconds

    called = lying("process", peer_of=lambda *_, **__: looks.append(1))
    with called, lying("machine", counted_sleep=slept):
        asyncio.run(HubServer(Known(), 30).watch(seat("north"), None))
    assert len(looks) == server.SILENT_SECONDS / (share * server.PULSE_SECONDS)
