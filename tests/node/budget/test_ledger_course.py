"""A course in the ledger: its first step pays for all, and each step is released once."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.ledgers import A, B, C, D, balance, kinds, opened, pay
from umpc.errors import AlreadyReleased, InsufficientBudget, LedgerError
from umpc.node.budget.budget_account import course_in
from umpc.node.budget.store import KEPT
from umpc.study.parts import Course

ATTEMPT = bytes(32)
ID = bytes([7]) * 32


def step(number: int, steps: int = 3, of: bytes = ID) -> Course:
    return Course(of, number, steps)


def take(ledger, study: bytes, course: Course, epsilon: int = 3) -> None:
    ledger.reserve(study, Fraction(epsilon), name="train", course=course)
    ledger.reserve_delta(study, D)
    pay(ledger, study, ATTEMPT, b"share", course.encode())


def test_the_first_step_pays_and_the_others_pay_nothing_more(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(3), name="train", course=step(1))
        ledger.reserve_delta(A, D)
        assert ledger.balance() == balance(5, 0, 3, 2) and ledger.delta().reserved == D
        pay(ledger, A, ATTEMPT, b"one", step(1).encode())
        take(ledger, B, step(2))
        assert ledger.balance() == balance(5, 3, 0, 2) and ledger.delta().spent == D
        assert kinds(ledger)[2:] == ["course", "step"]
        assert ledger.released(A).share == b"one" and ledger.released(B).share == b"share"
    with opened(path) as ledger:  # and so it is in a new process
        take(ledger, C, step(3))
        assert ledger.balance() == balance(5, 3, 0, 2)
        ledger.verify()


def test_a_step_is_released_once_whatever_its_study_is(path):
    with opened(path) as ledger:
        take(ledger, A, step(1))
        with pytest.raises(AlreadyReleased, match="released as this step"):
            ledger.reserve(B, Fraction(3), name="train", course=step(1))
        with pytest.raises(AlreadyReleased, match="charged before"):
            ledger.reserve(A, Fraction(3), name="train", course=step(1))
        assert ledger.balance() == balance(5, 3, 0, 2)


def test_two_studies_of_one_step_at_once_release_one_of_them(path):
    with opened(path, Fraction(9)) as ledger:
        for study in (A, B):
            ledger.reserve(study, Fraction(3), name="train", course=step(1))
            ledger.reserve_delta(study, D)
            ledger.hold(study, ATTEMPT, b"share", step(1).encode())
        ledger.charge(A, ATTEMPT + step(1).encode())
        with pytest.raises(AlreadyReleased, match="released as this step"):
            ledger.charge(B, ATTEMPT + step(1).encode())
        assert ledger.balance() == balance(9, 3, 3, 3) and ledger.released(B) is None


def test_steps_that_are_reserved_before_the_course_is_paid_cost_too_much_and_never_too_little(path):
    with opened(path, Fraction(9)) as ledger:
        for number, study in enumerate((A, B), 1):
            ledger.reserve(study, Fraction(3), name="train", course=step(number))
            ledger.reserve_delta(study, D)
            ledger.hold(study, ATTEMPT, b"share", step(number).encode())
        for number, study in enumerate((A, B), 1):
            ledger.charge(study, ATTEMPT + step(number).encode())
        assert ledger.balance() == balance(9, 6, 0, 3) and kinds(ledger)[2:] == ["course"] * 2
        take(ledger, C, step(3))
        assert ledger.balance() == balance(9, 6, 0, 3)


def test_another_course_pays_for_itself_and_is_refused_without_budget(path):
    with opened(path) as ledger:
        take(ledger, A, step(1))
        with pytest.raises(InsufficientBudget):
            ledger.reserve(B, Fraction(3), name="other", course=step(2, of=bytes(32)))


def test_a_row_of_a_step_that_was_not_paid_is_wrong(path):
    with opened(path) as ledger:
        zero = Fraction(0)
        ledger.write_row("step", A, zero, zero, attempt=ATTEMPT + step(2).encode())
    with pytest.raises(LedgerError, match="'step' cannot follow"):
        opened(path)


def test_what_is_kept_for_an_answer_is_no_course_whatever_its_bytes_are(path):
    """A rest of 28 bytes under a pad has the length of a course, and may end with step 1 of 3."""
    kept = KEPT + bytes(20) + step(1).encode()[-8:]
    assert course_in(ATTEMPT + kept) is not None
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(3), name="asks later")
        ledger.reserve_delta(A, D)
        pay(ledger, A, ATTEMPT, b"share", kept)
        assert kinds(ledger)[2:] == ["charge"]
        assert ledger.released(A).table == kept


def test_a_training_of_a_paid_name_with_other_settings_is_refused_before_it_pays_again(path):
    """Five steps for four have another id: they were charged anew, without a word."""
    with opened(path, Fraction(9)) as ledger:
        take(ledger, A, step(1))
        with pytest.raises(AlreadyReleased, match=r"'train' has paid .* with other settings"):
            ledger.reserve(B, Fraction(3), name="train", course=step(1, of=bytes(32)))
        assert ledger.balance() == balance(9, 3, 0, 6)
        ledger.reserve(B, Fraction(3), name="another", course=step(1, of=bytes(32)))
    with (
        opened(path, Fraction(9)) as ledger,
        pytest.raises(AlreadyReleased, match="Give the training a new"),
    ):
        ledger.reserve(B, Fraction(3), name="train", course=step(1, of=bytes(32)))
