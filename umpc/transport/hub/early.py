"""The sessions of which an envelope came before this process had made them.

The envelopes are forgotten: nobody has authenticated them. A session that is made later asks its
other end to send its records again. One that is forgotten here asks when the next envelope shows a
gap (`numbering.py`), so it only loses time.
"""

from __future__ import annotations

Place = tuple[str, str, bytes]
"""(role and name of the other side, session)"""
MOST_EACH = 64
"""Sessions of one sender: an honest one has one for each run that it has begun with this node."""
MOST_SENDERS = 4096
"""Senders. The hub names them, and only processes with a certificate are connected to it."""


class EarlySessions:
    """The early sessions of one link, by their sender. The oldest one leaves for a new one."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], dict[bytes, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def add(self, place: Place) -> None:
        """Remember a session."""
        of_sender = self._of.setdefault(place[:2], {})
        of_sender[place[2]] = None
        if len(of_sender) > MOST_EACH:
            del of_sender[next(iter(of_sender))]
        if len(self._of) > MOST_SENDERS:
            del self._of[next(iter(self._of))]

    def forget(self, place: Place) -> bool:
        """Forget a session that is made now. Returns: whether it was remembered."""
        of_sender = self._of.get(place[:2])
        if of_sender is None or place[2] not in of_sender:
            return False
        del of_sender[place[2]]
        if not of_sender:
            del self._of[place[:2]]
        return True
