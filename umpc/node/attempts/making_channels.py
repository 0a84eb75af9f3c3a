"""The making of channels of transfers for the next study, after a run that ended well.

Two nodes that set up a channel, for garbled edges or for coins, make another one from it over the
link that they still have, after both have released (`umpc/mpc/transfers/chained_set_up.py`). It
takes no curve points, a few milliseconds of both processors, and depends on nothing of a study. A
failure to make one is no failure of a study: the next study sets up a channel of its own.
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
from umpc.mpc.transfers.chained_set_up import MOST_PEERS, chain_receiver, chain_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, fresh_delta
from umpc.node.attempts.field_rounds import blaming
from umpc.node.attempts.next_channels import (
    MAKE_SECONDS,
    Chain,
    Channel,
    KeptChannel,
    NextChannels,
)
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.rounds import drive
from umpc.protocols.base.node import TakesChannels
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.node")
REPORT_SECONDS = 0.01
"""Seconds after a study before its nodes make channels: its report is made meanwhile."""
NEXT_CHANNEL = 1
"""The chunk in whose name the set-up of the next study's channel goes; this one's is 0."""

NO_CHAINS: Mapping[int, Chain] = {}


@dataclass(frozen=True)
class EndedLink:
    """A link of a run that has ended, and its channel. name: that of the channel to be made.

    owners: the places of both nodes in the study. chain: where the channel comes from.
    """

    link: PeerLink
    name: bytes
    owners: tuple[int, int]
    channel: Channel
    chain: Chain


def ended_links(
    channels: NextChannels | None,
    mesh: object,
    index: int,
    own: str,
    attempt: bytes,
    links: Mapping[int, PeerLink],
    chains: Mapping[int, Chain] = NO_CHAINS,
) -> list[EndedLink]:
    """The links of an ended run over which channels are to be made: none where there are many.

    Args: chains: those of the channels that the run's preparation has set up, by peer.
    """
    if channels is None or not isinstance(mesh, TakesChannels):
        return []
    peers = [peer for peer in mesh.channel_peers if peer in links]
    if len(peers) > MOST_PEERS:
        return []
    now = channels.now()
    found = []
    for peer in peers:
        link = links[peer]
        chain = chains.get(peer) or chain_of(link, now)
        if not chain.ends(now):
            owners = min(index, peer), max(index, peer)
            name = channel_name(attempt, own, link.peer)
            found.append(EndedLink(link, name, owners, mesh.channel(peer), chain))
    return found


def chain_of(link: PeerLink, now: float) -> Chain:
    """The chain of what is made from the channel over a link, which by points begins now."""
    return link.channel.chain.longer if link.channel else Chain(now)


async def make_channels(
    channels: NextChannels,
    ended: Sequence[EndedLink],
    compute: Callable[..., Awaitable[Any]],
    close: Callable[[bool], Awaitable[None]],
) -> None:
    """Make a channel over each of these links, and then end the run.

    A peer that breaks the protocol is named in the log; a peer that is gone or late is not.

    Args: compute: runs each step. close: ends the links; its argument says whether their
        connections may serve another run.
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
                now = channels.now()
                channels.keep(KeptChannel(peer, each.name, channel, each.chain, now))
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
