"""`umpc hub`: the relay that lets all other processes dial out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.memory import Collector
from umpc.cli.server_options import (
    IDENTITY,
    Serving,
    begin_helper,
    hub_options,
    serve_helper,
)
from umpc.hub.server import ALLOWED, HubServer
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import parse_hub
from umpc.transport.hub.connection import ask_status
from umpc.transport.identity import load_identity
from umpc.transport.tls import rpc

if TYPE_CHECKING:
    from umpc.cli.server_options import Finished, Server

STATUS_SECONDS = 5


@click.group()
def hub() -> None:
    """Run a hub. Nodes, dealer, shufflers and coordinator dial it, and none of them listens.

    The hub passes on sealed envelopes. It sees which process sends how much to which other
    process, and when. It can end a study, and it can neither read nor change one.

    \b
    umpc hub start --identity relay --listen 0.0.0.0:7443
    umpc hub status --identity north relay@hub.example.org:7443
    """


@hub.command("start")
@hub_options
@click.option(
    "--grace",
    type=click.IntRange(1, 600),
    default=30,
    show_default=True,
    help="Seconds that a lost connection may take to come back before a study ends.",
)
def start_hub(given: Serving, grace: int) -> None:
    """Relay envelopes until Ctrl-C or SIGTERM."""

    identity = begin_helper(given, "hub")

    def add(server: Server, finished: Finished) -> None:
        hub = HubServer(identity, grace, Collector().collect_soon)
        rpc.add_HubServicer_to_server(hub, server)  # type: ignore[no-untyped-call]

    serve_helper(given, identity, ALLOWED, add)


@hub.command("status")
@IDENTITY
@click.argument("address", metavar="NAME@HOST:PORT")
def hub_status(folder: Path, address: str) -> None:
    """Show who is connected to a hub, for how long, and how much waits for whom.

    "heard" says how long ago the hub had the last message of a process, which sends one every 5
    seconds at least. The hub does not know the steps of a study.
    """

    asked = ask_status(load_identity(folder), parse_hub(address), STATUS_SECONDS)
    reply = asyncio.run(asked)
    for line in status_lines(reply):
        click.echo(line)


def status_lines(reply: pb.HubStatusReply) -> Iterator[str]:
    """Yield a line on the hub, and one for each connected process."""

    memory = f", {reply.memory / 2**20:.0f} MiB of memory" if reply.memory else ""
    most = f" (at most {reply.most_memory / 2**20:.0f})" if reply.most_memory else ""
    yield (
        f"the hub runs for {in_clock(reply.seconds)}; {len(reply.seats)} processes are connected, "
        f"{reply.waiting:,} bytes wait{memory}{most}"
    )
    for seat in reply.seats:
        kind = "" if seat.listens else ", only calls"
        yield (
            f"{seat.role:<11} {seat.name:<24} connected for {in_clock(seat.seconds)}, heard "
            f"{in_clock(seat.silent)} ago; {seat.sent:,} bytes from it, {seat.relayed:,} to it, "
            f"{seat.waiting:,} wait{kind}"
        )


def in_clock(seconds: float) -> str:
    """Return a length of time as hours, minutes and seconds."""
    hours, rest = divmod(max(0, int(seconds)), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"
