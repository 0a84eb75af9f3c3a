"""The ledger's file while a process holds it: opened, written, opened again after a failed write.

`Ledger` in `ledger.py` says what may be written. Here is how: one thread at a time, a row with its
head and anchor, or one change of the Store. After a failure only the disk counts.

*Ledger upgrade.* What an older package left beside the rows moves into the Store (`store.py`).

The rows stay as they are, so the chain and the anchor hold. Nobody can go back to the copy from
before unnoticed, because the anchor moves on with the ledger.

*Ledger queries.* The questions to an open ledger: balances, held attempts, released shares,
answers, cohorts.

Nothing here reserves or charges. `Ledger` in `ledger.py` does.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Self

from umpc.dp.composition import BASIC, Composition
from umpc.errors import AlreadyReleased, LedgerError
from umpc.failpoints import failpoint
from umpc.node.budget import ledgerfile as file
from umpc.node.budget.budget_account import (
    ATTEMPT_BYTES,
    BASIC_COMPOSITION,
    DEFAULT_DELTA,
    DEFAULT_HOLD_SECONDS,
    Balance,
    BudgetCost,
    Row,
    check_delta,
    check_epsilon,
    exact_text,
    row_of,
    sealed,
)
from umpc.node.budget.ledger_place import (
    Place,
    connect,
    disagreement,
    locked,
    read_anchor,
    system_refuses,
    utc_text,
    write_anchor,
)
from umpc.node.budget.store import COHORT, EVENTS, HELD, PREPARED, Store, StoredEntry, move_former
from umpc.node.table.fingerprint import Fingerprint

log = logging.getLogger("umpc.node")
TOTAL_NOTE = "the configured total"


class LedgerStore:
    """The open file of a data set's ledger.

    Args:
        total: ε for all studies together.
        delta: δ for all studies together.
        composition: how their costs add up.
        anchor: the anchor's file, by default `<path>.anchor`.
        accept: set an anchor anew that is lost or disagrees, and say so in a row. Only an
            administrator may ask for this.
        hold_seconds: how long a held attempt reserves its cost.
        now: seconds since 1970.
        at_step: called at each step of a write, with the kind of its row and the step's name.
    """

    def __init__(
        self,
        path: Path,
        dataset: str,
        total: Fraction,
        delta: Fraction = DEFAULT_DELTA,
        *,
        composition: Composition = BASIC_COMPOSITION,
        anchor: Path | None = None,
        accept: bool = False,
        clock: Callable[[], str] = utc_text,
        hold_seconds: float = DEFAULT_HOLD_SECONDS,
        now: Callable[[], float] = time.time,
        at_step: Callable[[str], None] = failpoint,
    ):
        """Open or create the file, verify it, and take up the attempts that it holds."""
        check_epsilon(total)
        check_delta(delta)
        self.hold_seconds = hold_seconds
        self.composition = composition
        self._place = Place.of(path, anchor)
        self._dataset = dataset
        self._clock = clock
        self._now = now
        self._at_step = at_step
        self._lock = threading.RLock()
        self._is_closed = False
        self._is_broken = False
        self._names: dict[bytes, str] = {}
        self._cohorts: dict[bytes, Fingerprint] = {}
        """The records of each study that runs, until its attempt is held."""
        self._until: dict[bytes, float] = {}
        """When the time of each held attempt is up."""
        self._prepared: set[bytes] = set()
        """The studies that this process keeps as prepared."""
        with ExitStack() as opened:
            opened.callback(os.close, locked(self._place.ledger))
            with self._alone():
                if not self._place.ledger.exists():
                    file.create(self._place, self._clock(), dataset)
                self._db = connect(self._place.ledger)
                opened.callback(lambda: self._db.close())
                self._open(accept)
            self._catch_up(total, delta)
            self._resources = opened.pop_all()

    def close(self) -> None:
        """Release the file for another process. Reservations end; held attempts stay."""
        with self._lock:
            self._is_closed = True
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, accept: bool) -> None:
        """Verify the rows and the anchor, and take up the held attempts.

        After a crash between the two, the anchor is one row behind. It is then moved up.
        """
        file.check_version(self._db, self._place)
        self._key = file.existing_key(self._place)
        content = file.replay(self._db, self._place, self._key, self.composition)
        self._account, self._head = content.account, content.head
        self._until = {}
        mark = read_anchor(self._place.anchor)
        astray = disagreement(mark, content.hashes)
        if astray and not accept:
            raise self._place.astray(astray)
        self._db.execute("PRAGMA journal_mode=WAL")
        move_former(self._db, self._key, self._place.ledger, self._head.seq, self._at_step)
        self._store = Store(self._db, self._key)
        file.settle(self._db, self._place)
        if astray:
            reason = astray.partition(",")[0]
            self._append(
                "accept", note=f"an administrator accepted this ledger; the anchor {reason}"
            )
        elif mark != self._head:
            write_anchor(self._place.anchor, self._head)
        self._take_up()

    def _take_up(self) -> None:
        """Reserve for the attempts that are held, and remove all others.

        Studies that another process prepared are lost with it.
        """
        entries = list(self._store.read(HELD))
        waiting = file.waiting(self._account, entries, self._now())
        self._until = {held.study: held.until for held in waiting}
        for study, held in entries:
            if held is None:
                log.warning(
                    "the held attempt of study %s was changed on disk; it is dropped, and nothing "
                    "of it left",
                    study.hex()[:16],
                )
            if study not in self._until:
                self._forget(study)
        for study in {study for study, _ in self._store.read(PREPARED)} - self._prepared:
            self._forget(study)

    def _recover(self) -> None:
        """Open the file again after a failed write. Raises: LedgerError while the disk refuses."""
        reserved = self._account.open
        self._db.close()
        self._db = connect(self._place.ledger)
        self._is_broken = False
        try:
            self._open(accept=False)
        except (LedgerError, OSError, sqlite3.Error):
            self._is_broken = True
            self._account.open.update(reserved)
            raise
        for study, cost in reserved.items():
            if study not in self._account.charged:
                self._account.open.setdefault(study, cost)
        log.warning("ledger %s: it was opened again after a failed write", self._place.ledger)

    def _catch_up(self, total: Fraction, delta: Fraction) -> None:
        """Write the rows for changes since the last process: its death, or other totals."""
        if self._account.dataset != self._dataset:
            raise self._place.of_other_data(self._dataset, self._account.dataset)
        for study, cost in list(self._account.open.items()):
            if study not in self._until:  # a row of an earlier version reserved it
                note = "left by a process that ended before charging"
                self._append("cancel", study, cost.epsilon, cost.delta, note=note)
        note = TOTAL_NOTE
        if self.composition.name != BASIC:
            note += f", composed by {self.composition}"
        former = self._account.total
        configured = total, delta, note
        if configured != (former.epsilon, former.delta, self._account.total_note):
            self._append("total", epsilon=total, delta=delta, note=note)

    def _append(
        self,
        kind: str,
        study: bytes = b"",
        epsilon: Fraction | None = None,
        delta: Fraction | None = None,
        *,
        attempt: bytes = b"",
        share: bytes = b"",
        note: str = "",
    ) -> None:
        """Write one row, the new head and the anchor.

        After a failure disk and memory could differ. Only the disk counts, and the next call reads
        it again.
        """
        seq = self._head.seq + 1
        amounts = (exact_text(epsilon), exact_text(delta))
        values = (seq, self._clock(), kind, study, *amounts, attempt, share, note)
        row = sealed(self._key, self._head.hash, values)
        with self._writing():
            place, steps = self._place, self._steps_of(kind)
            head = file.append(self._db, place, self._key, row, self._head, steps)
        self._account.apply(row_of(row))
        self._head = head

    @contextmanager
    def _changing(self, kind: str) -> Iterator[Store]:
        """Change the Store, on disk when the block has ended. Failures: as `_append`."""
        with self._writing(), file.changing(self._db, self._steps_of(kind)):
            yield self._store

    def _steps_of(self, kind: str) -> Callable[[str], None]:
        return lambda step: self._at_step(f"{kind}-{step}")

    def _forget(self, study: bytes) -> None:
        """Remove an attempt from the disk, and what belongs to it if there is no charge."""
        with self._changing("drop") as store:
            store.remove(study, HELD, PREPARED)
            if study not in self._account.charged:
                store.remove(study, EVENTS, COHORT)
        self._prepared.discard(study)

    def _expire(self) -> None:
        """Drop the held attempts whose time is up, and all that `umpc approve` gave back."""
        now = self._now()
        for study in [study for study, until in self._until.items() if now >= until]:
            log.warning("study %s: the time of its held attempt is up", study.hex()[:16])
            self._drop(study)
        if waiting := {*self._until, *self._prepared}:
            for study in waiting - self._store.waiting():
                log.info("study %s: its administrator gave back what it held", study.hex()[:16])
                self._drop(study)

    def _drop(self, study: bytes) -> None:
        self._forget(study)
        self._account.give_up(study)
        self._end(study)

    def _end(self, study: bytes) -> None:
        """Forget in memory what belongs to a study that runs or is held."""
        self._until.pop(study, None)
        self._names.pop(study, None)
        self._cohorts.pop(study, None)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Mark the file as broken unless a write ends well."""
        self._is_broken = True
        with self._lock, system_refuses(self._place):
            yield
        self._is_broken = False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one thread at a time use the ledger. Raises: LedgerError if closed or broken."""
        with self._lock:
            if self._is_closed:
                raise LedgerError(
                    f"ledger {self._place.ledger}: an open ledger was expected, and it was closed. "
                    "Start the node again"
                )
            with system_refuses(self._place):
                if self._is_broken:
                    self._recover()
                yield


# --- ledger queries -------------------------------------------------------------------------------

QUESTION_BYTES = 32
"""Length of a question's digest, with which the row of its answer begins."""


@dataclass(frozen=True)
class StoredRelease:
    """The share that the node released for a study, and sends again when it is asked again.

    table: what a later answer needs, masked, where the protocol asks later; else empty.
    is_new: it was charged just now, by the call that returned it.
    """

    attempt: bytes
    share: bytes = field(repr=False)
    table: bytes = b""
    is_new: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class StoredAnswer:
    """The node's answer for a study after its release. `question` is the question's digest."""

    question: bytes
    answer: bytes = field(repr=False)


class LedgerQueries(LedgerStore):
    """The questions to an open ledger. Every method may be called from any thread."""

    def balance(self) -> Balance:
        """Return the balance of ε."""
        with self._alone():
            self._expire()
            return self._account.epsilon()

    def delta(self) -> Balance:
        """Return the balance of δ."""
        with self._alone():
            self._expire()
            return self._account.delta()

    def held(self, study: bytes) -> StoredEntry | None:
        """Return the attempt that is held for a study, or None. Raises: LedgerError if damaged."""
        with self._alone():
            self._expire()
            found = self._store.find(HELD, study)
            if found is None or study not in self._until:
                return None
            if found[1] is None:
                raise self._place.damaged(f"the held attempt of {study.hex()[:16]} is wrong")
            return found[1]

    def reservation(self, study: bytes) -> tuple[str, BudgetCost] | None:
        """Return the name of a study and what is reserved for it, or None where nothing is."""
        with self._alone():
            self._expire()
            cost = self._account.open.get(study)
            return None if cost is None else (self._names.get(study, ""), cost)

    def holds(self, study: bytes) -> bool:
        """Return whether an attempt is held for a study."""
        with self._lock:
            return study in self._until

    def released(self, study: bytes) -> StoredRelease | None:
        """Return the attempt and the share that were charged for the study, or None."""
        with self._alone():
            return self._release_of(study) if study in self._account.charged else None

    def answered(self, study: bytes) -> StoredAnswer | None:
        """Return the stored answer and its question's digest, or None.

        Raises: AlreadyReleased if only a ledger that was lost could know the answer.
        """
        with self._alone():
            seq = self._account.answered.get(study)
            if seq is None:
                self._check_not_closed(study)
                return None
            _, stored = self._stored(seq, "an answer")
            return StoredAnswer(stored[:QUESTION_BYTES], stored[QUESTION_BYTES:])

    def fingerprint(self, data: bytes) -> bytes:
        """Return 32 bytes that stand for data of this site. Without the key they say nothing."""
        with self._alone():
            return hmac.new(self._key, b"umpc table 1" + data, hashlib.sha256).digest()

    def charged_at(self, study: bytes) -> str:
        """Return when a released study was charged, in UTC, or "" if it was not."""
        with self._alone():
            seq = self._account.charged.get(study)
            rows = self._db.execute("SELECT at FROM ledger WHERE seq = ?", (seq,))
            return next((str(at) for (at,) in rows), "")

    def has_changed_since(self, study: bytes) -> bool:
        """Return whether a later study had other records from the selection of a released one.

        The table is not read. This is for the site's administrator alone.
        """
        with self._alone():
            known = self._store.cohorts()
            former = known.get(study)
            later = list(known)[list(known).index(study) + 1 :] if former else []
            return former is not None and any(known[each].has_changed(former) for each in later)

    def cohort(self, study: bytes) -> Fingerprint | None:
        """Return the fingerprint of the records of a study that was held or released, or None."""
        with self._alone():
            return self._store.cohorts().get(study)

    def history(self) -> list[Row]:
        """Return every row, the oldest first."""
        with self._alone():
            return file.history(self._db)

    def verify(self) -> None:
        """Read the whole file and the anchor again.

        Raises: LedgerError, which names the first wrong row.
        """
        with self._alone():
            content = file.replay(self._db, self._place, self._key, self.composition)
            if content.head != self._head:
                raise self._place.damaged(
                    f"row {self._head.seq} of this run was expected to be the last, and another "
                    f"row {content.head.seq} is"
                )
            mark = read_anchor(self._place.anchor)
            if mark != self._head:
                moved = (
                    f"was expected at row {self._head.seq}, and somebody moved it. "
                    "Stop the node and find out who"
                )
                raise self._place.astray(disagreement(mark, content.hashes) or moved)
            for study, held in self._store.read(HELD):
                if held is None:
                    raise self._place.damaged(f"the held attempt of {study.hex()[:16]} is wrong")

    def _release_of(self, study: bytes) -> StoredRelease:
        """Return the share that was charged for a study."""
        attempt, share = self._stored(self._account.charged[study], "a charge")
        return StoredRelease(attempt[:ATTEMPT_BYTES], share, attempt[ATTEMPT_BYTES:])

    def _stored(self, seq: int, kind: str) -> tuple[bytes, bytes]:
        """Return the attempt and the share of a row."""
        rows = self._db.execute("SELECT attempt, share FROM ledger WHERE seq = ?", (seq,))
        for attempt, share in rows:
            return attempt, share
        raise self._place.damaged(f"row {seq}, {kind}, was expected, and it is gone")

    def _check_not_closed(self, study: bytes) -> None:
        """Raises: AlreadyReleased where a lost ledger may have answered."""
        if study in self._account.closed:
            raise AlreadyReleased(
                f"{self._study(study)}: a question was expected before the ledger was restored "
                "from a backup, and this one came after. The lost ledger may have an answer. Give "
                "the study a new name to run it anew"
            )

    def _study(self, study: bytes) -> str:
        return f"ledger of data set {self._dataset!r}, study {study.hex()[:16]}"
