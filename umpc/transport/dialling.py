"""A channel to another process, directly or through a hub, as its address says."""

from __future__ import annotations

from umpc.transport import channels
from umpc.transport.channels import LATE_SECONDS
from umpc.transport.hub.address import is_behind_hub
from umpc.transport.hub.routes import connect_through
from umpc.transport.identity import Identity
from umpc.transport.services import Channel


async def connect(
    identity: Identity,
    name: str,
    role: str,
    address: str,
    timeout: float,
    patience: float = LATE_SECONDS,
) -> Channel:
    """Return a channel to exactly this name and role. The caller closes it.

    Args:
        address: "host:port", or `hub:NAME@HOST:PORT` for a process behind a hub.
        timeout: seconds that a peer which is not there yet has to come.
        patience: seconds that a peer has which answers, and is late because a machine is busy.

    Raises: CertificateError, PeerUnavailable, ConfigError.
    """
    if is_behind_hub(address):
        return await connect_through(identity, name, role, address, timeout, patience)
    return await channels.connect(identity, name, role, address, timeout, patience)
