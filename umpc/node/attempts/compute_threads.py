"""Threads that compute for runs: each run has one of its own, which the next run uses again.

A thread that ends leaves memory behind: FLINT keeps caches for each thread, and nothing frees them
when the thread ends. So threads are kept. There are as many as runs that ever computed at the same
time.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor


class ComputeThreads:
    """The threads of a process that no run uses at present."""

    def __init__(self) -> None:
        self._free: list[ThreadPoolExecutor] = []

    def take(self) -> ThreadPoolExecutor:
        """Return an executor with one thread, which nobody else uses until it is given back."""
        if self._free:
            return self._free.pop()
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")

    def give_back(self, thread: ThreadPoolExecutor) -> None:
        """Let others use the thread, once its last computation has ended."""

        def idle(_: Future[None]) -> None:
            self._free.append(thread)

        thread.submit(_nothing).add_done_callback(idle)


def _nothing() -> None:
    """Be the last in a thread's queue."""


COMPUTE_THREADS = ComputeThreads()
"""The threads of this process."""
