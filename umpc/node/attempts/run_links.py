"""The links of one run to its peers: made for one meeting, and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.next_channels import NextChannels
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.site import Site
from umpc.protocols.base.node import MeshSide
from umpc.study.document import Study
from umpc.transport.structured_concurrency import together

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
