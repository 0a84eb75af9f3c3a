"""`umpc node start --light`: a process that waits in little memory, and loads its nodes later.

A forked process first reads and opens all files of each node, as any start does, and ends. This
process then keeps each node's certificate, its address and the lock of its ledgers. It needs
neither numpy nor any protocol for that. The first study or check at a node loads the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umpc.cli.own_site import open_site, own_identity
from umpc.errors import UmpcError

if TYPE_CHECKING:
    from umpc.node.config import NodeConfig
    from umpc.node.server import NodeServer
    from umpc.transport.hub.address import HubAddress
    from umpc.transport.identity import Identity
    from umpc.transport.services import grpc

log = logging.getLogger("umpc.node")


@dataclass(frozen=True)
class LightSite:
    """A node whose files were checked. They are opened at its first study.

    file: its TOML file. place: as of OwnSite. locks: the locks of its ledgers, until it is loaded.
    """

    file: Path
    identity: Identity
    place: str | HubAddress
    locks: contextlib.ExitStack

    def add_to(
        self,
        server: grpc.aio.Server,
        finished: Callable[[UmpcError | None], None],
        ending: contextlib.ExitStack,
    ) -> None:
        """Let a server answer the calls to this node. Args: as of `OwnSite.calls`."""
        from umpc.node.light_server import LightServer
        from umpc.transport.services import add_node

        async def load() -> NodeServer:
            # Heartbeats go on meanwhile.
            await asyncio.to_thread(_import_all)
            return self._load(finished, ending)

        node = LightServer(self.identity, load)
        add_node(node, server)

    def _load(
        self, finished: Callable[[UmpcError | None], None], ending: contextlib.ExitStack
    ) -> NodeServer:
        """Open the node's files as they are now. Raises: as `open_site` and `load_datasets`."""
        from umpc.node.config import load_datasets

        configs = load_datasets(self.file)
        own_identity(configs[0])
        self.locks.close()
        node = open_site(configs, self.identity, ending).calls(finished, ending)
        gc.freeze()  # as `Collector` does: nothing of it becomes unused
        log.info("the node is loaded")
        return node


def _import_all() -> None:
    """Import all that a node has imported at its start, if it is not light."""
    importlib.import_module("umpc.node.server")
    importlib.import_module("umpc.protocols.registry").load_all()


def light_sites(
    read: Callable[[], Sequence[Sequence[NodeConfig]]], ending: contextlib.ExitStack
) -> list[LightSite] | None:
    """Check all nodes in a forked process, and return what this process keeps of them.

    Args: read: reads each node's data sets. ending: gives the locks back.
    Returns: None if a file has a fault, which a usual start finds again and names.
    Raises: CertificateError, LedgerError, if a file changed just now.
    """
    found = _in_fork(lambda: _checked(read()))
    return None if found is None else [_light_site(facts, ending) for facts in found]


def _checked(nodes: Sequence[Sequence[NodeConfig]]) -> list[dict[str, Any]]:
    """Open the files of each node once, and return what can be told of them as JSON."""
    found = []
    for configs in nodes:
        with contextlib.ExitStack() as opened:
            config = open_site(configs, own_identity(configs[0]), opened).config
        found.append(
            {
                "file": str(config.file),
                "identity": str(config.identity),
                "place": str(config.hub or config.listen),
                "ledgers": [str(each.ledger) for each in configs],
            }
        )
    return found


def _light_site(facts: dict[str, Any], ending: contextlib.ExitStack) -> LightSite:
    from umpc.node.budget.ledger_place import locked
    from umpc.transport.authority import load_identity
    from umpc.transport.hub.address import is_behind_hub, parse_hub

    place = facts["place"]
    locks = ending.enter_context(contextlib.ExitStack())
    for ledger in facts["ledgers"]:
        locks.callback(os.close, locked(Path(ledger)))
    return LightSite(
        file=Path(facts["file"]),
        identity=load_identity(Path(facts["identity"]), "node"),
        place=parse_hub(place) if is_behind_hub(place) else place,
        locks=locks,
    )


def _in_fork(facts: Callable[[], Any]) -> Any:
    """Return what a forked process found, as JSON tells it; None if it failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(facts(), pipe)
            failed = 0
        finally:
            os._exit(failed)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else None
