"""The questions to an open ledger: balances, held attempts, released shares, answers, cohorts.

Nothing here reserves or charges. `Ledger` in `ledger.py` does.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from umpc.errors import AlreadyReleased
from umpc.node.budget import cohort_records
from umpc.node.budget import held_attempts as holds
from umpc.node.budget import ledger_reading as reading
from umpc.node.budget.anchor import disagreement, read_anchor
from umpc.node.budget.budget_account import ATTEMPT_BYTES, Balance, BudgetCost, Row
from umpc.node.budget.held_attempts import HeldAttempt
from umpc.node.budget.ledger_store import LedgerStore
from umpc.node.table.fingerprint import Fingerprint

QUESTION_BYTES = 32
"""Length of a question's digest, with which the row of its answer begins."""


@dataclass(frozen=True)
class StoredRelease:
    """The share that the node released for a study, and sends again when it is asked again.

    table: what a later answer needs, masked, where the protocol asks later; else empty.
    """

    attempt: bytes
    share: bytes = field(repr=False)
    table: bytes = b""


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

    def held(self, study: bytes) -> HeldAttempt | None:
        """Return the attempt that is held for a study, or None. Raises: LedgerError if damaged."""
        with self._alone():
            self._expire()
            for _, held in holds.read_held(self._db, self._key, study):
                if study not in self._until:
                    return None
                if held is None:
                    raise self._place.damaged(f"the held attempt of {study.hex()[:16]} is wrong")
                return held
            return None

    def reservation(self, study: bytes) -> tuple[str, BudgetCost] | None:
        """Return the name of a study and what is reserved for it, or None where nothing is."""
        with self._lock:
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
            known = cohort_records.read_cohorts(self._db, self._key)
            former = known.get(study)
            later = list(known)[list(known).index(study) + 1 :] if former else []
            return former is not None and any(known[each].has_changed(former) for each in later)

    def cohort(self, study: bytes) -> Fingerprint | None:
        """Return the fingerprint of the records of a study that was held or released, or None."""
        with self._alone():
            return cohort_records.read_cohorts(self._db, self._key).get(study)

    def history(self) -> list[Row]:
        """Return every row, the oldest first."""
        with self._alone():
            return reading.history(self._db)

    def verify(self) -> None:
        """Read the whole file and the anchor again.

        Raises: LedgerError, which names the first wrong row.
        """
        with self._alone():
            content = reading.replay(self._db, self._place, self._key, self.composition)
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
            for study, held in holds.read_held(self._db, self._key):
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
