"""How a process of `umpc` takes memory from glibc. Other systems ignore it."""

from __future__ import annotations

import contextlib
import ctypes

ARENA_MAX, MMAP_THRESHOLD, TRIM_THRESHOLD = -8, -3, -1
"""Options of mallopt(3)."""
ARENAS = 2
LARGEST_KEPT = 4 << 20
"""A block up to this size is used again. glibc would fetch each one above 128 KiB anew."""
KEPT = 16 << 20
"""The free memory that a process keeps in each arena."""


def tune_memory() -> None:
    """Save memory and time.

    glibc gives every thread its own arena, but two suffice. And it takes blocks of 128 KiB and
    more from the kernel each time, which clears every page: a frame of a masked table, half a
    megabyte, so costs four times the processor time of its encryption and its copies.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(ARENA_MAX, ARENAS)
        mallopt(MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(TRIM_THRESHOLD, KEPT)
