"""The caller's sessions that rest between two calls, so that the next one needs no handshake.

A handshake takes two signatures, two checks and two key agreements, and each node makes one with
the dealer in each study. A call that ended well leaves its session here. The next call to the same
process takes it. Two nodes of a study need no handshake (`agreed.py`).

| rule | reason |
|---|---|
| only a run that ended well leaves its session | the session of a failed run may be the reason |
| for KEPT_SECONDS, and MOST_RESTING in a process | memory stays bounded |
| KEY_SECONDS after its handshake it ends | a key that leaks opens no more than an hour |
| no record is known to be missing, and the peer is there | a new session waits for the peer |
| both certificates are those of the handshake, and count now | a renewed or revoked key ends it |

A session that breaks a rule ends, and a new one is opened as if there had been none.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from umpc.crypto.signing import Credentials
from umpc.errors import CertificateError
from umpc.transport.hub.sealing import End
from umpc.transport.hub.session import RESTING_SECONDS, Session

KEPT_SECONDS = RESTING_SECONDS / 2
"""Seconds for which a session rests. The called side waits twice as long for a call."""
KEY_SECONDS = 3600.0
"""Seconds after its handshake in which a session may begin another call."""
MOST_RESTING = 256
"""Resting sessions of a process, over all its members. No further one stays."""


class RestingSessions:
    """The resting sessions of one member, by the process at the other end."""

    _in_process: ClassVar[int] = 0

    def __init__(self) -> None:
        self._since: dict[Session, float] = {}
        self._to: dict[End, dict[Session, None]] = {}
        """These sessions by their other end, the one that rested last is the last one."""

    def __len__(self) -> int:
        return len(self._since)

    def add(self, session: Session) -> bool:
        """Keep the session of a call that ended well. Returns: False if there is no room."""
        if RestingSessions._in_process >= MOST_RESTING or not session.rest():
            return False
        self._since[session] = _now()
        self._to.setdefault(session.other, {})[session] = None
        RestingSessions._in_process += 1
        return True

    def take(self, role: str, name: str, own: Credentials) -> Session | None:
        """Return a session with a process that may begin another call, or None."""
        for session in reversed(list(self._to.get(End(role, name), ()))):
            if session.is_usable:
                self.forget(session)
                if _is_young(session) and _counts(session, own):
                    return session
                session.cancel()
        return None

    def forget(self, session: Session) -> None:
        """Drop a session that has ended, or that has a call again."""
        if self._since.pop(session, None) is None:
            return
        RestingSessions._in_process -= 1
        others = self._to[session.other]
        del others[session]
        if not others:
            del self._to[session.other]

    def expire(self) -> None:
        """End the sessions whose time is up."""
        latest = _now() - KEPT_SECONDS
        for session, since in list(self._since.items()):
            if since < latest:
                self.forget(session)
                session.cancel()

    def close(self) -> None:
        """Forget all sessions: their connection ends."""
        for session in list(self._since):
            self.forget(session)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_young(session: Session) -> bool:
    return _now() - session.begun < KEY_SECONDS


def _counts(session: Session, own: Credentials) -> bool:
    """Return whether both certificates are those of the handshake, and count now."""
    if session.own_certificate != own.certificate:
        return False
    try:
        holder = own.verify(session.certificate)
    except CertificateError:
        return False
    return (holder.role, holder.name) == session.other
