"""A folder with one SQLite file: what dealers and aggregators of people keep theirs in."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from umpc.errors import UmpcError


class Disk:
    """One SQLite file in a folder of its own. Any thread may call any method.

    Its owner alone can read it. A derived class uses the files beside it inside `_disk`, too.

    Args:
        folder: made if it is not there.
        file: the name of the file.
        settings: SQLite's settings, and the tables.
    """

    def __init__(self, folder: Path, file: str, settings: str):
        self._folder = Path(folder).resolve()
        self._lock = threading.RLock()
        """Guards the database."""
        with self._disk():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / file
            path.touch(mode=0o600)
            self._db = sqlite3.connect(
                path, timeout=1, isolation_level=None, check_same_thread=False
            )
            self._db.executescript(settings)

    def close(self) -> None:
        """Release the folder for another process."""
        with self._lock:
            self._db.close()

    def _refused(self, detail: str) -> UmpcError:
        """The error for a refusal by SQLite or the disk. Args: detail: for the administrator."""
        raise NotImplementedError

    def _read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, self._disk():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """A transaction, whole or not at all, which is on disk when the block has ended."""
        with self._lock, self._disk(), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db

    def _empty_log(self) -> None:
        """Delete also from SQLite's log what the file has no more."""
        self._read("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._refused(f"{self._folder}: {type(error).__name__}: {error}") from error
