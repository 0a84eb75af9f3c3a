"""The ledger's file while a process holds it: opened, written, opened again after a failed write.

`Ledger` in `ledger.py` says what may be written. Here is how: one thread at a time, a row with its
head and anchor, or one change of the table of held attempts. After a failure only the disk counts.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Self

from umpc.dp.composition import BASIC, Composition
from umpc.errors import LedgerError
from umpc.failpoints import failpoint
from umpc.node.budget import charge_events, cohort_records
from umpc.node.budget import held_attempts as holds
from umpc.node.budget import ledger_reading as reading
from umpc.node.budget import ledgerfile as file
from umpc.node.budget.anchor import disagreement, read_anchor, write_anchor
from umpc.node.budget.budget_account import (
    BASIC_COMPOSITION,
    StoredRow,
    exact_text,
    row_of,
    sealed,
)
from umpc.node.budget.budget_limits import (
    DEFAULT_DELTA,
    DEFAULT_HOLD_SECONDS,
    check_delta,
    check_epsilon,
)
from umpc.node.budget.ledger_place import Place, connect, locked, system_refuses, utc_text
from umpc.node.budget.ledger_upgrade import upgrade
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
        reading.check_version(self._db, self._place)
        self._key = reading.existing_key(self._place)
        content = reading.replay(self._db, self._place, self._key, self.composition)
        self._account, self._head = content.account, content.head
        self._until = {}
        mark = read_anchor(self._place.anchor)
        astray = disagreement(mark, content.hashes)
        if astray and not accept:
            raise self._place.astray(astray)
        self._db.execute("PRAGMA journal_mode=WAL")
        upgrade(self._db, self._place, self._head)
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
        """Reserve for the attempts that are held, and remove all others from the table."""
        entries = list(holds.read_held(self._db, self._key))
        waiting = reading.waiting(self._account, entries, self._now())
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
            head = file.append(self._db, self._place, row, self._head, self._steps_of(kind))
        self._account.apply(row_of(row))
        self._head = head

    def _change(self, kind: str, *changes: tuple[str, StoredRow]) -> None:
        """Change the table of held attempts, on disk when this returns. Failures: as `_append`."""
        with self._writing():
            file.change_held(self._db, changes, self._steps_of(kind))

    def _steps_of(self, kind: str) -> Callable[[str], None]:
        return lambda step: self._at_step(f"{kind}-{step}")

    def _forget(self, study: bytes) -> None:
        """Remove a held attempt from the disk, and what belongs to it if there is no charge."""
        changes = [(holds.DELETE, (study,))]
        if study not in self._account.charged:
            changes.append((charge_events.DELETE, (study,)))
            changes.append((cohort_records.DELETE, (study,)))
        self._change("drop", *changes)

    def _expire(self) -> None:
        """Drop the held attempts whose time is up."""
        now = self._now()
        for study in [study for study, until in self._until.items() if now >= until]:
            log.warning("study %s: the time of its held attempt is up", study.hex()[:16])
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
