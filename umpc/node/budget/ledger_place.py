"""The place of a ledger: its paths, its lock, its database connection and the system's refusals.

*Anchor.* The two small files of a ledger: its key, and the anchor that detects an older copy.

*Key*, `<ledger>.key`: 32 random bytes that only the node's user may read. Every row's hash is an
HMAC with this key, so a person without the key cannot write rows that verify.

*Anchor*: one line with the number and the hash of the ledger's last row, best kept on another disk.
It is replaced and fsynced after every row. The ledger is therefore at the anchor's row, or one row
ahead after a crash between the two, and never behind. The anchor holds no secret. Without the key,
nobody can forge a row that the anchor would confirm.

*Copies.* Copies of files that another process writes: SQLite databases, and the audit trail.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from umpc.errors import LedgerError
from umpc.node.budget.budget_account import FIRST_HASH
from umpc.transport.files import write_durably

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


def locked(path: Path, what: str = "ledger") -> int:
    """Lock `<path>.lock` for this process and return its file descriptor.

    The lock ends when the descriptor is closed. Raises: LedgerError if another process holds it.
    """
    name = f"{path}.lock"
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LedgerError(
            f"{what} {path}: a folder that this process may write to was expected. Create it, "
            f"or correct {what} in the node's configuration",
            detail=str(error),
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise LedgerError(
            f"{what} {path}: one user was expected, and another one holds {name}. Stop the "
            f"other node, or give this one its own {what}"
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


# --- anchor ---------------------------------------------------------------------------------------

KEY_BYTES = 32
LINE = r"umpc anchor 1: row (0|[1-9][0-9]{0,18}), hash ([0-9a-f]{64})\n"
ACCEPT = "`umpc budget anchor --config node.toml --accept`"


@dataclass(frozen=True)
class Mark:
    """A place in the ledger: the number of rows up to it, and the hash of the last of them."""

    seq: int
    hash: bytes

    def __str__(self) -> str:
        return f"row {self.seq}, hash {self.hash.hex()}"


START = Mark(0, FIRST_HASH)
"""The place before the first row. The anchor stands here while a new ledger is made."""


def read_anchor(path: Path) -> Mark | None:
    """Return the anchor's place, or None if there is no such file.

    Raises: LedgerError if the file holds something else.
    """
    try:
        text = path.read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return None
    found = re.fullmatch(LINE, text)
    if not found:
        raise LedgerError(
            f"anchor {path}: one line with a row and its hash was expected, and something else is "
            "there. Correct anchor under [budget], or put the file back; or, once you are sure "
            f"that the ledger is the latest, remove it and run {ACCEPT}"
        )
    return Mark(int(found[1]), bytes.fromhex(found[2]))


def write_anchor(path: Path, mark: Mark, on_the_way: Callable[[], None] = lambda: None) -> None:
    """Move the anchor. It is on disk when this returns, and whole at every instant."""
    write_durably(path, f"umpc anchor 1: {mark}\n".encode(), on_the_way=on_the_way)


def disagreement(mark: Mark | None, hashes: Sequence[bytes]) -> str:
    """Return why a ledger does not agree with its anchor, or "" if it does.

    Args:
        mark: the anchor's place.
        hashes: FIRST_HASH and then the hash of each row.
    """
    last = len(hashes) - 1
    if mark is None:
        return (
            "was expected, and there is no such file. If its disk is not mounted, mount it. If it "
            "is lost, make sure that the ledger is the latest, and not an older copy; then run "
            f"{ACCEPT}"
        )
    if mark.seq > last:
        return (
            f"saw row {mark.seq} of the ledger, which ends at row {last}: an older copy was put "
            f"back, and {mark.seq - last} row(s) are missing. Put the latest back; if it is lost "
            "for good, lower epsilon and delta under [budget] by what the missing rows may have "
            f"spent, and run {ACCEPT}"
        )
    if mark.hash != hashes[mark.seq]:
        return (
            f"saw another row {mark.seq} than the ledger's: one of the two belongs elsewhere, or "
            "the ledger's history parted from the one seen. Put the right one back; only if you "
            f"know why they differ, run {ACCEPT}"
        )
    if mark.seq < last - 1:
        return (
            f"stands at row {mark.seq}, and the ledger is at row {last}, where at most one row "
            "more was expected: an older anchor was put back. If you know why, make sure that the "
            f"ledger is the latest, and run {ACCEPT}"
        )
    return ""


def read_key(path: Path) -> bytes | None:
    """Return the ledger's key, or None if there is no such file.

    Raises: LedgerError if the file holds no key.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise LedgerError(
            f"ledger key {path}: {KEY_BYTES} bytes were expected, and {len(key)} are there. "
            "Put the key back from the backup of the ledger"
        )
    return key


def new_key(path: Path) -> bytes:
    """Draw a key, write it to the file, and return it."""
    key = os.urandom(KEY_BYTES)
    write_durably(path, key)
    return key


# --- copies ---------------------------------------------------------------------------------------


def copy_database(
    source: Path, target: Path, change: Callable[[sqlite3.Connection], None] | None = None
) -> None:
    """Copy an SQLite file in one snapshot, beside its writer, into one new file without a -wal.

    Args: change: made in the copy; what it deletes is not left in the copy's free pages.
    Raises: sqlite3.Error.
    """
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as former,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        former.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        if change is not None:
            change(copy)
            copy.execute("VACUUM")


def copy_lines(source: Path, target: Path) -> None:
    """Copy the whole lines of a file to which another process appends. Raises: OSError."""
    with source.open("rb") as former, target.open("wb") as copy:
        copy.writelines(line for line in former if line.endswith(b"\n"))


def new_draft(draft: Path) -> None:
    """Make an empty file that only its owner can read, in the place of what a crash left."""
    for leftover in (draft, Path(f"{draft}-journal")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
