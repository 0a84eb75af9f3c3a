"""`umpc node` and `umpc dealer`: servers that wait for studies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from umpc.cli.backup import backup, restore
from umpc.cli.doctor import doctor
from umpc.cli.memory import tune_memory
from umpc.cli.monitor import Monitor
from umpc.cli.node_page import page
from umpc.cli.open_files import allow_many_files
from umpc.cli.own_site import open_site, own_identity
from umpc.cli.paths import FILE, FOLDER
from umpc.cli.run_server import serve
from umpc.cli.server_options import (
    COMPUTE,
    COMPUTE_TLS,
    CORES,
    HUB,
    IDENTITY,
    LEASH,
    LISTEN,
    LOG_FORMAT,
    LOG_LEVEL,
    METRICS,
    STUDIES,
    TRACES,
)
from umpc.cli.status import status
from umpc.logs import start_logging

if TYPE_CHECKING:
    from umpc.cli.run_server import Finished, Server
    from umpc.transport.authority import Identity
    from umpc.transport.hub.address import HubAddress

log = logging.getLogger("umpc.node")


@click.group()
def node() -> None:
    """Run this site's node. A node holds the site's table and its privacy budget.

    First print a template of its TOML file and edit it; then start the node.

    \b
    umpc node template --name north > node.toml
    umpc node doctor --config node.toml
    umpc node start --config node.toml
    umpc node status --config node.toml
    umpc node page --config node.toml
    umpc node backup --config node.toml --to north.tar
    """


node.add_command(status)
node.add_command(doctor)
node.add_command(page)
node.add_command(backup)
node.add_command(restore)


@node.command()
@click.option("--name", required=True, help="The node's name in its certificate.")
def template(name: str) -> None:
    """Print a node.toml with comments, for you to edit."""
    from umpc.node.template import template as text

    click.echo(text(name), nl=False)


@node.command("start")
@click.option("--config", type=FILE, help="The node's TOML file; see `umpc node template`.")
@click.option(
    "--many",
    "folder",
    type=FOLDER,
    help="A folder of such files, one for each node: this process runs all of them.",
)
@click.option(
    "--light",
    is_flag=True,
    hidden=True,
)
@STUDIES
@LOG_LEVEL
@LOG_FORMAT
@METRICS
@TRACES
@LEASH
def start_node(
    config: Path | None,
    folder: Path | None,
    light: bool,
    studies: int | None,
    level: str,
    style: str,
    metrics: str,
    traces: str,
    leash: bool,
) -> None:
    """Take part in studies until Ctrl-C or SIGTERM.

    The command prints "ready" and its address as soon as it accepts calls.

    With --many, one process runs a node for each .toml file in the folder. Each node has its own
    certificate, address, ledger and rules, as if it ran alone, and prints a line of its own. All
    other commands take the node's own file.

    \b
    umpc node start --config node.toml
    umpc node start --many people
    """
    if (config is None) == (folder is None):
        raise click.UsageError("give either --config FILE or --many FOLDER")
    if light:
        raise click.UsageError("--light is gone: a node loads all at its start. Leave it out")
    tune_memory()
    allow_many_files()
    if folder is not None:
        from umpc.cli.many import start_many

        if metrics or traces:
            raise click.UsageError(
                "--metrics and --traces show one node, so they do not go with --many"
            )
        start_many(folder, studies, level, style, leash)
    elif config is not None:
        _start_one(config, studies, (level, style), (metrics, traces), leash)


def _start_one(
    config: Path,
    studies: int | None,
    logs: tuple[str, str],
    shown: tuple[str, str],
    leash: bool,
) -> None:
    """Run one node. Args: logs: level and style. shown: where metrics and traces go."""
    from umpc.node.config import load_datasets
    from umpc.node.server import ALLOWED

    found = load_datasets(config)
    loaded = found[0]
    identity = own_identity(loaded)
    start_logging(f"node {identity.name}", *logs)
    with contextlib.ExitStack() as ending:
        site = open_site(found, identity, ending)

        def add(server: Server, finished: Finished) -> None:
            site.add_to(server, finished, ending, monitor.watch)

        monitor = Monitor(identity, *shown)
        ending.callback(monitor.close)
        for dataset in site.datasets:
            label = dataset.name if len(found) > 1 else ""
            monitor.watch_site(dataset.config, dataset.ledger, label)
            for key in dataset.config.without_effect:
                log.warning("%s has no effect any more; remove it from %s", key, config)
        asyncio.run(serve(identity, site.place, ALLOWED, add, studies, leash, monitor))


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
@CORES
@COMPUTE
@COMPUTE_TLS
@LOG_LEVEL
@LOG_FORMAT
@METRICS
@LEASH
def start_dealer(
    folder: Path,
    listen: str,
    hub: str | None,
    studies: int | None,
    cores: int | None,
    compute: str | None,
    compute_tls: Path | None,
    level: str,
    style: str,
    metrics: str,
    leash: bool,
) -> None:
    """Deal random numbers to nodes until Ctrl-C or SIGTERM."""
    from umpc.compute.place import named_place
    from umpc.dealer.server import ALLOWED, DealerServer
    from umpc.transport.services import rpc

    identity = begin_helper(folder, "dealer", level, style)

    workers = named_place(cores, compute, compute_tls).open(folder)

    def add(server: Server, finished: Finished) -> None:
        dealer = DealerServer(identity, finished, workers=workers)
        rpc.add_DealerServicer_to_server(dealer, server)  # type: ignore[no-untyped-call]

    monitor, place = Monitor(identity, metrics), listening_place(listen, hub)
    with contextlib.ExitStack() as ending:
        if workers is not None:
            ending.callback(workers.close)
        asyncio.run(serve(identity, place, ALLOWED, add, studies, leash, monitor))


def begin_helper(folder: Path, role: str, level: str, style: str) -> Identity:
    """Prepare the process of a dealer or another helper, and return its identity.

    Raises: CertificateError, ConfigError.
    """
    from umpc.transport.authority import load_identity

    tune_memory()
    allow_many_files()
    identity = load_identity(folder, role)
    start_logging(f"{role} {identity.name}", level, style)
    return identity


def listening_place(listen: str, hub: str | None) -> str | HubAddress:
    """Return the hub, if there is one, or the address to listen on. Raises: ConfigError."""
    from umpc.transport.hub.address import parse_hub

    return parse_hub(hub) if hub else listen
