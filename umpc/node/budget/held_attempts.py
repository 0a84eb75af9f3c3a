"""Held attempts: what a node computed and has not yet been asked to release, kept on disk.

A node holds its finished share from *ready* on. So a node or a coordinator that comes back can
finish the same attempt with the same bytes. The table `held` is in the ledger's file and outside
its chain of rows: it changes without a row, and it has at most MOST_HELD entries. Each entry has a
seal, an HMAC with the ledger's key. A held attempt reserves its ε and δ until its time is up.

Nothing here can make a node release twice. The charge is a row of the chain, and a study with such
a row ignores every entry. An entry that was put back from a copy can only offer a share that never
left; an entry that is lost only means that the study runs anew.
"""

from __future__ import annotations

import hmac
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from umpc.node.budget.budget_account import (
    ATTEMPT_BYTES,
    BudgetCost,
    StoredRow,
    exact_text,
    row_hash,
)

MOST_HELD = 64
"""Largest number of studies that a data set reserves for at once, whether running or held."""
TAG = b"umpc held attempt 1"
KEPT = b"umpc kept 2\0"
"""The beginning of what is kept for an answer, behind the attempt's id.

Former versions of umpc kept other things. A course can stand in the same place, and its id begins
so with probability 2^-96.
"""
TABLE = (
    "CREATE TABLE IF NOT EXISTS held (study BLOB PRIMARY KEY, name TEXT NOT NULL,"
    " epsilon TEXT NOT NULL, delta TEXT NOT NULL, attempt BLOB NOT NULL, share BLOB NOT NULL,"
    " until INTEGER NOT NULL, seal BLOB NOT NULL)"
)
STUDY = "CAST(coalesce(study, '') AS BLOB)"
"""The study of an entry outside the chain, as bytes, whatever type a person has put there."""
COLUMNS = "study, name, epsilon, delta, attempt, share, until, seal"
INSERT = f"INSERT INTO held ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
FORGET_ALL = (TABLE, "DELETE FROM held")
"""Statements for a copy of a ledger, in which nothing is held."""
DELETE = f"DELETE FROM held WHERE {STUDY} = ?"


@dataclass(frozen=True)
class HeldAttempt:
    """The finished attempt of one study.

    attempt: the attempt's id, and in protocols that ask later 32 bytes for the table's records and
        what the side keeps for its answer, masked.
    share: all that will leave. until: when the site's patience ends, in seconds since 1970.
    """

    study: bytes
    name: str
    epsilon: Fraction
    delta: Fraction
    attempt: bytes
    share: bytes = field(repr=False)
    until: int

    @property
    def cost(self) -> BudgetCost:
        return BudgetCost(self.epsilon, self.delta)

    def sealed(self, key: bytes) -> StoredRow:
        """Return the entry as it is stored, with its seal at the end."""
        values = (
            self.study,
            self.name,
            exact_text(self.epsilon),
            exact_text(self.delta),
            self.attempt,
            self.share,
            self.until,
        )
        return (*values, row_hash(key, TAG, values))


def read_held(
    db: sqlite3.Connection, key: bytes, study: bytes | None = None
) -> Iterator[tuple[bytes, HeldAttempt | None]]:
    """Yield (study, held attempt) of every entry, or of one study's.

    The attempt is None where the seal does not agree with the entry. A ledger of an earlier version
    has no such table, and so no entry.
    """
    where, values = ("", ()) if study is None else ("WHERE study = ?", (study,))
    for row in entries_of(db, "held", COLUMNS, where, values):
        found = None
        if is_sealed(key, TAG, row):
            owner, name, epsilon, delta, *rest, _ = row
            found = HeldAttempt(owner, name, Fraction(epsilon), Fraction(delta), *rest)
        yield row[0], found


# --- entries beside the chain, which belong to one attempt ----------------------------------------


def sealed_entry(key: bytes, tag: bytes, held: HeldAttempt, text: str) -> StoredRow:
    """Return a text about an attempt as it is stored, with its seal at the end."""
    values = (held.study, held.attempt[:ATTEMPT_BYTES], text)
    return (*values, row_hash(key, tag, values))


def is_sealed(key: bytes, tag: bytes, row: StoredRow) -> bool:
    """Whether an entry's seal, its last value, agrees. The seal covers all types."""
    *values, seal = row
    return isinstance(seal, bytes) and hmac.compare_digest(seal, row_hash(key, tag, values))


def entries_of(
    db: sqlite3.Connection, table: str, columns: str, rest: str = "", values: tuple[Any, ...] = ()
) -> Iterator[StoredRow]:
    """Yield the entries of a table, which a ledger of an earlier version may lack.

    Args: columns: the first is the study. rest: of the query.
    """
    tables = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    if tables.fetchone() is not None:
        chosen = columns.replace("study", STUDY)
        yield from db.execute(f"SELECT {chosen} FROM {table} {rest}", values)
