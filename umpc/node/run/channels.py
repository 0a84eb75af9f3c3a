"""Chains of oblivious transfers: taken from an earlier study, and made for the next one.

Two nodes that set up a channel, for garbled edges or for coins, make another one from it over the
link that they still have, after both have released (`umpc/mpc/transfers/committee_links.py`). It
takes no curve points, a few milliseconds of both processors, and depends on nothing of a study. A
failure to make one is no failure of a study: the next study sets up a channel of its own.
`umpc/node/standing.py` keeps them between studies.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from umpc.crypto.prg import SEED_BYTES, derive, digest
from umpc.crypto.rounds import Protocol
from umpc.errors import RemoteProtocolError, UmpcError
from umpc.mpc.backends import backend_of
from umpc.mpc.transfers.committee_links import MOST_PEERS, chain_receiver, chain_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, fresh_delta
from umpc.node.run.link import PeerLink
from umpc.node.run.rounds import blaming, drive
from umpc.node.standing import MAKE_SECONDS, Chain, Channel, Standing, StandingWith
from umpc.protocols.base.node import MeshSide, TakesChannels
from umpc.study.messages import frame_of
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.node")

REPORT_SECONDS = 0.01
"""Seconds after a study before its nodes make channels: its report is made meanwhile."""
NEXT_CHANNEL = 1
"""The chunk in whose name the set-up of the next study's channel goes; this one's is 0."""
NO_CHAINS: Mapping[int, Chain] = {}


def standing_of(standing: Standing | None, mesh: MeshSide) -> dict[int, StandingWith]:
    """The standing with each peer to which this run needs a channel, under its certificates."""
    if standing is None or not isinstance(mesh, TakesChannels):
        return {}
    members = mesh.attempt.members
    own = members[mesh.index].certificate
    return {
        peer: StandingWith(standing, members[peer].name, (own, members[peer].certificate))
        for peer in mesh.channel_peers
    }


def set_up_before(mesh: MeshSide, links: Mapping[int, PeerLink]) -> int:
    """The bytes that set up the taken channels, after an earlier study; they count as this run's.

    Args: links: each with the channel that it took.
    """
    attempt, index = mesh.attempt, mesh.index
    frames = [
        frame_of(shape, (min(index, peer), max(index, peer)), 0)
        for peer, link in links.items()
        if link.channel is not None
        for shape in backend_of(attempt.study).set_up_shapes(attempt, index, peer)
    ]
    return sum(frame.wire_bytes for frame in frames)


def chains_of(standing: Standing | None, links: Mapping[int, PeerLink]) -> Mapping[int, Chain]:
    """Where the channels of a run come from, by peer: for a later run that goes on with it.

    Channels that were set up by points begin a chain now.
    """
    if standing is None:
        return NO_CHAINS
    now = standing.now()
    return {peer: _chain_of(link, now) for peer, link in links.items()}


def _chain_of(link: PeerLink, now: float) -> Chain:
    """The chain of what is made from the channel over a link, which by points begins now."""
    return link.channel.chain.longer if link.channel else Chain(now)


# --- made for the next study ----------------------------------------------------------------------


@dataclass(frozen=True)
class EndedLink:
    """A link of a run that has ended, and its channel. name: that of the channel to be made.

    owners: the places of both nodes in the study. chain: where the channel comes from.
    """

    link: PeerLink
    standing: StandingWith
    name: bytes
    owners: tuple[int, int]
    channel: Channel
    chain: Chain


def ended_links(
    standing: Standing | None,
    mesh: MeshSide,
    links: Mapping[int, PeerLink],
    chains: Mapping[int, Chain] = NO_CHAINS,
) -> list[EndedLink]:
    """The links of an ended run over which channels are to be made: none where there are many.

    Args: chains: those of the channels that the run's preparation has set up, by peer. The links
        of the preparation ended with it, so nothing else tells.
    """
    known = standing_of(standing, mesh)
    peers = [peer for peer in known if peer in links]
    if standing is None or not isinstance(mesh, TakesChannels) or len(peers) > MOST_PEERS:
        return []
    now = standing.now()
    own = mesh.attempt.members[mesh.index].name
    found = []
    for peer in peers:
        link = links[peer]
        chain = chains.get(peer) or _chain_of(link, now)
        if not chain.ends(now):
            owners = min(mesh.index, peer), max(mesh.index, peer)
            name = channel_name(mesh.attempt.id, own, link.peer)
            found.append(EndedLink(link, known[peer], name, owners, mesh.channel(peer), chain))
    return found


async def make_channels(
    ended: Sequence[EndedLink],
    compute: Callable[..., Awaitable[Any]],
    close: Callable[[bool], Awaitable[None]],
) -> None:
    """Make a channel over each of these links, and then end the run.

    A peer that breaks the protocol is named in the log; a peer that is gone or late is not.

    Args: compute: runs each step. close: ends the links; its argument says whether all channels
        were made.
    """
    made = False
    try:
        await asyncio.sleep(REPORT_SECONDS)
        async with time_limit(MAKE_SECONDS):
            for each in ended:
                peer = each.link.peer
                with blaming(peer, each.link.step):
                    opening = next_channel(each.channel, each.name, peer)
                    channel = await drive(each.link, opening, each.owners, compute, NEXT_CHANNEL)
                each.standing.keep(each.name, channel, each.chain)
                log.debug("a channel to %s waits for the next study", peer)
        made = True
    except RemoteProtocolError as error:
        log.warning("no channel to %s is kept for the next study: %s", error.culprit, error.message)
    except (UmpcError, TimeoutError) as error:
        log.debug("no channel is kept for the next study: %s", error)
    finally:
        await close(made)


def channel_name(attempt: bytes, *ends: str) -> bytes:
    """The name of the channel that two nodes make after an attempt, the same at both ends."""
    names = (end.encode() for end in sorted(ends))
    return digest(b"umpc next channel 1", attempt, *names)


def next_channel(last: Channel, name: bytes, peer: str) -> Protocol[Any]:
    """The messages that make one end of a channel from another one, with fresh seeds."""
    seed = os.urandom(SEED_BYTES)
    if isinstance(last, CorrelatedReceiver):
        return chain_receiver(last, derive(seed, "set-up"), name, peer)
    return chain_sender(last, derive(seed, "set-up"), fresh_delta(derive(seed, "delta")), name)
