"""By how many times silence and absence may be longer at a hub of many processes.

A hub is one process and hears its members one after the other. Where it has thousands of them, and
shares a processor with others, the sign of life of one waits behind those of the rest. So hub and
members wait in proportion to the number of processes that the hub expects.
"""

from __future__ import annotations

MANY = 512
"""Processes whose signs of life a hub reads in time, also where it shares its processor."""
MOST = 32.0
"""A hub that lies about their number is waited for no longer than this many times."""
MOST_GRACE = 600
"""Seconds that nobody who is away is waited for beyond, unless a hub was started with more."""


def patience_for(processes: int) -> float:
    """The factor for a hub of so many processes, from 1 to MOST."""
    return min(MOST, max(1.0, processes / MANY))
