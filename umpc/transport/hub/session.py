"""One session between two members of a hub: a handshake opens it, and it carries a call at a time.

`sealed_end.py` has its envelopes, `session_call.py` its call; `calls.py` and `serving.py` read and
write it.
"""

from __future__ import annotations

import asyncio

from umpc.errors import UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub.crowd import MOST_GRACE
from umpc.transport.hub.sealed_end import Connection
from umpc.transport.hub.sealing import Opening, Parties, Seal
from umpc.transport.hub.session_call import SessionCall

OPEN_SECONDS = 10.0
"""Seconds until an opening without an answer is sent again, in case its envelope was dropped."""
PROBE_SECONDS = 5.0
"""Seconds that a record may lack its acknowledgement before the sender asks for it."""
ACK_SECONDS = 3.0
"""Seconds after which an end acknowledges that has sent nothing since: every envelope costs the hub
as much as a message. It is less than PROBE_SECONDS."""
IDLE_SECONDS = 60.0
"""Seconds in which a session must begin its call after it was opened; more at a hub of many: a
node opens one with its dealer when it has agreed, and calls when all nodes have."""
RESTING_SECONDS = 120.0
"""Seconds that the called side of an idle session waits for another call. The caller begins none
after half of it (`resting.py`)."""


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
        super().__init__(link, parties, peer, seal)
        self.certificate = b""
        self.opened = asyncio.Event()
        self.own_certificate = b""
        self.begun = 0.0
        """The caller's certificate, and its event loop's time, at the handshake."""
        self._opening = opening
        self._opens = opening is not None

    @property
    def is_open(self) -> bool:
        return self.opened.is_set()

    @property
    def is_usable(self) -> bool:
        """Another call may begin: the former one has ended, and nothing is known to be missing."""
        return self.is_idle and not self.is_absent and not self._numbering.is_asking

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

    @property
    def _is_sealed(self) -> bool:
        return self._seal is not None

    def _rest_began(self) -> None:
        self._quiet = self.away = self._waited = 0.0

    def _go(self) -> None:
        self._is_gone = True
        self._note_change()
        self._link.forget(self)

    # ---- the link's side ---------------------------------------------------------------------

    def next_frame(self) -> pb.HubFrame | None:
        if self.failure is None and self._opens and self._opening is not None:
            self._opens = False
            return self._framed(pb.HUB_OPEN, self._opening.message, 0)
        frame = super().next_frame()
        if frame is None and self.failure is None and self._seal is not None:
            self._leave_if_settled()
        return frame

    @property
    def has_more(self) -> bool:
        return self.failure is None and (self._is_over or self._numbering.is_due)

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

    # ---- the connection, and time --------------------------------------------------------------

    def connection_back(self) -> None:
        self._opens = self._opening is not None
        super().connection_back()

    def tick(self, seconds: float, absent: float | None = None) -> None:
        if self._seal is None:
            if self._is_due(seconds, OPEN_SECONDS):
                self._opens = self._opening is not None
                self._link.ready(self)
            return  # the owner has its own limit
        if self.is_idle and self.called is None and not self._numbering.is_asking:
            return  # the caller's session rests, and nothing is known to be missing
        # An idle session leaves it to the next call.
        owes = self._numbering.owes_any and not self.is_idle
        self._acknowledge(seconds, ACK_SECONDS, owes=owes)
        if self.is_idle and self.called is not None:
            self._quiet += seconds
            self.away += seconds
            if self._quiet > RESTING_SECONDS:
                self.fail(self.lost())
            elif self._numbering.is_asking:
                self._ask_again(seconds)  # its last answer waits for this
            return
        has_begun = self.called is None or self._has_called
        if has_begun and not self._numbering.is_asking and self._numbering.is_settled:
            self._quiet = self.away = self._waited = 0.0
            return
        idle = min(IDLE_SECONDS * self._link.patience, MOST_GRACE)
        limit = self._link.grace if has_begun else idle
        self._await(seconds, absent, probe=PROBE_SECONDS, limit=limit, counts=not has_begun)
