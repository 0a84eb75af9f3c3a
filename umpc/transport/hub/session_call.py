"""The one call that a session carries at a time, as its two ends use it.

The caller begins a call, both ends read and write its messages, and it ends by a status of the
called side or by a word of the caller. `session.py` seals and sends the records, and gives those
that come to `_handle`.

A session that *lasts* is idle after its call, and may carry another one (`resting.py`). The caller
says REST when it is done, and the called side says END, in either order. The caller begins another
call only after that END, so every record belongs to one call: an idle session drops all others.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable

from google.protobuf.message import DecodeError

from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.channels import MAX_MESSAGE
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealed_end import Connection, SealedEnd
from umpc.transport.hub.sealing import Parties, Seal

WELL = (0, 1)
"""The codes of calls that ended well: OK, and CANCELLED by the caller's own REST."""


class SessionCall(SealedEnd):
    """An end with its call, whatever opened it. Args: as of `SealedEnd`."""

    def __init__(self, link: Connection, parties: Parties, peer: pb.HubMember, seal: Seal | None):
        super().__init__(link, parties, peer, seal)
        self.called: Callable[[str], None] | None = None
        self.cancelled: Callable[[], None] | None = None
        self.end: pb.HubEnd | None = None
        self.lasts = False
        """The session may stay after the call that it has now."""
        self.is_idle = False
        """A call has ended well, and another one may begin."""
        self.call = 0
        """The number of calls that have ended, which is the number of this one."""
        self._inbox: deque[tuple[bytes, int]] = deque()
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._is_half_closed = False
        self._has_called = False
        self._is_over = False
        self._rests = False
        self._is_gone = False
        self._writing = asyncio.Lock()
        self._torn = -1
        self._changed = asyncio.Event()
        self._tells: Callable[[], None] | None = None

    @abstractmethod
    def _go(self) -> None:
        """Leave the link."""

    @abstractmethod
    def _rest_began(self) -> None:
        """Take note that the call is over, and the session stays."""

    @property
    @abstractmethod
    def _is_sealed(self) -> bool:
        """The handshake is complete."""

    # ---- the application's side --------------------------------------------------------------

    async def read(self) -> bytes | None:
        """Return the next message, or None after the last one. Raises: the session's failure."""
        call = self.call
        while (message := self.poll()) is None:
            if self.has_ended(call):
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

    def has_ended(self, call: int) -> bool:
        """Return whether no further message of a call comes. Args: call: its number here."""
        return self.end is not None or self._is_half_closed or self._is_over or call != self.call

    def tell(self, changed: Callable[[], None] | None) -> None:
        """Call this whenever something changed for a reader, in place of what was there before."""
        self._tells = changed

    async def write(self, message: bytes) -> None:
        """Add a message to what is sent, as soon as the window has room.

        A write that is cancelled after a part of its message has left ends the call for all
        writers, as in gRPC: what followed would continue that message.

        Raises: the session's failure, or EOFError after the call has ended.
        """
        if len(message) > MAX_MESSAGE:
            raise LocalProtocolError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE}")
        call = self.call
        async with self._writing:
            for start in range(0, max(1, len(message)), n.PART_BYTES):
                part = message[start : start + n.PART_BYTES]
                try:
                    await self._has_room(call, len(part))
                except asyncio.CancelledError:
                    if start and call == self.call:
                        self._torn = call
                    raise
                is_last = start + n.PART_BYTES >= len(message)
                self.send(n.MESSAGE if is_last else n.PART, part)

    async def _has_room(self, call: int, size: int) -> None:
        """Wait until the window has room for so many bytes. Raises: as `write`."""
        while self._is_open(call) and not self._numbering.has_room(size):
            await self._until_changed()
        self._raise_failure()
        if not self._is_open(call):
            raise EOFError("the call has ended")

    @property
    def is_torn(self) -> bool:
        """A part of a message of this call has left, and the rest of it never will."""
        return self._torn == self.call

    def write_now(self, message: bytes) -> bool:
        """Add a short message if the window has room now. Returns: whether it was added."""
        if len(message) > n.PART_BYTES or not self._is_open(self.call):
            return False
        if self._writing.locked():
            return False  # between two parts of another message
        if not self._numbering.has_room(len(message)):
            return False
        self.send(n.MESSAGE, message)
        return True

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Add a record that needs no room in the window."""
        if self.failure is None:
            self._numbering.append(kind, payload)
            self._ready()

    def _is_open(self, call: int) -> bool:
        is_over = self._is_over or self.end is not None or call != self.call
        return self.failure is None and not is_over and not self.is_torn

    def _note_change(self) -> None:
        self._changed.set()
        if self._tells is not None:
            self._tells()

    async def _until_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def begin_call(self, method: str, *, lasts: bool) -> None:
        """Begin a call. Args: lasts: `rest` or `cancel` ends it, and says if the session stays."""
        self.lasts, self.is_idle = lasts, False
        self.send(n.LASTING if lasts else n.CALL, method.encode())

    def rest(self) -> bool:
        """End the caller's call, and keep the session. Returns: False where it cannot stay."""
        ended_badly = self.end is not None and self.end.code not in WELL
        if not self.lasts or self._is_gone or self.failure is not None or ended_badly:
            return False
        if self.end is not None:
            self._become_idle()
        else:
            self._rests = True
            self.send(n.REST)
        return True

    def _become_idle(self) -> None:
        """Forget all of a call that has ended, but not the numbers of its records."""
        for message, records in self._inbox:
            self._numbering.consume(len(message), records)
        self._numbering.consume(self._parts_bytes, len(self._parts))
        self._inbox.clear()
        self._parts, self._parts_bytes = [], 0
        self.call += 1
        self.end = self.cancelled = None
        self._is_half_closed = self._has_called = self._is_over = self._rests = False
        self.lasts, self.is_idle = False, True
        self._rest_began()
        self._note_change()
        self._tells = None

    def cancel(self) -> None:
        """End the caller's call or rest, and let the session go."""
        if self.end is None or self.lasts:
            self.send(n.CANCEL)
        self.close()

    def close(self) -> None:
        """Let the session go as soon as the other side has received everything.

        The called side of a session that lasts keeps it, unless the caller has cancelled.
        """
        if self.called is not None and self.lasts and self.failure is None:
            self._become_idle()
            return
        self.lasts = self.is_idle = self._rests = False
        self._is_over = True
        self.cancelled = None
        self._note_change()
        if not self._is_sealed or self.failure is not None:
            self._go()
        else:
            self._ready()

    async def settled(self, seconds: float) -> None:
        """Wait until the other side has received everything, or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while not (self._is_gone or self._has_rest or self._numbering.is_settled):
                    await self._until_changed()
        except TimeoutError:
            pass

    @property
    def _has_rest(self) -> bool:
        """The session rests, and all that was written has left; the next call acknowledges it."""
        return self.is_idle and self._numbering.has_left and not self._numbering.is_asking

    def _send_if_due(self) -> None:
        if self._is_over or self._numbering.is_due:
            self._ready()

    # ---- the records that come ---------------------------------------------------------------

    def _handle(self, record: n.HubRecord) -> None:
        if self._is_over:
            self._numbering.settle()  # the other side has ended, too, and waits for this to leave
        if record.kind in n.SIZED:
            if self.is_idle or self._rests:
                self._numbering.consume(len(record.payload), 1)  # of a call that is over
            else:
                self._assemble(record)
        elif record.kind == n.HALF_CLOSE:
            self._is_half_closed = not self.is_idle
        elif record.kind in (n.CALL, n.LASTING):
            self._begin(record.payload, lasts=record.kind == n.LASTING)
        elif record.kind == n.END:
            self._ended(record.payload)
        elif record.kind == n.CANCEL:
            self._numbering.settle()
            self.lasts = self.is_idle = False
            self._stop()
        elif not self.is_idle:  # REST; where the call has ended already, it says nothing new
            self._stop()

    def _stop(self) -> None:
        """End the call because the caller said so. Its handler is cancelled once."""
        self._is_over = True
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
        if self._rests and self.end.code in WELL:
            self._become_idle()  # the next call acknowledges, or the next tick that is due
        elif self._rests:
            self._rests = False
            self.cancel()
        elif not self.lasts:
            self._numbering.settle()  # otherwise REST follows, and acknowledges

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

    def _begin(self, method: bytes, *, lasts: bool) -> None:
        if self.called is None or self._has_called or len(method) > 200:
            raise RemoteProtocolError(
                f"{self.other} began a call where none was due", culprit=self.other.name
            )
        self._has_called = True
        self.lasts, self.is_idle = lasts, False
        self.called(method.decode("ascii", "replace"))
