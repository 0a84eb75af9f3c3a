"""`umpc node start --many`: one process that runs a node for each file of a folder.

The nodes share the process and its event loop. Each has its own certificate, address, ledger,
policy and audit trail, and neither a peer nor a coordinator can tell it from a node that runs
alone. Nodes of one process reach each other as all others do, over links.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from umpc.cli.memory import Collector
from umpc.cli.open_server import end_at_signals, open_server
from umpc.cli.own_site import OwnSite, configurations, open_site, own_identity
from umpc.errors import UmpcError
from umpc.logs import start_logging

if TYPE_CHECKING:
    from umpc.cli.open_server import Server
    from umpc.monitoring.grpc_health import Health
    from umpc.transport.identity import Identity

log = logging.getLogger("umpc.node")
LOOK_EVERY = 0.05
"""Seconds between the first looks of two nodes at their certificates' dates."""


def start_many(folder: Path, studies: int | None, level: str, style: str, leash: bool) -> None:
    """Run the nodes of a folder until a signal, or until each has ended so many studies.

    Raises: ConfigError, CertificateError and LedgerError, for the first file with a fault; the
        first failure among the studies, if their number is given.
    """
    with contextlib.ExitStack() as ending:
        start_logging(f"nodes {folder.name}", level, style)
        sites = _open_sites(folder, ending)
        log.info("%d nodes of %s", len(sites), folder)
        asyncio.run(_serve_all(sites, studies, leash, ending))


def _open_sites(folder: Path, ending: contextlib.ExitStack) -> list[OwnSite]:
    """Open the nodes of a folder."""
    found = configurations(folder)
    return [open_site(configs, own_identity(configs[0]), ending) for configs in found]


async def _serve_all(
    sites: Sequence[OwnSite],
    studies: int | None,
    leash: bool,
    ending: contextlib.ExitStack,
) -> None:
    done = asyncio.Event()
    if all(isinstance(site.place, str) for site in sites):
        end_at_signals(done)
    from umpc.failpoints import describe
    from umpc.node.server import ALLOWED
    from umpc.transport.own_end import begin_end

    counted = _Studies(len(sites), studies, done)
    servers: list[tuple[Server, Health]] = []
    lines = []
    for site in sites:

        def add(server: Server, site: OwnSite = site) -> None:
            site.add_to(server, counted.ended, ending)

        server, health, address = await open_server(site.identity, site.place, ALLOWED, add)
        servers.append((server, health))
        lines.append(f"ready: node {site.identity.name} on {address}")
    watch = asyncio.create_task(_keep_watch([site.identity for site in sites]))
    end_at_signals(done)
    if leash:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), done.set)
    if describe():
        print(describe(), file=sys.stderr, flush=True)
    print("\n".join(lines), flush=True)
    await done.wait()
    begin_end()
    watch.cancel()
    for _, health in servers:
        await health.ending()
    await asyncio.gather(*(server.stop(grace=1) for server, _ in servers))
    counted.raise_first()


async def _keep_watch(identities: list[Identity]) -> None:
    """Look at the certificates of all nodes, one after the other."""
    from umpc.transport.expiry import keep_watch

    async with asyncio.TaskGroup() as group:
        for identity in identities:
            group.create_task(keep_watch(identity))
            await asyncio.sleep(LOOK_EVERY)


class _Studies:
    """The studies that ended. Args: most: studies of each node; None means that nobody counts."""

    def __init__(self, nodes: int, most: int | None, done: asyncio.Event):
        self._left = None if most is None else nodes * most
        self._done = done
        self._first: UmpcError | None = None
        self._collector = Collector()

    def ended(self, error: UmpcError | None) -> None:
        """Count one study of one node."""
        self._collector.collect_soon()
        if self._left is None:
            return
        self._first = self._first or error
        self._left -= 1
        if self._left <= 0:
            self._done.set()

    def raise_first(self) -> None:
        """Raises: the first failure among the counted studies."""
        if self._first is not None:
            raise self._first
