"""The privacy budget of one data set, on disk: amounts spent and reserved, and released shares.

It serves the steps propose, prepare and release of docs/protocol.md. A study costs (ε, δ); each
has its own total.

*Invariant*: the amount spent in the ledger is never below the truth, at any instant.

- ε is reserved before the run, and δ as soon as the number of records is known.
- The charge is committed and fsynced together with the noisy share, and then the anchor. Only after
  this does the first byte of the share leave.
- Nothing is refunded after the charge.

    reserve ──► reserve_delta ──► charge ──► release (any number of times: the same stored bytes)
       └──────────────┴─────► cancel └──► answer, once, where the protocol asks ("ghazi-rounds")

The charge has already paid for an answer. The answer is stored with its question's digest before it
leaves, and there is never another one.

A data set has one SQLite file, and one process at a time uses it (flock on `<path>.lock`). Every
row's hash is an HMAC over the row and the hash before it, with a key beside the ledger. An anchor
elsewhere holds the place and hash of the last row.

At its start and in `verify`, the ledger detects

- rows that were edited, moved, inserted or cut off by a person without the key,
- an older copy of the ledger under a newer anchor,
- an anchor that is more than one row older,
- a lost ledger, key or anchor.

It does not detect

- a ledger and an anchor that were put back together from one older copy. This is why the anchor
  should be on another disk.
- the removal of all three files,
- rows written by a person who has the key and moves the anchor too. The node's user can do this.

Against these, an administrator can note the last row's hash elsewhere: `umpc budget verify` prints
it.
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
"""Length of a question's digest, with which the row of its answer begins."""


@dataclass(frozen=True)
class StoredRelease:
    """The share that the node released for a study, and sends again when it is asked again."""

    attempt: bytes
    share: bytes = field(repr=False)


@dataclass(frozen=True)
class StoredAnswer:
    """The node's answer for a study after its release. `question` is the question's digest."""

    question: bytes
    answer: bytes = field(repr=False)


class Ledger:
    """The budget of a data set. Every method may be called from any thread.

    Args:
        total: ε for all studies together.
        delta: δ for all studies together.
        anchor: the anchor's file, by default `<path>.anchor`.
        accept: set an anchor anew that is lost or disagrees, and say so in a row. Only an
            administrator may ask for this.
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
        """Open or create the file, verify it, and give back what a dead process had reserved."""
        check_epsilon(total)
        check_delta(delta)
        self._place = file.Place.of(path, anchor)
        self._dataset = dataset
        self._clock = clock or (lambda: datetime.now(UTC).isoformat(timespec="seconds"))
        self._lock = threading.RLock()
        self._usable = True
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
        """Release the file for another process. The next start gives open reservations back."""
        with self._lock:
            self._usable = False
            self._resources.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def balance(self) -> Balance:
        """Return the balance of ε."""
        with self._held():
            return self._account.epsilon()

    def delta(self) -> Balance:
        """Return the balance of δ."""
        with self._held():
            return self._account.delta()

    def reserve(
        self, study: bytes, epsilon: Fraction, delta: Fraction | None = None, *, name: str = ""
    ) -> None:
        """Reserve ε for the study.

        Args:
            delta: None if it is not yet known.
            name: the study's name, for the history.

        Raises: InsufficientBudget (with spent, reserved, left and asked), InvalidEpsilon,
            AlreadyReleased (`released` has the share, at no cost), LedgerError (the study has an
            open reservation).
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
        """Reserve δ too, even if it is 0: without it nothing is charged. Raises: as `reserve`."""
        with self._held():
            reserved = self._account.open.get(study)
            if reserved is None or reserved.delta is not None:
                found = "there is none" if reserved is None else "it has one"
                raise LedgerError(
                    f"{self._study(study)}: an open reservation without delta was expected, and "
                    f"{found}. Run the study anew"
                )
            self._check_left(delta)
            self._append("delta", study, delta=delta)

    def cancel(self, study: bytes) -> None:
        """Give the study's reservation back. Do nothing if none is open, as after the charge."""
        with self._held():
            if cost := self._account.open.get(study):
                self._append("cancel", study, cost.epsilon, cost.delta)

    def charge(self, study: bytes, attempt: bytes, share: bytes) -> None:
        """Turn the reservation into a charge and keep the noisy share, on disk when this returns.

        Only afterwards may the share leave the node. If this raises, the share must not leave.
        """
        with self._held():
            cost = self._account.open.get(study)
            if cost is None or cost.delta is None:
                raise LedgerError(
                    f"{self._study(study)}: an open reservation of epsilon and delta was expected "
                    f"before the charge, and there is none{' of delta' if cost else ''}. Do not "
                    "release the share; run the study anew"
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
        """Return the attempt and the share that were charged for the study, or None."""
        with self._held():
            seq = self._account.charged.get(study)
            return None if seq is None else StoredRelease(*self._stored(seq, "a charge"))

    def answer(self, study: bytes, attempt: bytes, question: bytes, answer: bytes) -> None:
        """Keep the answer to the one question after a release, on disk when this returns.

        Only afterwards may the answer leave the node.

        Args:
            question: the question's digest, 32 bytes.

        Raises: AlreadyReleased if there is an answer already, LedgerError if nothing was charged.
        """
        with self._held():
            if len(question) != QUESTION_BYTES or study not in self._account.charged:
                raise LedgerError(
                    f"{self._study(study)}: a charge was expected before an answer, and a digest "
                    f"of {QUESTION_BYTES} bytes with it. This is a fault of the node's software; "
                    "report it"
                )
            if study in self._account.answered:
                raise AlreadyReleased(
                    f"{self._study(study)}: one question was expected, and it was answered before. "
                    "Ask for its stored answer"
                )
            self._append("answer", study, attempt=bytes(attempt), share=bytes(question + answer))

    def answered(self, study: bytes) -> StoredAnswer | None:
        """Return the stored answer and its question's digest, or None."""
        with self._held():
            seq = self._account.answered.get(study)
            if seq is None:
                return None
            _, stored = self._stored(seq, "an answer")
            return StoredAnswer(stored[:QUESTION_BYTES], stored[QUESTION_BYTES:])

    def record_release(self, study: bytes, result_note: str = "") -> None:
        """Note that the share left. This is for the history only: `charge` has spent the budget."""
        with self._held():
            if study not in self._account.charged:
                raise LedgerError(
                    f"{self._study(study)}: a charge was expected before the release, and "
                    "there is none. This is a fault of the node's software; report it"
                )
            self._append("release", study, note=result_note)

    def history(self) -> list[Row]:
        """Return every row, the oldest first."""
        with self._held():
            return file.history(self._db)

    def verify(self) -> None:
        """Read the whole file and the anchor again.

        Raises: LedgerError, which names the first wrong row.
        """
        with self._held():
            content = file.replay(self._db, self._place, self._key)
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

    # --- the file -----------------------------------------------------------------------------

    def _stored(self, seq: int, kind: str) -> tuple[bytes, bytes]:
        """Return the attempt and the share of a row."""
        rows = self._db.execute("SELECT attempt, share FROM ledger WHERE seq = ?", (seq,))
        for attempt, share in rows:
            return attempt, share
        raise self._place.damaged(f"row {seq}, {kind}, was expected, and it is gone")

    def _open(self, accept: bool) -> None:
        """Verify the rows and the anchor.

        After a crash between the two, the anchor is one row behind. It is then moved up.
        """
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
            reason = astray.partition(",")[0]
            self._append(
                "accept", note=f"an administrator accepted this ledger; the anchor {reason}"
            )
        elif mark != self._head:
            write_anchor(self._place.anchor, self._head)

    def _catch_up(self, total: Fraction, delta: Fraction) -> None:
        """Write the rows for changes since the last process: its death, or other totals."""
        if self._account.dataset != self._dataset:
            raise LedgerError(
                f"ledger {self._place.ledger}: data set {self._dataset!r} was expected, and the "
                f"file is that of {self._account.dataset!r}. Correct ledger, or name under [data]"
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
        """Write one row, the new head and the anchor.

        A failure makes this object unusable: disk and memory could differ, and only the disk
        counts.
        """
        seq = self._head.seq + 1
        amounts = (exact_text(epsilon), exact_text(delta))
        values = (seq, self._clock(), kind, study, *amounts, attempt, share, note)
        row = sealed(self._key, self._head.hash, values)
        self._usable = False
        with self._held(check=False):
            head = file.append(
                self._db, self._place, row, self._head, lambda step: failpoint(f"{kind}-{step}")
            )
        self._account.apply(row_of(row))
        self._head = head
        self._usable = True

    @contextmanager
    def _held(self, check: bool = True) -> Iterator[None]:
        """Let one thread at a time use the ledger. Raises: LedgerError if it is unusable."""
        with self._lock:
            if check and not self._usable:
                raise LedgerError(
                    f"ledger {self._place.ledger}: an open ledger was expected, and it was closed "
                    "or a write to it failed. Start the node again"
                )
            with file.system_refuses(self._place):
                yield

    def _check_left(self, delta: Fraction) -> None:
        check_delta(delta)
        if delta > self._account.delta().left:
            raise insufficient(self._dataset, "delta", self._account.delta(), delta)

    def _study(self, study: bytes) -> str:
        return f"ledger of data set {self._dataset!r}, study {study.hex()[:16]}"
