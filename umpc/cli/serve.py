"""`umpc node`, `umpc dealer` and `umpc shuffler`: processes that wait for studies."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import signal
import sys
from pathlib import Path

import click

from umpc.errors import UmpcError

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
STUDIES = click.option(
    "--studies",
    type=click.IntRange(min=1),
    help="End after so many studies have ended; default: never.",
)


LEASH = click.option("--while-stdin-open", "leash", is_flag=True, hidden=True)
"""Ends with whoever started it: used by the demo, whose processes must not outlive it."""


@click.group()
def node() -> None:
    """A site's node: its table, its budget, its part of every study.

    \b
    umpc node template --name north > node.toml
    umpc node start --config node.toml
    """


@node.command()
@click.option("--name", required=True, help="The node's name, as in its certificate.")
def template(name: str) -> None:
    """Print a commented node.toml to start from."""
    from umpc.node.template import template as text

    click.echo(text(name), nl=False)


@node.command("start")
@click.option(
    "--config", type=FILE, required=True, help="The node's TOML file; see `umpc node template`."
)
@STUDIES
@LEASH
def start_node(config: Path, studies: int | None, leash: bool) -> None:
    """Serve studies until ended by Ctrl-C or SIGTERM.

    Prints "ready" with its address once it accepts calls.
    """
    from umpc.errors import CertificateError
    from umpc.node.budget.ledger import Ledger
    from umpc.node.config import load_node_config
    from umpc.node.server import ALLOWED, NodeServer
    from umpc.transport.authority import load_identity
    from umpc.transport.services import rpc

    _few_arenas()
    _log_to_stderr()
    loaded = load_node_config(config)
    identity = load_identity(loaded.identity, "node")
    if identity.name != loaded.name:
        raise CertificateError(
            f"{config} names this node {loaded.name!r}, its certificate is for {identity.name!r}; make them agree"
        )
    budget = loaded.ledger, loaded.dataset, loaded.epsilon, loaded.delta
    with (
        contextlib.closing(Ledger(*budget, anchor=loaded.anchor)) as ledger,
        contextlib.ExitStack() as ending,
    ):
        balance = ledger.balance()
        logging.getLogger("umpc.node").info(
            "budget of data set %r: %s in all, %s spent, %s left (%s)",
            *(loaded.dataset, balance.total, balance.spent, balance.left, loaded.ledger),
        )

        def add(server, finished) -> None:
            node = NodeServer(loaded, identity, ledger, finished)
            ending.callback(node.close)  # before the ledger is closed
            rpc.add_NodeServicer_to_server(node, server)

        asyncio.run(_serve(identity, loaded.listen, ALLOWED, add, studies, leash))


@click.group()
def dealer() -> None:
    """The dealer: deals correlated randomness, sees no data, must not collude with a node or the coordinator.

    \b
    umpc dealer start --identity dealer --listen 0.0.0.0:7100
    """


@dealer.command("start")
@click.option(
    "--identity",
    "folder",
    type=FOLDER,
    required=True,
    help="Folder with ca.pem, cert.pem and key.pem.",
)
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    help="host:port; port 0 takes any free one.",
)
@STUDIES
@LEASH
def start_dealer(folder: Path, listen: str, studies: int | None, leash: bool) -> None:
    """Deal material to nodes until ended by Ctrl-C or SIGTERM."""
    from umpc.dealer.server import ALLOWED, DealerServer
    from umpc.transport.authority import load_identity
    from umpc.transport.services import rpc

    _few_arenas()
    _log_to_stderr()
    identity = load_identity(folder, "dealer")

    def add(server, finished) -> None:
        rpc.add_DealerServicer_to_server(DealerServer(identity, finished), server)

    asyncio.run(_serve(identity, listen, ALLOWED, add, studies, leash))


@click.group()
def shuffler() -> None:
    """A shuffler: takes nodes' messages out of order and sees uniform numbers; must not collude with the coordinator.

    A study of protocol = "ghazi-shuffle" names two, of different owners who do not collude with each other either.

    \b
    umpc shuffler start --identity shuffler-1 --listen 0.0.0.0:7100
    """


@shuffler.command("start")
@click.option(
    "--identity",
    "folder",
    type=FOLDER,
    required=True,
    help="Folder with ca.pem, cert.pem and key.pem.",
)
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    help="host:port; port 0 takes any free one.",
)
@STUDIES
@LEASH
def start_shuffler(folder: Path, listen: str, studies: int | None, leash: bool) -> None:
    """Shuffle nodes' messages until ended by Ctrl-C or SIGTERM."""
    from umpc.shuffler.server import ALLOWED, ShufflerServer
    from umpc.transport.authority import load_identity
    from umpc.transport.services import rpc

    _few_arenas()
    _log_to_stderr()
    identity = load_identity(folder, "shuffler")

    def add(server, finished) -> None:
        rpc.add_ShufflerServicer_to_server(ShufflerServer(identity, finished), server)

    asyncio.run(_serve(identity, listen, ALLOWED, add, studies, leash))


async def _serve(identity, listen: str, allowed, add, studies: int | None, leash: bool) -> None:
    """Run one gRPC server until a signal, or until so many studies have ended.

    Raises: the first failure among these studies, so that the exit code tells.
    """
    from umpc.failpoints import describe
    from umpc.transport.channels import bind, make_server

    done = asyncio.Event()
    ended: list[UmpcError | None] = []

    def finished(error: UmpcError | None) -> None:
        if studies is not None:
            ended.append(error)
            if len(ended) >= studies:
                done.set()

    server = make_server(identity, allowed)
    add(server, finished)
    address = await bind(server, identity, listen)
    await server.start()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, done.set)
    if leash:
        loop.add_reader(sys.stdin.fileno(), done.set)
    if describe():
        print(describe(), file=sys.stderr, flush=True)
    print(f"ready: {identity.role} {identity.name} on {address}", flush=True)
    await done.wait()
    await server.stop(grace=1)
    for error in ended:
        if error is not None:
            raise error


def _few_arenas() -> None:
    """glibc gives every thread an arena of its own; two suffice here and save memory (M_ARENA_MAX is −8)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(-8, 2)


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%H:%M:%S",
    )
    logging.getLogger("umpc").setLevel(logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
