"""All that comes from a hub, for the sessions of this process or for unknown ones.

| what comes | who takes it |
|---|---|
| an envelope of a session | the session |
| an opening | the listener; it is answered, or refused |
| an envelope of an unknown session | nobody; it is refused |
| a notice that a peer cannot be reached | all sessions with that peer |
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from umpc.errors import PeerLost, PeerUnavailable, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.link_errors import redirected, refusal
from umpc.transport.hub.session import Session

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
        self._count = 0
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
        self._count += 1
        if self._count > MOST_TOLD:
            return
        log.warning("a session of %s %r is refused: %s", source.role, source.name, reason)
        if self._count == MOST_TOLD:
            log.warning("further refused sessions of this minute are not shown")

    def _begin_minute(self) -> None:
        now = self._clock()
        if now - self._since >= TOLD_SECONDS:
            self._since, self._count = now, 0
            self._of.clear()


class Arrivals:
    """Takes all that comes over one link.

    Args:
        hub: its name.
        sessions: those of the link, which adds to them.
        listener: as of `HubLink`.
        refuse: sends an envelope that is neither sealed nor repeated.
    """

    def __init__(
        self,
        hub: str,
        sessions: dict[Place, Session],
        listener: Listener | None,
        refuse: Callable[[pb.HubEnvelope], None],
    ):
        self._hub = hub
        self._sessions = sessions
        self._listener = listener
        self._refuse = refuse
        self._refusals = Refusals()

    def take(self, frame: pb.HubFrame) -> None:
        """Take a frame from the hub."""
        body = frame.WhichOneof("body")
        if body == "envelope":
            self._take(frame.envelope)
        elif body == "notice":
            self._noticed(frame.notice)

    def _take(self, envelope: pb.HubEnvelope) -> None:
        source = envelope.source
        session = self._sessions.get((source.role, source.name, envelope.session))
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
        for session in list(self._sessions.values()):
            if session.parties.session == envelope.session:
                session.fail(redirected(session, envelope), tell=False)
                return
        if envelope.kind != pb.HUB_REFUSE:
            self._answer(envelope, pb.HUB_REFUSE, b"")

    def _open(self, envelope: pb.HubEnvelope) -> None:
        if self._listener is None:
            self._answer(envelope, pb.HUB_REFUSE, b"")
            return
        if not self._refusals.is_heard(envelope):
            return  # to look at a signature takes longer than to send a wrong one
        try:
            accepted = self._listener.opened(envelope)
        except UmpcError as error:
            self._refusals.tell(envelope, error.message)
            text = f"{type(error).__name__}: {error.message}"
            self._answer(envelope, pb.HUB_REFUSE, text.encode())
            return
        if accepted is not None:
            self._answer(envelope, pb.HUB_ACCEPT, accepted)

    def _answer(self, to: pb.HubEnvelope, kind: pb.HubKind, body: bytes) -> None:
        answer = pb.HubEnvelope(target=to.source, session=to.session, kind=kind, body=body)
        self._refuse(answer)

    def _noticed(self, notice: pb.HubNotice) -> None:
        """Take the hub's word that a peer cannot be reached now."""
        who = notice.member
        for key, session in list(self._sessions.items()):
            if key[:2] != (who.role, who.name):
                continue
            if notice.session and notice.session != key[2]:
                continue
            if session.peer.instance and session.peer.instance != who.instance:
                continue
            self._cannot_reach(session, notice.kind)

    def _cannot_reach(self, session: Session, kind: int) -> None:
        peer, hub = session.other, self._hub
        if kind == pb.HubNotice.CONGESTED and not session.is_open:
            return  # the peer is connected, and the opening is sent again
        if not session.is_open:
            words = f"{peer} is not connected to hub {hub!r}: start it there, or check its name"
            session.may_return = kind == pb.HubNotice.AWAY
            session.fail(PeerUnavailable(words, culprit=peer.name), tell=False)
        elif kind == pb.HubNotice.GONE and session.away:
            session.fail(session.lost(), tell=False)  # the hub's grace for it is over
        elif kind == pb.HubNotice.GONE:
            words = f"{peer.name} went away: it left hub {hub!r}; see that it runs"
            session.fail(PeerLost(words, culprit=peer.name), tell=False)
        else:
            session.ask(absent=kind in (pb.HubNotice.ABSENT, pb.HubNotice.AWAY))
