"""The sessions of this process at one hub, over its one connection (`connection.py`).

When the connection breaks, it is dialled again, and the sessions go on where they were. Only the
log shows it. A session ends when its peer, or the hub, stays away for longer than the hub's grace
time. The sessions take turns: each sends one envelope, and the next one follows.

*Arrivals.* All that comes from a hub, for the sessions of this process or for unknown ones.

| what comes | who takes it |
|---|---|
| an envelope of a session | the session |
| an opening | the listener; it is answered, or refused |
| an envelope of an unknown session | nobody; it is refused |
| a notice that a peer cannot be reached | all sessions with that peer |

*Absence.* The hub states whether a peer that is not connected is expected. One that is expected is
waited for. For one that is not, each wait ends at once: it never came, has left, stayed away for
longer than the hub's grace time, or has a revoked certificate.

*Link errors.* The errors of sessions that end by a word from outside: redirected, or refused by the
peer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from umpc.errors import CertificateError, PeerLost, PeerUnavailable, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import HubAddress
from umpc.transport.hub.connection import FAREWELL_SECONDS, HubConnection
from umpc.transport.hub.sealing import SESSION_BYTES, End, Opening, Parties
from umpc.transport.hub.session import Session
from umpc.transport.identity import Identity, credentials_of

ABSENT_PAUSE = 0.2
"""Seconds until a peer that is not connected is tried again."""


class HubClient:
    """This process at one hub. Args: listener: takes the sessions that others open."""

    def __init__(self, identity: Identity, hub: HubAddress, listener: Listener | None = None):
        self.identity = identity
        self.hub = hub
        self.sessions: dict[Place, Session] = {}
        self._ready: dict[Session, None] = {}
        self._arrivals = Arrivals(hub.name, self.sessions, listener, self.refuse)
        self.connection = HubConnection(identity, hub, self, listens=listener is not None)
        self.idle: Callable[[], None] | None = None
        self.users = 0
        """Channels that are open, or being opened, over this link."""

    @property
    def is_up(self) -> bool:
        """The connection to the hub stands."""
        return self.connection.is_up

    @property
    def grace(self) -> float:
        """Seconds that a lost connection may take to come back."""
        return self.connection.grace

    # ---- the owner's side --------------------------------------------------------------------

    async def open_session(self, role: str, name: str) -> Session:
        """Return an open session with a process. One that the hub expects is waited for.

        Raises: PeerUnavailable where the hub does not expect it, or is gone itself;
            CertificateError. It has no limit of time.
        """
        while True:
            session = await self._tried_session(End(role, name))
            if session.failure is None:
                return session
            if not (session.is_expected and isinstance(session.failure, PeerUnavailable)):
                raise session.failure
            await asyncio.sleep(ABSENT_PAUSE)

    async def _tried_session(self, peer: End) -> Session:
        """Return a session that is open, or that has failed."""
        session = self._new_session(peer)
        self.sessions[session.key] = session
        self.ready(session)
        try:
            await session.opened.wait()
        except BaseException:
            self.forget(session)
            raise
        return session

    def _new_session(self, peer: End) -> Session:
        own = End(self.identity.role, self.identity.name)
        parties = Parties(os.urandom(SESSION_BYTES), own, peer, self.hub.name)
        opening = Opening(parties, credentials_of(self.identity))
        target = pb.HubMember(role=peer.role, name=peer.name)
        return Session(self, parties, target, opening=opening)

    def why_not(self, role: str, name: str) -> UmpcError:
        """Return why no session with a process was opened in time."""
        if not self.is_up and self.connection.why is not None:
            return self.connection.why
        return PeerUnavailable(
            f"{role} {name!r} did not answer in time through hub {self.hub.name!r}: see that it "
            "runs and is connected to it, then try again",
            culprit=name,
        )

    async def close(self, seconds: float = 1.0) -> None:
        """Leave the hub, after the sessions have sent what they had to send."""
        self.connection.leave()
        sessions = list(self.sessions.values())
        await asyncio.gather(*(session.settled(seconds) for session in sessions))
        await self.connection.close(seconds and FAREWELL_SECONDS)

    # ---- the sessions' side ------------------------------------------------------------------

    def ready(self, session: Session) -> None:
        """Note that a session may have something to send."""
        self._ready[session] = None
        self.connection.want()

    def forget(self, session: Session) -> None:
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
        """Let the sessions' time pass. No session opens over a hub that is gone for good."""
        is_gone = self.connection.down > self.grace
        for session in list(self.sessions.values()):
            session.tick(seconds, counted)
            if is_gone and not session.is_open:
                session.is_expected = False
                session.fail(self.why_not(*session.other), tell=False)

    def take(self, frame: pb.HubFrame) -> None:
        """Take a frame from the hub."""
        self._arrivals.take(frame)


# --- arrivals -------------------------------------------------------------------------------------

log = logging.getLogger("umpc.hub")

MOST_TOLD = 20
TOLD_SECONDS = 60.0
"""The log has at most so many refused openings in so many seconds: a member can send thousands."""
MOST_REFUSED = 256
"""Openings of one member that are refused in this time. Further ones are not looked at."""

SEALED = (pb.HUB_SEALED, pb.HUB_RESUME)
Place = tuple[str, str, bytes]
"""(role and name of the other side, session)"""


class Listener(Protocol):
    """The part of a server that opens sessions for others."""

    def opened(self, envelope: pb.HubEnvelope) -> bytes | None:
        """Take an opening. Returns: the answer, or None if the session is refused."""


class Refusals:
    """The refused openings of a minute. Args: clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._since = -TOLD_SECONDS
        self._of: Counter[tuple[str, str]] = Counter()

    def is_heard(self, envelope: pb.HubEnvelope) -> bool:
        """Return whether a member's opening is looked at: it had few refused ones."""
        self._begin_minute()
        return self._of[envelope.source.role, envelope.source.name] < MOST_REFUSED

    def tell(self, envelope: pb.HubEnvelope, reason: str) -> None:
        """Count a refused opening. The log has a line, unless there are too many."""
        self._begin_minute()
        source = envelope.source
        self._of[source.role, source.name] += 1
        if self._of.total() > MOST_TOLD:
            return
        log.warning("a session of %s %r is refused: %s", source.role, source.name, reason)
        if self._of.total() == MOST_TOLD:
            log.warning("further refused sessions of this minute are not shown")

    def _begin_minute(self) -> None:
        now = self._clock()
        if now - self._since >= TOLD_SECONDS:
            self._since = now
            self._of.clear()


@dataclass(frozen=True)
class Arrivals:
    """Takes all that comes over one link.

    Args:
        hub: its name.
        sessions: those of the link, which adds to them.
        listener: as of `HubClient`.
        refuse: sends an envelope that is neither sealed nor repeated.
    """

    hub: str
    sessions: dict[Place, Session]
    listener: Listener | None
    refuse: Callable[[pb.HubEnvelope], None]
    refusals: Refusals = field(default_factory=Refusals)

    def take(self, frame: pb.HubFrame) -> None:
        """Take a frame from the hub."""
        body = frame.WhichOneof("body")
        if body == "envelope":
            self._take(frame.envelope)
        elif body == "notice":
            self._noticed(frame.notice)

    def _take(self, envelope: pb.HubEnvelope) -> None:
        source = envelope.source
        session = self.sessions.get((source.role, source.name, envelope.session))
        if session is not None and envelope.kind in SEALED:
            session.take(envelope)
        elif envelope.kind == pb.HUB_OPEN:
            self._open(envelope)
        elif session is None:
            self._unknown(envelope)
        elif envelope.kind == pb.HUB_ACCEPT:
            session.accepted(envelope)
        elif envelope.kind == pb.HUB_REFUSE:
            session.fail(refusal(session, envelope.body), tell=False)
        else:
            session.take(envelope)

    def _unknown(self, envelope: pb.HubEnvelope) -> None:
        """Take an envelope of a session that is not with its sender.

        It is over, or was redirected.
        """
        for session in list(self.sessions.values()):
            if session.parties.session == envelope.session:
                session.fail(redirected(session, envelope), tell=False)
                return
        if envelope.kind != pb.HUB_REFUSE:
            self._answer(envelope, pb.HUB_REFUSE, b"")

    def _open(self, envelope: pb.HubEnvelope) -> None:
        if self.listener is None:
            self._answer(envelope, pb.HUB_REFUSE, b"")
            return
        if not self.refusals.is_heard(envelope):
            return  # to look at a signature takes longer than to send a wrong one
        try:
            accepted = self.listener.opened(envelope)
        except UmpcError as error:
            self.refusals.tell(envelope, error.message)
            text = f"{type(error).__name__}: {error.message}"
            self._answer(envelope, pb.HUB_REFUSE, text.encode())
            return
        if accepted is not None:
            self._answer(envelope, pb.HUB_ACCEPT, accepted)

    def _answer(self, to: pb.HubEnvelope, kind: pb.HubKind, body: bytes) -> None:
        answer = pb.HubEnvelope(target=to.source, session=to.session, kind=kind, body=body)
        self.refuse(answer)

    def _noticed(self, notice: pb.HubNotice) -> None:
        """Take the hub's word that a peer cannot be reached now."""
        who = notice.member
        for key, session in list(self.sessions.items()):
            if key[:2] != (who.role, who.name):
                continue
            if notice.session and notice.session != key[2]:
                continue
            if session.peer.instance and session.peer.instance != who.instance:
                continue
            self._cannot_reach(session, notice.kind)

    def _cannot_reach(self, session: Session, kind: int) -> None:
        peer, hub = session.other, self.hub
        if kind == pb.HubNotice.CONGESTED and not session.is_open:
            return  # the peer is connected, and the opening is sent again
        if not session.is_open:
            words = f"{peer} is not connected to hub {hub!r}: start it there, or check its name"
            session.is_expected = kind != pb.HubNotice.GONE
            session.fail(PeerUnavailable(words, culprit=peer.name), tell=False)
        elif kind == pb.HubNotice.GONE and session.away:
            session.fail(session.lost(), tell=False)  # the hub's grace for it is over
        elif kind == pb.HubNotice.GONE:
            words = f"{peer.name} went away: it left hub {hub!r}; see that it runs"
            session.fail(PeerLost(words, culprit=peer.name), tell=False)
        else:
            session.ask(absent=kind != pb.HubNotice.CONGESTED)


# --- link errors ----------------------------------------------------------------------------------


def redirected(session: Session, envelope: pb.HubEnvelope) -> CertificateError:
    """Return the error for an opening that the hub took to another process."""
    hub, source = session.parties.hub, envelope.source
    return CertificateError(
        f"hub {hub!r} connected {source.role} {source.name!r}, expected {session.other}; "
        "look at the hub",
        culprit=hub,
    )


def refusal(session: Session, body: bytes) -> UmpcError:
    """Return the error for a session that the other side refused, or has forgotten.

    Nobody signed a refusal, so its words are shown and no more than a loss is concluded from them.
    """
    peer, hub = session.other.name, session.parties.hub
    if session.is_open:
        return PeerLost(
            f"{peer} went away: it knows nothing of the session through hub {hub!r}; its own log "
            "says why",
            culprit=peer,
        )
    said = body.decode("utf-8", "replace")[:500]
    shown = "".join(each if each.isprintable() else "?" for each in said) or "it does not listen"
    error = CertificateError if said.startswith("CertificateError: ") else PeerUnavailable
    words = shown.removeprefix("CertificateError: ")
    return error(f"{peer} refused a session through hub {hub!r}: {words}", culprit=peer)
