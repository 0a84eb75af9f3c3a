"""One session between two members of a hub, and the one call that it carries.

A session is opened by a handshake. Its records are sealed and numbered, and it is resumed where a
connection broke: it outlives the connection to the hub. `link.py` gives it the envelopes that come,
asks it for the next one to send, and lets its time pass.

The caller begins the call, both ends read and write its messages, and it ends by a status of the
called side or by a word of the caller. `routes.py` and `serving.py` read and write the call.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import deque
from collections.abc import Callable
from typing import Protocol

from google.protobuf.message import DecodeError

from umpc.errors import LocalProtocolError, PeerLost, RemoteProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.connections import MAX_MESSAGE
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import End, Opening, Parties, Seal

IDLE_SECONDS = 600.0
"""Seconds in which a session must begin its call after it was opened: a node opens one with its
dealer when it has agreed, and calls when all nodes have."""
OPEN_SECONDS = 10.0
"""Seconds until an opening without an answer is sent again, in case its envelope was dropped."""
PROBE_SECONDS = 5.0
"""Seconds that a record may lack its acknowledgement before the sender asks for it."""
ACK_SECONDS = 3.0
"""Seconds after which an end acknowledges that has sent nothing since: every envelope costs the hub
as much as a message. It is less than PROBE_SECONDS."""
ASK_SECONDS = 1.0
MOST_ASK_SECONDS = 8.0
"""Seconds until a question to resume is repeated, the first time and at most.

Each further wait, here and elsewhere, is twice as long: thousands of members that ask one busy
process again and again would keep it busy."""


class Connection(Protocol):
    """The part of a link that an end uses."""

    @property
    def is_up(self) -> bool: ...

    @property
    def grace(self) -> float: ...

    def ready(self, session: Session) -> None: ...

    def forget(self, session: Session) -> None: ...

    def refuse(self, envelope: pb.HubEnvelope) -> None: ...


class Session:
    """One end of a session with its call.

    Args:
        peer: the other end as the hub addresses it; an opening names no instance yet.
        seal: of the responder, whose handshake is complete.
        opening: of the initiator, until the answer is there.
    """

    def __init__(
        self,
        link: Connection,
        parties: Parties,
        peer: pb.HubMember,
        *,
        seal: Seal | None = None,
        opening: Opening | None = None,
    ):
        self.parties = parties
        self.other = End(peer.role, peer.name)
        """The other side."""
        self.peer = peer
        self.failure: UmpcError | None = None
        self.is_absent = False
        self.is_expected = True
        """False where the hub said that the other side is not connected and does not come."""
        self.certificate = b""
        """The other side's, in DER."""
        self.opened = asyncio.Event()
        """Both ends have the keys, as far as this one knows; or the opening has failed."""
        self.called: Callable[[str], None] | None = None
        self.cancelled: Callable[[], None] | None = None
        self.end: pb.HubEnd | None = None
        self.is_torn = False
        """A part of a message has left, and the rest of it never will."""
        self.was_cancelled = False
        """The other side, which called, has ended the call."""
        self.away = 0.0
        """Seconds for which the peer or the hub is missed, also those that do not count."""
        self.inbox: deque[tuple[bytes, int]] = deque()
        """Whole messages that came and are not read, each with its number of records."""
        self.is_half_closed = False
        """The other side sends no further message."""
        self._link = link
        self._opening = opening
        self._opens = opening is not None
        self._seal = seal
        if seal is not None:
            self.opened.set()
        self._numbering = n.Numbering(str(self.other), _token, self._dropped)
        self._waited = 0.0
        self._repeats = 0
        """Repetitions of an opening, question or probe without any answer."""
        self._quiet = 0.0
        self._owing = 0.0
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._has_called = False
        self._is_over = False
        self._is_gone = False
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def key(self) -> tuple[str, str, bytes]:
        """The session's place in its link."""
        return *self.other, self.parties.session

    @property
    def is_open(self) -> bool:
        return self.opened.is_set()

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
        if not self.inbox:
            return None
        message, records = self.inbox.popleft()
        self._numbering.consume(len(message), records)
        self._send_if_due()
        return message

    @property
    def has_ended(self) -> bool:
        """No further message of the other side comes."""
        return self.end is not None or self.is_half_closed or self._is_over

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
        while self.is_writable and not self._numbering.has_room(size):
            await self._until_changed()
        self._raise_failure()
        if not self.is_writable:
            raise EOFError("the call has ended")

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Add a record that needs no room in the window."""
        if self.failure is None:
            self._numbering.append(kind, payload)
            self._ready()

    @property
    def is_writable(self) -> bool:
        """Whether the call goes on, so that a message may be sent."""
        has_ended = self._is_over or self.end is not None or self.is_torn
        return self.failure is None and not has_ended

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
        self._changed.set()
        if self._seal is None or self.failure is not None:
            self._go()
        else:
            self._ready()

    def fail(self, error: UmpcError, *, tell: bool = True) -> None:
        """End the session with this failure, unless another came first.

        Args: tell: the other side hears that this side has ended the session.
        """
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
        self._changed.set()
        self._link.forget(self)

    # ---- the handshake -----------------------------------------------------------------------

    def accepted(self, envelope: pb.HubEnvelope) -> None:
        """Take the responder's answer to the opening. A second copy changes nothing."""
        if self._opening is None:
            return
        try:
            self._seal, self.certificate = self._opening.finish(envelope.body)
        except UmpcError as error:
            self.fail(error)
            return
        self._opening = None
        self.peer = envelope.source
        self._waited, self._repeats = 0.0, 0
        self.opened.set()
        self._ready()

    def _open_again(self, seconds: float) -> None:
        """Send the opening again when it is due, in case its envelope was dropped."""
        if self._is_due(seconds, OPEN_SECONDS):
            self._opens = self._opening is not None
            self._ready()

    def _dropped(self) -> RemoteProtocolError:
        if self._seal is None:
            raise LocalProtocolError("a record came before the handshake")
        return self._seal.fault("is missing, the hub dropped it or changed its order")

    # ---- envelopes that leave ----------------------------------------------------------------

    def next_frame(self) -> pb.HubFrame | None:
        """Return the next envelope to send in its frame, or None if none is due."""
        if self.failure is not None:
            return None
        if self._opens and self._opening is not None:
            self._opens = False
            return self._framed(pb.HUB_OPEN, self._opening.message, 0)
        if self._seal is None:
            return None
        due = self._numbering.pull()
        if due is None:
            if self._is_over and self._numbering.is_settled:
                self._go()
            return None
        kind = pb.HUB_RESUME if due[0] == n.RESUME else pb.HUB_SEALED
        number, body = self._seal.close(kind, due[1])
        return self._framed(kind, body, number)

    @property
    def has_more(self) -> bool:
        """Whether `next_frame` has something to do once more, without another word to the link."""
        return self.failure is None and (self._is_over or self._numbering.is_due)

    def _framed(self, kind: pb.HubKind, body: bytes, number: int) -> pb.HubFrame:
        """An envelope to the other side, made in its frame: a whole one would be copied."""
        frame = pb.HubFrame()
        envelope = frame.envelope
        envelope.target.CopyFrom(self.peer)
        envelope.session = self.parties.session
        envelope.kind = kind
        envelope.number = number
        envelope.body = body
        return frame

    def _ready(self) -> None:
        """Send what is due, soon."""
        self._link.ready(self)

    def _send_if_due(self) -> None:
        if self._is_over or self._numbering.is_due:
            self._ready()

    # ---- envelopes that come -----------------------------------------------------------------

    def take(self, envelope: pb.HubEnvelope) -> None:
        """Take a sealed envelope. A violation ends the session."""
        if self._seal is None:
            return  # the answer to the opening was lost; the opening is sent again
        try:
            plain = self._seal.open(envelope.kind, envelope.number, envelope.body)
            self._quiet = self.away = 0.0
            self._repeats = 0
            record = self._numbering.take(plain)
            if record is not None:
                self._handle(record)
        except UmpcError as error:
            self.fail(error)
            return
        if not self._numbering.is_asking:
            self.is_absent = False
        self._changed.set()
        self._send_if_due()

    # ---- the connection, and time --------------------------------------------------------------

    def connection_lost(self) -> None:
        """Note that the connection to the hub is lost: records may be missing."""
        self.ask()

    def connection_back(self) -> None:
        """Go on where the connection broke."""
        self._opens = self._opening is not None
        self._waited, self._repeats = 0.0, 0
        self._ready()

    def ask(self, *, absent: bool = False) -> None:
        """Ask to resume at the next tick. Args: absent: the peer is not connected."""
        self.is_absent = absent or self.is_absent
        if self._seal is not None and not self._numbering.is_asking:
            self._numbering.ask()
            self._ready()

    def tick(self, seconds: float, absent: float | None = None) -> None:
        """Let time pass, as this process had it: a starved process counts less of it.

        Args: absent: the seconds that count against a peer or hub that is away; less where this
            machine is busy, since it may wait for a processor here.
        """
        if self._seal is None:
            self._open_again(seconds)
            return  # its owner has a limit of its own
        self._acknowledge(seconds)
        has_begun = self.called is None or self._has_called
        if has_begun and not self._numbering.is_asking and self._numbering.is_settled:
            self._quiet = self.away = self._waited = 0.0
            return
        limit = self._link.grace if has_begun else IDLE_SECONDS
        self._await(seconds, absent, limit=limit, counts=not has_begun)

    def _await(self, seconds: float, absent: float | None, *, limit: float, counts: bool) -> None:
        """Let time pass for an end that waits for the other one.

        Args: absent: as of `tick`. limit: seconds that the other end may be away. counts: they
            count also while it is connected.
        """
        # A peer that is connected may be slow. The hub says which one is not, at each question.
        if self.is_absent or not self._link.is_up or counts:
            self._quiet += seconds if absent is None else absent
            self.away += seconds
        if self._numbering.is_asking:
            # Nothing else leaves before the answer to a question.
            if self._is_due(seconds, ASK_SECONDS, MOST_ASK_SECONDS):
                self.is_absent = False
                self._numbering.ask()
                self._ready()
        elif self._is_due(seconds, PROBE_SECONDS):
            self._numbering.probe()
            self._ready()
        if self._quiet > limit:
            self.fail(self.lost())

    def _acknowledge(self, seconds: float) -> None:
        """Acknowledge what came a while ago."""
        self._owing = self._owing + seconds if self._numbering.owes_any else 0.0
        if self._owing >= ACK_SECONDS:
            self._owing = 0.0
            self._numbering.settle()
            self._ready()

    def _is_due(self, seconds: float, first: float, most: float = math.inf) -> bool:
        """Let a wait go on. Returns: whether it is over; the next one is twice as long.

        Args: first, most: the shortest and the longest wait.
        """
        self._waited += seconds
        if self._waited < min(most, first * 2**self._repeats):
            return False
        self._waited = 0.0
        self._repeats += 1
        return True

    def lost(self) -> PeerLost:
        """The failure of an end whose peer or hub is missed, with the seconds that it waited."""
        hub, waited = self.parties.hub, f"{self.away:.0f} s"
        if not self._link.is_up:
            return PeerLost(
                f"the connection to hub {hub!r} broke and did not come back within {waited}; "
                "see that the hub runs, then run the study again",
                culprit=hub,
            )
        return PeerLost(
            f"{self.other.name} went away: its connection to hub {hub!r} broke and did not come "
            f"back within {waited}; see that it runs, then run the study again",
            culprit=self.other.name,
        )

    # ---- the records that come ---------------------------------------------------------------

    def _handle(self, record: n.HubRecord) -> None:
        if self._is_over:
            self._numbering.settle()  # the other side has ended, too, and waits for this to leave
        if record.kind in n.SIZED:
            self._assemble(record)
        elif record.kind == n.HALF_CLOSE:
            self.is_half_closed = True
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
            self.inbox.append((b"".join(self._parts), len(self._parts)))
            self._parts, self._parts_bytes = [], 0

    def _begin(self, method: bytes) -> None:
        if self.called is None or self._has_called or len(method) > 200:
            raise RemoteProtocolError(
                f"{self.other} began a call where none was due", culprit=self.other.name
            )
        self._has_called = True
        self.called(method.decode("ascii", "replace"))


def _token() -> int:
    return secrets.randbits(64) | 1
