"""The options of commands that start a server.

*Run server.* Servers in this process, until a signal or until they have served their studies.

A server's metrics and health, if its administrator names a local port for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from umpc.cli.memory import Collector, tune_process
from umpc.cli.shared import FOLDER, Option, approvals_of
from umpc.errors import UmpcError
from umpc.logs import FORMATS, LEVELS, start_logging

if TYPE_CHECKING:
    from umpc.monitoring.metrics import Metrics
    from umpc.node.budget.budget_account import Balance
    from umpc.node.budget.ledger import Ledger
    from umpc.node.config import NodeConfig
    from umpc.transport.addresses import HubAddress
    from umpc.transport.connections import Allowed
    from umpc.transport.identity import Identity
    from umpc.transport.people_door import PublicDoor
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


Command = Callable[..., None]


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
node_options = serving_options(STUDIES)


# --- run server -----------------------------------------------------------------------------------

LOOK_EVERY = 0.05
"""Seconds between the first looks of two servers at their certificates' dates."""


@dataclass(frozen=True)
class Service:
    """A server's part.

    place: the address to listen on, or the hub to dial. add: adds the service to the server, and
    tells it to call `finished` after each study. door: where people call.
    """

    identity: Identity
    place: str | HubAddress
    allowed: Allowed
    add: Callable[[Server, Finished], None]
    door: PublicDoor | None = None


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
    door: PublicDoor | None = None,
) -> None:
    """Run the server of `begin_helper`. Args: as of `Service`. Raises: as `serve`."""
    from umpc.transport.addresses import parse_hub

    place = parse_hub(given.hub) if given.hub else given.listen
    service = Service(identity, place, allowed, add, door)
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
    from umpc.transport.connections import begin_end

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
    doors = [service.door for service in services if service.door is not None]
    at = [f"people: {door} on {await door.start()}" for door in doors]
    watch = asyncio.create_task(_keep_watch([service.identity for service in services]))
    end_at_signals(done)
    if given.leash:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), done.set)
    for sentence in filter(None, (failpoints.describe(), told_order.describe())):
        print(sentence, file=sys.stderr, flush=True)
    lines = [
        f"ready: {service.identity.role} {service.identity.name} on {address}"
        for service, (_, address) in zip(services, opened, strict=True)
    ]
    with monitor.served():
        print("\n".join((*lines, *at)), flush=True)
        await done.wait()
    begin_end()
    watch.cancel()
    await asyncio.gather(
        *(door.stop(grace=1) for door in doors), *(server.stop(grace=1) for server, _ in opened)
    )
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


async def open_server(service: Service, finished: Finished) -> tuple[Server, str]:
    """Return a server that answers, and its address.

    Raises: AddressInUse, ConfigError, CertificateError.
    """
    from umpc.transport.connections import bind, make_server
    from umpc.transport.hub.serving import ServerBehindHub

    identity, place = service.identity, service.place
    if isinstance(place, str):
        server = make_server(identity, service.allowed)
        service.add(server, finished)
        address = await bind(server, identity, place)
        await server.start()
        return server, address
    behind = ServerBehindHub(identity, service.allowed, place)
    server = cast("Server", behind)  # the generated code adds its methods to either
    service.add(server, finished)
    return server, await behind.start()


def end_at_signals(done: asyncio.Event) -> None:
    """Let Ctrl-C and SIGTERM set the event.

    A server that listens calls this before it is opened: gRPC prints a traceback where its start is
    interrupted. One behind a hub calls it after that, because it may have to wait for the hub.
    """
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, done.set)


# --- monitored ------------------------------------------------------------------------------------


log = logging.getLogger("umpc.metrics")
STATES = ("total", "spent", "reserved", "left")


class Monitor:
    """The metrics of one server.

    Args: address: HOST:PORT of this machine that serves them, or "" for none.
    """

    def __init__(self, identity: Identity, address: str):
        self._identity = identity
        self._address = address
        self._metrics: Metrics | None = None
        self._ledgers: list[Ledger] = []
        if address:
            from umpc.monitoring.metrics import Metrics

            self._metrics = Metrics(identity)

    def watch_site(
        self,
        config: NodeConfig,
        ledger: Ledger,
        dataset: str = "",
    ) -> None:
        """Add the budget and the approvals of a data set.

        Args: dataset: its name, where the node has several.
        """
        from umpc.node.approvals import PENDING

        self._ledgers.append(ledger)
        approvals = approvals_of(config)

        def pending() -> int:
            try:
                return sum(entry.state == PENDING for entry in approvals.entries())
            except UmpcError:
                return -1

        if self._metrics is not None:
            epsilon, delta = (lambda: amounts(ledger.balance())), lambda: amounts(ledger.delta())
            self._metrics.add_site(epsilon, delta, pending, dataset)

    def ended(self, error: UmpcError | None) -> None:
        """Count a study that ended."""
        if self._metrics is not None:
            self._metrics.ended(error)

    @contextlib.contextmanager
    def served(self) -> Iterator[None]:
        """Serve the metrics inside the block. Raises: ConfigError, AddressInUse."""
        if self._metrics is None:
            yield
            return
        from umpc.monitoring.metrics import first_fault, monitored

        fault = first_fault(self._check_certificate, self._check_ledger)
        with monitored(self._address, self._metrics.registry, fault) as address:
            log.info("metrics are at http://%s/metrics", address)
            yield

    def _check_certificate(self) -> None:
        """Raises: CertificateError if the certificate has ended or is revoked."""
        from umpc.transport.certificates import check_validity

        latest = self._identity.latest()
        check_validity(latest.certificate, "the certificate of this process")
        if latest.revoked is not None:
            latest.revoked.check(latest.certificate.serial_number, latest.name, latest.role)

    def _check_ledger(self) -> None:
        """Raises: LedgerError if the disk refuses."""
        for ledger in self._ledgers:
            ledger.balance()


def amounts(balance: Balance) -> dict[str, float]:
    return {state: float(getattr(balance, state)) for state in STATES}
