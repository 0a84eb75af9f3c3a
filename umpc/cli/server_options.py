"""The options of commands that start a server.

*Run server.* Servers in this process, until a signal or until they have served their studies.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from umpc.cli.memory import Collector, tune_process
from umpc.cli.monitor import Monitor
from umpc.cli.paths import FOLDER
from umpc.errors import UmpcError
from umpc.logs import FORMATS, LEVELS, start_logging

if TYPE_CHECKING:
    from umpc.monitoring.endpoint import Health
    from umpc.transport.addresses import HubAddress
    from umpc.transport.channels import Allowed
    from umpc.transport.identity import Identity
    from umpc.transport.tls import grpc

    Server = grpc.aio.Server
    Finished = Callable[[UmpcError | None], None]

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
TRACES = click.option(
    "--traces",
    default="",
    envvar="UMPC_TRACES",
    show_envvar=True,
    help="Send spans of studies to an OTLP collector on this local address, such as "
    "127.0.0.1:4318; needs the extra otel; default: no.",
)
CORES = click.option(
    "--cores",
    type=click.IntRange(min=1),
    help="The most cores of this machine that compute; default: all.",
)
COMPUTE = click.option(
    "--compute",
    metavar="dask://HOST:PORT",
    help="The dealer's Dask cluster computes in place of this machine; needs the extra cluster.",
)
COMPUTE_TLS = click.option(
    "--compute-tls",
    "compute_tls",
    type=FOLDER,
    help="Folder with ca.pem, cert.pem and key.pem of that cluster.",
)
LEASH = click.option("--while-stdin-open", "leash", is_flag=True, hidden=True)
"""End with the process that started this one. The demo's processes must not outlive it."""


@dataclass(frozen=True)
class Serving:
    """The options of a command's server, which has some of them."""

    level: str
    style: str
    metrics: str
    leash: bool
    studies: int | None = None
    folder: Path | None = None
    listen: str = ""
    hub: str | None = None
    traces: str = ""


Command = Callable[..., None]
Option = Callable[[Any], Any]


def serving_options(*own: Option) -> Callable[[Command], Command]:
    """A decorator: these options and those of every server, as one first argument `Serving`."""

    def decorate(command: Command) -> Command:
        def run(**given: Any) -> None:
            serving = {
                each.name: given.pop(each.name) for each in fields(Serving) if each.name in given
            }
            command(Serving(**serving), **given)

        found: Command = wraps(command)(run)
        options: tuple[Option, ...] = (*own, LOG_LEVEL, LOG_FORMAT, METRICS, LEASH)
        for option in reversed(options):
            found = option(found)
        return found

    return decorate


hub_options = serving_options(IDENTITY, LISTEN)
helper_options = serving_options(IDENTITY, LISTEN, HUB, STUDIES)
"""Options of a dealer, and of a process like it."""
node_options = serving_options(STUDIES, TRACES)


# --- run server -----------------------------------------------------------------------------------

LOOK_EVERY = 0.05
"""Seconds between the first looks of two servers at their certificates' dates."""


@dataclass(frozen=True)
class Service:
    """A server's part.

    place: the address to listen on, or the hub to dial. add: adds the service to the server, and
    tells it to call `finished` after each study.
    """

    identity: Identity
    place: str | HubAddress
    allowed: Allowed
    add: Callable[[Server, Finished], None]


def begin_helper(given: Serving, role: str) -> Identity:
    """Prepare the process of a dealer, a hub or their like, and return its identity.

    Raises: CertificateError, ConfigError.
    """
    from umpc.transport.identity import load_identity

    tune_process()
    assert given.folder is not None
    identity = load_identity(given.folder, role)
    start_logging(f"{role} {identity.name}", given.level, given.style)
    return identity


def serve_helper(
    given: Serving,
    identity: Identity,
    allowed: Allowed,
    add: Callable[[Server, Finished], None],
) -> None:
    """Run the server of `begin_helper`. Args: as of `Service`. Raises: as `serve`."""
    from umpc.transport.addresses import parse_hub

    place = parse_hub(given.hub) if given.hub else given.listen
    service = Service(identity, place, allowed, add)
    asyncio.run(serve([service], given, Monitor(identity, given.metrics)))


async def serve(services: Sequence[Service], given: Serving, monitor: Monitor) -> None:
    """Run servers until a signal, or until each has ended the given number of studies.

    Args: monitor: counts the studies, and serves the metrics.

    Raises: the first failure among these studies, so that the exit code is that failure's.
    """
    done = asyncio.Event()
    if all(isinstance(service.place, str) for service in services):
        end_at_signals(done)
    from umpc import failpoints
    from umpc.node import told_order
    from umpc.transport.channels import begin_end

    collector = Collector()
    ended: list[UmpcError | None] = []

    def finished(error: UmpcError | None) -> None:
        collector.collect_soon()
        monitor.ended(error)
        if given.studies is not None:
            ended.append(error)
            if len(ended) >= given.studies * len(services):
                done.set()

    opened = [await open_server(service, finished) for service in services]
    watch = asyncio.create_task(_keep_watch([service.identity for service in services]))
    end_at_signals(done)
    if given.leash:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), done.set)
    for sentence in filter(None, (failpoints.describe(), told_order.describe())):
        print(sentence, file=sys.stderr, flush=True)
    lines = [
        f"ready: {service.identity.role} {service.identity.name} on {address}"
        for service, (_, _, address) in zip(services, opened, strict=True)
    ]
    with monitor.served():
        print("\n".join(lines), flush=True)
        await done.wait()
    begin_end()
    for _, health, _ in opened:
        await health.ending()
    watch.cancel()
    await asyncio.gather(*(server.stop(grace=1) for server, _, _ in opened))
    for error in ended:
        if error is not None:
            raise error


async def _keep_watch(identities: Sequence[Identity]) -> None:
    """Look at the certificates of all servers, one after the other."""
    from umpc.transport.identity import keep_watch

    async with asyncio.TaskGroup() as group:
        for identity in identities:
            group.create_task(keep_watch(identity))
            await asyncio.sleep(LOOK_EVERY)


async def open_server(service: Service, finished: Finished) -> tuple[Server, Health, str]:
    """Return a server that answers, its health service, and its address.

    Raises: AddressInUse, ConfigError, CertificateError.
    """
    from umpc.monitoring.endpoint import ALLOWED as HEALTH
    from umpc.monitoring.endpoint import Health
    from umpc.transport.channels import bind, make_server
    from umpc.transport.hub.serving import ServerBehindHub

    identity, place, allowed = service.identity, service.place, {**service.allowed, **HEALTH}
    if isinstance(place, str):
        server = make_server(identity, allowed)
        service.add(server, finished)
        health = Health(server)
        address = await bind(server, identity, place)
        await server.start()
        return server, health, address
    behind = ServerBehindHub(identity, allowed, place)
    server = cast("Server", behind)  # the generated code adds its methods to either
    service.add(server, finished)
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
