"""The fingerprints of studies' records, on disk beside the ledger's rows.

The table `cohorts` says which data each release was about (`umpc/node/table/fingerprint.py`), for
the site's administrator. It is outside the chain of rows, as the mechanisms are
(`charge_events.py`): older ledgers are whole without it, and no charge depends on it. It is written
with the held attempt. Its entry belongs to one attempt and has a seal, an HMAC with the ledger's
key; an entry that was edited is ignored with a warning.
"""

from __future__ import annotations

import hmac
import logging
import sqlite3
from collections.abc import Iterator

from umpc.node.budget.budget_account import ATTEMPT_BYTES, StoredRow, row_hash
from umpc.node.budget.held_attempts import STUDY, HeldAttempt
from umpc.node.table.fingerprint import Fingerprint

log = logging.getLogger("umpc.node")
TAG = b"umpc cohort entry 1"
TABLE = (
    "CREATE TABLE IF NOT EXISTS cohorts (study BLOB PRIMARY KEY, attempt BLOB NOT NULL,"
    " cohort TEXT NOT NULL, seal BLOB NOT NULL)"
)
INSERT = "INSERT OR REPLACE INTO cohorts (study, attempt, cohort, seal) VALUES (?, ?, ?, ?)"
ORDERED = f"SELECT {STUDY}, attempt, cohort, seal FROM cohorts ORDER BY rowid"
ALIKE = (
    f"SELECT {STUDY}, attempt, cohort, seal FROM cohorts"
    " WHERE study != ? AND instr(cohort, ?) > 0 ORDER BY rowid DESC"
)
DELETE = "DELETE FROM cohorts WHERE study = ?"


def sealed_cohort(key: bytes, held: HeldAttempt, cohort: Fingerprint) -> StoredRow:
    """Return an entry as it is stored, with its seal at the end."""
    values = (held.study, held.attempt[:ATTEMPT_BYTES], cohort.encode())
    return (*values, row_hash(key, TAG, values))


def read_cohorts(db: sqlite3.Connection, key: bytes) -> dict[bytes, Fingerprint]:
    """Return each study's fingerprint whose seal agrees, the oldest first.

    A ledger may have no such table.
    """
    return dict(_read(db, key, ORDERED, ()))


def last_alike(
    db: sqlite3.Connection, key: bytes, study: bytes, selection: str
) -> Fingerprint | None:
    """Return the last fingerprint of another study with this selection whose seal agrees.

    SQLite finds the entries that name the selection, so that a long history costs no time.
    """
    alike = (
        found
        for _, found in _read(db, key, ALIKE, (study, selection))
        if found.selection == selection
    )
    return next(alike, None)


def _read(
    db: sqlite3.Connection, key: bytes, query: str, values: tuple[bytes | str, ...]
) -> Iterator[tuple[bytes, Fingerprint]]:
    """Yield studies and their fingerprints whose seal agrees, in the order of a query."""
    tables = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'cohorts'")
    if tables.fetchone() is None:
        return
    for *entry, seal in db.execute(query, values):
        study, _, text = entry
        if isinstance(seal, bytes) and hmac.compare_digest(seal, row_hash(key, TAG, entry)):
            yield study, Fingerprint.decode(text)
        else:
            log.warning(
                "the stored fingerprint of study %s was changed on disk; it is ignored",
                study.hex()[:16],
            )
