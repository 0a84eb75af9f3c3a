"""Sessions that two nodes make by themselves for a meeting of a study: nothing opens or ends them.

The signed members have X25519 keys, so both nodes know one secret before they prepare an attempt.
Each makes its end of the session as soon as it knows with whom it shares edges. A message then goes
from the line straight to its user, and a run that ends drops its end without a word.

| what | rule |
|---|---|
| keys | one secret for each meeting and pair (`SeedAgreement.secrets_with`), and so one seal |
| an envelope that is *early* | its session is made later, and then asks to resume (`link.py`) |
| until this end has heard the other one | its envelopes say that they may be early |
| another envelope, of a session that is over | it is refused, and its writer ends with PeerLost |
| an end without news | acknowledges and asks more rarely than in a call: a study ends before |
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Protocol

from umpc.errors import LocalProtocolError, RemoteProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.channels import MAX_MESSAGE
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealed_end import Connection, SealedEnd
from umpc.transport.hub.sealing import Agreed

ACK_SECONDS = 12.0
"""Seconds after which an end acknowledges that has sent nothing since."""
PROBE_SECONDS = 20.0
"""Seconds that a record may lack its acknowledgement before its sender asks for it. Most runs end
before; only a hub that drops the last record of a session is noticed by it."""
MOST_GREETING = 64
"""Longest greeting in bytes."""


class SessionUser(Protocol):
    """The user of a session, to whom everything goes that comes."""

    def takes(self) -> bool:
        """Return whether there is room for a message now; `AgreedSession.deliver` asks again."""

    def came(self, message: bytes) -> None:
        """Take a message. Raises: UmpcError, which ends the session."""

    def greeted(self, word: bytes) -> None:
        """Take the greeting, once. Raises: as `came`."""

    def failed(self, error: UmpcError) -> None:
        """Take note that the session has ended by a failure. It does nothing more."""


class AgreedSession(SealedEnd):
    """One end of a session of a meeting.

    Args:
        made: by `sealing.agree`.
        user: of this end.
    """

    def __init__(
        self,
        link: Connection,
        made: Agreed,
        user: SessionUser,
    ):
        other = made.seal.peer
        peer = pb.HubMember(role=other.role, name=other.name)
        super().__init__(link, made.parties, peer, made.seal, begins_late=True)
        self.is_early = True
        self._user = user
        self._inbox: deque[tuple[bytes, int]] = deque()
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._has_heard = self._is_greeted = self._is_dropped = self._is_torn = False
        self._writing: asyncio.Lock | None = None
        self._changed: asyncio.Event | None = None

    @property
    def is_open(self) -> bool:
        return True

    # ---- the user's side ---------------------------------------------------------------------

    def write_now(self, message: bytes) -> bool:
        """Add a short message if the window has room now. Returns: whether it was added."""
        size = len(message)
        if size > n.PART_BYTES or self._is_over or not self._numbering.has_room(size):
            return False
        if self._is_torn or (self._writing is not None and self._writing.locked()):
            return False  # between two parts of another message
        self._numbering.append(n.MESSAGE, message)
        self._link.ready(self)
        return True

    async def write(self, message: bytes) -> None:
        """Add a message to what is sent, as soon as the window has room.

        A write that is cancelled after a part of its message has left ends the session: what
        followed would continue that message.

        Raises: the session's failure, or EOFError after `drop`.
        """
        if len(message) > MAX_MESSAGE:
            raise LocalProtocolError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE}")
        if self._writing is None:
            self._writing = asyncio.Lock()
        async with self._writing:
            for start in range(0, max(1, len(message)), n.PART_BYTES):
                part = message[start : start + n.PART_BYTES]
                try:
                    await self._until_room(len(part))
                except asyncio.CancelledError:
                    self._is_torn = self._is_torn or start > 0
                    raise
                is_last = start + n.PART_BYTES >= len(message)
                self._numbering.append(n.MESSAGE if is_last else n.PART, part)
                self._link.ready(self)

    def greet(self, word: bytes) -> None:
        """Send a greeting, once and before all messages."""
        self._numbering.append(n.GREETING, word)
        self._link.ready(self)

    def deliver(self) -> None:
        """Give the user what waits for it, as far as it takes it."""
        try:
            while self._inbox and self._user.takes():
                message, records = self._inbox.popleft()
                self._numbering.consume(len(message), records)
                self._user.came(message)
        except UmpcError as error:
            self.fail(error)
            return
        self._send_if_due()

    async def left(self, seconds: float) -> None:
        """Wait until all that was written has left, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self._is_over or self._numbering.has_left):
                    await self._until_changed()

    def refuse(self) -> None:
        """Tell the other end that this one takes no more, before `drop`: it may wait for it."""
        if not self._is_over:
            self._link.refuse(self._framed(pb.HUB_REFUSE, b"", 0).envelope)

    def drop(self) -> None:
        """Forget the session: its run has ended. The other side hears nothing of it."""
        self._is_dropped = True
        self._link.forget(self)
        self._note_change()

    # ---- the link's side ---------------------------------------------------------------------

    def take(self, envelope: pb.HubEnvelope) -> None:
        if self._is_over:
            return
        super().take(envelope)
        if not self._has_heard and self.failure is None:
            self._has_heard, self.is_early = True, False
            source = envelope.source
            self.peer = pb.HubMember(role=source.role, name=source.name, instance=source.instance)

    def next_frame(self) -> pb.HubFrame | None:
        frame = super().next_frame()
        self._note_change()
        return frame

    def fail(self, error: UmpcError, *, tell: bool = True) -> None:
        if self._is_over:
            return
        if tell:
            self._link.refuse(self._framed(pb.HUB_REFUSE, b"", 0).envelope)
        self.failure = error
        self._link.forget(self)
        self._note_change()
        self._user.failed(error)

    def tick(self, seconds: float, absent: float | None = None) -> None:
        numbering = self._numbering
        if numbering.is_quiet:
            self._quiet = self.away = self._waited = self._owing = 0.0
            return
        self._acknowledge(seconds, ACK_SECONDS, owes=numbering.owes_any)
        if numbering.is_settled and not numbering.is_asking:
            self._quiet = self.away = self._waited = 0.0
            return
        grace = self._link.grace
        self._await(seconds, absent, probe=PROBE_SECONDS, limit=grace, counts=False)

    async def settled(self, seconds: float) -> None:
        """Return at once: the run that drops its sessions knows whether they are needed."""

    def _handle(self, record: n.HubRecord) -> None:
        kind, payload = record
        if kind == n.MESSAGE and not (self._parts or self._inbox) and self._user.takes():
            self._numbering.consume(len(payload), 1)
            self._user.came(payload)
        elif kind in n.SIZED:
            self._assemble(kind, payload)
        elif kind == n.GREETING and not self._is_greeted and len(payload) <= MOST_GREETING:
            self._is_greeted = True
            self._user.greeted(payload)
        else:
            raise self._violation(f"sent a record of kind {kind} where none was due")

    def _assemble(self, kind: int, payload: bytes) -> None:
        self._parts.append(payload)
        self._parts_bytes += len(payload)
        if self._parts_bytes > MAX_MESSAGE:
            raise self._violation(f"sent a message of more than {MAX_MESSAGE} bytes")
        if kind == n.MESSAGE:
            self._inbox.append((b"".join(self._parts), len(self._parts)))
            self._parts, self._parts_bytes = [], 0
            self.deliver()

    def _violation(self, action: str) -> RemoteProtocolError:
        name = self.other.name
        return RemoteProtocolError(f"{name} broke the protocol: it {action}", culprit=name)

    def _note_change(self) -> None:
        if self._changed is not None:
            self._changed.set()

    # ---- writers that wait -------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        return self.failure is not None or self._is_dropped

    async def _until_room(self, size: int) -> None:
        while not self._is_over and not self._is_torn and not self._numbering.has_room(size):
            await self._until_changed()
        if self.failure is not None:
            raise self.failure
        if self._is_dropped or self._is_torn:
            raise EOFError("the session has ended here")

    async def _until_changed(self) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()
