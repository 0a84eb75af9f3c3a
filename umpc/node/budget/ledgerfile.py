"""The ledger's file is read: its replay from the first row, also beside a running node.

`read_beside` reads the file while a node holds it, in one snapshot, and changes nothing.

*Writing.* The ledger's file is written: its creation, its rows, and changes of its Store.

The ledger is one SQLite file (WAL, synchronous=FULL: a commit is on disk when it returns). `create`
makes it, and only `ledger.py` writes to it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from umpc.dp.composition import Composition
from umpc.errors import LedgerError
from umpc.node.budget.budget_account import (
    BASIC_COMPOSITION,
    FIRST_HASH,
    VERSION,
    Account,
    Row,
    StoredRow,
    fault,
    row_of,
    sealed,
)
from umpc.node.budget.ledger_place import (
    START,
    Mark,
    Place,
    connect,
    disagreement,
    new_draft,
    new_key,
    read_anchor,
    read_key,
    system_refuses,
    write_anchor,
)
from umpc.node.budget.store import FIELDS, HELD, PREPARED, STUDY, TABLE, Store, StoredEntry
from umpc.node.table.fingerprint import Fingerprint
from umpc.transport.files import fsync_folder

Found = TypeVar("Found")
Entries = list[tuple[bytes, StoredEntry | None]]
READINGS = 20
"""Number of tries of `with_anchor` to see ledger and anchor at one time while a node writes."""
COLUMNS = "seq, at, kind, study, epsilon, delta, attempt, share, note, hash"


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
    wait to be released; `damaged` are studies with an entry there whose seal is wrong. `prepared`
    are the studies that are prepared ahead. The account has reserved for all of these. `cohorts`
    are the fingerprints of studies' records.
    """

    account: Account
    rows: list[Row]
    head: Mark
    fault: str
    held: list[StoredEntry]
    prepared: list[StoredEntry]
    damaged: list[bytes]
    cohorts: dict[bytes, Fingerprint]


def read_beside(
    place: Place,
    now: Callable[[], float] = time.time,
    composition: Composition = BASIC_COMPOSITION,
) -> Snapshot:
    """Read the ledger and its anchor at one time, and verify the whole chain.

    Args: now: seconds since 1970. composition: how the site adds up costs.
    Raises: LedgerError.
    """

    def read() -> tuple[Content, list[Row], Entries, Entries, dict[bytes, Fingerprint]]:
        with closing(connect(place.ledger, "ro")) as db:
            db.execute("BEGIN")
            check_version(db, place)
            key = existing_key(place)
            content = replay(db, place, key, composition)
            store = Store(db, key)
            finished, ahead = (list(store.read(kind)) for kind in (HELD, PREPARED))
            return content, history(db), finished, ahead, store.cohorts()

    (content, rows, finished, ahead, cohorts), mark = with_anchor(place, read)
    account, reason = content.account, disagreement(mark, content.hashes)
    held = waiting(account, finished, now())
    prepared = waiting(account, ahead, now())
    damaged = [study for study, entry in finished if entry is None]
    return Snapshot(account, rows, content.head, reason, held, prepared, damaged, cohorts)


def with_anchor(place: Place, read: Callable[[], Found]) -> tuple[Found, Mark | None]:
    """Return what is read of a ledger, and its anchor, at one time, also while a node writes.

    Raises: LedgerError.
    """
    _check_exists(place)
    with system_refuses(place):
        for _ in range(READINGS):
            mark = read_anchor(place.anchor)
            found = read()
            if read_anchor(place.anchor) == mark:
                return found, mark
    raise LedgerError(
        f"ledger {place.ledger}: a moment without writes was expected, and none came. Ask again"
    )


def _check_exists(place: Place) -> None:
    if not place.ledger.exists():
        raise LedgerError(
            f"ledger {place.ledger}: a file was expected, and there is none. A node makes it when "
            "it first starts; correct ledger in the node's configuration, or put a lost one back"
        )


def waiting(account: Account, entries: Entries, now: float) -> list[StoredEntry]:
    """Return the attempts that can still be released or run, and reserve their cost.

    An attempt whose study is charged, whose time is up or whose seal is wrong cannot. A study that
    is held already is not prepared any more.
    """
    found = [
        entry
        for study, entry in entries
        if entry is not None
        and now < entry.until
        and study not in account.charged
        and (entry.kind == HELD or study not in account.open)
    ]
    for entry in found:
        cost = entry.cost
        if entry.kind == HELD:
            cost = account.held_cost(entry.study, cost, entry.attempt)
        account.open[entry.study] = cost
    return found


def replay(
    db: sqlite3.Connection,
    place: Place,
    key: bytes,
    composition: Composition = BASIC_COMPOSITION,
) -> Content:
    """Return the account and the hashes that follow from the file alone.

    Raises: LedgerError, which names the first wrong row.
    """
    account = Account(composition, Store(db, key).mechanisms())
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
    is_other = isinstance(version, bytes) and version.startswith(b"umpc ledger ")
    if "delta" in names and (version == VERSION or not is_other):
        return
    charges = db.execute("SELECT epsilon FROM ledger WHERE kind = 'charge'")
    spent = sum(Fraction(text) for (text,) in charges)
    if "delta" in names:
        shown = repr(version.decode("ascii", "replace"))
    else:
        shown = "version 1, which kept no delta"
    raise LedgerError(
        f"ledger {place.ledger}: {VERSION.decode()!r} was expected, and this file is of {shown}. "
        f"Its rows say that epsilon {spent} was spent: move it away, set epsilon under [budget] to "
        "what is left, and start the node again"
    )


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


# --- writing --------------------------------------------------------------------------------------

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
    new_draft(draft)
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
    _check_exists(place)
    with system_refuses(place), closing(connect(place.ledger)) as db:
        if forget:
            return db.execute("DELETE FROM store WHERE kind = ?", (FIELDS,)).rowcount
        (found,) = db.execute("SELECT count(*) FROM store WHERE kind = ?", (FIELDS,)).fetchone()
        return int(found)


def give_back(place: Place, study: bytes) -> bool:
    """Remove what is held or prepared of a study, also beside a running node.

    Nothing of it can leave afterwards. A running node notices at its next look at the budget.

    Returns: whether there was anything. Raises: LedgerError.
    """
    _check_exists(place)
    with system_refuses(place), closing(connect(place.ledger)) as db:
        gone = f"DELETE FROM store WHERE kind IN (?, ?) AND {STUDY} = ?"
        return db.execute(gone, (HELD, PREPARED, study)).rowcount > 0


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
