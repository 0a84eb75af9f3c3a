"""The channels of transfers of one run: which it takes from earlier studies, and what it makes.

`next_channels.py` keeps them between runs.

*Making channels.* The making of channels of transfers for the next study, after a run that ended
well.

Two nodes that set up a channel, for garbled edges or for coins, make another one from it over the
link that they still have, after both have released (`umpc/mpc/transfers/chained_set_up.py`). It
takes no curve points, a few milliseconds of both processors, and depends on nothing of a study. A
failure to make one is no failure of a study: the next study sets up a channel of its own.

*Run links.* The links of one run to its peers: made for one meeting, and ended together.

*Run traffic.* The bytes and rounds of one run, as the node reports them: before the data, and on
the data.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from umpc.crypto.prg import SEED_BYTES, derive, digest
from umpc.crypto.rounds import Protocol
from umpc.errors import RemoteProtocolError, UmpcError
from umpc.mpc.backends import backend_of
from umpc.mpc.transfers.chained_set_up import MOST_PEERS, chain_receiver, chain_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, fresh_delta
from umpc.node.attempts.next_channels import (
    MAKE_SECONDS,
    Chain,
    Channel,
    KeptChannel,
    NextChannels,
)
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.rounds import blaming, drive
from umpc.node.attempts.run_material import RunCompute, RunMaterial, ViolationGuard
from umpc.node.attempts.site import Site
from umpc.protocols.base.node import MeshSide, TakesChannels
from umpc.study import messages as m
from umpc.study.cost import sent_by_round
from umpc.study.document import Study
from umpc.study.messages import Frame, frame_of
from umpc.transport.patience import time_limit, together

log = logging.getLogger("umpc.node")


class RunChannels:
    """The channels of one run. Args: links: of this run, each with the channel that it took."""

    def __init__(self, links: RunLinks, traffic: RunTraffic, compute: RunCompute):
        self.chains: Mapping[int, Chain] = NO_CHAINS
        """Where the channels of the run's preparation come from, by peer, if it was an earlier run.

        The links of that run ended with it, so nothing else tells."""
        self._links = links
        self._traffic = traffic
        self._compute = compute

    # --- taken from earlier studies ------------------------------------------------------------

    def of_use(self, site: Site, mesh: MeshSide) -> dict[int, NextChannels]:
        """For each peer to which a channel that was made before may serve this run, the store."""
        if site.channels is None or not isinstance(mesh, TakesChannels):
            return {}
        return dict.fromkeys(mesh.channel_peers, site.channels)

    def by_points(self, site: Site, mesh: MeshSide) -> list[int]:
        """The peers to which no channel waits here, so that a new one is set up if one is due."""
        if site.channels is None or not isinstance(mesh, TakesChannels):
            return list(mesh.peers)
        kept, nodes = site.channels, mesh.attempt.study.nodes
        return [peer for peer in mesh.peers if not kept.may_have(nodes[peer].name)]

    def count_set_up(self, mesh: MeshSide) -> None:
        """Count the bytes that set up the taken channels, after an earlier study, as this run's."""
        attempt, index = mesh.attempt, mesh.index
        frames = [
            frame_of(shape, (min(index, peer), max(index, peer)), 0)
            for peer, link in self._links.made.items()
            if link.channel is not None
            for shape in backend_of(attempt.study).set_up_shapes(attempt, index, peer)
        ]
        self._traffic.count_earlier(sum(frame.wire_bytes for frame in frames))

    # --- made for the next study ---------------------------------------------------------------

    def chains_now(self, site: Site) -> Mapping[int, Chain]:
        """Where the channels of this run come from, by peer: for a later run that goes on with it.

        Channels that were set up by points begin a chain now.
        """
        if site.channels is None:
            return NO_CHAINS
        now = site.channels.now()
        return {peer: chain_of(link, now) for peer, link in self._links.made.items()}

    def make_next(
        self, site: Site, mesh: MeshSide, close: Callable[[bool], Awaitable[None]]
    ) -> bool:
        """Make channels in the background over the links of this run, which has ended well.

        Args: close: ends the run; its argument says whether its connections may serve another one.

        Returns: whether there are any links for that, and `close` will be called.
        """
        ended = self.ended(site, mesh)
        if site.channels is None or not ended:
            return False
        making = make_channels(site.channels, ended, self._compute.in_thread, close)
        site.channels.make([each.link.peer for each in ended], making)
        return True

    def ended(self, site: Site, mesh: MeshSide) -> list[EndedLink]:
        """The links over which this run makes channels."""
        place = mesh.index, site.name, mesh.attempt.id
        return ended_links(site.channels, mesh, *place, self._links.made, self.chains)


# --- making channels ------------------------------------------------------------------------------

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


# --- run links ------------------------------------------------------------------------------------

NO_CHANNELS: Mapping[int, NextChannels] = {}


class RunLinks:
    """The links of one run. Args: guard: takes note of the peers' violations."""

    def __init__(self, guard: ViolationGuard):
        self.made: dict[int, PeerLink] = {}
        """The links by the peer's index in the study."""
        self._guard = guard
        self._connecting: set[str] = set()
        self.has_begun = False
        """Links are being made, or were, beside the run's other steps."""
        self._meeting: asyncio.Task[None] | None = None

    @property
    def names(self) -> list[str]:
        """The names of all peers to which there is a link."""
        return [link.peer for link in self.made.values()]

    async def connect(
        self,
        site: Site,
        mesh: MeshSide,
        study: Study,
        meeting: bytes,
        channels: Mapping[int, NextChannels] = NO_CHANNELS,
    ) -> None:
        """Links to all peers of a meeting. Args: channels: for each peer those of use, if any."""

        async def link(peer: int) -> None:
            connect = site.dial if mesh.index < peer else site.await_link
            name = study.nodes[peer].name
            self._connecting.add(name)
            given = (channels[peer],) if peer in channels else ()
            made = await connect(study, peer, meeting, *given)
            self._connecting.discard(name)
            self._add(mesh, peer, made)

        if mesh.peers:
            await together([link(peer) for peer in mesh.peers])

    def _add(self, mesh: MeshSide, peer: int, link: PeerLink) -> None:
        self.made[peer] = link
        link.window = mesh.attempt.program.window
        link.on_violation(self._guard.note)

    def begin_to_connect(self, site: Site, mesh: MeshSide, study: Study, meeting: bytes) -> None:
        """Make the links beside the run's other steps. Args: as of `connect`."""
        self.has_begun = True
        self._meeting = asyncio.create_task(self.connect(site, mesh, study, meeting))
        # A run that fails before it needs the links has a reason of its own.
        self._meeting.add_done_callback(lambda made: made.cancelled() or made.exception())

    async def connected(self) -> None:
        """Wait for the links that were begun. Raises: why one of them could not be made."""
        if self._meeting is not None:
            await self._meeting

    def waited_for(self) -> list[str]:
        """The names of the peers that have not connected, or whose message is missing."""
        late = [link.peer for link in self.made.values() if link.is_awaited]
        return sorted(self._connecting) + late

    async def finish(self) -> None:
        """Let the last messages leave, before `close`."""
        await asyncio.gather(*(link.finish() for link in self.made.values()))

    async def ended(self) -> None:
        """Wait until all links have ended, after `close`."""
        await asyncio.gather(*(link.ended() for link in self.made.values()))

    def close(self) -> None:
        """Hang up."""
        if self._meeting is not None:
            self._meeting.cancel()
        for link in self.made.values():
            link.close()


# --- run traffic ----------------------------------------------------------------------------------


class RunTraffic:
    """The bytes and rounds of one run, with peers, dealer and coordinator."""

    def __init__(self, links: RunLinks, material: RunMaterial):
        self._links = links
        self._material = material
        self._bytes_before = 0
        self._with_coordinator: Counter[tuple[str, int]] = Counter()

    @property
    def bytes_offline(self) -> int:
        """Bytes received from the dealer and sent to peers before the data, whenever that was."""
        return self._bytes_before + self._material.bytes_received

    @property
    def bytes_online_by_round(self) -> tuple[m.StepBytes, ...]:
        """Bytes of each round on data that were sent to peers, and to and from the coordinator."""
        sent = self._with_coordinator.copy()
        for link in self._links.made.values():
            sent.update(link.sent)
        return sent_by_round(sent)

    @property
    def rounds_used(self) -> int:
        """The number of rounds on data."""
        links = self._links.made.values()
        between_nodes = {used for link in links for used in link.rounds_used}
        return len(between_nodes) + bool(self._with_coordinator)

    def count_earlier(self, sent: int) -> None:
        """Count bytes that this run needs and an earlier one sent: channels, coins, preparation."""
        self._bytes_before += sent

    def count_as_prepared(self) -> None:
        """All that was sent to other nodes so far needed no data."""
        for link in self._links.made.values():
            self._bytes_before += link.bytes_sent
            link.rounds_used.clear()
            link.sent.clear()

    def count_with_coordinator(self, frame: Frame) -> None:
        """Count a frame to or from the coordinator. A vector and its total are one round."""
        self._with_coordinator[frame.step, frame.round] += frame.wire_bytes
