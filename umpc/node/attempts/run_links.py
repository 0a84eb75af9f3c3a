"""The links of one run to its peers: made for one meeting, and ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from umpc.errors import RemoteProtocolError
from umpc.node.attempts.guard import ViolationGuard
from umpc.node.attempts.next_channels import ChannelsOfKind
from umpc.node.attempts.peers import PeerLink
from umpc.node.attempts.session_link import SessionLink
from umpc.node.attempts.site import Site
from umpc.protocols.base.node import MeshSide
from umpc.study.document import Study
from umpc.transport.structured_concurrency import together

NO_CHANNELS: Mapping[int, ChannelsOfKind] = {}


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

    def agree(self, site: Site, mesh: MeshSide, study: Study, meeting: bytes) -> None:
        """Make the links of a meeting for which nothing has to be sent: those over a common hub."""
        if site.agreed is None:
            return
        hubs = site.agreed.reached(study, mesh.peers)
        secrets = mesh.secrets_with(tuple(hubs), meeting) if hubs else {}
        for peer, secret in secrets.items():
            name, is_later = study.nodes[peer].name, mesh.index < peer
            made = site.agreed.link(hubs[peer], name, meeting, secret, is_later=is_later)
            self._add(mesh, peer, made)

    async def connect(
        self,
        site: Site,
        mesh: MeshSide,
        study: Study,
        meeting: bytes,
        channels: Mapping[int, ChannelsOfKind] = NO_CHANNELS,
    ) -> None:
        """Links to all peers of a meeting. Args: channels: for each peer those of use, if any."""
        self.agree(site, mesh, study, meeting)
        await self._connect_others(site, mesh, study, meeting, channels)

    async def _connect_others(
        self,
        site: Site,
        mesh: MeshSide,
        study: Study,
        meeting: bytes,
        channels: Mapping[int, ChannelsOfKind],
    ) -> None:
        """Make the links that two nodes make together; greet over the others where it is due."""

        async def link(peer: int) -> None:
            connect = site.dial if mesh.index < peer else site.await_link
            name = study.nodes[peer].name
            self._connecting.add(name)
            given = (channels[peer],) if peer in channels else ()
            made = await connect(study, peer, meeting, *given)
            self._connecting.discard(name)
            self._add(mesh, peer, made)

        waiting = [
            self._greet(each, channels[peer], is_first=mesh.index < peer)
            for peer, each in self.made.items()
            if isinstance(each, SessionLink) and peer in channels
        ]
        waiting += [link(peer) for peer in mesh.peers if peer not in self.made]
        if waiting:
            await together(waiting)

    def _add(self, mesh: MeshSide, peer: int, link: PeerLink) -> None:
        self.made[peer] = link
        link.window = mesh.attempt.program.window
        link.on_violation(self._guard.note)

    async def _greet(self, link: SessionLink, channels: ChannelsOfKind, *, is_first: bool) -> None:
        """Find the channel that both ends have from an earlier study, if there is one.

        Args: is_first: this node is the earlier one, and may offer a channel.
        """
        self._connecting.add(link.peer)
        if is_first:
            offered = await channels.offer(link.peer)
            link.greet(offered.name if offered is not None else b"")
            if offered is not None:
                answer = await link.greeting()
                if answer not in (b"", offered.name):
                    raise RemoteProtocolError(
                        f"{link.peer} broke the protocol: it took a channel that was not offered",
                        culprit=link.peer,
                        step=link.step,
                    )
                link.channel = offered if answer else None
        else:
            name = await link.greeting()
            if name:
                link.channel = await channels.accept(link.peer, name)
                link.greet(name if link.channel is not None else b"")
        self._connecting.discard(link.peer)

    def begin_to_connect(self, site: Site, mesh: MeshSide, study: Study, meeting: bytes) -> None:
        """Make the links beside the run's other steps. Args: as of `connect`.

        Those over a common hub are made when this returns, so no peer's message comes before them.
        """
        self.has_begun = True
        self.agree(site, mesh, study, meeting)
        others = self._connect_others(site, mesh, study, meeting, NO_CHANNELS)
        self._meeting = asyncio.create_task(others)
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

    def refuse(self, peers: Iterable[int]) -> None:
        """Tell these peers that nothing more comes, before `close`.

        A stream tells it by its end, and a session of a hub says nothing.
        """
        for peer in peers:
            link = self.made.get(peer)
            if isinstance(link, SessionLink):
                link.refuse()

    def close(self, *, keep: bool) -> None:
        """Hang up. Args: keep: the connections may serve another run."""
        if self._meeting is not None:
            self._meeting.cancel()
        for link in self.made.values():
            link.close(keep=keep)
