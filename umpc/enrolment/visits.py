"""Limits of the listening authority: how often one place may call, and how often it may fail.

A code has 128 bits, so nobody guesses one. The limits keep a stranger from taking all threads of
the listener, and make a wrong code rare enough for a person to read each line of the log. A place
is an IPv4 address, or the first 48 bits of an IPv6 address: one connection has no more of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

MOST_AT_ONCE = 32
MOST_OF_ONE_PLACE = 8
CALLS = 60
CALLS_SECONDS = 60
FAILURES = 10
FAILURES_SECONDS = 3600
MOST_PLACES = 4096
"""Places that are remembered. The one that called longest ago is forgotten."""


@dataclass
class _Caller:
    """open: calls that have not ended. calls, failures: their times in seconds."""

    open: int = 0
    calls: deque[float] = field(default_factory=lambda: deque(maxlen=CALLS))
    failures: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))


class Visits:
    """The calls of each place. Any thread may use it; times come from the caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: OrderedDict[str, _Caller] = OrderedDict()
        self._open = 0

    def enter(self, address: str, now: float) -> bool:
        """Count a call, and return whether it may go on. If so, `leave` must follow."""
        with self._lock:
            place = self._place(address)
            if self._open >= MOST_AT_ONCE or place.open >= MOST_OF_ONE_PLACE:
                return False
            if _is_full(place.calls, now - CALLS_SECONDS):
                return False
            if _is_full(place.failures, now - FAILURES_SECONDS):
                return False
            place.calls.append(now)
            place.open += 1
            self._open += 1
            return True

    def leave(self, address: str) -> None:
        """Count the end of a call."""
        with self._lock:
            self._place(address).open -= 1
            self._open -= 1

    def failed(self, address: str, now: float) -> None:
        """Count a request that proved no code."""
        with self._lock:
            self._place(address).failures.append(now)

    def _place(self, address: str) -> _Caller:
        key = _key(address)
        place = self._places.setdefault(key, _Caller())
        self._places.move_to_end(key)
        if len(self._places) > MOST_PLACES:
            idle = next(each for each, found in self._places.items() if not found.open)
            del self._places[idle]
        return place


def _is_full(times: deque[float], since: float) -> bool:
    return len(times) == times.maxlen and times[0] > since


def _key(address: str) -> str:
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return str(int(parsed) >> 80)
        parsed = parsed.ipv4_mapped
    return str(parsed)
