"""The ledger's file is read: its replay from the first row, also beside a running node.

`read_beside` reads the file while a node holds it, in one snapshot, and changes nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from umpc.dp.composition import Composition
from umpc.errors import LedgerError
from umpc.node.budget.anchor import (
    Mark,
    disagreement,
    read_anchor,
    read_key,
)
from umpc.node.budget.budget_account import (
    BASIC_COMPOSITION,
    FIRST_HASH,
    VERSION,
    Account,
    Row,
    fault,
    row_of,
)
from umpc.node.budget.ledger_place import Place, connect, system_refuses
from umpc.node.budget.store import HELD, PREPARED, Store, StoredEntry
from umpc.node.table.fingerprint import Fingerprint

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
    if not place.ledger.exists():
        raise LedgerError(
            f"ledger {place.ledger}: a file was expected, and there is none. A node makes it when "
            "it first starts; correct ledger in the node's configuration, or put a lost one back"
        )
    with system_refuses(place):
        for _ in range(READINGS):
            mark = read_anchor(place.anchor)
            found = read()
            if read_anchor(place.anchor) == mark:
                return found, mark
    raise LedgerError(
        f"ledger {place.ledger}: a moment without writes was expected, and none came. Ask again"
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
