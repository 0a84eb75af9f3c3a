"""Sessions between two members that one process hosts: their messages stay in its memory.

A host of many members (`umpc node start --many`) holds the keys of both ends, so sealing such a
message would hide it from nobody, and the hub has no part in it. Each end still checks that the
other one's certificate counts, and has its own call, credit and status, as through the hub. Only a
host asks for these sessions (`ServerBehindHub`, `inside`).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Protocol

from umpc.errors import CertificateError, LocalProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.channels import MAX_MESSAGE
from umpc.transport.credentials import credentials_of
from umpc.transport.hub import numbering as n
from umpc.transport.hub.address import HubAddress
from umpc.transport.hub.sealing import SESSION_BYTES, End, Parties
from umpc.transport.identity import Identity


class Hosted(Protocol):
    """The part of a `ServerBehindHub` that the other members of its process use."""

    identity: Identity
    hub: HubAddress

    def take_inside(self, session: InsideSession) -> None: ...


class InsideSession:
    """One end of a session inside a process, with the methods of `session.Session`.

    Args: other: the other side. certificate: the other side's, in DER.
    """

    def __init__(self, parties: Parties, other: End, certificate: bytes):
        self.parties = parties
        self.other = other
        self.certificate = certificate
        self.failure: UmpcError | None = None
        self.called: Callable[[str], None] | None = None
        self.cancelled: Callable[[], None] | None = None
        self.end: pb.HubEnd | None = None
        self.call = 0
        self.is_torn = False
        """Messages go in one piece."""
        self._tells: Callable[[], None] | None = None
        self._peer: InsideSession | None = None
        self._inbox: deque[bytes] = deque()
        self._waiting = 0
        self._is_half_closed = False
        self._is_over = False
        self._changed = asyncio.Event()

    @staticmethod
    def join(one: InsideSession, two: InsideSession) -> None:
        """Make two sessions the ends of one."""
        one._peer, two._peer = two, one

    async def read(self) -> bytes | None:
        """Return the next message, or None after the last one."""
        while (message := self.poll()) is None:
            if self.has_ended(self.call):
                return None
            await self._until_changed()
        return message

    def poll(self) -> bytes | None:
        """Return the next message, or None if there is none yet."""
        if not self._inbox:
            return None
        message = self._inbox.popleft()
        self._waiting -= len(message) + n.RECORD_BYTES
        self._joined._changed.set()
        return message

    def has_ended(self, call: int) -> bool:
        """Return whether no further message comes. Args: call: always this session's only one."""
        return self.end is not None or self._is_half_closed or self._is_over

    def tell(self, changed: Callable[[], None] | None) -> None:
        """Call this whenever something changed for a reader, in place of what was there before."""
        self._tells = changed

    def write_now(self, message: bytes) -> bool:
        """Give the other side a short message if it has room. Returns: whether it has it."""
        size = len(message)
        if size > n.PART_BYTES or not self._is_open or not self._joined._has_room(size):
            return False
        self.send(n.MESSAGE, message)
        return True

    async def write(self, message: bytes) -> None:
        """Give the other side a message, as soon as its window has room.

        Raises: EOFError after the call has ended.
        """
        if len(message) > MAX_MESSAGE:
            raise LocalProtocolError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE}")
        while self._is_open and not self._joined._has_room(len(message)):
            await self._until_changed()
        if not self._is_open:
            raise EOFError("the call has ended")
        self.send(n.MESSAGE, message)

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Give the other side a record that needs no room in its window."""
        self._joined._take(kind, payload)

    def begin_call(self, method: str, *, lasts: bool) -> None:
        """Begin a call. Args: lasts: ignored, since a new session inside costs nothing."""
        self.send(n.CALL, method.encode())

    def cancel(self) -> None:
        """End the caller's call, and let the session go."""
        if self.end is None:
            self.send(n.CANCEL)
        self.close()

    def close(self) -> None:
        """Let the session go. The other side has everything already."""
        self._is_over = True
        self.cancelled = None
        self._note_change()
        self._joined._changed.set()

    async def settled(self, seconds: float) -> None:
        """Return at once: the other side has received everything."""

    @property
    def _joined(self) -> InsideSession:
        if self._peer is None:
            raise LocalProtocolError("a session was used before it had its other end")
        return self._peer

    @property
    def _is_open(self) -> bool:
        return self.end is None and not self._is_over and not self._joined._is_over

    def _has_room(self, size: int) -> bool:
        return not self._waiting or self._waiting + size + n.RECORD_BYTES <= n.WINDOW

    def _note_change(self) -> None:
        self._changed.set()
        if self._tells is not None:
            self._tells()

    async def _until_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _take(self, kind: int, payload: bytes) -> None:
        """Take what the other side sends. The process's own two ends break no rule."""
        if self._is_over:
            return
        if kind == n.MESSAGE:
            self._inbox.append(payload)
            self._waiting += len(payload) + n.RECORD_BYTES
        elif kind == n.HALF_CLOSE:
            self._is_half_closed = True
        elif kind == n.END:
            self.end = pb.HubEnd.FromString(payload)
        elif kind == n.CALL and self.called is not None:
            self.called(payload.decode("ascii"))
        elif kind == n.CANCEL:
            self._is_over = True
            if self.cancelled is not None:
                self.cancelled()
        self._note_change()


class WayInside:
    """Opens sessions of one member with another one of its process, as a `HubLink` does."""

    def __init__(self, identity: Identity, server: Hosted):
        self._identity = identity
        self._server = server

    async def open_session(self, role: str, name: str) -> InsideSession:
        """Return an open session. Raises: CertificateError where either certificate fails."""
        server = self._server
        parties = Parties(
            os.urandom(SESSION_BYTES),
            End(self._identity.role, self._identity.name),
            End(role, name),
            server.hub.name,
        )
        theirs = _shown(server.identity, self._identity, parties.responder)
        ours = _shown(self._identity, server.identity, parties.initiator)
        caller = InsideSession(parties, parties.responder, theirs)
        called = InsideSession(parties, parties.initiator, ours)
        InsideSession.join(caller, called)
        server.take_inside(called)
        return caller


def _shown(holder: Identity, judge: Identity, expected: End) -> bytes:
    """Return a member's certificate after another one has checked it. Raises: CertificateError."""
    shown = credentials_of(holder).certificate
    found = credentials_of(judge).verify(shown)
    if (found.role, found.name) != expected:
        raise CertificateError(
            f"{found.role} {found.name!r} is in this process under the name of {expected}"
        )
    return shown
