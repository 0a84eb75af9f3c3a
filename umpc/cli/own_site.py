"""The parts of a site that `umpc node start` opens by the node's own file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from umpc.errors import CertificateError, UmpcError

if TYPE_CHECKING:
    from umpc.node.budget.ledger import Ledger
    from umpc.node.config import NodeConfig
    from umpc.transport.authority import Identity
    from umpc.transport.services import grpc


@dataclass(frozen=True)
class OwnSite:
    """A node's configuration, its certificate with the key, and its open ledger."""

    config: NodeConfig
    identity: Identity
    ledger: Ledger

    def add_to(
        self,
        server: grpc.aio.Server,
        finished: Callable[[UmpcError | None], None],
        ending: contextlib.ExitStack,
    ) -> None:
        """Let a server answer the calls to this node.

        Args: finished: called after each study. ending: closes the node before the ledger.
        """
        from umpc.node.server import NodeServer
        from umpc.transport.services import rpc

        node = NodeServer(self.config, self.identity, self.ledger, finished)
        ending.callback(node.close)
        rpc.add_NodeServicer_to_server(node, server)  # type: ignore[no-untyped-call]


def own_identity(config: NodeConfig) -> Identity:
    """Return the certificate and key of a node, which must be of its name.

    Raises: CertificateError.
    """
    from umpc.transport.authority import load_identity

    identity = load_identity(config.identity, "node")
    if identity.name != config.name:
        raise CertificateError(
            f"{config.file} names this node {config.name!r}, but its certificate in "
            f"{config.identity} is for {identity.name!r}; make both names equal"
        )
    return identity


def open_site(config: NodeConfig, identity: Identity) -> OwnSite:
    """Open the ledger of a node. The caller closes it. Raises: LedgerError."""
    from umpc.node.budget.ledger import Ledger

    ledger = Ledger(
        config.ledger,
        config.dataset,
        config.epsilon,
        config.delta,
        composition=config.composition,
        anchor=config.anchor,
        hold_seconds=config.hold_seconds,
    )
    return OwnSite(config, identity, ledger)


def configurations(folder: Path) -> list[NodeConfig]:
    """Read the configuration of every node of a folder: one for each .toml file, by its name.

    Raises: ConfigError, also where two files name one node, or no file is there.
    """
    from umpc.errors import ConfigError
    from umpc.node.config import load_node_config

    files = sorted(folder.glob("*.toml"))
    if not files:
        raise ConfigError(
            f"{folder}: a folder with a .toml file for each node was expected, and it has none. "
            "Write the files as `umpc node template` shows, or correct the path"
        )
    found: dict[str, NodeConfig] = {}
    for file in files:
        config = load_node_config(file)
        other = found.setdefault(config.name, config)
        if other is not config:
            raise ConfigError(
                f"{file}: the name {config.name!r} is also that of {other.file}. Give each node a "
                "name of its own, which is that of its certificate"
            )
    return list(found.values())
