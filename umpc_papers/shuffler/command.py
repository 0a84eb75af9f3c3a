"""`umpc shuffler`: the server that shuffles messages of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from umpc.cli.server_options import Serving, begin_helper, helper_options, serve_helper

if TYPE_CHECKING:
    from umpc.cli.server_options import Finished, Server


@click.group()
def shuffler() -> None:
    """Run a shuffler. It shuffles the messages of all nodes, and sees only uniform numbers.

    A study with protocol = "ghazi-shuffle" needs two shufflers, of different owners. A shuffler
    must not collude with the coordinator or with the other shuffler.

    \b
    umpc shuffler start --identity shuffler-1 --listen 0.0.0.0:7100
    """


@shuffler.command("start")
@helper_options
def start_shuffler(given: Serving) -> None:
    """Shuffle messages of nodes until Ctrl-C or SIGTERM."""
    from umpc.transport.tls import rpc
    from umpc_papers.shuffler.server import ALLOWED, ShufflerServer

    identity = begin_helper(given, "shuffler")

    def add(server: Server, finished: Finished) -> None:
        shuffler = ShufflerServer(identity, finished)
        rpc.add_ShufflerServicer_to_server(shuffler, server)  # type: ignore[no-untyped-call]

    serve_helper(given, identity, ALLOWED, add)
