"""Studies that wait for a person's decision, and the decisions.

The node uses them if [policy] says approval = true.

    pending ──► accepted ◄──► rejected

The node asks at every proposal. `umpc approve` decides, in another process, while the node runs. An
unknown study is kept whole as pending, and refused. Nothing was charged, so the coordinator can ask
again later. A study's hash is its identity, so a decision holds for exactly the study that was
shown. All steps of a course have one identity, so one decision holds for the course. A rejected
study stays refused even if approval is no longer required.

The decisions are in one SQLite file beside the ledger, which only its owner can read. Every call is
one transaction with the write lock, fsynced, so either process may be killed at any time. Only the
node makes the file, so that the file belongs to the node's user.

*Approval hook.* A site's own command that runs when a study begins to wait for a person.

The command gets one JSON object on its standard input. It runs without a shell, and nothing of a
study is among its arguments, so a study's name cannot become a command. It runs at most once a
minute, however many studies are proposed: the object says how many more have asked since the last
call. A failure of the command is a warning in the node's log, and changes nothing for the study.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from umpc.errors import ApprovalError, ApprovalPending, PolicyRefused, UmpcError
from umpc.node.budget.ledger_place import utc_text
from umpc.study.document import Study

log = logging.getLogger("umpc.node")
PENDING = "pending"
ACCEPTED = "accepted"
REJECTED = "rejected"
MAX_PENDING = 1000
"""Largest number of pending studies. The oldest one makes room for a new one.

It is pending again when it is proposed again.
"""
MAX_PENDING_BYTES = 1 << 26
"""Bytes of the ledger's disk that all pending studies together may hold."""
MAX_REASON = 200
LOCK_SECONDS = 10
"""Seconds that one process waits for the other's transaction, which takes milliseconds."""
LISTED = 8
TABLE = (
    "CREATE TABLE IF NOT EXISTS studies (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,"
    " state TEXT NOT NULL, asked TEXT NOT NULL, decided TEXT NOT NULL, reason TEXT NOT NULL,"
    " coordinator TEXT NOT NULL, name TEXT NOT NULL, statistic TEXT NOT NULL,"
    " epsilon TEXT NOT NULL, document BLOB NOT NULL)"
)


@dataclass(frozen=True)
class Entry:
    """A study as it was proposed.

    `hash` is hexadecimal, `asked` and `decided` are times in UTC, `document` is the study's bytes;
    empty where the study was refused before it was proposed.
    """

    hash: str
    state: str
    asked: str
    decided: str
    reason: str
    coordinator: str
    name: str
    statistic: str
    epsilon: str
    document: bytes = field(repr=False)


COLUMNS = ", ".join(each.name for each in fields(Entry))
INSERT = f"INSERT INTO studies ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
LEARN = (
    "UPDATE studies SET coordinator = ?, name = ?, statistic = ?, epsilon = ?, document = ?"
    " WHERE hash = ?"
)


def approvals_beside(ledger: Path) -> Path:
    """Return the path of the approvals that belong to a ledger."""
    return Path(f"{ledger}.approvals")


def tell_nobody(study: Study, known: str) -> None:
    """Tell nobody of a study that waits."""


class Approvals:
    """The file of approvals, which need not exist yet.

    Every method may be called from any thread and any process.

    Args: tell: is told each study that begins to wait, and the hash that stands for it.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], str] = utc_text,
        tell: Callable[[Study, str], None] = tell_nobody,
    ):
        self._path = Path(path).resolve()
        self._tell = tell
        self._clock = clock

    def require(
        self, study: Study, node: str, *, approval: bool = True, identity: bytes = b""
    ) -> None:
        """Check that the study may run.

        Args:
            approval: a person must have accepted the study. Otherwise it is enough that nobody
                rejected it.
            identity: of the course that the study is a step of; a decision holds for all its steps.
                Empty for the study's own hash.

        Raises: ApprovalPending (an unknown study is now pending), PolicyRefused with the reason of
            the rejection.
        """
        known = (identity or study.whole.hash).hex()
        with self._transaction(create=approval) as db:
            found = _select(db, "hash = ?", known)
            is_new = approval and not found
            if is_new:
                self._add(db, study.whole, known)
            elif found and not found[0].document:  # it was refused before it was proposed
                facts = (study.coordinator, study.name, study.statistic, study.epsilon)
                values = (*map(_line, facts), study.whole.encode(), known)
                db.execute(LEARN, values)
        if is_new:
            self._tell(study, known)
        if not _is_accepted(found, node) and approval:
            digits = known[:16]
            raise ApprovalPending(
                f"{node}: the study of hash {digits}… waits for approval by its administrator; "
                "ask again later",
                culprit=node,
                step="propose",
                detail="`umpc approve show` tells what it computes, `umpc approve accept` allows "
                f"it: {digits}",
            )

    def is_accepted(self, identity: bytes, node: str) -> bool:
        """Whether a person accepted a study, which may be unknown. Args: identity: as `require`.

        Raises: PolicyRefused with the reason of a rejection.
        """
        with self._transaction() as db:
            return _is_accepted(_select(db, "hash = ?", identity.hex()), node)

    def entries(self) -> list[Entry]:
        """Return all studies, the first that was proposed first."""
        with self._transaction() as db:
            return _select(db)

    def named(self, wanted: str) -> list[Entry]:
        """Return all studies of this name, or whose hash begins so: the hash comes first."""
        with self._transaction() as db:
            return _named(db, wanted)

    def find(self, wanted: str) -> Entry:
        """Return the only study of this name, or whose hash begins so. Raises: ApprovalError."""
        with self._transaction() as db:
            return self._one(db, wanted)

    def add_unseen(self, known: str, name: str, epsilon: str) -> None:
        """Add a study whose document is not known here, so that it can be refused.

        Args: known: its whole hash. Raises: ApprovalError.
        """
        values = (known, PENDING, self._clock(), "", "", "", _line(name), "", epsilon, b"")
        with self._transaction(create=True) as db:
            db.execute(INSERT, values)

    def decide(self, wanted: str, state: str, reason: str = "") -> Entry:
        """Accept or reject the only study that `find` finds, and return it.

        A decision may be changed later. Raises: ApprovalError.
        """
        with self._transaction() as db:
            found = self._one(db, wanted)
            if state == ACCEPTED and not found.document:
                raise ApprovalError(
                    f"a study that was proposed here was expected, and nothing but the hash of "
                    f"{found.hash[:16]} is known. Accept it when its coordinator has asked again"
                )
            chosen = found.hash
            db.execute(
                "UPDATE studies SET state = ?, decided = ?, reason = ? WHERE hash = ?",
                (state, self._clock(), _line(reason), chosen),
            )
            return self._one(db, chosen)

    # --- the file -----------------------------------------------------------------------------

    def _add(self, db: sqlite3.Connection, study: Study, known: str) -> None:
        """Add a pending study. The oldest ones make room."""
        document = study.encode()
        sizes = db.execute(
            "SELECT seq, length(document) FROM studies WHERE state = ? ORDER BY seq", (PENDING,)
        )
        waiting = sizes.fetchall()
        total = sum(size for _, size in waiting) + len(document)
        while waiting and (len(waiting) >= MAX_PENDING or total > MAX_PENDING_BYTES):
            oldest, size = waiting.pop(0)
            total -= size
            db.execute("DELETE FROM studies WHERE seq = ?", (oldest,))
        told = (study.coordinator, study.name, study.statistic, study.epsilon)
        values = (known, PENDING, self._clock(), "", "", *map(_line, told), document)
        db.execute(INSERT, values)

    def _one(self, db: sqlite3.Connection, wanted: str) -> Entry:
        found = _named(db, wanted)
        if len(found) == 1:
            return found[0]
        if found:
            names = [entry.hash[:16] for entry in found[:LISTED]]
            names += ["…"] if len(found) > LISTED else []
            came = f"{len(found)} studies fit: {', '.join(names)}. Give more digits of the hash"
        else:
            came = "there is none. List them"
        raise ApprovalError(
            f"approvals {self._path}: one study was expected whose hash begins with "
            f"{wanted[:64]!r}, or which has this name, and {came}"
        )

    @contextmanager
    def _transaction(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; all changes or none are on disk afterwards.

        An absent file counts as an empty one. Raises: ApprovalError.
        """
        try:
            if create:
                _create(self._path)
            with closing(self._connect()) as db:
                db.execute("PRAGMA synchronous=EXTRA")
                db.execute("BEGIN IMMEDIATE")
                db.execute(TABLE)
                yield db
                db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise ApprovalError(
                f"approvals {self._path}: a readable and writable file was expected, and the "
                "system refused. Check the disk and the permissions; a file that is damaged may be "
                "removed, and with it all decisions",
                detail=f"{type(error).__name__}: {error}",
            ) from error

    def _connect(self) -> sqlite3.Connection:
        name = f"{self._path.as_uri()}?mode=rw" if self._path.exists() else ":memory:"
        return sqlite3.connect(name, uri=True, isolation_level=None, timeout=LOCK_SECONDS)


def _create(path: Path) -> None:
    """Make an empty file, which SQLite takes for an empty database.

    A file that exists is never opened here, because closing it would drop its locks.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _select(db: sqlite3.Connection, where: str = "true", *values: object) -> list[Entry]:
    rows = db.execute(f"SELECT {COLUMNS} FROM studies WHERE {where} ORDER BY seq", values)
    return [_entry(*row) for row in rows]


def _named(db: sqlite3.Connection, wanted: str) -> list[Entry]:
    digits = wanted.strip().lower()
    found: list[Entry] = []
    if re.fullmatch("[0-9a-f]+", digits):
        found = _select(db, "substr(hash, 1, ?) = ?", len(digits), digits)
    return found or (_select(db, "name = ?", wanted) if wanted else [])


def _is_accepted(found: list[Entry], node: str) -> bool:
    """Whether a person accepted the only entry. Raises: PolicyRefused if it was rejected."""
    for entry in found:
        if entry.state == REJECTED:
            raise PolicyRefused(
                f"{node}'s administrator rejected this study (approval under [policy]): "
                f"{entry.reason}",
                culprit=node,
                step="propose",
            )
    return any(entry.state == ACCEPTED for entry in found)


def _entry(*row: Any) -> Entry:
    """Return the entry of a stored row. Raises: ApprovalError for a value of another type."""
    *texts, document = row
    if not isinstance(document, bytes) or not all(isinstance(text, str) for text in texts):
        raise ApprovalError(
            "approvals: texts and a document were expected in each entry, and a value of another "
            "type came; keep the file beside the ledger for inquiry, and put its backup back"
        )
    return Entry(*row)


def _line(text: str) -> str:
    """Return text from outside as one line of printable characters."""
    return "".join(character if character.isprintable() else "?" for character in text[:MAX_REASON])


# --- approval hook --------------------------------------------------------------------------------

LEAST_SECONDS = 60
"""Seconds between two calls."""
MOST_SECONDS = 60
"""Seconds that one call may take."""


def in_background(job: Callable[[], None]) -> None:
    """Run a job in a thread that does not outlive the process."""
    threading.Thread(target=job, name="approval-hook", daemon=True).start()


class ApprovalHook:
    """Calls the command. Any thread may tell it of a study.

    Args:
        command: the program's path and its arguments; empty for none.
        node: the node's name.
        start: runs a job at once or beside.
        run: as `subprocess.run`.
        describe: the study in one sentence; it may read the table.
    """

    def __init__(
        self,
        command: Sequence[str],
        node: str,
        *,
        start: Callable[[Callable[[], None]], None] = in_background,
        run: Callable[..., Any] = subprocess.run,
        now: Callable[[], float] = time.monotonic,
        describe: Callable[[Study], str] = lambda study: "",
    ):
        self._command = list(command)
        self._node = node
        self._start = start
        self._run = run
        self._now = now
        self._describe = describe
        self._lock = threading.Lock()
        self._last: float | None = None
        self._missed = 0

    def tell(self, study: Study, known: str) -> None:
        """Call the command for a study that waits. Args: known: the hash that `approve` shows."""
        if not self._command:
            return
        with self._lock:
            at = self._now()
            if self._last is not None and at - self._last < LEAST_SECONDS:
                self._missed += 1
                return
            self._last, others, self._missed = at, self._missed, 0
        facts = {
            "node": self._node,
            "hash": known,
            "name": study.name,
            "coordinator": study.coordinator,
            "statistic": study.statistic,
            "fields": [field.name for field in study.fields],
            "epsilon": study.epsilon,
            "others": others,
        }
        self._start(lambda: self._call(json.dumps({**facts, "sentence": self._sentence(study)})))

    def _sentence(self, study: Study) -> str:
        try:
            return self._describe(study)
        except UmpcError as error:
            return f"not known: {error.message}"

    def _call(self, text: str) -> None:
        try:
            done = self._run(
                self._command,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=MOST_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("the command under [notify] did not run: %s", type(error).__name__)
            return
        if done.returncode != 0:
            log.warning("the command under [notify] ended with code %d", done.returncode)
