"""The channels of transfers of one run: which it takes from earlier studies, and what it makes.

`next_channels.py` keeps them between runs, and `making_channels.py` makes them after a run.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from umpc.mpc.backends import backend_of
from umpc.node.attempts.making_channels import (
    NO_CHAINS,
    EndedLink,
    chain_of,
    ended_links,
    make_channels,
)
from umpc.node.attempts.next_channels import Chain, NextChannels
from umpc.node.attempts.run_compute import RunCompute
from umpc.node.attempts.run_links import RunLinks
from umpc.node.attempts.run_traffic import RunTraffic
from umpc.node.attempts.site import Site
from umpc.protocols.base.node import MeshSide, TakesChannels
from umpc.study.frames import frame_of

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
