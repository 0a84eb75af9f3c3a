"""The cores that this process computes with, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

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
