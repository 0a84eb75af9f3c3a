"""Copies of files that another process writes: SQLite databases, and the audit trail."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from umpc.transport.files import fsync_folder

BLOCK = 1 << 16


def copy_database(
    source: Path, target: Path, change: Callable[[sqlite3.Connection], None] | None = None
) -> None:
    """Copy an SQLite file in one snapshot, beside its writer, into one new file without a -wal.

    Args: change: made in the copy; what it deletes is not left in the copy's free pages.
    Raises: sqlite3.Error.
    """
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as former,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        former.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        if change is not None:
            change(copy)
            copy.execute("VACUUM")


def copy_lines(source: Path, target: Path) -> None:
    """Copy the whole lines of a file to which another process appends. Raises: OSError."""
    with source.open("rb") as former, target.open("w+b") as copy:
        shutil.copyfileobj(former, copy, BLOCK)
        end = copy.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK)
            copy.seek(start)
            whole = copy.read(end - start).rfind(b"\n")
            if whole >= 0:
                end = start + whole + 1
                break
            end = start
        copy.truncate(end)


def put_durably(source: Path, target: Path, draft: Path) -> None:
    """Copy a file to its place, whole, on disk and for its owner only. Raises: OSError."""
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file, source.open("rb") as former:
        shutil.copyfileobj(former, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, target)
    fsync_folder(target.parent)
