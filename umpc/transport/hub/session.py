"""One session between two members of a hub: sealed and numbered, it carries one call at a time.

A session outlives the connection to the hub. `link.py` gives it the envelopes that come, asks it
for the next one to send, and lets its time pass. `calls.py` and `serving.py` read and write it.

A session that *lasts* is idle after its call, and may carry another one (`resting.py`). The caller
says REST when it is done, and the called side says END, in either order. The caller begins another
call only after that END, so every record belongs to one call: an idle session drops all others.
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
from umpc.transport.channels import MAX_MESSAGE
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import End, Opening, Parties, Seal

OPEN_SECONDS = 10.0
"""Seconds until an opening without an answer is sent again, in case its envelope was dropped.

Each further wait, here and below, is twice as long: thousands of members that ask one busy process
again and again would keep it busy."""
ASK_SECONDS = 1.0
MOST_ASK_SECONDS = 8.0
"""Seconds until a question to resume is repeated, the first time and at most."""
PROBE_SECONDS = 5.0
"""Seconds that a record may lack its acknowledgement before the sender asks for it."""
ACK_SECONDS = 3.0
"""Seconds after which an end acknowledges that has sent nothing since: every envelope costs the hub
as much as a message. It is less than PROBE_SECONDS."""
IDLE_SECONDS = 60.0
"""Seconds in which a session must begin its call after it was opened."""
RESTING_SECONDS = 120.0
"""Seconds that the called side of an idle session waits for another call. The caller begins none
after half of it (`resting.py`)."""
WELL = (0, 1)
"""The codes of calls that ended well: OK, and CANCELLED by the caller's own REST."""


class Connection(Protocol):
    """The part of a link that a session uses."""

    is_up: bool
    grace: float

    def ready(self, session: Session) -> None: ...

    def forget(self, session: Session) -> None: ...

    def refuse(self, envelope: pb.HubEnvelope) -> None: ...


class Session:
    """One end of a session.

    Args:
        peer: the other end as the hub addresses it; an opening names no instance yet.
        seal: None until the handshake is complete.
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
        self.peer = peer
        self.other = End(peer.role, peer.name)
        """The other side."""
        self.certificate = b""
        self.failure: UmpcError | None = None
        self.opened = asyncio.Event()
        self.called: Callable[[str], None] | None = None
        self.cancelled: Callable[[], None] | None = None
        self.end: pb.HubEnd | None = None
        self.is_absent = False
        self.may_return = False
        """The other side was connected a moment ago, so another opening may reach it."""
        self.lasts = False
        """The session may stay after the call that it has now."""
        self.is_idle = False
        """A call has ended well, and another one may begin."""
        self.own_certificate = b""
        self.begun = 0.0
        """The caller's certificate, and its event loop's time, at the handshake."""
        self._link = link
        self._seal = seal
        self._opening = opening
        self._opens = opening is not None
        self._numbering = n.Numbering(str(self.other), _token, self._dropped)
        self._inbox: deque[tuple[bytes, int]] = deque()
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._is_half_closed = False
        self._has_called = False
        self._is_over = False
        self._rests = False
        self.call = 0
        """The number of calls that have ended, which is the number of this one."""
        self._is_gone = False
        self._waited = 0.0
        self._repeats = 0
        """Repetitions of an opening, question or probe without any answer."""
        self._quiet = 0.0
        self._owing = 0.0
        self._changed = asyncio.Event()
        self._tells: Callable[[], None] | None = None

    @property
    def key(self) -> tuple[str, str, bytes]:
        """The session's place in its link."""
        return self.peer.role, self.peer.name, self.parties.session

    def _dropped(self) -> RemoteProtocolError:
        if self._seal is None:
            raise LocalProtocolError("a record came before the handshake")
        return self._seal.fault("is missing, the hub dropped it or changed its order")

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

        Raises: the session's failure, or EOFError after the call has ended.
        """
        if len(message) > MAX_MESSAGE:
            raise LocalProtocolError(f"a message of {len(message)} bytes exceeds {MAX_MESSAGE}")
        call = self.call
        for start in range(0, max(1, len(message)), n.PART_BYTES):
            part = message[start : start + n.PART_BYTES]
            is_last = start + n.PART_BYTES >= len(message)
            while self._is_open(call) and not self._numbering.has_room(len(part)):
                await self._until_changed()
            self._raise_failure()
            if not self._is_open(call):
                raise EOFError("the call has ended")
            self.send(n.MESSAGE if is_last else n.PART, part)

    def write_now(self, message: bytes) -> bool:
        """Add a short message if the window has room now. Returns: whether it was added."""
        if len(message) > n.PART_BYTES or not self._is_open(self.call):
            return False
        if not self._numbering.has_room(len(message)):
            return False
        self.send(n.MESSAGE, message)
        return True

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Add a record that needs no room in the window."""
        if self.failure is None:
            self._numbering.append(kind, payload)
            self._link.ready(self)

    def _is_open(self, call: int) -> bool:
        is_over = self._is_over or self.end is not None or call != self.call
        return self.failure is None and not is_over

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
        self._quiet = self._waited = 0.0
        self._note_change()
        self._tells = None

    @property
    def is_usable(self) -> bool:
        """Another call may begin: the former one has ended, and nothing is known to be missing."""
        return self.is_idle and not self.is_absent and not self._numbering.is_asking

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
        self.lasts = self.is_idle = False
        self._is_over = True
        self.cancelled = None
        self._note_change()
        if self._seal is None or self.failure is not None:
            self._go()
        else:
            self._link.ready(self)

    async def settled(self, seconds: float) -> None:
        """Wait until the other side has received everything, or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while not (self._is_gone or self.is_idle or self._numbering.is_settled):
                    await self._until_changed()
        except TimeoutError:
            pass

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
            self._link.refuse(self.envelope(pb.HUB_REFUSE, b""))
        self.failure = error
        self.opened.set()
        self._go()
        if self.cancelled is not None:
            self.cancelled()

    def _go(self) -> None:
        self._is_gone = True
        self._note_change()
        self._link.forget(self)

    # ---- the link's side ---------------------------------------------------------------------

    def pull(self) -> pb.HubEnvelope | None:
        """Return the next envelope to send, or None if none is due."""
        if self.failure is not None:
            return None
        if self._opens and self._opening is not None:
            self._opens = False
            return self.envelope(pb.HUB_OPEN, self._opening.message)
        if self._seal is None:
            return None
        due = self._numbering.pull()
        if due is None:
            self._leave_if_settled()
            return None
        kind = pb.HUB_RESUME if due[0] == n.RESUME else pb.HUB_SEALED
        number, body = self._seal.close(kind, due[1])
        return self.envelope(kind, body, number)

    def envelope(self, kind: pb.HubKind, body: bytes, number: int = 0) -> pb.HubEnvelope:
        """Return an envelope to the other side."""
        return pb.HubEnvelope(
            target=self.peer, session=self.parties.session, kind=kind, number=number, body=body
        )

    def _leave_if_settled(self) -> None:
        if self._is_over and not self.lasts and self._numbering.is_settled:
            self._go()

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
        self._link.ready(self)

    def take(self, envelope: pb.HubEnvelope) -> None:
        """Take a sealed envelope. A violation ends the session."""
        if self._seal is None:
            return  # the answer to the opening was lost; the opening is sent again
        try:
            plain = self._seal.open(envelope.kind, envelope.number, envelope.body)
            self._quiet = 0.0
            self._repeats = 0
            record = self._numbering.take(plain)
            if record is not None:
                self._handle(record)
        except UmpcError as error:
            self.fail(error)
            return
        if not self._numbering.is_asking:
            self.is_absent = False
        self._note_change()
        self._send_if_due()

    def _send_if_due(self) -> None:
        if self._is_over or self._numbering.is_due:
            self._link.ready(self)

    def _handle(self, record: n.HubRecord) -> None:
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
        """End the call because the caller said so."""
        self._is_over = True
        if self.cancelled is not None:
            self.cancelled()

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

    # ---- the connection, and time --------------------------------------------------------------

    def connection_lost(self) -> None:
        """Note that the connection to the hub is lost: records may be missing."""
        self.ask()

    def connection_back(self) -> None:
        """Go on where the connection broke."""
        self._waited, self._repeats = 0.0, 0
        self._opens = self._opening is not None
        self._link.ready(self)

    def ask(self, *, absent: bool = False) -> None:
        """Ask to resume at the next tick. Args: absent: the peer is not connected."""
        self.is_absent = absent or self.is_absent
        if self._seal is not None and not self._numbering.is_asking:
            self._numbering.ask()
            self._link.ready(self)

    def tick(self, seconds: float, absent: float | None = None) -> None:
        """Let time pass, as this process had it: a starved process counts less of it.

        Args: absent: the seconds that count against a peer or hub that is away; less where this
            machine is busy, since it may wait for a processor here.
        """
        if self._seal is None:
            if self._is_due(seconds, OPEN_SECONDS):
                self._opens = self._opening is not None
                self._link.ready(self)
            return  # the owner has its own limit
        if self._is_quiet:
            return
        self._acknowledge(seconds)
        if self.is_idle and self.called is not None:
            self._quiet += seconds
            if self._quiet > RESTING_SECONDS:
                self.fail(self._lost())
            return
        has_begun = self.called is None or self._has_called
        if has_begun and not self._numbering.is_asking and self._numbering.is_settled:
            self._quiet = self._waited = 0.0
            self._repeats = 0
            return
        # A peer that is connected may be slow. The hub says which one is not, at each question.
        if self.is_absent or not self._link.is_up or not has_begun:
            self._quiet += seconds if absent is None else absent
        if self._numbering.is_asking:
            if self._is_due(seconds, ASK_SECONDS, MOST_ASK_SECONDS):
                self.is_absent = False
                self._numbering.ask()
                self._link.ready(self)
        elif self._is_due(seconds, PROBE_SECONDS):
            self._numbering.probe()
            self._link.ready(self)
        if self._quiet > (self._link.grace if has_begun else IDLE_SECONDS):
            self.fail(self._lost())

    @property
    def _is_quiet(self) -> bool:
        """The caller's session rests, and nothing is known to be missing."""
        return self.is_idle and self.called is None and not self._numbering.is_asking

    def _acknowledge(self, seconds: float) -> None:
        """Acknowledge what came a while ago, unless the next call does."""
        owes = self._numbering.owes_any and not self.is_idle
        self._owing = self._owing + seconds if owes else 0.0
        if self._owing >= ACK_SECONDS:
            self._owing = 0.0
            self._numbering.settle()
            self._link.ready(self)

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

    def _lost(self) -> PeerLost:
        hub, grace = self.parties.hub, self._link.grace
        if not self._link.is_up:
            return PeerLost(
                f"the connection to hub {hub!r} broke and did not come back within {grace:g} s; "
                "see that the hub runs, then run the study again",
                culprit=hub,
            )
        return PeerLost(
            f"{self.other.name} went away: its connection to hub {hub!r} broke and did not come "
            f"back within {grace:g} s; see that it runs, then run the study again",
            culprit=self.other.name,
        )


def _token() -> int:
    return secrets.randbits(64) | 1
