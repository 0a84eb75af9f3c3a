"""How far a long reading of a table is: in the log, and in a file for `umpc node status`.

The file `<ledger>.reading` is there while a table is read that takes longer than a few seconds. It
has the number of rows so far, and the seconds since the reading began. Only the node's user may
read it. A file that a dead process left behind is older than a running one would let it be, and
says nothing.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from umpc.transport.files import write_durably

log = logging.getLogger("umpc.node")

PROGRESS_SECONDS = 5
"""Seconds between two tellings."""
FORGOTTEN_SECONDS = 12 * PROGRESS_SECONDS
"""Age of a file from which on nobody seems to read any more."""
LINE = re.compile(r"([0-9]{1,20}) rows, ([0-9]{1,20}) s\n")


def reading_beside(ledger: Path) -> Path:
    """Return the path of the file that belongs to a ledger."""
    return Path(f"{ledger}.reading")


def rows_so_far(path: Path) -> tuple[int, int] | None:
    """Return the rows of a reading that goes on and its seconds; None where none does."""
    try:
        age = time.time() - path.stat().st_mtime
        found = LINE.fullmatch(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None
    return (int(found[1]), int(found[2])) if found and age < FORGOTTEN_SECONDS else None


class ReadingProgress:
    """One reading. Use it as a context. Args: path: of the file; None for the log alone."""

    def __init__(self, path: Path | None):
        self._path = path
        self._began = time.monotonic()
        self._next = self._began + PROGRESS_SECONDS
        self._has_told = False

    def __enter__(self) -> ReadingProgress:
        return self

    def tell(self, rows: int) -> None:
        """Tell the rows so far, every few seconds, to the administrator only."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_SECONDS
        self._has_told = True
        log.info("for the administrator only: %d rows of the table are read", rows)
        if self._path is not None:
            try:
                line = f"{rows} rows, {now - self._began:.0f} s\n"
                write_durably(self._path, line.encode())
            except OSError as error:  # a study does not fail by what only informs
                log.info("%s: %s", self._path, error.strerror)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._path is not None and self._has_told:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
