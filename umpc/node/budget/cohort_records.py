"""The fingerprints of studies' records, on disk beside the ledger's rows.

The table `cohorts` says which data each release was about (`umpc/node/table/fingerprint.py`), for
the site's administrator. It is outside the chain of rows, as the mechanisms are
(`charge_events.py`): older ledgers are whole without it, and no charge depends on it. It is written
with the held attempt. Its entry belongs to one attempt and has a seal, an HMAC with the ledger's
key; an entry that was edited is ignored with a warning.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator

from umpc.node.budget.held_attempts import entries_of, is_sealed
from umpc.node.table.fingerprint import Fingerprint

log = logging.getLogger("umpc.node")
TAG = b"umpc cohort entry 1"
TABLE = (
    "CREATE TABLE IF NOT EXISTS cohorts (study BLOB PRIMARY KEY, attempt BLOB NOT NULL,"
    " cohort TEXT NOT NULL, seal BLOB NOT NULL)"
)
COLUMNS = "study, attempt, cohort, seal"
INSERT = f"INSERT OR REPLACE INTO cohorts ({COLUMNS}) VALUES (?, ?, ?, ?)"
ALIKE = "WHERE study != ? AND instr(cohort, ?) > 0 ORDER BY rowid DESC"
DELETE = "DELETE FROM cohorts WHERE study = ?"


def read_cohorts(db: sqlite3.Connection, key: bytes) -> dict[bytes, Fingerprint]:
    """Return each study's fingerprint whose seal agrees, the oldest first.

    A ledger may have no such table.
    """
    return dict(_read(db, key, "ORDER BY rowid"))


def last_alike(
    db: sqlite3.Connection, key: bytes, study: bytes, selection: str
) -> Fingerprint | None:
    """Return the last fingerprint of another study with this selection whose seal agrees.

    SQLite finds the entries that name the selection, so that a long history costs no time.
    """
    alike = (found for _, found in _read(db, key, ALIKE, (study, selection)))
    return next((found for found in alike if found.selection == selection), None)


def _read(
    db: sqlite3.Connection, key: bytes, rest: str, values: tuple[bytes | str, ...] = ()
) -> Iterator[tuple[bytes, Fingerprint]]:
    """Yield studies and their fingerprints whose seal agrees. Args: rest: of the query."""
    for row in entries_of(db, "cohorts", COLUMNS, rest, values):
        study, _, text, _ = row
        if is_sealed(key, TAG, row):
            yield study, Fingerprint.decode(text)
        else:
            log.warning(
                "the stored fingerprint of study %s was changed on disk; it is ignored",
                study.hex()[:16],
            )
