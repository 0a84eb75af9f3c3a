"""A hub remembers a member whose connection broke for its grace time, and not longer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import hub_of, run

from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.connection import scattered
from umpc.transport.stream import connect
from umpc.transport.tls import Call, hub_stub, read


async def joined(channel, number: int) -> Call:
    """A connection of a member that listens, as the hub has welcomed it."""
    call = hub_stub(channel).Join()
    await call.write(pb.HubFrame(join=pb.HubJoin(instance=bytes([number]) * 16, listens=True)))
    assert (await read(call)).WhichOneof("body") == "welcome"
    return call


async def told_of(call: Call, name: str) -> int:
    """Return the notice to a member that opens a session with a name that is not connected."""
    target = pb.HubMember(role="node", name=name)
    opening = pb.HubEnvelope(target=target, session=bytes(16), kind=pb.HUB_OPEN)
    await call.write(pb.HubFrame(envelope=opening))
    while True:
        for frame in scattered(await read(call)):
            if frame.WhichOneof("body") == "notice":
                return frame.notice.kind


@pytest.mark.parametrize(
    ("grace", "said"), [(30, pb.HubNotice.AWAY), (0, pb.HubNotice.GONE)], ids=["within", "after"]
)
def test_a_name_whose_connection_broke_is_absent_after_the_grace(site, grace, said):
    """Openings of sessions with a name that is away are kept up: for as long as it may return."""

    async def scenario():
        async with hub_of(site("relay", "hub"), grace) as hub:
            relay = hub.identity.name, "hub", hub.listen, 5
            breaking, asking = [await connect(site(name), *relay) for name in ("a", "b")]
            other = await joined(asking, 2)
            (await joined(breaking, 1)).cancel()
            while len(hub.relay.seats) > 1:
                await asyncio.sleep(0.01)
            assert await told_of(other, "a") == said
            for channel in (breaking, asking):
                await channel.close(None)

    run(scenario())
