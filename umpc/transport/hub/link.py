"""The sessions of this process at one hub, over its one connection (`connection.py`).

When the connection breaks, it is dialled again, and the sessions go on where they were. Only the
log shows it. A session ends when its peer, or the hub, stays away for longer than the hub's grace
time. The sessions take turns: each sends one envelope, and the next one follows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from umpc.errors import PeerUnavailable, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.credentials import credentials_of
from umpc.transport.hub.address import HubAddress
from umpc.transport.hub.arrivals import Arrivals, Listener, Place
from umpc.transport.hub.connection import FAREWELL_SECONDS, HubConnection
from umpc.transport.hub.sealed_end import SealedEnd
from umpc.transport.hub.sealing import SESSION_BYTES, End, Opening, Parties
from umpc.transport.hub.session import Session
from umpc.transport.identity import Identity

ABSENT_PAUSE = 0.2
"""Seconds until a peer that is not connected is tried again."""
KNOWN_SECONDS = 1.0
"""Seconds in which the hub says that a peer is not connected. A peer that is may be slow."""


class HubLink:
    """This process at one hub. Args: listener: takes the sessions that others open."""

    def __init__(self, identity: Identity, hub: HubAddress, listener: Listener | None = None):
        self.identity = identity
        self.hub = hub
        self.sessions: dict[Place, Session] = {}
        self._listener = listener
        self._ready: dict[SealedEnd, None] = {}
        self._arrivals = Arrivals(hub.name, self.sessions, listener, self.refuse)
        self._absent: dict[tuple[str, str], UmpcError] = {}
        self.connection = HubConnection(identity, hub, self, listens=listener is not None)
        self.idle: Callable[[], None] | None = None
        self.users = 0
        """Channels that are open, or being opened, over this link."""

    @property
    def is_up(self) -> bool:
        """The connection to the hub stands."""
        return self.connection.is_up

    @property
    def listens(self) -> bool:
        """Others may open sessions with this process."""
        return self._listener is not None

    @property
    def grace(self) -> float:
        """Seconds that a lost connection may take to come back."""
        return self.connection.grace

    # ---- the owner's side --------------------------------------------------------------------

    async def joined(self, seconds: float) -> None:
        """Wait until the hub has let this process in. Args, Raises: as of `HubConnection`."""
        await self.connection.joined(seconds)

    async def open_session(self, role: str, name: str) -> Session:
        """Return an open session with a process, which is waited for while it is not connected.

        Raises: CertificateError, or the responder's own refusal. It has no limit of time.
        """
        try:
            while True:
                session = await self._tried_session(End(role, name))
                if session.failure is None:
                    return session
                if not isinstance(session.failure, PeerUnavailable):
                    raise session.failure
                if session.may_return or self._is_fresh():
                    self._absent.pop((role, name), None)
                else:
                    self._absent[role, name] = session.failure
                await asyncio.sleep(ABSENT_PAUSE)
        finally:
            self._absent.pop((role, name), None)

    def _is_fresh(self) -> bool:
        """Return whether the hub was lost a moment ago: it may have been started again."""
        return asyncio.get_running_loop().time() < self.connection.returned + self.grace

    async def _tried_session(self, peer: End) -> Session:
        """Return a session that is open, or that has failed."""
        session = self._new_session(peer)
        try:
            await self._await_answer(session)
        except BaseException:
            self.forget(session)
            raise
        return session

    async def _await_answer(self, session: Session) -> None:
        self.sessions[session.key] = session
        self.ready(session)
        with suppress(TimeoutError):
            async with asyncio.timeout(KNOWN_SECONDS):
                await session.opened.wait()
        if not session.opened.is_set():
            peer = session.other
            self._absent.pop((peer.role, peer.name), None)  # it is there, and slow
            await session.opened.wait()

    def _new_session(self, peer: End) -> Session:
        own = End(self.identity.role, self.identity.name)
        parties = Parties(os.urandom(SESSION_BYTES), own, peer, self.hub.name)
        opening = Opening(parties, credentials_of(self.identity))
        target = pb.HubMember(role=peer.role, name=peer.name)
        return Session(self, parties, target, opening=opening)

    def lacks(self, role: str, name: str) -> bool:
        """Return whether the hub is gone for good, or said that a process is not connected."""
        return self.connection.down > self.grace or (role, name) in self._absent

    def why_not(self, role: str, name: str) -> UmpcError:
        """Return why no session with a process was opened in time."""
        if not self.is_up and self.connection.why is not None:
            return self.connection.why
        return self._absent.pop((role, name), None) or PeerUnavailable(
            f"{role} {name!r} did not answer in time through hub {self.hub.name!r}: see that it "
            "runs, then try again",
            culprit=name,
        )

    async def close(self, seconds: float = 1.0) -> None:
        """Leave the hub, after the sessions have sent what they had to send."""
        self.connection.leave()
        sessions = list(self.sessions.values())
        await asyncio.gather(*(session.settled(seconds) for session in sessions))
        await self.connection.close(seconds and FAREWELL_SECONDS)

    # ---- the sessions' side ------------------------------------------------------------------

    def ready(self, session: SealedEnd) -> None:
        """Note that a session may have something to send."""
        self._ready[session] = None
        self.connection.want()

    def forget(self, session: SealedEnd) -> None:
        """Drop a session that has ended."""
        self._ready.pop(session, None)
        if self.sessions.get(session.key) is session:
            del self.sessions[session.key]
        if not self.sessions and self.idle is not None:
            self.idle()

    def refuse(self, envelope: pb.HubEnvelope) -> None:
        """Send an envelope that is neither sealed nor repeated."""
        self.connection.control(pb.HubFrame(envelope=envelope))

    # ---- the connection's side -----------------------------------------------------------------

    def next_frame(self) -> pb.HubFrame | None:
        """Return an envelope of the session whose turn it is, or None if none is due."""
        while self._ready:
            session = next(iter(self._ready))
            del self._ready[session]
            frame = session.next_frame()
            if frame is not None:
                if session.has_more:
                    self._ready[session] = None  # at the end of the queue
                return frame
        return None

    def came_up(self) -> None:
        """Let all sessions go on."""
        for session in list(self.sessions.values()):
            session.connection_back()

    def went_down(self) -> None:
        """Tell all sessions that records may be missing."""
        for session in list(self.sessions.values()):
            session.connection_lost()

    def passed(self, seconds: float, counted: float) -> None:
        """Let the sessions' time pass."""
        for session in list(self.sessions.values()):
            session.tick(seconds, counted)

    def take(self, frame: pb.HubFrame) -> None:
        """Take a frame from the hub."""
        self._arrivals.take(frame)
