"""One session between two members of a hub, and the one call that it carries.

The caller begins the call, both ends read and write its messages, and it ends by a status of the
called side or by a word of the caller. `sealed_end.py` seals and sends the records, and gives those
that come to `_handle`; `channel.py` and `serving.py` read and write the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from google.protobuf.message import DecodeError

from umpc.errors import LocalProtocolError, RemoteProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.channels import MAX_MESSAGE
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealed_end import Connection, SealedEnd
from umpc.transport.hub.sealing import Opening, Parties, Seal

IDLE_SECONDS = 600.0
"""Seconds in which a session must begin its call after it was opened: a node opens one with its
dealer when it has agreed, and calls when all nodes have."""


class Session(SealedEnd):
    """One end of a session with its call. Args: as of `SealedEnd`."""

    def __init__(
        self,
        link: Connection,
        parties: Parties,
        peer: pb.HubMember,
        *,
        seal: Seal | None = None,
        opening: Opening | None = None,
    ):
        super().__init__(link, parties, peer, seal=seal, opening=opening)
        self.called: Callable[[str], None] | None = None
        self.cancelled: Callable[[], None] | None = None
        self.end: pb.HubEnd | None = None
        self.is_torn = False
        """A part of a message has left, and the rest of it never will."""
        self.was_cancelled = False
        """The other side, which called, has ended the call."""
        self._inbox: deque[tuple[bytes, int]] = deque()
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._is_half_closed = False
        self._has_called = False
        self._is_over = False
        self._is_gone = False
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()

    # ---- the application's side --------------------------------------------------------------

    async def read(self) -> bytes | None:
        """Return the next message, or None after the last one. Raises: the session's failure."""
        while (message := self.poll()) is None:
            if self.has_ended:
                return None
            self._raise_failure()
            await self._until_changed()
        return message

    def poll(self) -> bytes | None:
        """Return the next message, or None if there is none yet."""
        if not self._inbox:
            return None
        message, records = self._inbox.popleft()
        self._numbering.consume(len(message), records)
        self._send_if_due()
        return message

    @property
    def has_ended(self) -> bool:
        """No further message of the other side comes."""
        return self.end is not None or self._is_half_closed or self._is_over

    async def write(self, message: bytes) -> None:
        """Add a message to what is sent, as soon as the window has room.

        A write that is cancelled after a part of its message has left ends the call for all
        writers, as in gRPC: what followed would continue that message.

        Raises: the session's failure, or EOFError after the call has ended.
        """
        if len(message) > MAX_MESSAGE:
            raise LocalProtocolError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE}")
        async with self._writing:
            for start in range(0, max(1, len(message)), n.PART_BYTES):
                part = message[start : start + n.PART_BYTES]
                try:
                    await self._has_room(len(part))
                except asyncio.CancelledError:
                    self.is_torn = self.is_torn or start > 0
                    raise
                is_last = start + n.PART_BYTES >= len(message)
                self.send(n.MESSAGE if is_last else n.PART, part)

    async def _has_room(self, size: int) -> None:
        """Wait until the window has room for so many bytes. Raises: as `write`."""
        while self._is_writable and not self._numbering.has_room(size):
            await self._until_changed()
        self._raise_failure()
        if not self._is_writable:
            raise EOFError("the call has ended")

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Add a record that needs no room in the window."""
        if self.failure is None:
            self._numbering.append(kind, payload)
            self._ready()

    @property
    def _is_writable(self) -> bool:
        has_ended = self._is_over or self.end is not None or self.is_torn
        return self.failure is None and not has_ended

    def _note_change(self) -> None:
        self._changed.set()

    async def _until_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def begin_call(self, method: str) -> None:
        """Begin the call."""
        self.send(n.CALL, method.encode())

    # ---- the end -----------------------------------------------------------------------------

    def cancel(self) -> None:
        """End the caller's call, and let the session go."""
        if self.end is None:
            self.send(n.CANCEL)
        self.close()

    def close(self) -> None:
        """Let the session go as soon as the other side has received everything."""
        self._is_over = True
        self.cancelled = None
        self._note_change()
        if self._seal is None or self.failure is not None:
            self._go()
        else:
            self._ready()

    def fail(self, error: UmpcError, *, tell: bool = True) -> None:
        if self.failure is not None:
            return
        if self.end is not None or self._is_over:
            self._go()  # the call has ended, and its status counts
            return
        if tell:
            self._link.refuse(self._framed(pb.HUB_REFUSE, b"", 0).envelope)
        self.failure = error
        self.opened.set()
        self._go()
        if self.cancelled is not None:
            self.cancelled()

    async def settled(self, seconds: float) -> None:
        """Wait until the other side has received everything, or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while not (self._is_gone or self._numbering.is_settled):
                    await self._until_changed()
        except TimeoutError:
            pass

    def _go(self) -> None:
        self._is_gone = True
        self._note_change()
        self._link.forget(self)

    # ---- the link's side ---------------------------------------------------------------------

    @property
    def has_more(self) -> bool:
        return self.failure is None and (self._is_over or self._numbering.is_due)

    def _all_sent(self) -> None:
        if self._is_over and self._numbering.is_settled:
            self._go()

    def _send_if_due(self) -> None:
        if self._is_over or self._numbering.is_due:
            self._ready()

    def tick(self, seconds: float, absent: float | None = None) -> None:
        if self._seal is None:
            self._open_again(seconds)
            return  # the owner has its own limit
        self._acknowledge(seconds)
        has_begun = self.called is None or self._has_called
        if has_begun and not self._numbering.is_asking and self._numbering.is_settled:
            self._quiet = self.away = self._waited = 0.0
            return
        limit = self._link.grace if has_begun else IDLE_SECONDS
        self._await(seconds, absent, limit=limit, counts=not has_begun)

    # ---- the records that come ---------------------------------------------------------------

    def _handle(self, record: n.HubRecord) -> None:
        if self._is_over:
            self._numbering.settle()  # the other side has ended, too, and waits for this to leave
        if record.kind in n.SIZED:
            self._assemble(record)
        elif record.kind == n.HALF_CLOSE:
            self._is_half_closed = True
        elif record.kind == n.CALL:
            self._begin(record.payload)
        elif record.kind == n.END:
            self._ended(record.payload)
        elif record.kind == n.CANCEL:
            self._numbering.settle()
            self._is_over = self.was_cancelled = True
            cancelled, self.cancelled = self.cancelled, None
            if cancelled is not None:
                cancelled()

    def _ended(self, payload: bytes) -> None:
        try:
            self.end = pb.HubEnd.FromString(payload)
        except DecodeError:
            raise RemoteProtocolError(
                f"{self.other} ended its call with bytes that are no status",
                culprit=self.other.name,
            ) from None
        self._numbering.settle()

    def _assemble(self, record: n.HubRecord) -> None:
        self._parts.append(record.payload)
        self._parts_bytes += len(record.payload)
        if self._parts_bytes > MAX_MESSAGE:
            raise RemoteProtocolError(
                f"{self.other} sent a message of more than {MAX_MESSAGE} bytes",
                culprit=self.other.name,
            )
        if record.kind == n.MESSAGE:
            self._inbox.append((b"".join(self._parts), len(self._parts)))
            self._parts, self._parts_bytes = [], 0

    def _begin(self, method: bytes) -> None:
        if self.called is None or self._has_called or len(method) > 200:
            raise RemoteProtocolError(
                f"{self.other} began a call where none was due", culprit=self.other.name
            )
        self._has_called = True
        self.called(method.decode("ascii", "replace"))
