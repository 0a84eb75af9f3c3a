"""The watch over the kept records of a process: one thread looks at all data files.

It reads a changed file before the next study asks for it, as far as it can. So the time that a
study takes does not tell its coordinator that the file has changed (decision 69). The thread runs
only while something is kept, and ends before the process does.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from typing import Protocol

log = logging.getLogger("umpc.node")

LOOK_SECONDS = 1.0
EACH_SECONDS = 0.002
"""Seconds between two looks for each of thousands of data sets: a look takes some 0.05 ms."""


END_SECONDS = 2.0
"""Seconds that the end of the process waits for a look."""


class Watched(Protocol):
    """Something that wants a look at its files."""

    def look(self) -> None:
        """Look once."""

    @property
    def size(self) -> int:
        """The bytes that are kept; with 0 no look is needed."""


class CacheWatch:
    """The thread of a process that looks at all its data files.

    It looks once in LOOK_SECONDS, and more rarely where the process has thousands of them.
    """

    def __init__(self) -> None:
        self._watched: weakref.WeakSet[Watched] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._end = threading.Event()

    def over(self, watched: Watched) -> None:
        """Watch over something from now on, until nobody else holds it."""
        with self._lock:
            self._watched.add(watched)
            if self._thread is None and not self._end.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="umpc-cache-watch", daemon=True
                )
                self._thread.start()

    def look(self) -> bool:
        """Look at everything once. Returns: whether another look is needed."""
        with self._lock:
            watched = [*self._watched]
        for each in watched:
            try:
                each.look()
            except Exception:
                log.exception("an error of umpc's own in the watch over kept records")
        with self._lock:  # one that came meanwhile counts too
            is_needed = any(each.size for each in self._watched)
            if not is_needed:
                self._thread = None
        return is_needed

    def end(self) -> None:
        """End the thread, and wait a moment for the reading that it may be in: it may hang."""
        self._end.set()
        thread = self._thread
        if thread is not None:
            thread.join(END_SECONDS)

    def _run(self) -> None:
        while not self._end.wait(self._pause()) and self.look():
            pass

    def _pause(self) -> float:
        return max(LOOK_SECONDS, EACH_SECONDS * len(self._watched))


WATCH = CacheWatch()
atexit.register(WATCH.end)
