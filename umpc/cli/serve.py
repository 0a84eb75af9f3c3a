"""`umpc node` and `umpc dealer`: servers that wait for studies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from umpc.cli.backup import backup, restore
from umpc.cli.doctor import doctor
from umpc.cli.memory import tune_process
from umpc.cli.monitor import Monitor
from umpc.cli.node_page import page
from umpc.cli.own_site import configurations, open_site, own_identity
from umpc.cli.paths import FILE, FOLDER
from umpc.cli.server_options import (
    COMPUTE,
    COMPUTE_TLS,
    CORES,
    Serving,
    begin_helper,
    helper_options,
    node_options,
    serve,
    serve_helper,
)
from umpc.cli.status import status
from umpc.logs import start_logging

if TYPE_CHECKING:
    from umpc.cli.server_options import Finished, Server

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
    type=FOLDER,
    help="A folder of such files, one for each node: this process runs all of them.",
)
@click.option(
    "--light",
    is_flag=True,
    hidden=True,
)
@node_options
def start_node(given: Serving, config: Path | None, many: Path | None, light: bool) -> None:
    """Take part in studies until Ctrl-C or SIGTERM.

    The command prints "ready" and its address as soon as it accepts calls.

    With --many, one process runs a node for each .toml file in the folder. Each node has its own
    certificate, address, ledger and rules, as if it ran alone, and prints a line of its own. All
    other commands take the node's own file.

    \b
    umpc node start --config node.toml
    umpc node start --many people
    """
    if (config is None) == (many is None):
        raise click.UsageError("give either --config FILE or --many FOLDER")
    if light:
        raise click.UsageError("--light is gone: a node loads all at its start. Leave it out")
    if many is not None and (given.metrics or given.traces):
        raise click.UsageError(
            "--metrics and --traces show one node, so they do not go with --many"
        )
    from umpc.node.config import load_datasets

    tune_process()
    found = configurations(many) if many is not None else [load_datasets(cast(Path, config))]
    with contextlib.ExitStack() as ending:
        if many is not None:
            start_logging(f"nodes {many.name}", given.level, given.style)
        identities = [own_identity(configs[0]) for configs in found]
        if many is None:
            start_logging(f"node {identities[0].name}", given.level, given.style)
        sites = [open_site(*each, ending) for each in zip(found, identities, strict=True)]
        monitor = Monitor(identities[0], given.metrics, given.traces)
        ending.callback(monitor.close)
        for dataset in sites[0].datasets if many is None else ():
            label = dataset.name if len(found[0]) > 1 else ""
            monitor.watch_site(dataset.config, dataset.ledger, label)
        for dataset in (each for site in sites for each in site.datasets):
            for key in dataset.config.without_effect:
                log.warning(
                    "%s has no effect any more; remove it from %s", key, dataset.config.file
                )
        services = [site.service(ending, monitor.watch) for site in sites]
        asyncio.run(serve(services, given, monitor))


@click.group()
def dealer() -> None:
    """Run the dealer. It deals correlated random numbers to the nodes, and sees no data.

    The dealer must not collude with a node or with the coordinator. Let an organisation run it
    that has no other part in the study.

    \b
    umpc dealer start --identity dealer --listen 0.0.0.0:7100
    """


@dealer.command("start")
@helper_options
@CORES
@COMPUTE
@COMPUTE_TLS
def start_dealer(
    given: Serving, cores: int | None, compute: str | None, compute_tls: Path | None
) -> None:
    """Deal random numbers to nodes until Ctrl-C or SIGTERM."""
    from umpc.compute.executor import named_place
    from umpc.dealer.server import ALLOWED, DealerServer
    from umpc.transport.services import rpc

    identity = begin_helper(given, "dealer")
    assert given.folder is not None
    workers = named_place(cores, compute, compute_tls).open(given.folder)

    def add(server: Server, finished: Finished) -> None:
        dealer = DealerServer(identity, finished, workers=workers)
        rpc.add_DealerServicer_to_server(dealer, server)  # type: ignore[no-untyped-call]

    with contextlib.ExitStack() as ending:
        if workers is not None:
            ending.callback(workers.close)
        serve_helper(given, identity, ALLOWED, add)
