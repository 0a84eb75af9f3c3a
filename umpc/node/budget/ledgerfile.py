"""The ledger's file is written: its creation, its rows, and changes of its Store.

The ledger is one SQLite file (WAL, synchronous=FULL: a commit is on disk when it returns). `create`
makes it, and only `ledger.py` writes to it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from umpc.errors import LedgerError
from umpc.node.budget.anchor import (
    START,
    Mark,
    new_key,
    read_anchor,
    read_key,
    write_anchor,
)
from umpc.node.budget.budget_account import (
    FIRST_HASH,
    VERSION,
    StoredRow,
    sealed,
)
from umpc.node.budget.ledger_place import Place, connect, system_refuses
from umpc.node.budget.ledger_reading import COLUMNS
from umpc.node.budget.store import FIELDS, HELD, TABLE, Store
from umpc.transport.files import fsync_folder

INSERT = f"INSERT INTO ledger ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
TABLES = (
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL,"
    " study BLOB NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, attempt BLOB NOT NULL,"
    " share BLOB NOT NULL, note TEXT NOT NULL, hash BLOB NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL,"
    " hash BLOB NOT NULL)",
    TABLE,
)


def create(place: Place, at: str, dataset: str) -> None:
    """Make a new ledger: the anchor at its start, then the key, then the whole file.

    After a crash, this order distinguishes a ledger that was being made from one that was lost.

    Raises: LedgerError if there was a ledger before.
    """
    wal = Path(f"{place.ledger}-wal")
    if wal.exists() and wal.stat().st_size:  # a reader may leave one without bytes
        raise place.damaged("the file was expected beside its -wal file, and it is gone")
    mark = read_anchor(place.anchor)
    key = read_key(place.key)
    _refuse_if_lost(place, mark, key)
    if mark is None:
        write_anchor(place.anchor, START)
    key = key or new_key(place.key)
    _write_genesis(place, key, at, dataset)


def _refuse_if_lost(place: Place, mark: Mark | None, key: bytes | None) -> None:
    """Raises: LedgerError if anchor or key show that there was a ledger before."""
    if mark is not None and mark != START:
        seen = f"its anchor {place.anchor} saw row {mark.seq}"
    elif mark is None and key is not None:
        seen = f"its key {place.key} is there"
    else:
        return
    raise LedgerError(
        f"ledger {place.ledger}: the file was expected, for {seen}, and it is gone. Put ledger, "
        "key and anchor back. Remove key and anchor only if the data were never used, or if their "
        "budget is to begin anew"
    )


def _write_genesis(place: Place, key: bytes, at: str, dataset: str) -> None:
    """Write the file with its first row, and move it to its place whole."""
    draft = Path(f"{place.ledger}.new")
    for leftover in (draft, Path(f"{draft}-journal")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
    with closing(connect(draft)) as db:
        row = sealed(key, FIRST_HASH, (1, at, "genesis", VERSION, "", "", b"", b"", dataset))
        db.execute("BEGIN IMMEDIATE")
        for statement in TABLES:
            db.execute(statement)
        db.execute(INSERT, row)
        db.execute("INSERT INTO head VALUES (1, ?, ?)", (row[0], row[-1]))
        db.execute("COMMIT")
    os.replace(draft, place.ledger)
    fsync_folder(place.ledger.parent)


def append(
    db: sqlite3.Connection,
    place: Place,
    key: bytes,
    row: StoredRow,
    last: Mark,
    at_step: Callable[[str], None] = lambda _: None,
) -> Mark:
    """Write a row and the new head in one transaction, then the anchor, and return the new head.

    All is on disk when this returns. The study's held attempt goes with the same transaction.

    Args:
        last: the head before.
        at_step: called with the name of each durable step, before or after it.
    """
    db.execute("BEGIN IMMEDIATE")
    db.execute(INSERT, row)
    Store(db, key).remove(row[3], HELD)
    head = Mark(row[0], row[-1])
    moved = db.execute(
        "UPDATE head SET seq = ?, hash = ? WHERE seq = ? AND hash = ?",
        (head.seq, head.hash, last.seq, last.hash),
    ).rowcount
    if moved != 1:
        db.execute("ROLLBACK")
        raise place.damaged(
            f"row {last.seq} was expected to be the last, and another process wrote here"
        )
    at_step("before-commit")
    db.execute("COMMIT")
    at_step("after-commit")
    write_anchor(place.anchor, head, lambda: at_step("anchor-drafted"))
    at_step("anchored")
    return head


@contextmanager
def changing(
    db: sqlite3.Connection, at_step: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Change the Store in one transaction, on disk when the block has ended."""
    db.execute("BEGIN IMMEDIATE")
    yield
    at_step("before-commit")
    db.execute("COMMIT")
    at_step("after-commit")


def count_or_forget_fields(place: Place, forget: bool) -> int:
    """Count the sets of fields that were asked about, or forget them, also beside a running node.

    Returns: their number. Raises: LedgerError.
    """
    if not place.ledger.exists():
        raise LedgerError(
            f"ledger {place.ledger}: a file was expected, and there is none. A node makes it when "
            "it first starts; correct ledger in the node's configuration"
        )
    with system_refuses(place), closing(connect(place.ledger)) as db:
        if forget:
            return db.execute("DELETE FROM store WHERE kind = ?", (FIELDS,)).rowcount
        (found,) = db.execute("SELECT count(*) FROM store WHERE kind = ?", (FIELDS,)).fetchone()
        return int(found)


def settle(db: sqlite3.Connection, place: Place) -> None:
    """Copy all rows from the -wal file into the ledger itself, on disk when this returns.

    A disk that failed to sync may have kept rows in memory only. Reading them again would not show
    that, and syncing them again need not write them.

    Raises: LedgerError if somebody reads the ledger meanwhile.
    """
    busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise LedgerError(
            f"ledger {place.ledger}: a moment without readers was expected, and none came. End "
            "`umpc budget` and try again"
        )
