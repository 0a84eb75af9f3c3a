"""One end of a session: its handshake, its sealed and numbered envelopes, and its questions.

An end outlives the connection to the hub. `link.py` gives it the envelopes that come, asks it for
the next one to send, and lets its time pass. `session.py` adds the call that a session carries.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from abc import ABC, abstractmethod
from typing import Protocol

from umpc.errors import LocalProtocolError, PeerLost, RemoteProtocolError, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n
from umpc.transport.hub.sealing import End, Opening, Parties, Seal

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

    def ready(self, session: SealedEnd) -> None: ...

    def forget(self, session: SealedEnd) -> None: ...

    def refuse(self, envelope: pb.HubEnvelope) -> None: ...


class SealedEnd(ABC):
    """One end of a session.

    Args:
        peer: the other end as the hub addresses it; an opening names no instance yet.
        seal: of the responder, whose handshake is complete.
        opening: of the initiator, until the answer is there.
    """

    may_return = False
    """The other side was connected a moment ago, so another opening may reach it."""

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
        self.certificate = b""
        """The other side's, in DER."""
        self.opened = asyncio.Event()
        """Both ends have the keys, as far as this one knows; or the opening has failed."""
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
        self.away = 0.0
        """Seconds for which the peer or the hub is missed, also those that do not count."""
        self._owing = 0.0

    @property
    def key(self) -> tuple[str, str, bytes]:
        """The session's place in its link."""
        return *self.other, self.parties.session

    @property
    def is_open(self) -> bool:
        return self.opened.is_set()

    @abstractmethod
    def fail(self, error: UmpcError, *, tell: bool = True) -> None:
        """End the session with this failure, unless another came first.

        Args: tell: the other side hears that this side has ended the session.
        """

    @abstractmethod
    def tick(self, seconds: float, absent: float | None = None) -> None:
        """Let time pass, as this process had it: a starved process counts less of it.

        Args: absent: the seconds that count against a peer or hub that is away; less where this
            machine is busy, since it may wait for a processor here.
        """

    @abstractmethod
    async def settled(self, seconds: float) -> None:
        """Wait until the other side has received what matters to it, or the time is up."""

    @abstractmethod
    def _handle(self, record: n.HubRecord) -> None:
        """Take the next record of the other side. Raises: UmpcError, which ends the session."""

    @abstractmethod
    def _note_change(self) -> None:
        """Wake those who wait for this end, after an envelope came."""

    @abstractmethod
    def _all_sent(self) -> None:
        """Take note that nothing is due any more."""

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
            self._all_sent()
            return None
        kind = pb.HUB_RESUME if due[0] == n.RESUME else pb.HUB_SEALED
        number, body = self._seal.close(kind, due[1])
        return self._framed(kind, body, number)

    @property
    def has_more(self) -> bool:
        """Whether `pull` has something to do once more, without another word to the link."""
        return self.failure is None and self._numbering.is_due

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
        if self._numbering.is_due:
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
        self._note_change()
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


def _token() -> int:
    return secrets.randbits(64) | 1
