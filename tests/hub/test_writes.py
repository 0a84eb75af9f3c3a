"""How a hub writes: while many write to it, it waits a moment, so that one message has more."""

from __future__ import annotations

import asyncio

import pytest

from umpc.errors import RemoteProtocolError
from umpc.hub import server
from umpc.hub.relay import MEMBER_BYTES, MOST_SEATS, Seat
from umpc.hub.server import HubServer
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.heartbeat import SILENT_SECONDS
from umpc.transport.hub.batches import MOST_FRAMES, scattered
from umpc.transport.hub.numbering import PART_BYTES, WINDOW


class Lines:
    """The stream to a member: what was written, message by message."""

    def __init__(self) -> None:
        self.written: list[list[int]] = []

    async def write(self, frame: pb.HubFrame) -> None:
        self.written.append([each.envelope.number for each in scattered(frame)])


def seat(name: str) -> Seat:
    return Seat(("node", name, b"i"), listens=True, since=0.0)


async def relayed(monkeypatch, members: int, body: int) -> list[list[int]]:
    """Two envelopes come for a member, the second when the first could have been written."""
    monkeypatch.setattr(server, "GATHER_SECONDS", 0.01)
    hub, lines, to = HubServer(None, 30), Lines(), seat("north")
    for number in range(members):
        hub._writers.note(seat(f"node-{number}"), 1.0)
    changed = asyncio.Event()
    hub.relay.seats[to.key] = to
    writing = asyncio.create_task(hub._write(to, changed, lines))
    for number in (1, 2):
        to.put(pb.HubFrame(envelope=pb.HubEnvelope(number=number, body=bytes(body))), body)
        changed.set()
        for _ in range(3):
            await asyncio.sleep(0)
    while sum(map(len, lines.written)) < 2:
        await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    return lines.written


@pytest.mark.parametrize(
    ("members", "body", "expected"),
    [
        (server.CROWD, 10, [[1], [2]]),
        (server.CROWD + 1, 10, [[1, 2]]),
        (server.CROWD + 1, server.FEW_BYTES, [[1], [2]]),
    ],
)
def test_a_hub_of_many_members_joins_what_comes_within_a_moment(
    monkeypatch, members, body, expected
):
    assert asyncio.run(relayed(monkeypatch, members, body)) == expected


@pytest.mark.parametrize("is_allowed", [True, False])
def test_one_message_has_no_more_frames_than_a_member_sends(monkeypatch, is_allowed):
    """A message of 30,000 small envelopes would hold up all others for half a second."""
    hub, member = HubServer(None, 30), seat("north")
    hub.relay.seats[member.key] = member
    message = pb.HubFrame()
    for _ in range(MOST_FRAMES + (not is_allowed)):
        message.batch.frames.add().leave.SetInParent()
    came = [message]

    async def read(context):
        return came.pop()

    monkeypatch.setattr(server, "read", read)
    if is_allowed:
        assert asyncio.run(hub._read(member, None))
    else:
        with pytest.raises(RemoteProtocolError, match=f"at most {MOST_FRAMES} were expected"):
            asyncio.run(hub._read(member, None))


def test_only_processes_that_wrote_lately_are_counted():
    writers = server.Writers()
    everybody = [seat(f"node-{number}") for number in range(server.CROWD + 1)]
    for each in everybody:
        writers.note(each, 10.0)
    assert writers.are_many()
    writers.note(everybody[0], 11.5)
    assert writers.are_many(), "those of the second before"
    writers.note(everybody[0], 12.6)
    assert not writers.are_many()
    for each in everybody:
        writers.note(each, 20.0)
    writers.note(everybody[0], 30.0)
    assert not writers.are_many(), "a pause ends both seconds"


def test_nothing_is_taken_for_a_connection_that_was_replaced_meanwhile(monkeypatch):
    async def scenario() -> None:
        hub, lines, to = HubServer(None, 30), Lines(), seat("north")
        for number in range(server.CROWD + 1):
            hub._writers.note(seat(f"node-{number}"), 1.0)
        to.put(pb.HubFrame(envelope=pb.HubEnvelope(number=1)), 0)
        writing = asyncio.create_task(hub._write(to, asyncio.Event(), lines))
        await asyncio.sleep(0)
        to.is_replaced = True
        await asyncio.wait_for(writing, 60)
        assert not lines.written and len(to.queue) == 1

    asyncio.run(scenario())


def paused(monkeypatch, frames: int, body: int, processes: int) -> float:
    """The seconds for which a hub does not read after a message in which nothing finds room."""
    pauses = []
    sleep = asyncio.sleep

    async def scenario() -> None:
        hub = HubServer(None, 30)
        instance = [bytes([number]) * 16 for number in range(processes)]
        sender, *_ = (
            hub.relay.join("node", "north", pb.HubJoin(instance=each), 0.0) for each in instance
        )
        slow = hub.relay.join("node", "slow", pb.HubJoin(instance=bytes(16), listens=True), 0.0)
        target = pb.HubMember(role="node", name="slow")
        full = pb.HubFrame()
        for number in range(frames):
            envelope = full.batch.frames.add().envelope
            envelope.target.CopyFrom(target)
            envelope.session = number.to_bytes(16, "big")
            envelope.kind, envelope.body = pb.HUB_OPEN, bytes(body)
        sealed = pb.HubEnvelope(target=target, session=bytes(16), kind=pb.HUB_SEALED)
        came = [pb.HubFrame(envelope=sealed), full]

        async def read(context):
            if len(came) == 1:
                slow.waiting = MEMBER_BYTES
            return came.pop(0) if came else None

        async def pause(seconds):
            pauses.append(seconds)
            await sleep(0)

        monkeypatch.setattr(server, "read", read)
        monkeypatch.setattr(server.asyncio, "sleep", pause)
        assert not await hub._read(sender, None)

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
