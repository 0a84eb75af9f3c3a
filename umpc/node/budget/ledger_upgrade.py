"""A ledger of an older package gets the tables that this one keeps beside the rows.

The rows stay as they are, so the chain and the anchor hold, and an older package can read the file
again. A copy from before stays beside the ledger, as `<ledger>.former-<number of rows>`. It has no
held attempts. Nobody can go back to it unnoticed, because the anchor moves on with the ledger.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from umpc.node.backup.copies import copy_database, put_durably
from umpc.node.budget import charge_events, cohort_records, held_attempts
from umpc.node.budget.anchor import Mark
from umpc.node.budget.ledger_place import Place

log = logging.getLogger("umpc.node")
TABLES = {
    "held": held_attempts.TABLE,
    "events": charge_events.TABLE,
    "cohorts": cohort_records.TABLE,
}


def upgrade(db: sqlite3.Connection, place: Place, head: Mark) -> Path | None:
    """Add the tables that the open file lacks, and return the copy from before, if one was made.

    A ledger without charges, which has the first row only, needs no copy.
    Raises: OSError, sqlite3.Error.
    """
    found = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [table for name, table in TABLES.items() if name not in found]
    copy = _copy(place, head) if missing and head.seq > 1 else None
    for table in missing:
        db.execute(table)
    return copy


def _copy(place: Place, head: Mark) -> Path:
    """Copy the ledger, whole and on disk, for its owner only."""
    target = Path(f"{place.ledger}.former-{head.seq}")
    draft = Path(f"{target}.draft")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
    copy_database(place.ledger, draft, *held_attempts.FORGET_ALL)
    put_durably(draft, target, Path(f"{target}.new"))
    draft.unlink()
    log.info("ledger %s: an older package wrote it; a copy from before is %s", place.ledger, target)
    return target
