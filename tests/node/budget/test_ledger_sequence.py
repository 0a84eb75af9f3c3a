"""umpc.node.budget.ledger: no sequence of calls and no threads overspend ε or δ."""

from __future__ import annotations

import random
import tempfile
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.ledgers import balance, opened, pay
from umpc.errors import AlreadyReleased, AlreadyRunning, InsufficientBudget, LedgerError, UmpcError
from umpc.node.budget.budget_account import Balance
from umpc.node.budget.ledger_store import StoredAnswer

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where it exists: what is tested here is sums, and a disk would only be slow."""

# --- threads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scarce", ["epsilon", "delta"])
def test_threads(path, scarce):
    """25 studies of which 20 fit."""
    refusals: list[InsufficientBudget] = []
    start = threading.Barrier(25)

    def study(number: int) -> None:
        start.wait()
        try:
            ledger.reserve(bytes([number]), Fraction(1, 4))
            ledger.reserve_delta(bytes([number]), Fraction(1, 20))
        except InsufficientBudget as error:
            refusals.append(error)
            ledger.cancel(bytes([number]))
        else:
            pay(ledger, bytes([number]), b"", bytes([number]))

    totals = (Fraction(5), Fraction(2)) if scarce == "epsilon" else (Fraction(50), Fraction(1))
    with opened(path, *totals) as ledger:
        threads = [threading.Thread(target=study, args=(i,)) for i in range(25)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refusals) == 5 and all(
            f"asks for {scarce} " in error.message for error in refusals
        )
        assert ledger.balance().spent == 5 and ledger.delta().spent == 1
        assert ledger.balance().reserved == ledger.delta().reserved == 0
        ledger.verify()


@settings(max_examples=15)
@given(
    st.integers(0, 2**32),
    st.fractions(1, 3, max_denominator=7),
    st.fractions(0, 1, max_denominator=9),
)
def test_threads_that_do_anything(seed, total, delta):
    """Threads use the same few studies: each charge that returned counts, nothing is overspent."""
    done: list[tuple[Fraction, Fraction]] = []
    seen: list[bool] = []

    def user(number: int) -> None:
        choose = random.Random(seed + number)
        for _ in range(12):
            study = bytes([choose.randrange(4)]) + bytes([choose.randrange(3)])
            epsilon, part = Fraction(choose.randrange(1, 5), 5), Fraction(choose.randrange(5), 11)
            try:
                match choose.randrange(4):
                    case 0:
                        ledger.reserve(study, epsilon)
                    case 1:
                        ledger.reserve(study, epsilon, part)
                    case 2:
                        ledger.reserve_delta(study, part)
                    case 3 if choose.random() < 0.5:
                        ledger.cancel(study)
                    case _:
                        pay(ledger, study, b"", study)
            except UmpcError:
                pass
            for left in (ledger.balance(), ledger.delta()):
                seen.append(left.spent + left.reserved <= left.total)

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "ledger"
        with opened(path, total, delta) as ledger:
            threads = [threading.Thread(target=user, args=(i,)) for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(seen) == 6 * 12 * 2 and all(seen)
            rows = ledger.history()
            done = [(row.epsilon, row.delta) for row in rows if row.kind == "charge"]
            assert (
                ledger.balance().spent
                == sum((epsilon for epsilon, _ in done), Fraction(0))
                <= total
            )
            assert ledger.delta().spent == sum((part for _, part in done), Fraction(0)) <= delta
            ledger.verify()
        with opened(path, total, delta) as ledger:
            assert ledger.balance().reserved == ledger.delta().reserved == 0


# --- any sequence of calls, against a model ---------------------------------------------------


class AnySequence(RuleBasedStateMachine):
    """The model is two dictionaries, and a crash is a close. test_ledger_file.py kills."""

    studies = st.integers(0, 4).map(lambda i: bytes([i]))
    epsilons = st.fractions(Fraction(1, 100), 2, max_denominator=100)
    deltas = st.fractions(0, Fraction(1, 2), max_denominator=20)

    @initialize(
        total=st.fractions(1, 5, max_denominator=9), delta=st.fractions(0, 1, max_denominator=9)
    )
    def open(self, total, delta):
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.path, self.total, self.total_delta = Path(self.folder.name) / "ledger", total, delta
        self.ledger = opened(self.path, total, delta)
        self.open_, self.charged, self.answers, self.held = {}, {}, {}, {}
        self.spent, self.spent_delta = Fraction(0), Fraction(0)

    def left(self) -> tuple[Fraction, Fraction]:
        epsilon = sum((epsilon for epsilon, _ in self.open_.values()), Fraction(0))
        delta = sum((delta or Fraction(0) for _, delta in self.open_.values()), Fraction(0))
        return self.total - self.spent - epsilon, self.total_delta - self.spent_delta - delta

    @rule(study=studies, epsilon=epsilons, delta=st.none() | deltas)
    def reserve(self, study, epsilon, delta):
        left, left_delta = self.left()
        if study in self.charged:
            expected = AlreadyReleased
        elif study in self.open_:
            expected = AlreadyRunning
        elif epsilon > left or (delta or 0) > left_delta:
            expected = InsufficientBudget
        else:
            self.ledger.reserve(study, epsilon, delta)
            self.open_[study] = epsilon, delta
            return
        with pytest.raises(expected):
            self.ledger.reserve(study, epsilon, delta)

    @rule(study=studies, delta=deltas)
    def reserve_delta(self, study, delta):
        if study not in self.open_ or self.open_[study][1] is not None:
            expected = LedgerError
        elif delta > self.left()[1]:
            expected = InsufficientBudget
        else:
            self.ledger.reserve_delta(study, delta)
            self.open_[study] = self.open_[study][0], delta
            return
        with pytest.raises(expected):
            self.ledger.reserve_delta(study, delta)

    @rule(study=studies)
    def cancel(self, study):
        self.ledger.cancel(study)
        if study not in self.held:
            self.open_.pop(study, None)

    @rule(study=studies, share=st.binary(max_size=9))
    def hold(self, study, share):
        if study in self.held or study not in self.open_ or self.open_[study][1] is None:
            with pytest.raises(LedgerError):
                self.ledger.hold(study, b"attempt", share)
            return
        self.ledger.hold(study, b"attempt", share)
        self.held[study] = share

    @rule(study=studies)
    def drop(self, study):
        self.ledger.drop(study)
        if self.held.pop(study, None) is not None:
            del self.open_[study]

    @rule(study=studies, share=st.binary(max_size=9))
    def charge(self, study, share):
        if study in self.held:
            share = self.held.pop(study)
            self.ledger.charge(study, b"attempt")
        elif study not in self.open_ or self.open_[study][1] is None:
            with pytest.raises(LedgerError):
                pay(self.ledger, study, b"attempt", share)
            return
        else:
            pay(self.ledger, study, b"attempt", share)
        epsilon, delta = self.open_.pop(study)
        self.spent, self.spent_delta = self.spent + epsilon, self.spent_delta + delta
        self.charged[study] = share

    @rule(study=studies)
    def ask_again(self, study):
        stored = self.ledger.released(study)
        assert (stored and stored.share) == self.charged.get(study)
        if study in self.charged:
            assert self.ledger.charge(study, b"attempt") == stored

    @rule(
        study=studies,
        question=st.sampled_from([b"q" * 32, b"r" * 32]),
        answer=st.binary(max_size=9),
    )
    def answer(self, study, question, answer):
        if study in self.charged and study not in self.answers:
            self.ledger.answer(study, b"attempt", question, answer)
            self.answers[study] = StoredAnswer(question, answer)
            return
        with pytest.raises(AlreadyReleased if study in self.answers else LedgerError):
            self.ledger.answer(study, b"attempt", question, answer)
        assert self.ledger.answered(study) == self.answers.get(study)

    @precondition(lambda self: self.total < 9)
    @rule(more=st.fractions(0, 1, max_denominator=3))
    def crash_and_start_again(self, more):
        self.ledger.close()
        self.total += more
        self.ledger = opened(self.path, self.total, self.total_delta)
        self.open_ = {study: self.open_[study] for study in self.held}

    @invariant()
    def agrees(self):
        left, left_delta = self.left()
        reserved = self.total - self.spent - left, self.total_delta - self.spent_delta - left_delta
        assert (
            self.ledger.balance() == Balance(self.total, self.spent, reserved[0], left)
            and left >= 0
        )
        assert self.ledger.delta() == Balance(
            self.total_delta, self.spent_delta, reserved[1], left_delta
        )
        assert left_delta >= 0
        for study in range(5):
            held = self.ledger.held(bytes([study]))
            assert (held and held.share) == self.held.get(bytes([study]))
        self.ledger.verify()

    def teardown(self):
        self.ledger.close()
        self.folder.cleanup()


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=25, stateful_step_count=25)


def test_the_amounts_of_the_model_can_run_out(path):
    """The model's bounds are such that its refusals happen."""
    with opened(path, Fraction(1), Fraction(0)) as ledger:
        ledger.reserve(b"1", Fraction(1))
        with pytest.raises(InsufficientBudget, match="epsilon"):
            ledger.reserve(b"2", Fraction(1, 100))
        with pytest.raises(InsufficientBudget, match="delta"):
            ledger.reserve_delta(b"1", Fraction(1, 20))
        assert ledger.delta() == balance(0, 0, 0, 0)
