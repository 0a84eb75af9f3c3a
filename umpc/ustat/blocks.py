"""Independent blocks of one computation, by this thread alone or with the process's other cores.

A block's work writes to its own part of the result and reads nothing that another block writes. So
the result does not depend on who computes a block, or when. Numpy's loops release the interpreter's
lock, so threads suffice.

A process that may use several cores says so once (`umpc/compute/executor.py`). Without that, all
blocks are computed here, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

Part = TypeVar("Part")
CACHED = 1 << 15
"""The numbers of a column that are worked on together, so that they stay in a core's cache."""


class Cores:
    """The threads that help. threads: them; None for none. count: how many, with the caller."""

    threads: Executor | None = None
    count = 1

    def use(self, threads: Executor | None, count: int) -> None:
        """Let so many threads compute blocks, the caller's included."""
        self.threads = threads
        self.count = count


CORES = Cores()
"""Those of this process."""


def in_blocks(work: Callable[[Part], object], parts: Sequence[Part]) -> None:
    """Do the work of every part, and return when all of it is done.

    The caller computes, too, and waits for no thread that has yet to begin. So a caller that is one
    of the threads itself cannot wait for ever.

    Raises: as `work`; then some parts may not have been done.
    """
    waiting = iter(parts)

    def some() -> None:
        for part in waiting:
            work(part)

    more = min(CORES.count, len(parts)) - 1
    if CORES.threads is None or more < 1:
        some()
        return
    helpers = [CORES.threads.submit(some) for _ in range(more)]
    try:
        some()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        for helper in begun:
            helper.result()
