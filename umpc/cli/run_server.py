"""One server in this process, until a signal or until it has served its studies."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from umpc.cli.memory import Collector
from umpc.cli.monitor import Monitor
from umpc.cli.open_server import end_at_signals, open_server
from umpc.errors import UmpcError

if TYPE_CHECKING:
    from umpc.transport.authority import Identity
    from umpc.transport.hub.address import HubAddress
    from umpc.transport.role_guard import Allowed
    from umpc.transport.services import grpc

    Server = grpc.aio.Server
    Finished = Callable[[UmpcError | None], None]


async def serve(
    identity: Identity,
    place: str | HubAddress,
    allowed: Allowed,
    add: Callable[[Server, Finished], None],
    studies: int | None,
    leash: bool,
    monitor: Monitor,
) -> None:
    """Run one server until a signal, or until the given number of studies have ended.

    Args:
        place: the address to listen on, or the hub to dial.
        add: adds the service to the server, and tells it to call `finished` after each study.
        monitor: counts the studies, and serves the metrics.

    Raises: the first failure among these studies, so that the exit code is that failure's.
    """
    done = asyncio.Event()
    if isinstance(place, str):
        end_at_signals(done)
    from umpc import failpoints
    from umpc.node import told_order
    from umpc.transport.expiry import keep_watch
    from umpc.transport.own_end import begin_end

    collector = Collector()
    ended: list[UmpcError | None] = []

    def finished(error: UmpcError | None) -> None:
        collector.collect_soon()
        monitor.ended(error)
        if studies is not None:
            ended.append(error)
            if len(ended) >= studies:
                done.set()

    server, health, address = await open_server(
        identity, place, allowed, lambda server: add(server, finished)
    )
    watch = asyncio.create_task(keep_watch(identity))
    end_at_signals(done)
    if leash:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), done.set)
    for sentence in filter(None, (failpoints.describe(), told_order.describe())):
        print(sentence, file=sys.stderr, flush=True)
    with monitor.served():
        print(f"ready: {identity.role} {identity.name} on {address}", flush=True)
        await done.wait()
    begin_end()
    await health.ending()
    watch.cancel()
    await server.stop(grace=1)
    for error in ended:
        if error is not None:
            raise error
