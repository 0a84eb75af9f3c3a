"""umpc/transport/hub/connection.py: what a process says while it dials its hub."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import dataclass, field

import pytest

from umpc.errors import PeerUnavailable
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import parse_hub
from umpc.transport.hub import connection
from umpc.transport.hub.connection import HubConnection


@dataclass
class Member:
    """The user of a connection, whose sessions have these frames to send."""

    own: list[pb.HubFrame] = field(default_factory=list)

    def next_frame(self) -> pb.HubFrame | None:
        return self.own.pop(0) if self.own else None

    def passed(self, seconds: float, counted: float) -> None: ...


def test_one_line_says_early_what_is_still_dialled(site, limit, caplog):
    limit(connection, TELL_SECONDS=0.2)
    limit(connection, DIAL_SECONDS=0.1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        hub = parse_hub(f"hub:relay@127.0.0.1:{taken.getsockname()[1]}")  # it never answers

    async def scenario() -> None:
        dialling = HubConnection(site("north"), hub, Member(), listens=True)
        try:
            for _ in range(2):
                with pytest.raises(PeerUnavailable):
                    await dialling.joined(0.6)
        finally:
            await dialling.close(0)

    with caplog.at_level(logging.INFO, "umpc.hub"):
        asyncio.run(scenario())
    told = [line for line in caplog.messages if line.startswith("still dialling")]
    assert len(told) == 1 and told[0].startswith(f"still dialling hub 'relay' at {hub.address}: ")


def test_answers_to_a_peer_that_floods_do_not_keep_the_sessions_from_sending(site):
    """Refusals went before all envelopes: a flood of openings stopped all studies of a node."""
    own = [pb.HubFrame(envelope=pb.HubEnvelope(number=number)) for number in (1, 2)]

    async def scenario() -> list[int]:
        hub = parse_hub("hub:relay@127.0.0.1:1")
        dialling = HubConnection(site("north"), hub, Member(own), listens=True)
        dialling.is_up = True
        for _ in range(4):
            dialling.control(pb.HubFrame(envelope=pb.HubEnvelope(kind=pb.HUB_REFUSE)))
        sent = [dialling.next_frame() for _ in range(7)]
        await dialling.close(0)
        return [each.envelope.number for each in sent if each is not None]

    assert asyncio.run(scenario()) == [0, 1, 0, 2, 0, 0]
