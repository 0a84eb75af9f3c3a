"""The privacy budget of one data set, on disk: what was spent, what is reserved, what was released.

docs/protocol.md, steps propose, prepare and release. A study costs (ε, δ); each has its own total. Invariant: what
the ledger says was spent is never below the truth, at any instant. A reservation comes before the run, that of δ as
soon as the number of records is known; the charge is committed and fsynced together with the noisy share, and the
anchor after it, before the share's first byte leaves; nothing is refunded after that.

    reserve ──► reserve_delta ──► charge ──► release (any number of times: the same stored bytes)
       └──────────────┴─────► cancel └──► answer, once, where the protocol asks ("ghazi-rounds")

An answer is what the charge has paid for already: it is stored with its question's digest before it leaves, and there
is never another one.

One SQLite file a data set, one process at a time (flock on `<path>.lock`). Every row's hash is an HMAC over the row
and the hash before it, with a key beside the ledger; an anchor elsewhere holds the last row's place and hash.

Noticed, at the start and by `verify`: rows that are edited, moved, inserted or cut off, by whoever lacks the key; an
older copy of the ledger put back while the anchor is newer; an older anchor (more than one row); a lost ledger, key or
anchor. Not noticed: ledger and anchor put back together from one older copy, which is why the anchor should be on
another disk; all three files removed; rows written by somebody who has the key and moves the anchor too, as everybody
can who is the node's user. Who wants more notes the last row's hash elsewhere: `umpc budget verify` prints it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from umpc.errors import AlreadyReleased, LedgerError
from umpc.failpoints import failpoint
from umpc.node.budget import ledgerfile as file
from umpc.node.budget.anchor import disagreement, read_anchor, write_anchor
from umpc.node.budget.budget_account import Balance, Row, exact_text, row_of, sealed
from umpc.node.budget.budget_limits import DEFAULT_DELTA, check_delta, check_epsilon, insufficient

QUESTION_BYTES = 32
"""Of a question's digest, with which its answer's row begins."""


@dataclass(frozen=True)
class StoredRelease:
    """What the node released for a study, and releases again when it is asked again."""

    attempt: bytes
    share: bytes = field(repr=False)


@dataclass(frozen=True)
class StoredAnswer:
    """What the node told for a study after its release, and to which question. question: its digest."""

    question: bytes
    answer: bytes = field(repr=False)


class Ledger:
    """The budget of `dataset`: `total` epsilon and `delta`. Every method may be called from any thread.

    Args: anchor: its file, by default `<path>.anchor`. accept: an anchor that is lost or disagrees is set anew, and a
    row says so; only ever on an administrator's word.
    """

    def __init__(
        self,
        path: Path,
        dataset: str,
        total: Fraction,
        delta: Fraction = DEFAULT_DELTA,
        *,
        anchor: Path | None = None,
        accept: bool = False,
        clock: Callable[[], str] | None = None,
    ):
        """Opens or creates the file, verifies it, and returns what a dead process had reserved."""
        check_epsilon(total)
        check_delta(delta)
        self._place, self._dataset = file.Place.of(path, anchor), dataset
        self._clock = clock or (lambda: datetime.now(UTC).isoformat(timespec="seconds"))
        self._lock, self._usable = threading.RLock(), True
        with ExitStack() as opened:
            opened.callback(os.close, file.locked(self._place.ledger))
            with self._held():
                if not self._place.ledger.exists():
                    file.create(self._place, self._clock(), dataset)
                self._db = opened.enter_context(closing(file.connect(self._place.ledger)))
                self._open(accept)
            self._catch_up(total, delta)
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
        """Of ε."""
        with self._held():
            return self._account.epsilon()

    def delta(self) -> Balance:
        with self._held():
            return self._account.delta()

    def reserve(
        self, study: bytes, epsilon: Fraction, delta: Fraction | None = None, *, name: str = ""
    ) -> None:
        """Sets epsilon aside for the study, or refuses. delta: None if it is not yet known. name: for the history.

        Raises: InsufficientBudget (with spent, reserved, left and asked), InvalidEpsilon, AlreadyReleased
        (`released` has the answer, at no cost), LedgerError (the study's reservation is open).
        """
        check_epsilon(epsilon)
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
            if epsilon > self._account.epsilon().left:
                raise insufficient(self._dataset, "epsilon", self._account.epsilon(), epsilon)
            if delta is not None:
                self._check_left(delta)
            self._append("reserve", study, epsilon, delta, note=name)

    def reserve_delta(self, study: bytes, delta: Fraction) -> None:
        """Sets δ aside too, 0 included: without it nothing is charged. Raises: as `reserve`."""
        with self._held():
            reserved = self._account.open.get(study)
            if reserved is None or reserved.delta is not None:
                raise LedgerError(
                    f"{self._study(study)}: an open reservation without delta was expected, and "
                    f"{'there is none' if reserved is None else 'it has one'}. Run the study anew"
                )
            self._check_left(delta)
            self._append("delta", study, delta=delta)

    def cancel(self, study: bytes) -> None:
        """Returns the study's reservation. Does nothing if none is open, so nothing after the charge."""
        with self._held():
            if cost := self._account.open.get(study):
                self._append("cancel", study, cost.epsilon, cost.delta)

    def charge(self, study: bytes, attempt: bytes, share: bytes) -> None:
        """Turns the reservation into a charge and keeps the noisy share; on disk when this returns.

        Only afterwards may the share leave the node. If this raises, it may not.
        """
        with self._held():
            cost = self._account.open.get(study)
            if cost is None or cost.delta is None:
                raise LedgerError(
                    f"{self._study(study)}: an open reservation of epsilon and delta was expected before the charge, "
                    f"and there is none{' of delta' if cost else ''}. Do not release the share; run the study anew"
                )
            self._append(
                "charge",
                study,
                cost.epsilon,
                cost.delta,
                attempt=bytes(attempt),
                share=bytes(share),
            )

    def released(self, study: bytes) -> StoredRelease | None:
        """The attempt and share that were charged for the study, or None."""
        with self._held():
            seq = self._account.charged.get(study)
            return None if seq is None else StoredRelease(*self._stored(seq, "a charge"))

    def answer(self, study: bytes, attempt: bytes, question: bytes, answer: bytes) -> None:
        """Keeps the answer to the one question that follows a release; on disk when this returns.

        Only afterwards may it leave the node. question: a digest of 32 bytes. Raises: AlreadyReleased where there is an
        answer already, LedgerError where nothing was charged.
        """
        with self._held():
            if len(question) != QUESTION_BYTES or study not in self._account.charged:
                raise LedgerError(
                    f"{self._study(study)}: a charge was expected before an answer, and a digest of {QUESTION_BYTES} "
                    "bytes with it. This is a fault of the node's software; report it"
                )
            if study in self._account.answered:
                raise AlreadyReleased(
                    f"{self._study(study)}: one question was expected, and it was answered before. Ask for its stored "
                    "answer"
                )
            self._append("answer", study, attempt=bytes(attempt), share=bytes(question + answer))

    def answered(self, study: bytes) -> StoredAnswer | None:
        """The stored answer and its question's digest, or None."""
        with self._held():
            seq = self._account.answered.get(study)
            stored = None if seq is None else self._stored(seq, "an answer")[1]
            return (
                None
                if stored is None
                else StoredAnswer(stored[:QUESTION_BYTES], stored[QUESTION_BYTES:])
            )

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
            return file.history(self._db)

    def verify(self) -> None:
        """Reads the whole file and the anchor again. Raises: LedgerError, which names the first bad row."""
        with self._held():
            content = file.replay(self._db, self._place, self._key)
            if content.head != self._head:
                raise self._place.damaged(
                    f"row {self._head.seq} of this run was expected to be the last, and another row "
                    f"{content.head.seq} is"
                )
            mark = read_anchor(self._place.anchor)
            if mark != self._head:
                moved = f"was expected at row {self._head.seq}, and somebody moved it. Stop the node and find out who"
                raise self._place.astray(disagreement(mark, content.hashes) or moved)

    # --- the file ---------------------------------------------------------------------------------------

    def _stored(self, seq: int, what: str) -> tuple[bytes, bytes]:
        """Attempt and share of a row."""
        for found in self._db.execute("SELECT attempt, share FROM ledger WHERE seq = ?", (seq,)):
            return found
        raise self._place.damaged(f"row {seq}, {what}, was expected, and it is gone")

    def _open(self, accept: bool) -> None:
        """Verifies rows and anchor. The anchor may be one row behind, after a crash between the two: it is moved up."""
        file.check_version(self._db, self._place)
        self._key = file.existing_key(self._place)
        content = file.replay(self._db, self._place, self._key)
        self._account, self._head = content.account, content.head
        mark = read_anchor(self._place.anchor)
        astray = disagreement(mark, content.hashes)
        if astray and not accept:
            raise self._place.astray(astray)
        self._db.execute("PRAGMA journal_mode=WAL")
        if astray:
            self._append(
                "accept",
                note=f"an administrator accepted this ledger; the anchor {astray.partition(',')[0]}",
            )
        elif mark != self._head:
            write_anchor(self._place.anchor, self._head)

    def _catch_up(self, total: Fraction, delta: Fraction) -> None:
        """What changed while no process held the file: its owner died, or the totals are others."""
        if self._account.dataset != self._dataset:
            raise LedgerError(
                f"ledger {self._place.ledger}: data set {self._dataset!r} was expected, and the file "
                f"is that of {self._account.dataset!r}. Correct ledger, or name under [data]"
            )
        for study, cost in list(self._account.open.items()):
            note = "left by a process that ended before charging"
            self._append("cancel", study, cost.epsilon, cost.delta, note=note)
        if (total, delta) != (self._account.epsilon().total, self._account.delta().total):
            self._append("total", epsilon=total, delta=delta, note="the configured total")

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
        """One row, the new head, the anchor.

        A failure closes the ledger for good: disk and memory could differ, and only the disk counts.
        """
        amounts = exact_text(epsilon), exact_text(delta)
        values = (self._head.seq + 1, self._clock(), kind, study, *amounts, attempt, share, note)
        row = sealed(self._key, self._head.hash, values)
        self._usable = False
        with self._held(check=False):
            head = file.append(
                self._db, self._place, row, self._head, lambda step: failpoint(f"{kind}-{step}")
            )
        self._account.apply(row_of(row))
        self._head, self._usable = head, True

    @contextmanager
    def _held(self, check: bool = True) -> Iterator[None]:
        """One thread at a time, in a usable ledger."""
        with self._lock:
            if check and not self._usable:
                raise LedgerError(
                    f"ledger {self._place.ledger}: an open ledger was expected, and it was closed or a "
                    "write to it failed. Start the node again"
                )
            with file.system_refuses(self._place):
                yield

    def _check_left(self, delta: Fraction) -> None:
        check_delta(delta)
        if delta > self._account.delta().left:
            raise insufficient(self._dataset, "delta", self._account.delta(), delta)

    def _study(self, study: bytes) -> str:
        return f"ledger of data set {self._dataset!r}, study {study.hex()[:16]}"
