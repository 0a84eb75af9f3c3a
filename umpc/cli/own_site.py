"""The parts of a site that `umpc node start` opens by the node's own file."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from umpc.errors import CertificateError

if TYPE_CHECKING:
    from umpc.cli.server_options import Finished, Server, Service
    from umpc.node.config import NodeConfig
    from umpc.node.datasets import Dataset
    from umpc.node.run.coordinator import RunWatch
    from umpc.transport.addresses import HubAddress
    from umpc.transport.identity import Identity

log = logging.getLogger("umpc.node")


@dataclass(frozen=True)
class OwnSite:
    """A node's certificate with the key, and its data sets with their open ledgers."""

    identity: Identity
    datasets: Sequence[Dataset]

    @property
    def config(self) -> NodeConfig:
        """The first data set's; name, place and certificate are those of all."""
        return self.datasets[0].config

    @property
    def place(self) -> str | HubAddress:
        """The hub that the node dials, or the address where it listens."""
        return self.config.hub or self.config.listen

    def service(self, ending: contextlib.ExitStack, watch: Callable[[], RunWatch]) -> Service:
        """Return the calls to this node, which computes where its file says.

        Args: ending: closes the node before its ledgers. watch: makes the observer of each study.
        """
        from umpc.cli.server_options import Service
        from umpc.node.server import ALLOWED, NodeServer
        from umpc.transport.tls import rpc

        def add(server: Server, finished: Finished) -> None:
            workers = self.config.place.open(self.config.identity)
            if workers is not None:
                ending.callback(workers.close)
            node = NodeServer(self.datasets, self.identity, finished, watch, workers)
            ending.callback(node.close)
            rpc.add_NodeServicer_to_server(node, server)  # type: ignore[no-untyped-call]

        return Service(self.identity, self.place, ALLOWED, add)


def own_identity(config: NodeConfig) -> Identity:
    """Return the certificate and key of a node, which must be of its name.

    Raises: CertificateError.
    """
    from umpc.transport.identity import load_identity

    identity = load_identity(config.identity, "node")
    if identity.name != config.name:
        raise CertificateError(
            f"{config.file} names this node {config.name!r}, but its certificate in "
            f"{config.identity} is for {identity.name!r}; make both names equal"
        )
    return identity


def open_site(
    configs: Sequence[NodeConfig], identity: Identity, ending: contextlib.ExitStack
) -> OwnSite:
    """Open the ledgers of a node's data sets, and tell the log their budgets.

    Args: ending: closes the ledgers. Raises: LedgerError, AuditError, ApprovalError.
    """
    from umpc.node.datasets import open_dataset, open_ledger

    datasets = []
    for each in configs:
        ledger = ending.enter_context(open_ledger(each))
        balance = ledger.balance()
        log.info(
            "budget of data set %r: %s in all, %s spent, %s left (%s)",
            each.dataset,
            balance.total,
            balance.spent,
            balance.left,
            each.ledger,
        )
        datasets.append(open_dataset(each, ledger))
    return OwnSite(identity, datasets)


def configurations(folder: Path) -> list[tuple[NodeConfig, ...]]:
    """Read the data sets of every node of a folder: one node for each .toml file, by its name.

    Raises: ConfigError, also where two files name one node, or no file is there.
    """
    from umpc.errors import ConfigError
    from umpc.node.config import load_datasets

    files = sorted(folder.glob("*.toml"))
    if not files:
        raise ConfigError(
            f"{folder}: a folder with a .toml file for each node was expected, and it has none. "
            "Write the files as `umpc node template` shows, or correct the path"
        )
    found: dict[str, tuple[NodeConfig, ...]] = {}
    for file in files:
        configs = load_datasets(file)
        name = configs[0].name
        other = found.setdefault(name, configs)
        if other is not configs:
            raise ConfigError(
                f"{file}: the name {name!r} is also that of {other[0].file}. Give each node a "
                "name of its own, which is that of its certificate"
            )
    return list(found.values())
