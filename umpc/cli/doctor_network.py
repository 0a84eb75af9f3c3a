"""The checks of `umpc node doctor` over the network: the own address, and each peer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import click

from umpc.cli.doctor_finding import Finding, neutral
from umpc.errors import AddressInUse, CertificateError, UmpcError
from umpc.node.config import NAME
from umpc.transport.addresses import (
    HubAddress,
    is_behind_hub,
    refuse_if_taken,
    shown_certificate,
    split_address,
)
from umpc.transport.certificates import clock, verify_certificate
from umpc.transport.diagnose import find_fault
from umpc.transport.greeting import greet_or_fail
from umpc.transport.hub.connection import ask_status
from umpc.transport.identity import Identity

LOOK_SECONDS = 3
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""An address that means all of this machine, and one of these addresses."""
PEER = re.compile(rf"((?P<role>node|dealer|shuffler):)?(?P<name>{NAME})=(?P<address>.+)")


@dataclass(frozen=True)
class NamedPeer:
    """Another process that this node should reach."""

    role: str
    name: str
    address: str


def parse_peer(text: str) -> NamedPeer:
    """Read the text of one --peer. Raises: click.BadParameter."""
    found = PEER.fullmatch(text)
    if found is None:
        raise click.BadParameter(
            f"{text!r}: NAME=HOST:PORT was expected, or dealer:NAME=HOST:PORT", param_hint="--peer"
        )
    return NamedPeer(found["role"] or "node", found["name"], found["address"])


async def check_network(
    place: str | HubAddress, identity: Identity | None, peers: Sequence[NamedPeer]
) -> list[Finding]:
    """Check the address to listen on, or the hub to dial, and all peers, at the same time.

    Args: identity: None if it is unusable. No peer is then called.
    """
    own = _check_listen(place, identity) if isinstance(place, str) else _check_hub(place, identity)
    if not peers:
        told = neutral("peers", "none was named; add --peer NAME=HOST:PORT for each")
        return [*await own, told]
    if identity is None:
        skipped = neutral("peers", "not called: correct this node's certificate first")
        return [*await own, skipped]
    found = await asyncio.gather(own, *(_check_peer(identity, peer) for peer in peers))
    now = f"the protocol tells no peer's time, so compare it yourself: {clock():%F %T} UTC here"
    return [finding for part in found for finding in part] + [neutral("clock", now)]


async def _check_listen(listen: str, identity: Identity | None) -> list[Finding]:
    """Check that the address can be bound, or that this very node listens there."""
    try:
        host, port = split_address(listen)
        await asyncio.to_thread(refuse_if_taken, host, port, listen)
    except AddressInUse as error:
        shown_at = f"{EVERYWHERE.get(host, listen.rpartition(':')[0])}:{port}"
        if identity is None:
            return [neutral("listen", f"{listen} is in use, maybe by this node")]
        if await _is_own(shown_at, identity):
            return [Finding("listen", f"{listen}: this node runs and listens there")]
        return [Finding("listen", error=error)]
    except UmpcError as error:
        return [Finding("listen", error=error)]
    if not port:
        return [neutral("listen", f"{listen} takes any free port; peers need a fixed one")]
    return [Finding("listen", f"{listen} is free")]


async def _check_hub(hub: HubAddress, identity: Identity | None) -> list[Finding]:
    """Check name, TCP and TLS of the hub, and ask whether this node is connected to it."""
    if identity is None:
        return [neutral("hub", "not called: correct this node's certificate first")]
    parts = (identity, hub.name, "hub", hub.address, LOOK_SECONDS)
    if fault := await asyncio.to_thread(find_fault, *parts):
        return [Finding("hub", error=fault)]
    try:
        reply = await ask_status(identity, hub, LOOK_SECONDS)
    except UmpcError as error:
        return [Finding("hub", error=error)]
    own = identity.role, identity.name
    here = any((each.role, each.name) == own and each.listens for each in reply.seats)
    runs = "this node runs and is connected" if here else "it answers; this node is not connected"
    return [Finding("hub", f"{hub}: {runs}")]


async def _is_own(address: str, identity: Identity) -> bool:
    """Return whether the server at an address shows a certificate of our own name and role."""
    shown = await shown_certificate(address, LOOK_SECONDS)
    if shown is None:
        return False
    try:
        found = verify_certificate(shown, identity.ca_pem, now=clock())
    except CertificateError:
        return False
    return found == (identity.name, identity.role)


async def _check_peer(identity: Identity, peer: NamedPeer) -> list[Finding]:
    """Check name, TCP and TLS of a peer, one after the other, and then its version."""
    parts = (identity, peer.name, peer.role, peer.address, LOOK_SECONDS)
    who = f"{peer.role} {peer.name!r} at {peer.address}"
    if is_behind_hub(peer.address):
        answer = await greet_or_fail(identity, peer.role, peer.name, peer.address)
        if isinstance(answer, UmpcError):
            return [Finding("peer", error=answer)]
        return [Finding("peer", f"{who}: umpc {answer}")]
    if fault := await asyncio.to_thread(find_fault, *parts):
        return [Finding("peer", error=fault)]
    reached = f"{who}: name, TCP and TLS work, and each side accepts the other's certificate"
    answer = await greet_or_fail(identity, peer.role, peer.name, peer.address)
    if isinstance(answer, UmpcError):
        return [Finding("peer", reached), Finding("peer version", error=answer)]
    return [Finding("peer", reached), Finding("peer version", f"{who}: protocol {answer}")]
