"""Numbered and acknowledged records: what a session sends again, and what it refuses.

The hub keeps nothing, so the two ends of a session do: the sender keeps each record until the
receiver says that it has it. A record is a message of a call, or a part of one, or the call's end.

| envelope | what it carries |
|---|---|
| record | its number; both sides take them in order, each once |
| ACK | nothing but the header |
| PROBE | the number of the sender's next record, so that a dropped last record is noticed |
| RESUME | a question: "send again from here", or the answer to one |

Every envelope has a header with the number of records that its sender has received, and the number
of message bytes that its sender's application has taken. The second number opens the window: at
most WINDOW bytes of messages are on their way in one direction, so a slow reader holds its writer
back. A record counts RECORD_BYTES more than it has, for the memory that an empty one takes, too.

After a connection broke anywhere, records may be missing. The end that knows of it asks to resume,
and holds its records until the answer comes. A gap is legal only while a question is open. Any
other gap is a record that the hub dropped.

This file has no clock and no connection. `session.py` drives it.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from umpc.errors import RemoteProtocolError

WINDOW = 1 << 21
"""Bytes of messages on their way in one direction of a session. The longest message fits in."""
RECORD_BYTES = 128
"""Bytes that each record of a message counts in addition to its own."""
PART_BYTES = 1 << 18
"""Largest record. Longer messages go in parts, so that sessions share a connection fairly."""
ACK_BYTES = WINDOW // 4
ACK_RECORDS = 32
"""An end that sends nothing else acknowledges after so many bytes taken, or records received."""

CALL, PART, MESSAGE, HALF_CLOSE, END, CANCEL = range(1, 7)
"""Kinds of records. A message is any number of PARTs and one MESSAGE."""
ACK, PROBE, RESUME = range(7, 10)
"""Kinds of envelopes without a record."""
RECORDS = frozenset({CALL, PART, MESSAGE, HALF_CLOSE, END, CANCEL})
SIZED = (PART, MESSAGE)
HEADER = struct.Struct(">BQQQ")  # kind, record's number, records received, bytes taken
TOKENS = struct.Struct(">QQ")  # a question, and the question that this answers; 0 for none


class HubRecord(NamedTuple):
    """One record of the other side."""

    kind: int
    payload: bytes


class Numbering:
    """One session's records in both directions.

    Args:
        peer: the other end, for messages.
        token: draws the number of a question, 64 bits and not 0.
        dropped: makes the error for a record that the hub dropped.
    """

    def __init__(
        self,
        peer: str,
        token: Callable[[], int],
        dropped: Callable[[], RemoteProtocolError],
    ):
        self._peer = peer
        self._token = token
        self._dropped = dropped
        self._kept: deque[tuple[int, int, bytes]] = deque()
        self._next = 0
        self._pointer = 0
        self._written_bytes = 0
        self._received_there = 0
        self._taken_there = 0
        self._received = 0
        self._received_bytes = 0
        self._taken_here = 0
        self._told = (0, 0)
        self._question = 0
        self._answer = 0
        self._asks = False
        self._acks = False
        self._probes = False

    # ---- out -------------------------------------------------------------------------------

    def append(self, kind: int, payload: bytes = b"") -> None:
        """Add a record to what is to be sent."""
        self._kept.append((self._next, kind, payload))
        self._next += 1
        if kind in SIZED:
            self._written_bytes += len(payload) + RECORD_BYTES

    def has_room(self, size: int) -> bool:
        """Return whether the window has room for a record of so many bytes."""
        under_way = self._written_bytes - self._taken_there
        return under_way == 0 or under_way + size + RECORD_BYTES <= WINDOW

    @property
    def is_settled(self) -> bool:
        """Everything that was written has been received."""
        return not self._kept

    @property
    def is_asking(self) -> bool:
        """A question to resume has no answer yet."""
        return self._question != 0

    def ask(self) -> None:
        """Records may be missing, in either direction: ask to resume, now or once more."""
        self._question = self._question or self._token()
        self._asks = True

    def probe(self) -> None:
        """Ask the other side what it has received."""
        self._probes = True

    def pull(self) -> tuple[int, bytes] | None:
        """Return the next envelope to seal, as (kind, plain bytes), or None if none is due."""
        kind = self._due()
        if kind is None:
            return None
        number, payload = 0, b""
        if kind == RESUME:
            payload = TOKENS.pack(self._question, self._answer)
            self._asks, self._answer = False, 0
        elif kind == PROBE:
            self._probes = False
            number = self._next
        elif kind != ACK:
            number, _, payload = self._kept[self._pointer - self._kept[0][0]]
            self._pointer += 1
        return kind, self._envelope(kind, number, payload)

    def _due(self) -> int | None:
        """Return the kind of the next envelope, or None."""
        if self._asks or self._answer:
            return RESUME
        if self._question:
            return None
        if self._pointer < self._next:
            return self._kept[self._pointer - self._kept[0][0]][1]
        if self._probes:
            return PROBE
        return ACK if self._acks or self._owes() else None

    @property
    def owes_any(self) -> bool:
        """Something came, or was taken, since the last envelope."""
        return self._told != (self._received, self._taken_here)

    @property
    def is_due(self) -> bool:
        """Something waits to be sent."""
        return self._due() is not None

    def _owes(self) -> bool:
        records, size = self._told
        return self._received - records >= ACK_RECORDS or self._taken_here - size >= ACK_BYTES

    def _envelope(self, kind: int, number: int, payload: bytes) -> bytes:
        self._acks = False
        self._told = self._received, self._taken_here
        return HEADER.pack(kind, number, *self._told) + payload

    # ---- in --------------------------------------------------------------------------------

    def take(self, plain: bytes) -> HubRecord | None:
        """Take an opened envelope. Returns: its record, if it has one that is new.

        Raises: RemoteProtocolError if the hub dropped a record, or if the other side breaks these
            rules.
        """
        if len(plain) < HEADER.size:
            raise self._violation("sent an envelope without a header")
        kind, number, received, taken = HEADER.unpack_from(plain)
        self._acknowledge(received, taken)
        payload = plain[HEADER.size :]
        if kind in RECORDS:
            return self._record(kind, number, payload)
        if kind == PROBE:
            self._acks = True
            if number > self._received and not self._question:
                raise self._dropped()
        elif kind == RESUME:
            self._resume(received, payload)
        elif kind != ACK:
            raise self._violation(f"sent an envelope of the unknown kind {kind}")
        return None

    def consume(self, size: int, records: int) -> None:
        """Note that the application took so many bytes of messages, which came in records."""
        self._taken_here += size + records * RECORD_BYTES

    def settle(self) -> None:
        """Acknowledge at once: the other side waits for it."""
        self._acks = True

    def _acknowledge(self, received: int, taken: int) -> None:
        if received > self._next:
            raise self._violation("acknowledged what was never sent")
        while self._kept and self._kept[0][0] < received:
            _, kind, payload = self._kept.popleft()
            if kind in SIZED:
                self._received_there += len(payload) + RECORD_BYTES
        if taken > self._received_there:  # the window would open, and the records would stay
            raise self._violation("took what it has not received")
        self._pointer = max(self._pointer, received)
        self._taken_there = max(self._taken_there, taken)

    def _record(self, kind: int, number: int, payload: bytes) -> HubRecord | None:
        if number < self._received:
            self._acks = True  # it was sent again because an acknowledgement was lost
            return None
        if number > self._received:
            if not self._question:
                raise self._dropped()
            return None
        self._received += 1
        if kind in SIZED:
            self._received_bytes += len(payload) + RECORD_BYTES
            under_way = self._received_bytes - self._taken_here
            if under_way > WINDOW and under_way != len(payload) + RECORD_BYTES:
                raise self._violation("sent more than was taken of it")
        return HubRecord(kind, payload)

    def _resume(self, received: int, payload: bytes) -> None:
        if len(payload) != TOKENS.size:
            raise self._violation("sent a question of a wrong length")
        question, answered = TOKENS.unpack(payload)
        first = self._kept[0][0] if self._kept else self._next
        self._pointer = max(received, first)
        self._answer = question or self._answer
        if answered and answered == self._question:
            self._question, self._asks = 0, False

    def _violation(self, action: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            f"{self._peer} broke the protocol: it {action}", culprit=self._peer
        )
