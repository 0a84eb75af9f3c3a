"""A server's metrics and health, if its administrator names a local port for them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from umpc.errors import UmpcError

if TYPE_CHECKING:
    from umpc.monitoring.metrics import Metrics
    from umpc.monitoring.traces import Tracing
    from umpc.node.budget.budget_account import Balance
    from umpc.node.budget.ledger import Ledger
    from umpc.node.config import NodeConfig
    from umpc.node.run.coordinator import RunWatch
    from umpc.transport.identity import Identity

log = logging.getLogger("umpc.metrics")
STATES = ("total", "spent", "reserved", "left")


class Monitor:
    """The metrics of one server, and its traces.

    Args:
        address: HOST:PORT of this machine that serves metrics, or "" for none.
        traces: HOST:PORT of this machine where a collector takes spans, or "" for none.
    """

    def __init__(self, identity: Identity, address: str, traces: str = ""):
        self._tracing: Tracing | None = None
        if traces:
            from umpc.monitoring.traces import Tracing

            self._tracing = Tracing(identity, traces)
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
        from umpc.cli.dataset_option import approvals_of
        from umpc.node.approvals import PENDING

        self._ledgers.append(ledger)
        approvals = approvals_of(config)

        def pending() -> int:
            try:
                return sum(entry.state == PENDING for entry in approvals.entries())
            except UmpcError:
                return -1

        if self._metrics is not None:
            self._metrics.add_site(
                lambda: _amounts(ledger.balance()),
                lambda: _amounts(ledger.delta()),
                pending,
                dataset,
            )

    def watch(self) -> RunWatch:
        """Return the observer of one study, which makes its spans."""
        from umpc.node.run.coordinator import Unwatched

        return Unwatched() if self._tracing is None else self._tracing.begin()

    def close(self) -> None:
        """Send the spans that wait."""
        if self._tracing is not None:
            self._tracing.close()

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
        from umpc.monitoring.endpoint import first_fault, monitored

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


def _amounts(balance: Balance) -> dict[str, float]:
    found: dict[str, Fraction] = {state: getattr(balance, state) for state in STATES}
    return {state: float(amount) for state, amount in found.items()}
