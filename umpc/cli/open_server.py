"""Open a server: one that listens, or one behind a hub."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from umpc.monitoring.grpc_health import Health
    from umpc.transport.authority import Identity
    from umpc.transport.hub.address import HubAddress
    from umpc.transport.role_guard import Allowed
    from umpc.transport.services import grpc

    Server = grpc.aio.Server


async def open_server(
    identity: Identity,
    place: str | HubAddress,
    allowed: Allowed,
    add: Callable[[Server], None],
) -> tuple[Server, Health, str]:
    """Return a server that answers, its health service, and its address.

    Args: as of `serve`.

    Raises: AddressInUse, ConfigError, CertificateError.
    """
    from umpc.monitoring.grpc_health import ALLOWED as HEALTH
    from umpc.monitoring.grpc_health import Health
    from umpc.transport.channels import bind, make_server
    from umpc.transport.hub.serving import ServerBehindHub

    if isinstance(place, str):
        server = make_server(identity, {**allowed, **HEALTH})
        add(server)
        health = Health(server)
        address = await bind(server, identity, place)
        await server.start()
        return server, health, address
    behind = ServerBehindHub(identity, {**allowed, **HEALTH}, place)
    server = cast("Server", behind)  # the generated code adds its methods to either
    add(server)
    health = Health(server)
    return server, health, await behind.start()


def end_at_signals(done: asyncio.Event) -> None:
    """Let Ctrl-C and SIGTERM set the event.

    A server that listens calls this before it is opened: gRPC prints a traceback where its start is
    interrupted. One behind a hub calls it after that, because it may have to wait for the hub.
    """
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, done.set)
