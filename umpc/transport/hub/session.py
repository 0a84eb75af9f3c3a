"""One session between two members of a hub: sealed and numbered, it carries one call at a time.

A session outlives the connection to the hub. `link.py` gives it the envelopes that come, asks it
for the next one to send, and lets its time pass. `calls.py` and `serving.py` read and write it.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from typing import Protocol

from umpc.errors import LocalProtocolError, PeerLost, RemoteProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import End, Opening, Parties, Seal
from umpc.transport.hub.session_call import SessionCall

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


class Connection(Protocol):
    """The part of a link that a session uses."""

    @property
    def is_up(self) -> bool: ...

    @property
    def grace(self) -> float: ...

    def ready(self, session: Session) -> None: ...

    def forget(self, session: Session) -> None: ...

    def refuse(self, envelope: pb.HubEnvelope) -> None: ...


class Session(SessionCall):
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
        other = End(peer.role, peer.name)
        super().__init__(
            parties, other, n.Numbering(str(other), lambda: secrets.randbits(64) | 1, self._dropped)
        )
        self.peer = peer
        self.certificate = b""
        self.opened = asyncio.Event()
        self.is_absent = False
        self.may_return = False
        """The other side was connected a moment ago, so another opening may reach it."""
        self.own_certificate = b""
        self.begun = 0.0
        """The caller's certificate, and its event loop's time, at the handshake."""
        self._link = link
        self._seal = seal
        self._opening = opening
        self._opens = opening is not None
        self._waited = 0.0
        self._repeats = 0
        """Repetitions of an opening, question or probe without any answer."""
        self._quiet = 0.0
        self._owing = 0.0

    @property
    def key(self) -> tuple[str, str, bytes]:
        """The session's place in its link."""
        return self.peer.role, self.peer.name, self.parties.session

    def _dropped(self) -> RemoteProtocolError:
        if self._seal is None:
            raise LocalProtocolError("a record came before the handshake")
        return self._seal.fault("is missing, the hub dropped it or changed its order")

    @property
    def is_usable(self) -> bool:
        """Another call may begin: the former one has ended, and nothing is known to be missing."""
        return self.is_idle and not self.is_absent and not self._numbering.is_asking

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

    def _ready(self) -> None:
        self._link.ready(self)

    @property
    def _is_sealed(self) -> bool:
        return self._seal is not None

    def _rest_began(self) -> None:
        self._quiet = self._waited = 0.0

    def _go(self) -> None:
        self._is_gone = True
        self._note_change()
        self._link.forget(self)

    # ---- the link's side ---------------------------------------------------------------------

    def pull(self) -> pb.HubEnvelope | None:
        """Return the next envelope to send, or None if none is due."""
        frame = self.next_frame()
        return frame.envelope if frame is not None else None

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
            self._leave_if_settled()
            return None
        kind = pb.HUB_RESUME if due[0] == n.RESUME else pb.HUB_SEALED
        number, body = self._seal.close(kind, due[1])
        return self._framed(kind, body, number)

    @property
    def has_more(self) -> bool:
        """Whether `pull` has something to do once more, without another word to the link."""
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
        if self.is_idle and self.called is None and not self._numbering.is_asking:
            return  # the caller's session rests, and nothing is known to be missing
        self._acknowledge(seconds)
        if self.is_idle and self.called is not None:
            self._quiet += seconds
            if self._quiet > RESTING_SECONDS:
                self.fail(self._lost())
            return
        has_begun = self.called is None or self._has_called
        if has_begun and not self._numbering.is_asking and self._numbering.is_settled:
            self._quiet = self._waited = 0.0
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
