"""Threads that compute for runs: each run has one of its own, which the next run uses again.

A thread that ends leaves memory behind: FLINT keeps caches for each thread, and nothing frees them
when the thread ends. So threads are kept. There are as many as runs that ever computed at the same
time, and at most MOST_THREADS: more runs share a thread, and each still computes one step at a
time and in order.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

MOST_THREADS = 16


class ComputeThreads:
    """The threads of a process. Args: most: how many there may be."""

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._free: list[ThreadPoolExecutor] = []
        self._runs: Counter[ThreadPoolExecutor] = Counter()
        self._lock = threading.Lock()

    def take(self) -> ThreadPoolExecutor:
        """Return an executor with one thread, which few others use until it is given back."""
        with self._lock:
            if self._free:
                thread = self._free.pop()
            elif len(self._runs) < self._most:
                thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="study")
            else:
                thread = min(self._runs, key=self._runs.__getitem__)
            self._runs[thread] += 1
            return thread

    def give_back(self, thread: ThreadPoolExecutor) -> None:
        """Let others use the thread, once the last computation of its run has ended."""

        def idle(_: Future[None]) -> None:
            with self._lock:
                self._runs[thread] -= 1
                if not self._runs[thread]:
                    self._free.append(thread)
                    del self._runs[thread]

        thread.submit(_nothing).add_done_callback(idle)


def _nothing() -> None:
    """Be the last in a thread's queue."""


COMPUTE_THREADS = ComputeThreads()
"""The threads of this process."""
