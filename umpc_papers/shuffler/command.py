"""`umpc shuffler`: the server that shuffles messages of nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.monitor import Monitor
from umpc.cli.run_server import serve
from umpc.cli.serve import begin_helper, listening_place
from umpc.cli.server_options import (
    HUB,
    IDENTITY,
    LEASH,
    LISTEN,
    LOG_FORMAT,
    LOG_LEVEL,
    METRICS,
    STUDIES,
)

if TYPE_CHECKING:
    from umpc.cli.run_server import Finished, Server


@click.group()
def shuffler() -> None:
    """Run a shuffler. It shuffles the messages of all nodes, and sees only uniform numbers.

    A study with protocol = "ghazi-shuffle" needs two shufflers, of different owners. A shuffler
    must not collude with the coordinator or with the other shuffler.

    \b
    umpc shuffler start --identity shuffler-1 --listen 0.0.0.0:7100
    """


@shuffler.command("start")
@IDENTITY
@LISTEN
@HUB
@STUDIES
@LOG_LEVEL
@LOG_FORMAT
@METRICS
@LEASH
def start_shuffler(
    folder: Path,
    listen: str,
    hub: str | None,
    studies: int | None,
    level: str,
    style: str,
    metrics: str,
    leash: bool,
) -> None:
    """Shuffle messages of nodes until Ctrl-C or SIGTERM."""
    from umpc.transport.services import rpc
    from umpc_papers.shuffler.server import ALLOWED, ShufflerServer

    identity = begin_helper(folder, "shuffler", level, style)

    def add(server: Server, finished: Finished) -> None:
        shuffler = ShufflerServer(identity, finished)
        rpc.add_ShufflerServicer_to_server(shuffler, server)  # type: ignore[no-untyped-call]

    monitor, place = Monitor(identity, metrics), listening_place(listen, hub)
    asyncio.run(serve(identity, place, ALLOWED, add, studies, leash, monitor))
