"""The ledger's file: where it and its companions are, how it begins, and how it is read from beginning to end.

One SQLite file (WAL, synchronous=FULL: a commit is on disk when it returns), made by `create`, written by `ledger.py`
only. `read_beside` reads it while a node holds it, in one snapshot, and changes nothing.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from umpc.errors import LedgerError
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
from umpc.node.budget.budget_account import FIRST_HASH, VERSION, Account, Row, fault, row_of, sealed

COLUMNS = "seq, at, kind, study, epsilon, delta, attempt, share, note, hash"
INSERT = f"INSERT INTO ledger ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
TABLES = (
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, study BLOB NOT NULL,"
    " epsilon TEXT NOT NULL, delta TEXT NOT NULL, attempt BLOB NOT NULL, share BLOB NOT NULL, note TEXT NOT NULL,"
    " hash BLOB NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL)",
)
COMPANIONS = (".key", ".lock", ".new", "-wal", "-shm", "-journal")
"""What the names of the ledger's other files end in."""
READINGS = 20
"""How often a reader beside a busy node tries to see ledger and anchor at one time."""


@dataclass(frozen=True)
class Place:
    """Where a ledger is, and its anchor."""

    ledger: Path
    anchor: Path

    @classmethod
    def of(cls, ledger: Path, anchor: Path | None = None) -> Place:
        """Raises: LedgerError where the anchor would replace another of the ledger's files."""
        ledger = Path(ledger).resolve()
        place = cls(ledger, Path(f"{ledger}.anchor") if anchor is None else Path(anchor).resolve())
        if place.anchor == ledger or place.anchor in [Path(f"{ledger}{end}") for end in COMPANIONS]:
            raise LedgerError(
                f"ledger {ledger}: an anchor in a file of its own was expected, and {place.anchor} came. Correct "
                "anchor under [budget]"
            )
        return place

    @property
    def key(self) -> Path:
        return Path(f"{self.ledger}.key")

    def damaged(self, what: str) -> LedgerError:
        return LedgerError(
            f"ledger {self.ledger}: {what}. Stop the node, keep the file for inquiry, and restore a "
            "backup that verifies"
        )

    def astray(self, why: str) -> LedgerError:
        return LedgerError(f"ledger {self.ledger}: its anchor {self.anchor} {why}")


@dataclass(frozen=True)
class Content:
    """What a whole ledger says. hashes: FIRST_HASH, then each row's."""

    account: Account
    hashes: list[bytes]

    @property
    def head(self) -> Mark:
        return Mark(len(self.hashes) - 1, self.hashes[-1])


@dataclass(frozen=True)
class Snapshot:
    """A ledger that was read beside its node. fault: why its anchor does not agree, or nothing."""

    account: Account
    rows: list[Row]
    head: Mark
    fault: str


def read_beside(place: Place) -> Snapshot:
    """The ledger and its anchor at one time, the whole chain verified. Raises: LedgerError."""
    if not place.ledger.exists():
        raise LedgerError(
            f"ledger {place.ledger}: a file was expected, and there is none. A node makes it when it first starts; "
            "correct ledger in the node's configuration, or put a lost one back"
        )
    with system_refuses(place), closing(connect(place.ledger, "ro")) as db:
        for _ in range(READINGS):
            mark = read_anchor(place.anchor)
            db.execute("BEGIN")
            check_version(db, place)
            content = replay(db, place, existing_key(place))
            rows = history(db)
            db.execute("COMMIT")
            if read_anchor(place.anchor) == mark:
                return Snapshot(
                    content.account, rows, content.head, disagreement(mark, content.hashes)
                )
    raise LedgerError(
        f"ledger {place.ledger}: a moment without writes was expected, and none came. Ask again"
    )


def replay(db: sqlite3.Connection, place: Place, key: bytes) -> Content:
    """The account and the hashes, from the file alone. Raises: LedgerError, which names the first wrong row."""
    account, hashes = Account(), [FIRST_HASH]
    for row in db.execute(f"SELECT {COLUMNS} FROM ledger ORDER BY seq"):
        seq = len(hashes)
        if reason := fault(key, row, seq, hashes[-1]) or account.apply(row_of(row)):
            raise place.damaged(f"row {seq} is wrong: {reason}")
        hashes.append(row[-1])
    seq, head = len(hashes) - 1, db.execute("SELECT seq, hash FROM head").fetchall()
    if not seq or head != [(seq, hashes[-1])]:
        raise place.damaged(
            f"the head was expected to agree with row {seq}, the last one; row {seq + 1} is missing, or the head was "
            "changed"
        )
    return Content(account, hashes)


def history(db: sqlite3.Connection) -> list[Row]:
    """Every row, oldest first."""
    return [row_of(values) for values in db.execute(f"SELECT {COLUMNS} FROM ledger ORDER BY seq")]


def check_version(db: sqlite3.Connection, place: Place) -> None:
    """Raises: LedgerError for a ledger of other software, whose δ cannot be known."""
    found = db.execute("SELECT * FROM ledger WHERE seq = 1")
    names = [column[0] for column in found.description]
    version = next((row[names.index("study")] for row in found), VERSION)
    if "delta" in names and (version == VERSION or not bytes(version).startswith(b"umpc ledger ")):
        return
    spent = sum(
        Fraction(text) for (text,) in db.execute("SELECT epsilon FROM ledger WHERE kind = 'charge'")
    )
    shown = (
        "version 1, which kept no delta"
        if "delta" not in names
        else repr(bytes(version).decode("ascii", "replace"))
    )
    raise LedgerError(
        f"ledger {place.ledger}: {VERSION.decode()!r} was expected, and this file is of {shown}. Its rows say that "
        f"epsilon {spent} was spent: move it away, set epsilon under [budget] to what is left, and start the node again"
    )


def create(place: Place, at: str, dataset: str) -> None:
    """A new ledger: anchor at its start, key, then the file, moved to its place whole.

    In this order, so that after a crash it can be told from a loss. Raises: LedgerError where one was there before.
    """
    wal = Path(f"{place.ledger}-wal")
    if wal.exists() and wal.stat().st_size:  # one without bytes may be left by a reader
        raise place.damaged("the file was expected beside its -wal file, and it is gone")
    mark, key = read_anchor(place.anchor), read_key(place.key)
    if mark not in (None, START) or (mark is None and key is not None):
        seen = (
            f"its anchor {place.anchor} saw row {mark.seq}"
            if mark
            else f"its key {place.key} is there"
        )
        raise LedgerError(
            f"ledger {place.ledger}: the file was expected, for {seen}, and it is gone. Put ledger, key and anchor "
            "back. Only where the data were never used, or their budget is to begin anew, remove key and anchor"
        )
    if mark is None:
        write_anchor(place.anchor, START)
    key = key or new_key(place.key)
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
    key = read_key(place.key)
    if key is None:
        raise LedgerError(
            f"ledger {place.ledger}: its key {place.key} was expected, and there is no such file. Put it back from the "
            "backup of the ledger; without it nothing in the ledger can be verified"
        )
    return key


def append(
    db: sqlite3.Connection,
    place: Place,
    row: tuple,
    last: Mark,
    at_step: Callable[[str], None] = lambda _: None,
) -> Mark:
    """One row and the new head in one transaction, then the anchor. All on disk when this returns.

    at_step: told of each durable step, by its name, before or after it.
    """
    db.execute("BEGIN IMMEDIATE")
    db.execute(INSERT, row)
    head = Mark(row[0], row[-1])
    moved = db.execute(
        "UPDATE head SET seq = ?, hash = ? WHERE seq = ? AND hash = ?",
        (head.seq, head.hash, last.seq, last.hash),
    ).rowcount
    if moved != 1:
        db.execute("ROLLBACK")
        raise place.damaged(
            f"row {last.seq} was expected to be the last, and somebody else wrote here"
        )
    at_step("before-commit")
    db.execute("COMMIT")
    at_step("after-commit")
    write_anchor(place.anchor, head, lambda: at_step("anchor-drafted"))
    at_step("anchored")
    return head


# --- the system -------------------------------------------------------------------------------------------


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """An existing file; every commit is on disk when it returns."""
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    db.execute("PRAGMA synchronous=FULL")
    return db


@contextmanager
def system_refuses(place: Place) -> Iterator[None]:
    """What SQLite or the disk refuses is a LedgerError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise LedgerError(
            f"ledger {place.ledger}: a readable and writable ledger was expected, and the system refused. Check the "
            "disk, the permissions and the node's own log, then start the node again",
            detail=f"{type(error).__name__}: {error}",
        ) from error


def locked(path: Path) -> int:
    """The file descriptor of `<path>.lock`, held by this process alone until it is closed."""
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
