"""The privacy budget of one data set, on disk: what was spent, what is reserved, what was released.

docs/protocol.md, steps propose and release. Invariant: ledger epsilon >= true epsilon at every instant. A reservation
comes before the run; the charge is committed and fsynced together with the noisy share before the share's
first byte leaves; nothing is refunded after that.

    reserve ──► charge ──► release (any number of times: the same stored bytes)
       └─────► cancel

One SQLite file a data set (WAL, synchronous=FULL), one process at a time (flock on `<path>.lock`). Every row
is hashed with the row before it, and a second table holds the last row's hash: edited, moved, inserted and
deleted rows are noticed. Not noticed: a file put back whole from an older copy, or rewritten with all its
hashes, for there is no key. Who wants to prove more keeps the last row's hash elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from umpc.errors import AlreadyReleased, InsufficientBudget, InvalidEpsilon, LedgerError
from umpc.node.chain import FIRST_HASH, Account, Balance, Row, exact_text, fault, row_of, sealed

EPSILON_BITS = 128
"""An epsilon's numerator and denominator have at most so many bits: no study can bloat the ledger."""
COLUMNS = "seq, at, kind, study, epsilon, attempt, share, note, hash"
INSERT = f"INSERT INTO ledger ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
TABLES = (
    "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, study BLOB NOT NULL,"
    " epsilon TEXT NOT NULL, attempt BLOB NOT NULL, share BLOB NOT NULL, note TEXT NOT NULL,"
    " hash BLOB NOT NULL)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL)",
)


@dataclass(frozen=True)
class Release:
    """What the node released for a study, and releases again when it is asked again."""

    attempt: bytes
    share: bytes = field(repr=False)


class Ledger:
    """The budget of `dataset`, of `total` epsilon. Every method may be called from any thread."""

    def __init__(self, path: Path, dataset: str, total: Fraction, *, clock: Callable[[], str] | None = None):
        """Opens or creates the file, verifies it, and returns what a dead process had reserved."""
        _check_epsilon(total)
        self._path, self._dataset = Path(path).resolve(), dataset
        self._clock = clock or (lambda: datetime.now(UTC).isoformat(timespec="seconds"))
        self._lock, self._usable = threading.RLock(), True
        with ExitStack() as opened:
            opened.callback(os.close, _locked(self._path))
            with self._held():
                if not self._path.exists():
                    self._create()
                self._db = opened.enter_context(closing(_connect(self._path)))
                self._account, self._head = self._replay()
                self._db.execute("PRAGMA journal_mode=WAL")
            self._catch_up(total)
            self._resources = opened.pop_all()

    def close(self) -> None:
        """Lets another process have the file. What is still reserved is returned at the next start."""
        with self._lock:
            self._usable = False
            self._resources.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def balance(self) -> Balance:
        with self._held():
            return self._account.balance()

    def reserve(self, study: bytes, epsilon: Fraction) -> None:
        """Sets epsilon aside for the study, or refuses.

        Raises: InsufficientBudget (with spent, reserved, left and asked), InvalidEpsilon, AlreadyReleased
        (`released` has the answer, at no cost), LedgerError (the study's reservation is open).
        """
        _check_epsilon(epsilon)
        with self._held():
            if study in self._account.charged:
                raise AlreadyReleased(
                    f"{self._study(study)}: a new study was expected, and this one was "
                    "charged before. Ask for its stored release"
                )
            if study in self._account.open:
                raise LedgerError(
                    f"{self._study(study)}: no open reservation was expected, and there is "
                    "one. Finish or cancel the running attempt first"
                )
            balance = self._account.balance()
            if epsilon > balance.left:
                raise _insufficient(self._dataset, balance, epsilon)
            self._append("reserve", study, epsilon)

    def cancel(self, study: bytes) -> None:
        """Returns the study's reservation. Does nothing if none is open, so nothing after the charge."""
        with self._held():
            if study in self._account.open:
                self._append("cancel", study, self._account.open[study])

    def charge(self, study: bytes, attempt: bytes, share: bytes) -> None:
        """Turns the reservation into a charge and keeps the noisy share; on disk when this returns.

        Only afterwards may the share leave the node. If this raises, it may not.
        """
        with self._held():
            if study not in self._account.open:
                raise LedgerError(
                    f"{self._study(study)}: an open reservation was expected before the "
                    "charge, and there is none. Do not release the share; run the study anew"
                )
            epsilon = self._account.open[study]
            self._append("charge", study, epsilon, attempt=bytes(attempt), share=bytes(share))

    def released(self, study: bytes) -> Release | None:
        """The attempt and share that were charged for the study, or None."""
        with self._held():
            seq = self._account.charged.get(study)
            if seq is None:
                return None
            for found in self._db.execute("SELECT attempt, share FROM ledger WHERE seq = ?", (seq,)):
                return Release(*found)
            raise self._damaged(f"row {seq}, a charge, was expected, and it is gone")

    def record_release(self, study: bytes, result_note: str = "") -> None:
        """Notes that the share left. For the history only: the charge has counted since `charge`."""
        with self._held():
            if study not in self._account.charged:
                raise LedgerError(
                    f"{self._study(study)}: a charge was expected before the release, and "
                    "there is none. This is a fault of the node's software; report it"
                )
            self._append("release", study, note=result_note)

    def history(self) -> list[Row]:
        """Every row, oldest first."""
        with self._held():
            return [row_of(values) for values in self._rows()]

    def verify(self) -> None:
        """Reads the whole file again. Raises: LedgerError, which names the first bad row."""
        with self._held():
            _, (seq, digest) = self._replay()
            if (seq, digest) != self._head:
                raise self._damaged(
                    f"row {self._head[0]} of this run was expected to be the last, and another row {seq} is"
                )

    # --- the file ---------------------------------------------------------------------------------------

    def _create(self) -> None:
        """Writes a new ledger beside its place and moves it there, so that a ledger is whole or absent."""
        if Path(f"{self._path}-wal").exists():
            raise self._damaged("the file was expected beside its -wal file, and it is gone")
        draft = Path(f"{self._path}.new")
        for leftover in (draft, Path(f"{draft}-journal")):
            leftover.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
        with closing(_connect(draft)) as db:
            row = sealed(FIRST_HASH, (1, self._clock(), "genesis", b"", "", b"", b"", self._dataset))
            db.execute("BEGIN IMMEDIATE")
            for statement in TABLES:
                db.execute(statement)
            db.execute(INSERT, row)
            db.execute("INSERT INTO head VALUES (1, ?, ?)", (row[0], row[-1]))
            db.execute("COMMIT")
        os.replace(draft, self._path)
        _fsync_folder(self._path.parent)

    def _catch_up(self, total: Fraction) -> None:
        """What changed while no process held the file: its owner died, or the total is another."""
        if self._account.dataset != self._dataset:
            raise LedgerError(
                f"ledger {self._path}: data set {self._dataset!r} was expected, and the file "
                f"is that of {self._account.dataset!r}. Correct ledger, or name under [data]"
            )
        for study, epsilon in list(self._account.open.items()):
            self._append("cancel", study, epsilon, note="left by a process that ended before charging")
        if total != self._account.total:
            self._append("total", epsilon=total, note="the configured total")

    def _append(
        self,
        kind: str,
        study: bytes = b"",
        epsilon: Fraction | None = None,
        *,
        attempt: bytes = b"",
        share: bytes = b"",
        note: str = "",
    ) -> None:
        """One row and the new head, in one transaction.

        A failure closes the ledger for good: disk and memory could differ, and only the disk counts.
        """
        seq, last = self._head
        row = sealed(last, (seq + 1, self._clock(), kind, study, exact_text(epsilon), attempt, share, note))
        self._usable = False
        with self._held(check=False):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(INSERT, row)
            moved = self._db.execute(
                "UPDATE head SET seq = ?, hash = ? WHERE seq = ? AND hash = ?", (seq + 1, row[-1], seq, last)
            ).rowcount
            if moved != 1:
                self._db.execute("ROLLBACK")
                raise self._damaged(f"row {seq} was expected to be the last, and somebody else wrote here")
            self._db.execute("COMMIT")
        self._account.apply(row_of(row))
        self._head = (seq + 1, row[-1])
        self._usable = True

    def _rows(self) -> Iterator[tuple]:
        return self._db.execute(f"SELECT {COLUMNS} FROM ledger ORDER BY seq")

    def _replay(self) -> tuple[Account, tuple[int, bytes]]:
        """The account and (seq, hash) of the last row, from the file alone; or the first wrong row."""
        account, seq, last = Account(), 0, FIRST_HASH
        for row in self._rows():
            seq += 1
            if reason := fault(row, seq, last) or account.apply(row_of(row)):
                raise self._damaged(f"row {seq} is wrong: {reason}")
            last = row[-1]
        head = self._db.execute("SELECT seq, hash FROM head").fetchall()
        if not seq or head != [(seq, last)]:
            raise self._damaged(
                f"the head was expected to agree with row {seq}, the last one; row {seq + 1} "
                "is missing, or the head was changed"
            )
        return account, (seq, last)

    @contextmanager
    def _held(self, check: bool = True) -> Iterator[None]:
        """One thread at a time, in a usable ledger; what SQLite or the disk refuses is a LedgerError."""
        with self._lock:
            if check and not self._usable:
                raise LedgerError(
                    f"ledger {self._path}: an open ledger was expected, and it was closed or a "
                    "write to it failed. Start the node again"
                )
            try:
                yield
            except (sqlite3.Error, OSError) as error:
                raise LedgerError(
                    f"ledger {self._path}: a readable and writable ledger was expected, and "
                    "the system refused. Check the disk, the permissions and the node's own "
                    "log, then start the node again",
                    detail=f"{type(error).__name__}: {error}",
                ) from error

    def _damaged(self, what: str) -> LedgerError:
        return LedgerError(
            f"ledger {self._path}: {what}. Stop the node, keep the file for inquiry, and restore a backup that verifies"
        )

    def _study(self, study: bytes) -> str:
        return f"ledger of data set {self._dataset!r}, study {study.hex()[:16]}"


def _show(epsilon: Fraction) -> str:
    """Exact while a person can read it: sums of many fractions grow long."""
    return str(epsilon) if epsilon.denominator < 10**6 else f"about {float(epsilon):.6g}"


def _insufficient(dataset: str, balance: Balance, asked: Fraction) -> InsufficientBudget:
    error = InsufficientBudget(
        f"data set {dataset!r}: the study asks for epsilon {_show(asked)}, and {_show(balance.left)} is left "
        f"of {_show(balance.total)} (spent {_show(balance.spent)}, reserved {_show(balance.reserved)}). Ask "
        f"for at most what is left, wait until open studies end, or have the site's administrator raise "
        f"epsilon under [budget]"
    )
    error.spent, error.reserved = balance.spent, balance.reserved
    error.left, error.asked = balance.left, asked
    return error


def _check_epsilon(epsilon: Fraction) -> None:
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon was expected to be an exact fraction above 0, and {epsilon!r} came. "
            f"Correct epsilon in the study, or under [budget]"
        )
    if max(epsilon.numerator.bit_length(), epsilon.denominator.bit_length()) > EPSILON_BITS:
        raise InvalidEpsilon(
            f"epsilon was expected as a fraction of numbers of at most {EPSILON_BITS} bits. "
            f"Round epsilon in the study, or under [budget]"
        )


# --- SQLite -------------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    """An existing file; every commit is on disk when it returns."""
    db = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous=FULL")
    return db


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _locked(path: Path) -> int:
    """The file descriptor of `<path>.lock`, held by this process alone until it is closed."""
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
