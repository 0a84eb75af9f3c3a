"""The Store: what studies leave on a site's disk beside the ledger's rows.

It is the table `store` in the ledger's file, so an entry changes in one transaction with the charge
of its study. It is outside the chain of rows: it changes without a row. Each entry has a kind, a
key, and a seal, an HMAC with the ledger's key. The key is the study's hash.

| kind | an entry is | until |
|---|---|---|
| `prepared` | what a study reserves that is prepared ahead | it is held, its time is up, a start |
| `held` | a finished attempt that waits for its charge | the charge, or its time is up |
| `events` | the mechanism of a held or charged attempt | as its attempt |
| `cohort` | the fingerprint of the records of such an attempt | as its attempt |
| `fields` | the digest of a set of fields that was asked about | the site forgets all |
| `starts` | the last start of a node that was heard of, under its name | a later one |

*One rule for copies.* What is not for ever is in no copy: a backup, a restored ledger and a copy
from before an upgrade lack `prepared` and `held`. So nothing that a restore brings back can leave.
The marks that a study was charged, and that its question was answered, are rows of the chain.

*Held.* A node holds its finished share from *ready* on, so that a node or a coordinator that comes
back can finish the same attempt with the same bytes. Nothing here can make a node release twice. A
study with a charge in the chain ignores every entry. An entry that was put back from a copy can
only offer a share that never left; an entry that is lost only means that the study runs anew.

*Prepared.* The entry only informs the site's commands. The material is on disk too, in a file
without a name (`spool.py`): it may have gigabytes, and its key is in the process's memory alone, so
that a copy of the disk is noise. A start therefore removes what another process had prepared.

*Events.* A charge without an entry is counted by its ε and δ alone, which are true of it too. So
nobody gains by removing an entry, or by moving it to another attempt.

*Former forms.* Before the Store there were the tables `held`, `events` and `cohorts`, and the files
`<ledger>.fieldsets` and `<ledger>.prepared`. They are read until the ledger's next start moves them
here, in one transaction. A copy from before stays beside the ledger, as `<ledger>.former-<rows>`.
"""

from __future__ import annotations

import hmac
import logging
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from umpc.dp.events import Event, decode_events
from umpc.errors import LedgerError
from umpc.node.budget.budget_account import BudgetCost, StoredRow, exact_text, row_hash
from umpc.node.budget.ledger_place import copy_database, new_draft
from umpc.node.table.fingerprint import Fingerprint
from umpc.transport.files import write_durably

log = logging.getLogger("umpc.node")

HELD, PREPARED, EVENTS, COHORT, FIELDS = ("held", "prepared", "events", "cohort", "fields")
STARTS = "starts"
FOR_EVER = (EVENTS, COHORT, FIELDS, STARTS)
"""The kinds that a copy of the ledger has."""
NO_END = 0
MOST_HELD = 64
"""Largest number of studies that a data set reserves for at once, whether running or held."""
KEPT = b"umpc kept 2\0"
"""The beginning of what is kept for an answer, behind the attempt's id.

Former versions of umpc kept other things. A course can stand in the same place, and its id begins
so with probability 2^-96.
"""
TAG = b"umpc store 1"
TABLE = (
    "CREATE TABLE IF NOT EXISTS store (kind TEXT NOT NULL, study BLOB NOT NULL, name TEXT NOT NULL,"
    " epsilon TEXT NOT NULL, delta TEXT NOT NULL, attempt BLOB NOT NULL, value BLOB NOT NULL,"
    " until INTEGER NOT NULL, seal BLOB NOT NULL, PRIMARY KEY (kind, study))"
)
STUDY = "CAST(coalesce(study, '') AS BLOB)"
"""The study of an entry, as bytes, whatever type a person has put there."""
SELECT = (
    f"SELECT kind, {STUDY}, name, epsilon, delta, attempt, value, until, seal FROM store"
    " WHERE kind = ?"
)
INSERT = "INSERT OR REPLACE INTO store VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
DELETE = f"DELETE FROM store WHERE kind = ? AND {STUDY} = ?"
OLDEST_FIRST = "ORDER BY rowid"
ALIKE = "AND study != ? AND instr(value, ?) > 0 ORDER BY rowid DESC"
Mechanisms = dict[tuple[bytes, bytes], tuple[Event, ...]]
"""(study, attempt's id) → the events of its release."""


@dataclass(frozen=True)
class StoredEntry:
    """One entry of the Store.

    study: its key. attempt: the attempt's id; of a held one also, in protocols that ask later, 32
        bytes for the table's records and what the side keeps for its answer, masked.
    value: of a held attempt all that will leave, of others a text.
    until: when the site's patience ends, in seconds since 1970; NO_END without an end.
    """

    kind: str
    study: bytes
    attempt: bytes = b""
    value: bytes = field(default=b"", repr=False)
    name: str = ""
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    until: int = NO_END

    @property
    def share(self) -> bytes:
        return self.value

    @property
    def cost(self) -> BudgetCost:
        events = decode_events(self.value.decode()) if self.kind == PREPARED else ()
        return BudgetCost(self.epsilon, self.delta, events)

    def sealed(self, key: bytes) -> StoredRow:
        """Return the entry as it is stored, with its seal at the end."""
        amounts = (exact_text(self.epsilon), exact_text(self.delta))
        rest = (self.attempt, self.value, self.until)
        values = (self.kind, self.study, self.name, *amounts, *rest)
        return (*values, row_hash(key, TAG, values))


class Store:
    """The entries in an open ledger's file. Args: db: its connection. key: the ledger's."""

    def __init__(self, db: sqlite3.Connection, key: bytes):
        self._db, self._key = db, key

    def read(
        self, kind: str, rest: str = OLDEST_FIRST, values: tuple[Any, ...] = ()
    ) -> Iterator[tuple[bytes, StoredEntry | None]]:
        """Yield (study, entry) of a kind. The entry is None where its seal does not agree.

        Former forms are read too, but where the query has a rest of its own.
        """
        if has_table(self._db, "store"):
            for row in self._db.execute(f"{SELECT} {rest}", (kind, *values)):
                yield row[1], self._entry(row)
        if rest == OLDEST_FIRST:
            yield from former_entries(self._db, self._key, kind)

    def find(self, kind: str, study: bytes) -> tuple[bytes, StoredEntry | None] | None:
        """Return a study and its entry of a kind, as `read` does, or None if there is none."""
        return next(self.read(kind, "AND study = ?", (study,)), None)

    def waiting(self) -> set[bytes]:
        """Return the studies that are held or prepared, whose shares are not read."""
        query = f"SELECT {STUDY} FROM store WHERE kind IN (?, ?)"
        return {study for (study,) in self._db.execute(query, (HELD, PREPARED))}

    def put(self, entry: StoredEntry) -> None:
        """Write an entry, in the place of a former one. The caller's transaction ends it."""
        self._db.execute(INSERT, entry.sealed(self._key))

    def remove(self, study: bytes, *kinds: str) -> None:
        """Remove a study's entries of some kinds. The caller's transaction ends it."""
        self._db.executemany(DELETE, [(kind, study) for kind in kinds])

    def mechanisms(self) -> Mechanisms:
        """Return the mechanisms of all attempts whose entry is as it was written."""
        return {
            (entry.study, entry.attempt): decode_events(entry.value.decode())
            for entry in self._unchanged(EVENTS, "mechanism", "its epsilon and delta count instead")
        }

    def cohorts(self) -> dict[bytes, Fingerprint]:
        """Return each study's fingerprint whose entry is as it was written, the oldest first."""
        found = self._unchanged(COHORT, "fingerprint", "it is ignored")
        return {entry.study: Fingerprint.decode(entry.value.decode()) for entry in found}

    def last_alike(self, study: bytes, selection: str) -> Fingerprint | None:
        """Return the last fingerprint of another study with this selection.

        SQLite finds the entries that name the selection, so that a long history costs no time.
        """
        values = (study, selection.encode())
        alike = self._unchanged(COHORT, "fingerprint", "it is ignored", ALIKE, values)
        found = (Fingerprint.decode(entry.value.decode()) for entry in alike)
        return next((each for each in found if each.selection == selection), None)

    def _unchanged(
        self,
        kind: str,
        what: str,
        instead: str,
        rest: str = OLDEST_FIRST,
        values: tuple[Any, ...] = (),
    ) -> Iterator[StoredEntry]:
        """Yield the entries that are as they were written, and warn of each other one."""
        for study, entry in self.read(kind, rest, values):
            if entry is not None:
                yield entry
            else:
                short = study.hex()[:16]
                log.warning(
                    "the stored %s of study %s was changed on disk; %s", what, short, instead
                )

    def _entry(self, row: StoredRow) -> StoredEntry | None:
        if not is_sealed(self._key, TAG, row):
            return None
        kind, study, name, epsilon, delta, attempt, value, until, _ = row
        amounts = (Fraction(epsilon), Fraction(delta))
        return StoredEntry(kind, study, attempt, value, name, *amounts, until)


def is_sealed(key: bytes, tag: bytes, row: StoredRow) -> bool:
    """Whether an entry's seal, its last value, agrees. The seal covers all types."""
    *values, seal = row
    return isinstance(seal, bytes) and hmac.compare_digest(seal, row_hash(key, tag, values))


def has_table(db: sqlite3.Connection, name: str) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def forget_passing(db: sqlite3.Connection) -> None:
    """Remove from a copy of a ledger, of any version, what is not for ever."""
    if has_table(db, "store"):
        marks = ", ".join("?" for _ in FOR_EVER)
        db.execute(f"DELETE FROM store WHERE kind NOT IN ({marks})", FOR_EVER)
    if has_table(db, "held"):
        db.execute("DELETE FROM held")


# --- former forms ---------------------------------------------------------------------------------

FORMER = {
    HELD: ("held", "study, name, epsilon, delta, attempt, share, until", b"umpc held attempt 1"),
    EVENTS: ("events", "study, attempt, events", b"umpc events 1"),
    COHORT: ("cohorts", "study, attempt, cohort", b"umpc cohort entry 1"),
}
"""Kind → the table that it had before, its columns but the seal, and the tag of its seals."""
DIGESTS = re.compile(r"([0-9a-f]{64}\n)*")


def former_entries(
    db: sqlite3.Connection, key: bytes, kind: str
) -> Iterator[tuple[bytes, StoredEntry | None]]:
    """Yield (study, entry) of a former table, the oldest first, as `Store.read` does."""
    table, columns, tag = FORMER.get(kind, ("", "", b""))
    if not has_table(db, table):
        return
    chosen = columns.replace("study", STUDY)
    for row in db.execute(f"SELECT {chosen}, seal FROM {table} ORDER BY rowid"):
        study, *rest, _ = row
        if not is_sealed(key, tag, row):
            yield study, None
        elif kind == HELD:
            name, epsilon, delta, attempt, share, until = rest
            amounts = (Fraction(epsilon), Fraction(delta))
            yield study, StoredEntry(kind, study, attempt, share, name, *amounts, until)
        else:
            yield study, StoredEntry(kind, study, rest[0], rest[1].encode())


def move_former(
    db: sqlite3.Connection,
    key: bytes,
    ledger: Path,
    rows: int,
    at_step: Callable[[str], None] = lambda _: None,
) -> None:
    """Move what former forms have into the Store, which is made if there is none.

    After a crash at any moment the next call goes on. A ledger without charges, which has the
    first row only, needs no copy.

    Args: rows: the number of the ledger's rows. at_step: called before and after each write.
    Raises: LedgerError, OSError, sqlite3.Error.
    """
    tables = [table for table, *_ in FORMER.values() if has_table(db, table)]
    fields, prepared = Path(f"{ledger}.fieldsets"), Path(f"{ledger}.prepared")
    if tables or fields.exists() or not has_table(db, "store"):
        digests = _digests(fields)
        if rows > 1 and (tables or not has_table(db, "store")):
            _copy(ledger, rows, at_step)
        at_step("store-before-move")
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        store = Store(db, key)
        for kind in FORMER:
            for study, entry in former_entries(db, key, kind):
                if entry is not None:
                    store.put(entry)
                else:  # an entry without a seal, of which every reader warns
                    db.execute(INSERT, (kind, study, "", "", "", b"", b"", NO_END, b""))
        for digest in digests:
            store.put(StoredEntry(FIELDS, digest))
        for table in tables:
            db.execute(f"DROP TABLE {table}")
        at_step("store-before-commit")
        db.execute("COMMIT")
        at_step("store-after-commit")
    for file in (fields, prepared):
        file.unlink(missing_ok=True)
        at_step(f"store-without-{file.suffix[1:]}")


def _digests(file: Path) -> list[bytes]:
    """Return the sets of fields of a former file, which need not exist. Raises: LedgerError."""
    text = file.read_bytes().decode("ascii", "replace") if file.exists() else ""
    if not DIGESTS.fullmatch(text):
        raise LedgerError(
            f"{file}: a line of 64 hexadecimal digits was expected for each set of fields that was "
            "asked about, and another line is there. Put the file back, or remove it: the count of "
            "these sets then begins anew"
        )
    return [bytes.fromhex(line) for line in text.split()]


def _copy(ledger: Path, rows: int, at_step: Callable[[str], None]) -> None:
    """Copy the ledger, whole and on disk, for its owner only."""
    target = Path(f"{ledger}.former-{rows}")
    draft = Path(f"{target}.draft")
    new_draft(draft)
    at_step("store-before-copy")
    copy_database(ledger, draft, forget_passing)
    at_step("store-copied")
    write_durably(target, draft)
    at_step("store-copy-kept")
    draft.unlink()
    log.info("ledger %s: an older package wrote it; a copy from before is %s", ledger, target)
