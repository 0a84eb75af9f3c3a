"""Connections that are kept after a study, so that the next one needs no new handshakes.

A new connection takes two TLS handshakes: one to look at the server's certificate, and one with
that certificate as the only root (decision 28). A run that ended well gives its connection back,
and a later run to the same process takes it.

| rule | reason |
|---|---|
| one run at a time has a connection | a run's end, heartbeat and flow control stay its own |
| only a run that ended well gives it back | a connection of a failed run may be the reason |
| it is kept for KEPT_SECONDS, one of KEPT_AT_MOST | memory and descriptors stay bounded |
| it is ready, and after LOOK_AFTER it answers a beat | its peer may have stopped meanwhile |
| the certificates of both ends are those of now | a renewed or revoked key ends its connections |

A connection that breaks a rule is closed, and a new one is made as if there had been none.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakSet

from umpc.errors import CertificateError
from umpc.transport import dialling
from umpc.transport.certificates import clock, verify_certificate
from umpc.transport.channels import VerifiedChannel
from umpc.transport.heartbeat import answers_beat
from umpc.transport.hub.address import is_behind_hub
from umpc.transport.identity import Identity
from umpc.transport.services import grpc

KEPT_SECONDS = 60.0
"""Seconds for which an unused connection is kept. Firewalls forget one after some minutes."""
KEPT_AT_MOST = 64
"""Unused connections of a process, over all its nodes. One more closes an older one."""
LOOK_AFTER = 5.0
"""Seconds after which an unused connection must answer a beat before it is used."""
LOOK_SECONDS = 2.0
"""Seconds that the peer may take for this answer."""

Place = tuple[str, str, str]
"""The name, role and address of the process at the other end."""


@dataclass(frozen=True)
class Lease:
    """A connection that one run has. own_pem: the certificate that this side showed."""

    place: Place
    connection: VerifiedChannel
    own_pem: bytes


@dataclass(frozen=True)
class _Unused:
    lease: Lease
    since: float


class KeptConnections:
    """The unused connections of one node, or of one coordinator's studies, in one event loop.

    Args: seconds: the clock of the event loop, or of a test.
    """

    _all: ClassVar[WeakSet[KeptConnections]] = WeakSet()
    """Those of this process that have kept a connection."""
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, seconds: Callable[[], float] | None = None):
        self._seconds = seconds or (lambda: asyncio.get_running_loop().time())
        self._unused: list[_Unused] = []
        """The one that was given back last is the last one."""
        self._keeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._unused)

    async def take(
        self,
        identity: Identity,
        name: str,
        role: str,
        address: str,
        timeout: float,
        patience: float,
    ) -> Lease:
        """Return a kept connection if one may be used, else a new one.

        Args, Raises: as of `dialling.connect`.
        """
        place = (name, role, address)
        while (kept := self._pop(place)) is not None:
            if await self._is_usable(kept, identity):
                return kept.lease
            await kept.lease.connection.channel.close(None)
        # Read before the connection: if the certificate changes meanwhile, it is not kept. Those
        # through a hub never are: a session has one call.
        own_pem = b"" if is_behind_hub(address) else identity.latest().cert_pem
        connection = await dialling.open_connection(
            identity, name, role, address, timeout, patience
        )
        return Lease(place, connection, own_pem)

    async def give_back(self, lease: Lease, *, keep: bool) -> None:
        """Take the connection of a run that has ended. Args: keep: the run ended well."""
        if not keep or lease.connection.server_der is None or not _is_ready(lease):
            await lease.connection.channel.close(None)
            return
        self._unused.append(_Unused(lease, self._seconds()))
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._expire())
        while self._unused and self._kept_in_process() > KEPT_AT_MOST:
            await self._unused.pop(0).lease.connection.channel.close(None)

    def _kept_in_process(self) -> int:
        with self._lock:  # another thread may have an event loop with studies
            self._all.add(self)
            return sum(map(len, self._all))

    async def close(self) -> None:
        """Close all unused connections."""
        while self._unused:
            await self._unused.pop().lease.connection.channel.close(None)

    def _pop(self, place: Place) -> _Unused | None:
        """Return the connection to this place that was used last."""
        for at in reversed(range(len(self._unused))):
            if self._unused[at].lease.place == place:
                return self._unused.pop(at)
        return None

    async def _is_usable(self, kept: _Unused, identity: Identity) -> bool:
        us = identity.latest()
        der = kept.lease.connection.server_der
        idle = self._seconds() - kept.since
        if der is None or idle > KEPT_SECONDS or not _is_ready(kept.lease):
            return False
        if kept.lease.own_pem != us.cert_pem:
            return False
        try:
            verify_certificate(der, us.ca_pem, now=clock(), revoked=us.revoked)
        except CertificateError:
            return False
        channel = kept.lease.connection.channel
        return idle <= LOOK_AFTER or await answers_beat(channel, LOOK_SECONDS)

    async def _expire(self) -> None:
        """Close connections as their time is up, and all of them when the event loop ends."""
        try:
            while self._unused:
                due = self._unused[0].since + KEPT_SECONDS
                if self._seconds() < due:
                    await asyncio.sleep(max(0.05, due - self._seconds()))
                else:
                    await self._unused.pop(0).lease.connection.channel.close(None)
        except asyncio.CancelledError:
            with contextlib.suppress(grpc.aio.BaseError, RuntimeError):
                await self.close()
            raise


def _is_ready(lease: Lease) -> bool:
    """Whether the connection stands, as far as this side's kernel knows."""
    state = lease.connection.channel.get_state()
    return state is grpc.ChannelConnectivity.READY
