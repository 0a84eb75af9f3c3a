"""The hubs at which this process is, and the way to another process through one of them.

A process has one connection to each hub: the one over which it listens, or one that lasts as long
as its calls do. A hub is found by the name in its certificate, so each site may reach it at an
address of its own.

*Dialling.* A channel to another process, directly or through a hub, as its address says.
"""

from __future__ import annotations

import asyncio
from typing import cast
from weakref import WeakKeyDictionary

from umpc.transport import channels
from umpc.transport.channels import LATE_SECONDS
from umpc.transport.hub.address import is_behind_hub, parse_hub
from umpc.transport.hub.channel import HubChannel
from umpc.transport.hub.link import HubLink
from umpc.transport.hub.session import Session
from umpc.transport.identity import Identity
from umpc.transport.services import Channel

LOOK_SECONDS = 1.0
"""Seconds between two looks whether a peer that is late is connected at all."""
Place = tuple[str, str, str]
"""(our role, our name, the hub's name)"""
_links: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Place, HubLink]] = WeakKeyDictionary()
_leaving: set[asyncio.Task[None]] = set()


def _here() -> dict[Place, HubLink]:
    return _links.setdefault(asyncio.get_running_loop(), {})


def _place(link: HubLink) -> Place:
    return link.identity.role, link.identity.name, link.hub.name


def register(link: HubLink) -> None:
    """Use a link for all calls through its hub."""
    _here()[_place(link)] = link


def unregister(link: HubLink) -> None:
    """Use a link no more."""
    if _here().get(_place(link)) is link:
        del _here()[_place(link)]


async def connect_through(
    identity: Identity, name: str, role: str, address: str, timeout: float, patience: float
) -> Channel:
    """Return a channel through a hub to exactly this name and role. The caller closes it.

    Raises: as `channels.connect`.
    """
    link = _link_to(identity, address)
    link.users += 1

    async def closed() -> None:
        link.users -= 1
        if link.idle is not None and not link.users:
            await asyncio.shield(_leave(link))

    try:
        await link.joined(timeout)
        session = await _open(link, role, name, timeout, patience)
    except BaseException:
        await closed()
        raise
    # It has the methods of gRPC's channel that the stubs use.
    return cast(Channel, HubChannel(link, session, closed))


async def _open(link: HubLink, role: str, name: str, timeout: float, patience: float) -> Session:
    """Open a session in time. A peer that the hub knows may be late, because a machine is busy."""
    opening = asyncio.create_task(link.open_session(role, name))
    try:
        done, _ = await asyncio.wait({opening}, timeout=timeout)
        left = patience
        while not done and left > 0 and not link.lacks(role, name):
            done, _ = await asyncio.wait({opening}, timeout=min(left, LOOK_SECONDS))
            left -= LOOK_SECONDS
        if not done:
            raise link.why_not(role, name)
        return opening.result()
    finally:
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)


def _link_to(identity: Identity, address: str) -> HubLink:
    hub = parse_hub(address)
    place = identity.role, identity.name, hub.name
    if place not in _here():
        link = HubLink(identity, hub)
        link.idle = lambda: _leave_if_idle(link)
        register(link)
    return _here()[place]


def _leave_if_idle(link: HubLink) -> None:
    """Leave a hub at which this process only calls, after its last call."""
    if link.idle is not None and not link.sessions and not link.users:
        _leave(link)


def _leave(link: HubLink) -> asyncio.Task[None]:
    """Leave a hub with a word of farewell: without one, peers wait for this process to return."""
    unregister(link)
    link.idle = None
    task = asyncio.create_task(link.close())
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
    return task


# --- dialling -------------------------------------------------------------------------------------


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
    if identity.dial is not None:
        channel: Channel = await identity.dial(identity, name, role, address, timeout, patience)
        return channel
    if is_behind_hub(address):
        return await connect_through(identity, name, role, address, timeout, patience)
    return await channels.connect(identity, name, role, address, timeout, patience)
