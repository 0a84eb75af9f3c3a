"""The metrics of one process, in a registry of its own.

Every label has few values: an outcome is "success" or the class of an error of umpc. Amounts of a
site are read at each scrape, so nothing is copied and nothing can be stale.

The local port of a process: `/metrics` for Prometheus, `/healthz` for a probe.

It listens on this machine only, and answers callers that name this machine: a page of the web whose
name points here reads nothing. Each call has a few seconds in all, and few are served at once, so
slow callers take little. A failure of this port ends no study.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from umpc import __version__
from umpc.errors import AddressInUse, ConfigError, UmpcError
from umpc.local_server import LocalCall, LocalServer, hang_up_after
from umpc.protocol_version import PROTOCOL
from umpc.transport.addresses import split_address
from umpc.transport.identity import Identity

SUCCESS = "success"
Amounts = Mapping[str, float]


class Metrics:
    """The metrics that every process has. Args: identity: of the process."""

    def __init__(self, identity: Identity):
        self.registry = CollectorRegistry()
        self._of_site: dict[str, _OfSite] = {}
        ProcessCollector(registry=self.registry)
        self._ended = Counter(
            "umpc_studies_ended",
            "Studies that ended, by outcome: success, or the class of an error.",
            ["outcome"],
            registry=self.registry,
        )
        self._ended.labels(SUCCESS)  # so that a rate is 0 and not absent before the first study
        versions = Gauge(
            "umpc_build",
            "1, with the versions of the package and of the protocol, and the role.",
            ["version", "protocol", "role"],
            registry=self.registry,
        )
        versions.labels(__version__, PROTOCOL, identity.role).set(1)
        self._gauge(
            "umpc_certificate_end_seconds",
            "When the certificate ends, in seconds since 1970.",
            lambda: identity.latest().not_after.timestamp(),
        )

        def list_due() -> float:
            revoked = identity.latest().revoked
            return revoked.next_update.timestamp() if revoked else 0.0

        self._gauge(
            "umpc_revoked_list_due_seconds",
            "When the next list of revoked certificates is due, in seconds since 1970; 0 if none.",
            list_due,
        )

    def ended(self, error: UmpcError | None) -> None:
        """Count a study that ended. Args: error: None after a success."""
        self._ended.labels(type(error).__name__ if error else SUCCESS).inc()

    def add_site(
        self,
        epsilon: Callable[[], Amounts],
        delta: Callable[[], Amounts],
        pending: Callable[[], int],
        dataset: str = "",
    ) -> None:
        """Add what a node has: its budget by state, and the studies that wait for a person.

        Args:
            dataset: a name for the label `dataset`, where the node has several data sets. All of
                them have one then.
        """
        amounts = {
            "umpc_budget_epsilon": ("The epsilon of this site's data, by state.", "state", epsilon),
            "umpc_budget_delta": ("The delta of this site's data, by state.", "state", delta),
            "umpc_approvals_pending": (
                "Studies that wait for a person.",
                "",
                lambda: {"": float(pending())},
            ),
        }
        for name, (text, label, read) in amounts.items():
            if name not in self._of_site:
                self._of_site[name] = _OfSite(name, text, label)
                self.registry.register(self._of_site[name])
            self._of_site[name].reads.append((dataset, read))

    def _gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(read)


class _OfSite:
    """One metric of a site's data sets. Args: label: of the parts of an amount; empty for one."""

    def __init__(self, name: str, text: str, label: str):
        self._name = name
        self._text = text
        self._label = label
        self.reads: list[tuple[str, Callable[[], Amounts]]] = []
        """The name of each data set, empty where there is one only, and its amounts."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Name the metric without reading it."""
        yield self._family()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the amounts of now; none of a data set whose file cannot be read."""
        family = self._family()
        for dataset, read in self.reads:
            try:
                amounts = read()
            except UmpcError:
                continue
            for part, amount in amounts.items():
                family.add_metric([text for text in (dataset, part) if text], amount)
        yield family

    def _family(self) -> GaugeMetricFamily:
        several = any(dataset for dataset, _ in self.reads)
        labels = [*(["dataset"] if several else []), *([self._label] if self._label else [])]
        return GaugeMetricFamily(self._name, self._text, labels=labels)


# --- the local port -------------------------------------------------------------------------------


CALL_SECONDS = 5
"""Longest time of a whole call."""
MOST_AT_ONCE = 8
WELL = "ok"


@contextmanager
def monitored(address: str, registry: CollectorRegistry, fault: Callable[[], str]) -> Iterator[str]:
    """Serve the port inside the block, and yield its address. An empty address serves nothing.

    Args: fault: returns why the process cannot serve studies, or "" if it can.
    Raises: ConfigError if the address is not of this machine alone; AddressInUse.
    """
    if not address:
        yield ""
        return
    host, port = local_address(address)
    try:
        server = _LocalPort((host, port), _handler(registry, fault))
    except OSError:
        raise AddressInUse(
            f"--metrics {address}: another process listens there. Choose another port"
        ) from None
    health = Gauge("umpc_healthy", "1, or 0 if this process cannot serve studies.", registry=None)
    health.set_function(lambda: float(not fault()))
    registry.register(health)
    try:
        with server.served() as shown:
            yield shown
    finally:
        registry.unregister(health)


def local_address(address: str) -> tuple[str, int]:
    """Return host and port of an IPv4 address of this machine alone. Raises: ConfigError."""
    host, port = split_address(address)
    host = "127.0.0.1" if host == "localhost" else host
    if not _is_local(host) or ":" in host:
        raise ConfigError(
            f"--metrics {address}: an address of this machine alone was expected, such as "
            "127.0.0.1:9464. Let a collector on this machine send it on"
        )
    return host, port


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _LocalPort(LocalServer):
    """One thread for each call, of which there are few."""

    def __init__(self, address: tuple[str, int], handler: type[LocalCall]):
        self._room = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, handler)

    def enter(self, address: str) -> bool:
        """Whether there is room for one more call."""
        return self._room.acquire(blocking=False)

    def leave(self, address: str) -> None:
        """Make room for another call."""
        self._room.release()


def _names_this_machine(host: str) -> bool:
    """Whether a call's `Host` is an address of this machine, with or without a port.

    A browser always sends one; a probe of HTTP/1.0 may send none.
    """
    name = (host.rpartition(":")[0] if ":" in host else host).lower()
    return name in ("", "localhost") or _is_local(name)


def _handler(registry: CollectorRegistry, fault: Callable[[], str]) -> type[LocalCall]:
    one_by_one = threading.Lock()

    class Handler(LocalCall):
        """Answers GET of the two paths."""

        def setup(self) -> None:
            """Begin a call, with a limit on its time."""
            super().setup()
            self._limit = hang_up_after(CALL_SECONDS, self.request)

        def finish(self) -> None:
            """End a call."""
            self._limit.cancel()
            super().finish()

        def do_GET(self) -> None:
            """Answer one call."""
            status, kind, text = 404, "text/plain; charset=utf-8", "/metrics or /healthz\n"
            if not _names_this_machine(self.headers.get("Host", "")):
                status, text = 403, "call 127.0.0.1 by its address\n"
            elif self.path == "/metrics":
                with one_by_one:
                    status, kind, text = (
                        200,
                        CONTENT_TYPE_LATEST,
                        generate_latest(registry).decode(),
                    )
            elif self.path == "/healthz":
                with one_by_one:
                    reason = fault()
                status, text = 503 if reason else 200, f"{reason or WELL}\n"
            self.send(status, {"Content-Type": kind}, text.encode())

    return Handler


def first_fault(*checks: Callable[[], object]) -> Callable[[], str]:
    """Return a function that says why one of these checks fails: only the class of its error."""

    def fault() -> str:
        for check in checks:
            try:
                check()
            except UmpcError as error:
                return f"{type(error).__name__}: see the process's log"
        return ""

    return fault
