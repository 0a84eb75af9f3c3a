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
