"""`umpc node`, `umpc dealer` and `umpc shuffler`: servers that wait for studies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from umpc.cli.backup import backup, restore
from umpc.cli.doctor import doctor
from umpc.cli.memory import tune_memory
from umpc.cli.monitor import Monitor
from umpc.cli.status import status
from umpc.errors import UmpcError
from umpc.logs import FORMATS, LEVELS, start_logging

if TYPE_CHECKING:
    from umpc.transport.authority import Identity
    from umpc.transport.hub.address import HubAddress
    from umpc.transport.role_guard import Allowed
    from umpc.transport.services import grpc

    Server = grpc.aio.Server
    Finished = Callable[[UmpcError | None], None]

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
STUDIES = click.option(
    "--studies",
    type=click.IntRange(min=1),
    help="Stop after this number of studies; default: never.",
)
LISTEN = click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    help="Address to listen on, HOST:PORT; port 0 takes any free port.",
)
HUB = click.option(
    "--hub",
    metavar="NAME@HOST:PORT",
    help="Dial this hub and wait for calls there, instead of listening.",
)
IDENTITY = click.option(
    "--identity",
    "folder",
    type=FOLDER,
    required=True,
    help="Folder with ca.pem, cert.pem and key.pem; see `umpc ca`.",
)

LOG_LEVEL = click.option(
    "--log-level",
    "level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    envvar="UMPC_LOG_LEVEL",
    show_envvar=True,
    help="The least level of lines on standard error.",
)
LOG_FORMAT = click.option(
    "--log-format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    envvar="UMPC_LOG_FORMAT",
    show_envvar=True,
    help="Lines for people, or one JSON object a line for programs.",
)
METRICS = click.option(
    "--metrics",
    default="",
    envvar="UMPC_METRICS",
    show_envvar=True,
    help="Serve /metrics for Prometheus and /healthz on this local address, such as "
    "127.0.0.1:9464; default: no.",
)
LEASH = click.option("--while-stdin-open", "leash", is_flag=True, hidden=True)
"""End with the process that started this one. The demo's processes must not outlive it."""


@click.group()
def node() -> None:
    """Run this site's node. A node holds the site's table and its privacy budget.

    First print a template of its TOML file and edit it; then start the node.

    \b
    umpc node template --name north > node.toml
    umpc node doctor --config node.toml
    umpc node start --config node.toml
    umpc node status --config node.toml
    umpc node backup --config node.toml --to north.tar
    """


node.add_command(status)
node.add_command(doctor)
node.add_command(backup)
node.add_command(restore)


@node.command()
@click.option("--name", required=True, help="The node's name in its certificate.")
def template(name: str) -> None:
    """Print a node.toml with comments, for you to edit."""
    from umpc.node.template import template as text

    click.echo(text(name), nl=False)


@node.command("start")
@click.option(
    "--config", type=FILE, required=True, help="The node's TOML file; see `umpc node template`."
)
@STUDIES
@LOG_LEVEL
@LOG_FORMAT
@METRICS
@LEASH
def start_node(
    config: Path, studies: int | None, level: str, style: str, metrics: str, leash: bool
) -> None:
    """Take part in studies until Ctrl-C or SIGTERM.

    The command prints "ready" and its address as soon as it accepts calls.
    """
    from umpc.errors import CertificateError
    from umpc.node.config import load_datasets
    from umpc.node.datasets import open_dataset, open_ledger
    from umpc.node.server import ALLOWED, NodeServer
    from umpc.node.table.columns import open_engine
    from umpc.transport.authority import load_identity
    from umpc.transport.services import rpc

    tune_memory()
    found = load_datasets(config)
    loaded = found[0]
    open_engine()
    identity = load_identity(loaded.identity, "node")
    start_logging(f"node {identity.name}", level, style)
    if identity.name != loaded.name:
        raise CertificateError(
            f"{config} names this node {loaded.name!r}, but its certificate in "
            f"{loaded.identity} is for {identity.name!r}; make both names equal"
        )
    with contextlib.ExitStack() as ending:
        datasets = []
        for each in found:
            ledger = ending.enter_context(open_ledger(each))
            balance = ledger.balance()
            logging.getLogger("umpc.node").info(
                "budget of data set %r: %s in all, %s spent, %s left (%s)",
                each.dataset,
                balance.total,
                balance.spent,
                balance.left,
                each.ledger,
            )
            datasets.append(open_dataset(each, ledger))

        def add(server: Server, finished: Finished) -> None:
            node = NodeServer(datasets, identity, finished)
            ending.callback(node.close)  # before the ledgers are closed
            rpc.add_NodeServicer_to_server(node, server)  # type: ignore[no-untyped-call]

        monitor = Monitor(identity, metrics)
        for dataset in datasets:
            label = dataset.name if len(datasets) > 1 else ""
            monitor.watch_site(dataset.config, dataset.ledger, label)
        place = loaded.hub or loaded.listen
        asyncio.run(serve(identity, place, ALLOWED, add, studies, leash, monitor))


@click.group()
def dealer() -> None:
    """Run the dealer. It deals correlated random numbers to the nodes, and sees no data.

    The dealer must not collude with a node or with the coordinator. Let an organisation run it
    that has no other part in the study.

    \b
    umpc dealer start --identity dealer --listen 0.0.0.0:7100
    """


@dealer.command("start")
@IDENTITY
@LISTEN
@HUB
@STUDIES
@LOG_LEVEL
@LOG_FORMAT
@METRICS
@LEASH
def start_dealer(
    folder: Path,
    listen: str,
    hub: str | None,
    studies: int | None,
    level: str,
    style: str,
    metrics: str,
    leash: bool,
) -> None:
    """Deal random numbers to nodes until Ctrl-C or SIGTERM."""
    from umpc.dealer.server import ALLOWED, DealerServer
    from umpc.transport.authority import load_identity
    from umpc.transport.services import rpc

    tune_memory()
    identity = load_identity(folder, "dealer")
    start_logging(f"dealer {identity.name}", level, style)

    def add(server: Server, finished: Finished) -> None:
        dealer = DealerServer(identity, finished)
        rpc.add_DealerServicer_to_server(dealer, server)  # type: ignore[no-untyped-call]

    monitor = Monitor(identity, metrics)
    asyncio.run(serve(identity, _place(listen, hub), ALLOWED, add, studies, leash, monitor))


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
    from umpc.shuffler.server import ALLOWED, ShufflerServer
    from umpc.transport.authority import load_identity
    from umpc.transport.services import rpc

    tune_memory()
    identity = load_identity(folder, "shuffler")
    start_logging(f"shuffler {identity.name}", level, style)

    def add(server: Server, finished: Finished) -> None:
        shuffler = ShufflerServer(identity, finished)
        rpc.add_ShufflerServicer_to_server(shuffler, server)  # type: ignore[no-untyped-call]

    monitor = Monitor(identity, metrics)
    asyncio.run(serve(identity, _place(listen, hub), ALLOWED, add, studies, leash, monitor))


def _place(listen: str, hub: str | None) -> str | HubAddress:
    """Return the hub, if there is one, or the address to listen on. Raises: ConfigError."""
    from umpc.transport.hub.address import parse_hub

    return parse_hub(hub) if hub else listen


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
    from umpc.failpoints import describe
    from umpc.monitoring.grpc_health import ALLOWED as HEALTH
    from umpc.monitoring.grpc_health import Health
    from umpc.transport.channels import bind, make_server
    from umpc.transport.expiry import keep_watch
    from umpc.transport.hub.serving import ServerBehindHub

    done = asyncio.Event()
    ended: list[UmpcError | None] = []

    def finished(error: UmpcError | None) -> None:
        monitor.ended(error)
        if studies is not None:
            ended.append(error)
            if len(ended) >= studies:
                done.set()

    server: Server
    if isinstance(place, str):
        server = make_server(identity, {**allowed, **HEALTH})
        add(server, finished)
        health = Health(server)
        address = await bind(server, identity, place)
        await server.start()
    else:
        behind = ServerBehindHub(identity, {**allowed, **HEALTH}, place)
        server = cast("Server", behind)  # the generated code adds its methods to either
        add(server, finished)
        health = Health(server)
        address = await behind.start()
    watch = asyncio.create_task(keep_watch(identity))
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, done.set)
    if leash:
        loop.add_reader(sys.stdin.fileno(), done.set)
    if describe():
        print(describe(), file=sys.stderr, flush=True)
    with monitor.served():
        print(f"ready: {identity.role} {identity.name} on {address}", flush=True)
        await done.wait()
    await health.ending()
    watch.cancel()
    await server.stop(grace=1)
    for error in ended:
        if error is not None:
            raise error


# The functions `rpc.add_…_to_server` are generated, without types.
