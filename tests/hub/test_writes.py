"""How a hub writes to its members: among many it waits a moment, so that one message has more."""

from __future__ import annotations

import asyncio

import pytest

from umpc.hub import server
from umpc.hub.relay import Seat
from umpc.hub.server import HubServer
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.batches import scattered


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
    hub._changed = {seat(f"node-{number}"): asyncio.Event() for number in range(members - 1)}
    changed = hub._changed[to] = asyncio.Event()
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
