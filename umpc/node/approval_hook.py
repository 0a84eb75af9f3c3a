"""A site's own command that runs when a study begins to wait for a person.

The command gets one JSON object on its standard input. It runs without a shell, and nothing of a
study is among its arguments, so a study's name cannot become a command. It runs at most once a
minute, however many studies are proposed: the object says how many more have asked since the last
call. A failure of the command is a warning in the node's log, and changes nothing for the study.
"""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from umpc.study.document import Study

log = logging.getLogger("umpc.node")

LEAST_SECONDS = 60
"""Seconds between two calls."""
MOST_SECONDS = 60
"""Seconds that one call may take."""


def in_background(job: Callable[[], None]) -> None:
    """Run a job in a thread that does not outlive the process."""
    threading.Thread(target=job, name="approval-hook", daemon=True).start()


class ApprovalHook:
    """Calls the command. Any thread may tell it of a study.

    Args:
        command: the program's path and its arguments; empty for none.
        node: the node's name.
        start: runs a job at once or beside.
        run: as `subprocess.run`.
    """

    def __init__(
        self,
        command: Sequence[str],
        node: str,
        *,
        start: Callable[[Callable[[], None]], None] = in_background,
        run: Callable[..., Any] = subprocess.run,
        now: Callable[[], float] = time.monotonic,
    ):
        self._command = list(command)
        self._node = node
        self._start = start
        self._run = run
        self._now = now
        self._lock = threading.Lock()
        self._last: float | None = None
        self._missed = 0

    def tell(self, study: Study, known: str) -> None:
        """Call the command for a study that waits. Args: known: the hash that `approve` shows."""
        if not self._command:
            return
        with self._lock:
            at = self._now()
            if self._last is not None and at - self._last < LEAST_SECONDS:
                self._missed += 1
                return
            self._last, others, self._missed = at, self._missed, 0
        facts = {
            "node": self._node,
            "hash": known,
            "name": study.name,
            "coordinator": study.coordinator,
            "statistic": study.statistic,
            "fields": [field.name for field in study.fields],
            "epsilon": study.epsilon,
            "others": others,
        }
        self._start(lambda: self._call(json.dumps(facts)))

    def _call(self, text: str) -> None:
        try:
            done = self._run(
                self._command,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=MOST_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("the command under [notify] did not run: %s", type(error).__name__)
            return
        if done.returncode != 0:
            log.warning("the command under [notify] ended with code %d", done.returncode)
