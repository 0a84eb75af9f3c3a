"""A hub, a server behind it, and callers, all in one process over real connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from transport_echo import ALLOWED as ECHO_ALLOWED
from transport_echo import Echo

from tests.support.ports import reserved_address
from umpc.hub import server as hub_server
from umpc.hub.relay import Relay, Seat
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import parse_hub
from umpc.transport.connections import bind, make_server
from umpc.transport.hub.serving import ServerBehindHub
from umpc.transport.tls import rpc

Mangle = Callable[[pb.HubEnvelope], list[pb.HubEnvelope]]


class LyingRelay(Relay):
    """A relay that sends on what `mangle` makes of an envelope."""

    mangle: Mangle | None = None

    def route(self, source: Seat, envelope: pb.HubEnvelope) -> list[Seat]:
        woken = []
        for each in self.mangle(envelope) if self.mangle else [envelope]:
            woken += super().route(source, each)
        return woken


class Hub:
    """A hub that can be killed and started again at one address.

    is_young: younger than its grace time. A test's hub counts as older until it is killed.
    """

    is_young = False

    def __init__(self, identity, grace: int = 30):
        self.identity = identity
        self.grace = grace
        self.listen = reserved_address()
        self.relay = LyingRelay()

    async def start(self) -> None:
        service = hub_server.HubServer(self.identity, self.grace)
        self.relay = service.relay = LyingRelay(lambda: self.is_young)
        self.server = make_server(self.identity, hub_server.ALLOWED)
        rpc.add_HubServicer_to_server(service, self.server)
        self.listen = await bind(self.server, self.identity, self.listen)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop(None)
        self.is_young = True

    @property
    def address(self) -> str:
        return f"hub:{self.identity.name}@{self.listen}"


def redirecting(listener, to):
    """A lie of a hub: what is sent to one process reaches another one."""

    def mangle(envelope):
        if envelope.target.name == listener:
            envelope.target.name = to
            envelope.target.ClearField("instance")
        return [envelope]

    return mangle


@contextlib.asynccontextmanager
async def hub_of(identity, grace: int = 30) -> AsyncIterator[Hub]:
    hub = Hub(identity, grace)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


@contextlib.asynccontextmanager
async def echo_behind(
    hub: Hub, identity, allowed=ECHO_ALLOWED, farewell: float = 0
) -> AsyncIterator[Echo]:
    """A server. farewell: seconds for its word that it leaves for good; 0 for none."""
    echo = Echo()
    server = ServerBehindHub(identity, allowed, parse_hub(hub.address))
    server.add_generic_rpc_handlers((echo.handler(),))
    await server.start()
    try:
        yield echo
    finally:
        await server.stop(farewell)


def run(scenario) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(main())


def changed(envelope, **parts):
    """A copy of an envelope with other parts."""
    other = pb.HubEnvelope()
    other.CopyFrom(envelope)
    for key, value in parts.items():
        setattr(other, key, value)
    return other
