"""The cores that this process computes with, for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from unittest.mock import patch

from umpc.ustat.blocks import CORES


@contextmanager
def computed_by(threads: Executor | None, count: int) -> Iterator[None]:
    """Let blocks be computed by `count` cores, the caller's included."""
    before = CORES.threads, CORES.count
    CORES.use(threads, count)
    try:
        yield
    finally:
        CORES.use(*before)


@contextmanager
def machine_of(cores: int) -> Iterator[None]:
    """Let this machine have so many cores for this process."""
    with (
        patch.object(os, "sched_getaffinity", lambda _: set(range(cores)), create=True),
        patch.object(os, "cpu_count", lambda: cores),
    ):
        yield
