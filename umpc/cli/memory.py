"""How a process takes memory and files from the system, and how soon it gives them back."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import gc
import resource
import time

ARENA_MAX, MMAP_THRESHOLD, TRIM_THRESHOLD = -8, -3, -1
"""Options of mallopt(3)."""
ARENAS = 2
LARGEST_KEPT = 4 << 20
"""A block up to this size is used again. glibc would fetch each one above 128 KiB anew."""
KEPT = 16 << 20
"""The free memory that a process keeps in each arena."""
COLLECT_SECONDS = 1.0
"""Seconds from the end of a study until what it left is collected. Its streams are closed then."""
REST = 19
"""How many times as long as a collection took, none follows: it takes at most 5 % of the time."""
THRESHOLDS = (10_000, 10, 100_000)
"""Python's thresholds of its three generations. New objects are looked at as before. The last one
is out of reach, because `Collector` looks at all objects."""


def tune_memory() -> None:
    """Save memory and time. Systems without glibc ignore it.

    glibc gives every thread its own arena, but two suffice. And it takes blocks of 128 KiB and
    more from the kernel each time, which clears every page: a frame of a masked table, half a
    megabyte, so costs four times the processor time of its encryption and its copies.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(ARENA_MAX, ARENAS)
        mallopt(MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(TRIM_THRESHOLD, KEPT)


def tune_process() -> None:
    """Prepare a process that serves or runs studies."""
    tune_memory()
    allow_many_files()


def allow_many_files() -> None:
    """Let this process open as many files as the system grants.

    Many systems let a process open 1,024, unless it asks for more. A hub or a coordinator of 1,000
    nodes has a connection for each, and a node in a host of many takes about ten files.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS grants less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Collector:
    """Lets a server keep nothing of a study that has ended. It is used in an event loop.

    A call of gRPC is part of a cycle of objects, and its connection stays open until Python's
    collector finds the cycle. The collector looks at all objects only when they have grown by a
    quarter, and a server has 75,000 of its modules: it kept the connections and arrays of 50
    studies. So it is told to look when a study has ended, and only then: a process of thousands of
    members has millions of objects, and a look in the middle of their study takes seconds. The
    objects of the start never become unused, and are left out. Two caches are large enough for
    thousands of nodes, and would fill over many studies of a few; they are emptied too.
    """

    def __init__(self) -> None:
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        atexit.register(gc.unfreeze)  # otherwise duckdb complains of what is left at the end
        self.due: asyncio.TimerHandle | None = None
        self._rests_until = 0.0

    def collect_soon(self) -> None:
        """Collect once for all studies that end within COLLECT_SECONDS, or while it rests."""
        if self.due is None:
            seconds = max(COLLECT_SECONDS, self._rests_until - time.monotonic())
            self.due = asyncio.get_running_loop().call_later(seconds, self._collect)

    def _collect(self) -> None:
        from umpc.crypto.signing import is_signature
        from umpc.transport.heartbeat import numeric

        self.due = None
        start = time.monotonic()
        is_signature.cache_clear()
        numeric.cache_clear()
        gc.collect()
        end = time.monotonic()
        self._rests_until = end + REST * (end - start)
