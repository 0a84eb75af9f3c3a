"""The file of the audit trail, to which rows are appended.

The node and `umpc approve` append to one file beside the ledger. Each holds the file's lock while
it reads the last row, writes its own and waits until it is on disk. A crash can cut the last line
short. The next writer removes that part, and says so in a row of its own.

Nothing of a study leaves the node without a row: `append` raises if the disk refuses.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from umpc.errors import AuditError
from umpc.node.audit.entry import MOST_LINE, AuditMark, AuditRow, key_of, mark_of, sealed
from umpc.node.budget.anchor import read_key
from umpc.node.budget.ledger_place import Place, utc_text


def trail_beside(ledger: Path) -> Path:
    """Return the path of the audit trail that belongs to a ledger."""
    return Path(f"{ledger}.audit")


class AuditTrail:
    """The trail beside a ledger, whose key it uses. Any thread and any process may append."""

    def __init__(self, ledger: Path, *, clock: Callable[[], str] = utc_text):
        self.path = trail_beside(Path(ledger).resolve())
        self._key_path = Place.of(ledger).key
        self._clock = clock

    def key(self) -> bytes:
        """Return the trail's key. Raises: AuditError if the ledger has none yet."""
        key = read_key(self._key_path)
        if key is None:
            raise AuditError(
                f"audit trail {self.path}: the ledger's key {self._key_path} was expected, and "
                "there is no such file. The node makes it at its first start; put a lost one back"
            )
        return key_of(key)

    def append(self, *entries: AuditRow) -> AuditMark:
        """Write rows, on disk when this returns, and return the last one's place.

        Raises: AuditError. Then none of the rows, or only some of the first ones, are in the file.
        """
        key = self.key()
        with self._locked() as file:
            mark, torn = self._tail(file)
            if torn:
                note = f"{torn} bytes of a row that was never finished"
                entries = (AuditRow("repair", note=note), *entries)
            lines = []
            for entry in entries:
                body = entry.line(mark.seq + 1, self._clock())
                line, own = sealed(key, mark.hash, body)
                mark = AuditMark(mark.seq + 1, own)
                lines.append(line)
            self._write(file, b"".join(lines))
        return mark

    def _tail(self, file: int) -> tuple[AuditMark, int]:
        """Return the last row's place, and the number of bytes after it, which are removed."""
        size = os.fstat(file).st_size
        start = max(0, size - 2 * MOST_LINE)
        tail = os.pread(file, size - start, start)
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            os.ftruncate(file, size - len(torn))
        if not newline and start == 0:
            return AuditMark(), len(torn)
        mark = mark_of(whole.rpartition(b"\n")[2])
        if mark is None:
            raise AuditError(
                f"audit trail {self.path}: a row was expected at its end, and something else is "
                "there. Keep the file for inquiry and move it away; the node then begins a new one"
            )
        return mark, len(torn)

    def _write(self, file: int, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the open file and its lock. Raises: AuditError if the system refuses."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise AuditError(
                f"audit trail {self.path}: a readable and writable file was expected, and the "
                "system refused. Check the disk and the permissions; the node takes part in no "
                "study without it",
                detail=f"{type(error).__name__}: {error}",
            ) from error
