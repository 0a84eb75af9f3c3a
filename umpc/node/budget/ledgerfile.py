"""The ledger's file: its place and companions, its creation, and its replay from the first row.

The ledger is one SQLite file (WAL, synchronous=FULL: a commit is on disk when it returns). `create`
makes it, and only `ledger.py` writes to it. `read_beside` reads it while a node holds it, in one
snapshot, and changes nothing.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from umpc.errors import LedgerError
from umpc.node.budget import held_attempts
from umpc.node.budget.anchor import (
    START,
    Mark,
    disagreement,
    fsync_folder,
    new_key,
    read_anchor,
    read_key,
    write_anchor,
)
from umpc.node.budget.budget_account import (
    FIRST_HASH,
    VERSION,
    Account,
    Row,
    StoredRow,
    fault,
    row_of,
    sealed,
)
from umpc.node.budget.held_attempts import HeldAttempt

COLUMNS = "seq, at, kind, study, epsilon, delta, attempt, share, note, hash"
INSERT = f"INSERT INTO ledger ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
TABLES = (
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL,"
    " study BLOB NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, attempt BLOB NOT NULL,"
    " share BLOB NOT NULL, note TEXT NOT NULL, hash BLOB NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL,"
    " hash BLOB NOT NULL)",
)
COMPANIONS = (".key", ".lock", ".new", "-wal", "-shm", "-journal")
"""Endings of the names of the ledger's other files."""
READINGS = 20
"""Number of tries of `read_beside` to see ledger and anchor at one time while a node writes."""


@dataclass(frozen=True)
class Place:
    """The paths of a ledger and of its anchor."""

    ledger: Path
    anchor: Path

    @classmethod
    def of(cls, ledger: Path, anchor: Path | None = None) -> Place:
        """Return the place of a ledger; the anchor is beside it by default.

        Raises: LedgerError if the anchor would replace another of the ledger's files.
        """
        ledger = Path(ledger).resolve()
        place = cls(ledger, Path(f"{ledger}.anchor") if anchor is None else Path(anchor).resolve())
        if place.anchor == ledger or place.anchor in [Path(f"{ledger}{end}") for end in COMPANIONS]:
            raise LedgerError(
                f"ledger {ledger}: an anchor in a file of its own was expected, and {place.anchor} "
                "came. Correct anchor under [budget]"
            )
        return place

    @property
    def key(self) -> Path:
        return Path(f"{self.ledger}.key")

    def damaged(self, damage: str) -> LedgerError:
        """Return the error for a ledger whose content is wrong."""
        return LedgerError(
            f"ledger {self.ledger}: {damage}. Stop the node, keep the file for inquiry, and "
            "restore a backup that verifies"
        )

    def astray(self, reason: str) -> LedgerError:
        """Return the error for an anchor that disagrees with its ledger."""
        return LedgerError(f"ledger {self.ledger}: its anchor {self.anchor} {reason}")


@dataclass(frozen=True)
class Content:
    """A whole ledger: its account, and FIRST_HASH followed by the hash of each row."""

    account: Account
    hashes: list[bytes]

    @property
    def head(self) -> Mark:
        """The place of the last row."""
        return Mark(len(self.hashes) - 1, self.hashes[-1])


@dataclass(frozen=True)
class Snapshot:
    """A ledger that was read while its node ran.

    `fault` says why its anchor does not agree, and is "" if it agrees. `held` are the attempts that
    wait to be released; `damaged` are studies with an entry there whose seal is wrong.
    """

    account: Account
    rows: list[Row]
    head: Mark
    fault: str
    held: list[HeldAttempt]
    damaged: list[bytes]


def read_beside(place: Place) -> Snapshot:
    """Read the ledger and its anchor at one time, and verify the whole chain.

    Raises: LedgerError.
    """
    if not place.ledger.exists():
        raise LedgerError(
            f"ledger {place.ledger}: a file was expected, and there is none. A node makes it when "
            "it first starts; correct ledger in the node's configuration, or put a lost one back"
        )
    with system_refuses(place), closing(connect(place.ledger, "ro")) as db:
        for _ in range(READINGS):
            mark = read_anchor(place.anchor)
            db.execute("BEGIN")
            check_version(db, place)
            key = existing_key(place)
            content = replay(db, place, key)
            rows = history(db)
            entries = list(held_attempts.read_held(db, key))
            db.execute("COMMIT")
            if read_anchor(place.anchor) == mark:
                reason = disagreement(mark, content.hashes)
                held = waiting(content.account, entries, time.time())
                damaged = [study for study, entry in entries if entry is None]
                return Snapshot(content.account, rows, content.head, reason, held, damaged)
    raise LedgerError(
        f"ledger {place.ledger}: a moment without writes was expected, and none came. Ask again"
    )


def waiting(
    account: Account, entries: Iterable[tuple[bytes, HeldAttempt | None]], now: float
) -> list[HeldAttempt]:
    """Return the held attempts that can still be released, and reserve their cost in the account.

    An attempt whose study is charged, whose time is up or whose seal is wrong cannot.
    """
    held = [
        entry
        for _, entry in entries
        if entry is not None and entry.study not in account.charged and now < entry.until
    ]
    account.open.update({entry.study: entry.cost for entry in held})
    return held


def replay(db: sqlite3.Connection, place: Place, key: bytes) -> Content:
    """Return the account and the hashes that follow from the file alone.

    Raises: LedgerError, which names the first wrong row.
    """
    account = Account()
    hashes = [FIRST_HASH]
    for row in db.execute(f"SELECT {COLUMNS} FROM ledger ORDER BY seq"):
        seq = len(hashes)
        if reason := fault(key, row, seq, hashes[-1]) or account.apply(row_of(row)):
            raise place.damaged(f"row {seq} is wrong: {reason}")
        hashes.append(row[-1])
    seq = len(hashes) - 1
    head = db.execute("SELECT seq, hash FROM head").fetchall()
    if not seq or head != [(seq, hashes[-1])]:
        raise place.damaged(
            f"the head was expected to agree with row {seq}, the last one; row {seq + 1} is "
            "missing, or the head was changed"
        )
    return Content(account, hashes)


def history(db: sqlite3.Connection) -> list[Row]:
    """Return every row, the oldest first."""
    return [row_of(values) for values in db.execute(f"SELECT {COLUMNS} FROM ledger ORDER BY seq")]


def check_version(db: sqlite3.Connection, place: Place) -> None:
    """Check that this software wrote the ledger: otherwise its δ cannot be known.

    Raises: LedgerError.
    """
    found = db.execute("SELECT * FROM ledger WHERE seq = 1")
    names = [column[0] for column in found.description]
    version = next((row[names.index("study")] for row in found), VERSION)
    if "delta" in names and (version == VERSION or not bytes(version).startswith(b"umpc ledger ")):
        return
    charges = db.execute("SELECT epsilon FROM ledger WHERE kind = 'charge'")
    spent = sum(Fraction(text) for (text,) in charges)
    if "delta" in names:
        shown = repr(bytes(version).decode("ascii", "replace"))
    else:
        shown = "version 1, which kept no delta"
    raise LedgerError(
        f"ledger {place.ledger}: {VERSION.decode()!r} was expected, and this file is of {shown}. "
        f"Its rows say that epsilon {spent} was spent: move it away, set epsilon under [budget] to "
        "what is left, and start the node again"
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


def existing_key(place: Place) -> bytes:
    """Return the ledger's key. Raises: LedgerError if there is none."""
    key = read_key(place.key)
    if key is None:
        raise LedgerError(
            f"ledger {place.ledger}: its key {place.key} was expected, and there is no such file. "
            "Put it back from the backup of the ledger; without it nothing in the ledger can be "
            "verified"
        )
    return key


def append(
    db: sqlite3.Connection,
    place: Place,
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
    db.execute(held_attempts.DELETE, (row[3],))
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


def change_held(
    db: sqlite3.Connection,
    statement: str,
    values: StoredRow,
    at_step: Callable[[str], None] = lambda _: None,
) -> None:
    """Change the table of held attempts. The change is on disk when this returns."""
    db.execute("BEGIN IMMEDIATE")
    db.execute(statement, values)
    at_step("before-commit")
    db.execute("COMMIT")
    at_step("after-commit")


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


# --- the system -------------------------------------------------------------------------------


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open an existing file. Every commit is on disk when it returns."""
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    db.execute("PRAGMA synchronous=FULL")
    return db


@contextmanager
def system_refuses(place: Place) -> Iterator[None]:
    """Turn a refusal by SQLite or the disk into a LedgerError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(
            f"ledger {place.ledger}: a readable and writable ledger was expected, and the system "
            "refused. Check the disk, the permissions and the node's own log. A running node reads "
            "the ledger again at its next study",
            detail=f"{type(error).__name__}: {error}",
        ) from error


def locked(path: Path) -> int:
    """Lock `<path>.lock` for this process and return its file descriptor.

    The lock ends when the descriptor is closed. Raises: LedgerError if another process holds it.
    """
    name = f"{path}.lock"
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LedgerError(
            f"ledger {path}: a folder that this process may write to was expected. Create it, "
            "or correct ledger in the node's configuration",
            detail=str(error),
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise LedgerError(
            f"ledger {path}: one user was expected, and another one holds {name}. Stop the "
            "other node, or give this one its own ledger"
        ) from None
    return descriptor
