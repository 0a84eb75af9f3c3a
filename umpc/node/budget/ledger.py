"""The privacy budget of one data set, on disk: amounts spent and reserved, and released shares.

It serves the steps propose, prepare and release of docs/protocol.md. A study costs (ε, δ); each
has its own total.

*Invariant*: the amount spent in the ledger is never below the truth, at any instant.

- ε is reserved before the run, and δ as soon as the number of records is known, both in memory.
- The finished share is held on disk before the node says *ready* (`store.py`).
- The charge is committed and fsynced together with the share, and then the anchor. Only after this
  does the first byte of the share leave. The bytes are those that were held.
- Nothing is refunded after the charge. A study is charged once, so one attempt of it leaves.

    reserve ──► reserve_delta ──► hold ──► charge ──► released (any number of times: these bytes)
       └──────────────┴► cancel    └─► drop  └► answer, once, where the protocol asks

A study may be a step of a course (`umpc/study/parts.py`). Its first charged step pays for all of
them, and each number of a step is released once. A step that is reserved before the course is paid
reserves the whole, so two steps at once can cost twice and never too little.

The charge has already paid for an answer. The answer is stored with its question's digest before it
leaves, and there is never another one.

Only charges and answers are rows, so proposals that are not paid do not make the ledger grow.
A reservation ends with its process. A held attempt reserves until it is charged or dropped, or its
time is up.

A data set has one SQLite file, and one process at a time uses it (flock on `<path>.lock`). Every
row's hash is an HMAC over the row and the hash before it, with a key beside the ledger. An anchor
elsewhere holds the place and hash of the last row.

At its start and in `verify`, the ledger detects

- rows that were edited, moved, inserted or cut off by a person without the key,
- an older copy of the ledger under a newer anchor,
- an anchor that is more than one row older,
- a lost ledger, key or anchor,
- a held attempt that was edited. At its start it drops that attempt and logs so.

It does not detect

- a ledger and an anchor that were put back together from one older copy. This is why the anchor
  should be on another disk.
- the removal of all three files,
- a held attempt that was removed, or put back from a copy; neither lets anything leave twice,
- rows written by a person who has the key and moves the anchor too. The node's user can do this.

Against these, an administrator can note the last row's hash elsewhere: `umpc budget verify` prints
it.

After a failed write, for example to a full disk, the next call closes the file, opens it again and
verifies it. Then the disk alone counts, and reservations in memory stay.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from umpc.dp.events import Event, encode_events
from umpc.errors import AlreadyReleased, AlreadyRunning, LedgerError
from umpc.node.budget.budget_account import (
    ATTEMPT_BYTES,
    BudgetCost,
    check_delta,
    check_epsilon,
    course_in,
    insufficient,
)
from umpc.node.budget.ledger_store import QUESTION_BYTES, LedgerQueries, StoredRelease
from umpc.node.budget.store import (
    COHORT,
    EVENTS,
    FIELDS,
    HELD,
    KEPT,
    MOST_HELD,
    PREPARED,
    STARTS,
    StoredEntry,
)
from umpc.node.table.fingerprint import Cohort
from umpc.study.parts import Course

NOTHING = BudgetCost(Fraction(0), Fraction(0))
"""The cost of a step of a course that is paid."""


class Ledger(LedgerQueries):
    """The budget of a data set. Every method may be called from any thread.

    Args: as of LedgerStore.
    """

    def reserve(
        self,
        study: bytes,
        epsilon: Fraction,
        delta: Fraction | None = None,
        *,
        name: str = "",
        events: tuple[Event, ...] = (),
        course: Course | None = None,
    ) -> None:
        """Reserve ε for the study, in memory.

        Args:
            delta: None if it is not yet known.
            name: the study's name, for the history.
            events: its mechanism, as far as it is known; empty if nothing but ε is.
            course: the course that the study is a step of. A paid course costs nothing more.

        Raises: InsufficientBudget (with spent, reserved, left and asked), InvalidEpsilon,
            AlreadyReleased (`released` has the share, at no cost), AlreadyRunning (the study has an
            open reservation or a held attempt), LedgerError (too many studies have one).
        """
        check_epsilon(epsilon)
        with self._alone():
            self._expire()
            if study in self._account.charged:
                raise AlreadyReleased(
                    f"{self._study(study)}: a new study was expected, and this one was "
                    "charged before. Ask for its stored release"
                )
            if study in self._account.open:
                raise AlreadyRunning(
                    f"another run of the study of hash {study.hex()[:16]}… is under way, and one "
                    "at a time was expected. Wait for its end, and run the study again: after a "
                    "release that costs nothing"
                )
            if len(self._account.open) >= MOST_HELD:
                raise LedgerError(
                    f"{self._study(study)}: at most {MOST_HELD} studies at once were expected, and "
                    "as many have reserved. Try again when one of them has ended"
                )
            cost = BudgetCost(epsilon, delta, events)
            if course is not None and self._is_paid(study, course):
                cost = NOTHING
            else:
                if course is not None:
                    self._check_name(study, name, course)
                self._check_left(cost)
            self._account.open[study] = cost
            self._names[study] = name

    def check_room(self, epsilon: Fraction, delta: Fraction) -> None:
        """Check that so much could be reserved now. Nothing is. Raises: InsufficientBudget."""
        with self._alone():
            self._expire()
            self._check_left(BudgetCost(epsilon, delta, ()))

    def reserve_delta(self, study: bytes, delta: Fraction, events: tuple[Event, ...] = ()) -> None:
        """Reserve δ too, even if it is 0: without it nothing is charged. Raises: as `reserve`.

        Args: events: the mechanism of the release; empty if nothing but ε and δ is known.
        """
        with self._alone():
            reserved = self._account.open.get(study)
            if reserved == NOTHING:
                return  # a step of a course that is paid
            if reserved is None or reserved.delta is not None:
                found = "there is none" if reserved is None else "it has one"
                raise LedgerError(
                    f"{self._study(study)}: an open reservation without delta was expected, and "
                    f"{found}. Run the study anew"
                )
            cost = BudgetCost(reserved.epsilon, delta, events)
            self._check_left(cost, study)
            self._account.open[study] = cost

    def cancel(self, study: bytes) -> None:
        """Give the study's reservation back. Do nothing if it is held or charged, or was none.

        Raises: LedgerError if the study is prepared and the disk refuses to forget it.
        """
        with self._lock:
            if study not in self._until:
                self._account.open.pop(study, None)
                self._end(study)
            if study in self._prepared:
                with self._alone():
                    self._forget(study)

    def prepare(self, study: bytes, until: float) -> None:
        """Keep on disk what a study reserves that is prepared ahead, until it is held or cancelled.

        Args: until: when its time is up, in seconds since 1970.
        Raises: LedgerError; then the study must not wait for its run.
        """
        with self._alone():
            cost = self._account.open.get(study)
            if cost is None:
                raise LedgerError(
                    f"{self._study(study)}: an open reservation was expected of a study that is "
                    "prepared, and there is none. Prepare the study anew"
                )
            name, events = self._names.get(study, ""), encode_events(cost.events).encode()
            amounts = (cost.epsilon, cost.delta or Fraction(0))
            with self._changing("prepare") as store:
                store.put(StoredEntry(PREPARED, study, b"", events, name, *amounts, int(until)))
            self._prepared.add(study)

    def hold(self, study: bytes, attempt: bytes, share: bytes, table: bytes = b"") -> StoredEntry:
        """Keep the finished share of a reserved study, on disk when this returns.

        Args:
            attempt: the attempt's id.
            table: what a later answer needs, masked, where the protocol asks later.

        Raises: LedgerError; then the node must not say that it is ready.
        """
        with self._alone():
            cost = self._account.open.get(study)
            if cost is None or cost.delta is None or study in self._until:
                found = "there is none" if cost is None else "there is none of delta"
                raise LedgerError(
                    f"{self._study(study)}: an open reservation of epsilon and delta was expected "
                    f"before a share is held, and "
                    f"{'a share is held already' if study in self._until else found}. Run the "
                    "study anew"
                )
            until = int(self._now() + self.hold_seconds)
            amounts = (cost.epsilon, cost.delta)
            name = self._names.get(study, "")
            kept, owner = bytes(attempt + table), bytes(attempt[:ATTEMPT_BYTES])
            held = StoredEntry(HELD, study, kept, bytes(share), name, *amounts, until)
            with self._changing("hold") as store:
                store.put(held)
                store.remove(study, PREPARED)
                if text := encode_events(cost.events):
                    store.put(StoredEntry(EVENTS, study, owner, text.encode()))
                if cohort := self._cohorts.get(study):
                    store.put(StoredEntry(COHORT, study, owner, cohort.encode().encode()))
            self._prepared.discard(study)
            self._account.mechanisms[study, owner] = cost.events
            self._until[study] = until
            return held

    def drop(self, study: bytes) -> None:
        """Give up what is held for a study, with its reservation. Do nothing if nothing is."""
        with self._alone():
            if study in self._until:
                self._drop(study)

    def charge(self, study: bytes, attempt: bytes) -> StoredRelease:
        """Turn the held attempt into a charge with its share, on disk when this returns.

        Only afterwards may the share leave the node. If this raises, the share must not leave. A
        charge of the same attempt that is there already is returned at no cost.

        Args:
            attempt: as the held attempt has it.

        Raises: LedgerError if this attempt is not held; AlreadyReleased after another one's charge.
        """
        with self._alone():
            if study in self._account.charged:
                stored = self._release_of(study)
                if stored.attempt + stored.table != attempt:
                    raise AlreadyReleased(
                        f"{self._study(study)}: one attempt was expected, and another one was "
                        "charged before. Ask for its stored release"
                    )
                return stored
            held = self.held(study)
            if held is None or held.attempt != attempt:
                raise LedgerError(
                    f"{self._study(study)}: a held attempt was expected before the charge, and "
                    f"{'there is none' if held is None else 'another one is held'}: its time was "
                    "up, or it was given up. Do not release the share; run the study anew"
                )
            self._append(
                self._kind_of(held),
                study,
                held.epsilon,
                held.delta,
                attempt=held.attempt,
                share=held.share,
                note=held.name,
            )
            self._end(study)
            return replace(self._release_of(study), is_new=True)

    def answer(self, study: bytes, attempt: bytes, question: bytes, answer: bytes) -> None:
        """Keep the answer to the one question after a release, on disk when this returns.

        Only afterwards may the answer leave the node.

        Args:
            question: the question's digest, 32 bytes.

        Raises: AlreadyReleased if there is an answer already, LedgerError if nothing was charged.
        """
        with self._alone():
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
            self._check_not_closed(study)
            self._append("answer", study, attempt=bytes(attempt), share=bytes(question + answer))

    def note_cohort(self, study: bytes, cohort: Cohort) -> bool:
        """Remember a running study's records. Their fingerprint is kept with the held attempt.

        Returns: whether the last study with this selection had other records. This is for the
            site's administrator alone.
        """
        fingerprint = cohort.fingerprint(self.fingerprint)
        with self._alone():
            if study in self._account.open:
                self._cohorts[study] = fingerprint
            last = self._store.last_alike(study, fingerprint.selection)
            return last is not None and fingerprint.has_changed(last)

    def count_fields(self, digest: bytes, most: int) -> bool:
        """Count a set of fields as asked about, on disk when this returns, once.

        Returns: False if it is new and there are as many as `most`, so that it is not counted.
        """
        with self._alone():
            known = dict(self._store.read(FIELDS))
            if known.get(digest) is not None:
                return True
            if len(known) >= most:
                return False
            with self._changing("fields") as store:
                store.put(StoredEntry(FIELDS, digest))
            return True

    def starts(self) -> dict[bytes, bytes]:
        """Return each node's last start, as `keep_start` was given it, by the node's name."""
        with self._alone():
            found = self._store.read(STARTS)
            return {name: entry.value for name, entry in found if entry is not None}

    def keep_start(self, node: bytes, start: bytes) -> None:
        """Remember a node's last start, on disk when this returns. Raises: LedgerError."""
        with self._alone(), self._changing("start") as store:
            store.put(StoredEntry(STARTS, node, value=start))

    def _check_name(self, study: bytes, name: str, course: Course) -> None:
        """Refuse a step under the name of a paid course of other settings, which it would pay anew.

        Raises: AlreadyReleased.
        """
        query = "SELECT attempt FROM ledger WHERE kind = 'course' AND note = ?"
        paid = (course_in(attempt) for (attempt,) in self._db.execute(query, (name,)))
        if any(other is not None and other.id != course.id for other in paid):
            raise AlreadyReleased(
                f"{self._study(study)}: the training of {name!r} has paid its epsilon with other "
                "settings, such as its steps, and with these it would pay again. Give the training "
                "a new name, or its former settings"
            )

    def _is_paid(self, study: bytes, course: Course) -> bool:
        """Whether a step's course is paid. Raises: AlreadyReleased where this step was released."""
        steps = self._account.courses.get(course.id)
        if steps is not None and course.step in steps:
            raise AlreadyReleased(
                f"{self._study(study)}: step {course.step} of its course was expected to be new, "
                f"and another study was released as this step. Give the training a new name to "
                f"run it anew"
            )
        return steps is not None

    def _kind_of(self, held: StoredEntry) -> str:
        """The kind of the row that releases a held attempt. Raises: AlreadyReleased."""
        course = course_in(held.attempt)
        if course is None or held.attempt.startswith(KEPT, ATTEMPT_BYTES):
            return "charge"
        self._is_paid(held.study, course)
        return "course" if held.epsilon else "step"

    def _check_left(self, cost: BudgetCost, study: bytes = b"") -> None:
        """Check that the cost fits. Args: study: one whose reservation it replaces."""
        if cost.delta is not None:
            check_delta(cost.delta)
        account = self._account
        lacking = account.lacks(cost, study)
        if lacking == "epsilon":
            raise insufficient(
                self._dataset, lacking, account.epsilon(), cost.epsilon, str(self.composition)
            )
        if lacking:
            asked = cost.delta or Fraction(0)
            raise insufficient(self._dataset, lacking, account.delta(), asked)
