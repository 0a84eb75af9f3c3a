"""The metrics of one process, in a registry of its own.

Every label has few values: an outcome is "success" or the class of an error of umpc. Amounts of a
site are read at each scrape, so nothing is copied and nothing can be stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.core import GaugeMetricFamily

from umpc import __version__
from umpc.errors import UmpcError
from umpc.protocol_version import PROTOCOL
from umpc.transport.identity import Identity

SUCCESS = "success"
Amounts = Mapping[str, float]


class Metrics:
    """The metrics that every process has. Args: identity: of the process."""

    def __init__(self, identity: Identity):
        self.registry = CollectorRegistry()
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
    ) -> None:
        """Add what a node has: its budget by state, and the studies that wait for a person."""
        self.registry.register(_Budget("umpc_budget_epsilon", "epsilon", epsilon))
        self.registry.register(_Budget("umpc_budget_delta", "delta", delta))
        self._gauge("umpc_approvals_pending", "Studies that wait for a person.", pending)

    def _gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        Gauge(name, text, registry=self.registry).set_function(read)


class _Budget:
    """One kind of budget, by state: total, spent, reserved and left."""

    def __init__(self, name: str, what: str, read: Callable[[], Amounts]):
        self._name = name
        self._text = f"The {what} of this site's data, by state."
        self._read = read

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Name the metric without reading it."""
        yield GaugeMetricFamily(self._name, self._text, labels=["state"])

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the amounts of now; none while the ledger cannot be read."""
        family = GaugeMetricFamily(self._name, self._text, labels=["state"])
        try:
            amounts = self._read()
        except UmpcError:
            amounts = {}
        for state, amount in amounts.items():
            family.add_metric([state], amount)
        yield family
