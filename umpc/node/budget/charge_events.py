"""The mechanisms of studies, on disk beside the ledger's rows: what each release did.

A charge's row has its ε and δ. The table `events` adds the mechanism and its parameters
(`umpc/dp/events.py`), which closer compositions need. It is written with the held attempt,
before anything leaves. Its entry belongs to one attempt, and has a seal, an HMAC with the ledger's
key.

The table is outside the chain of rows, so every ledger of an earlier version is whole without it,
and earlier versions read a ledger that has it. A charge without an entry is counted by its ε and δ
alone, which are true of it too. So nobody gains by removing an entry, or by moving it to another
attempt, and an entry that was edited is ignored with a warning.
"""

from __future__ import annotations

import logging
import sqlite3

from umpc.dp.events import Event, decode_events
from umpc.node.budget.held_attempts import entries_of, is_sealed

log = logging.getLogger("umpc.node")
TAG = b"umpc events 1"
TABLE = (
    "CREATE TABLE IF NOT EXISTS events (study BLOB PRIMARY KEY, attempt BLOB NOT NULL,"
    " events TEXT NOT NULL, seal BLOB NOT NULL)"
)
COLUMNS = "study, attempt, events, seal"
INSERT = f"INSERT OR REPLACE INTO events ({COLUMNS}) VALUES (?, ?, ?, ?)"
DELETE = "DELETE FROM events WHERE study = ?"
Mechanisms = dict[tuple[bytes, bytes], tuple[Event, ...]]
"""(study, attempt's id) → the events of its release."""


def read_events(db: sqlite3.Connection, key: bytes) -> Mechanisms:
    """Return the mechanisms of all entries whose seal agrees; a ledger may have no such table."""
    found: Mechanisms = {}
    for row in entries_of(db, "events", COLUMNS):
        study, attempt, text, _ = row
        if is_sealed(key, TAG, row):
            found[study, attempt] = decode_events(text)
        else:
            log.warning(
                "the stored mechanism of study %s was changed on disk; its epsilon and delta "
                "count instead",
                study.hex()[:16],
            )
    return found
