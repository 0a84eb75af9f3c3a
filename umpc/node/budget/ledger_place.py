"""The place of a ledger: its paths, its lock, its database connection and the system's refusals."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from umpc.errors import LedgerError

PAGES_KIBIBYTES = 256
"""Memory for pages of a ledger's file. SQLite would take 2 MiB: for each ledger of a host."""
COMPANIONS = (
    *(".key", ".lock", ".new", ".audit", ".approvals", ".fieldsets", ".prepared", ".reading"),
    *("-wal", "-shm", "-journal"),
)
"""Endings of the names of the ledger's other files."""


def utc_text() -> str:
    """Return the time in UTC as a site's files have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


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

    def of_other_data(self, expected: str, found: str) -> LedgerError:
        """Return the error for a ledger of another data set."""
        return LedgerError(
            f"ledger {self.ledger}: data set {expected!r} was expected, and the file is that of "
            f"{found!r}. Correct ledger, or name under [data]"
        )


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open an existing file. Every commit is on disk when it returns."""
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    db.execute("PRAGMA synchronous=FULL")
    db.execute(f"PRAGMA cache_size=-{PAGES_KIBIBYTES}")
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


def note_in_lock(path: Path, text: str) -> None:
    """Write a text for `noted_by_holder` into the lock of a ledger, which this process holds."""
    with suppress(OSError):  # it is for advice only
        Path(f"{path}.lock").write_text(text, encoding="utf-8")


def noted_by_holder(path: Path) -> str:
    """Return what the process that holds a ledger's lock noted there; empty if none holds it."""
    try:
        text = Path(f"{path}.lock").read_text(encoding="utf-8")
        os.close(locked(path))
    except LedgerError:
        return text
    except (OSError, ValueError):
        pass
    return ""
