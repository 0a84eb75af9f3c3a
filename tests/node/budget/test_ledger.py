"""umpc.node.budget.ledger: the spent epsilon is never below the truth."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.ledgers import A, B, C, D, balance, charged, kinds, opened, pay
from umpc.errors import (
    AlreadyReleased,
    AlreadyRunning,
    InsufficientBudget,
    InvalidEpsilon,
    LedgerError,
)
from umpc.node.budget.budget_account import DELTA_BITS, exact_delta
from umpc.node.budget.ledger_store import StoredRelease

# --- one study --------------------------------------------------------------------------------


def test_reserve_charge_release(path):
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 0, 0, 5)
        ledger.reserve(A, Fraction(1, 3), D)
        assert ledger.balance() == balance(5, 0, "1/3", "14/3") and ledger.released(A) is None
        pay(ledger, A, b"attempt", b"noisy share")
        assert ledger.balance() == balance(5, "1/3", 0, "14/3")
        assert (
            ledger.released(A) == StoredRelease(b"attempt", b"noisy share")
            and ledger.released(B) is None
        )
        assert kinds(ledger) == ["genesis", "total", "charge"]
        assert [row.seq for row in ledger.history()] == [1, 2, 3]
        assert [row.epsilon for row in ledger.history()][1:] == [Fraction(5), Fraction(1, 3)]


def test_the_stored_release_survives_the_process(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), D)
        pay(ledger, A, b"attempt", bytes(range(256)))
    with opened(path) as ledger:
        assert ledger.released(A) == StoredRelease(b"attempt", bytes(range(256)))
        assert ledger.balance() == balance(5, 1, 0, 4)


def test_cancel_returns_a_reservation_and_nothing_else(path):
    with opened(path) as ledger:
        ledger.cancel(A)
        ledger.reserve(A, Fraction(2), D)
        ledger.cancel(A)
        ledger.cancel(A)
        assert ledger.balance() == balance(5, 0, 0, 5)
        ledger.reserve(A, Fraction(3), D)
        pay(ledger, A, b"", b"")
        ledger.cancel(A)
        assert ledger.balance() == balance(5, 3, 0, 2)
        assert kinds(ledger) == ["genesis", "total", "charge"]


def test_steps_out_of_order_are_refused_and_change_nothing(path):
    with opened(path) as ledger:
        for step in (lambda: pay(ledger, A, b"", b""), lambda: ledger.charge(A, b"")):
            with pytest.raises(
                LedgerError, match=r"'bank', study a1a1a1a1a1a1a1a1: .* expected before"
            ):
                step()
        ledger.reserve(A, Fraction(1), D)
        with pytest.raises(AlreadyRunning, match="Wait for its end"):
            ledger.reserve(A, Fraction(1), D)
        pay(ledger, A, b"1", b"one")
        with pytest.raises(LedgerError, match="expected before a share is held"):
            pay(ledger, A, b"2", b"two")
        with pytest.raises(AlreadyReleased, match="another one was charged"):
            ledger.charge(A, b"2")
        assert ledger.charge(A, b"1") == StoredRelease(b"1", b"one")
        with pytest.raises(AlreadyReleased, match="stored release"):
            ledger.reserve(A, Fraction(1), D)
        assert ledger.released(A) == StoredRelease(b"1", b"one") and ledger.balance() == balance(
            5, 1, 0, 4
        )
        ledger.verify()


def test_insufficient_budget_says_its_numbers(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(3), D)
        pay(ledger, A, b"", b"")
        ledger.reserve(B, Fraction(1, 2), D)
        with pytest.raises(InsufficientBudget) as caught:
            ledger.reserve(C, Fraction(7, 4), D)
        error = caught.value
        assert (error.asked, error.left) == (Fraction(7, 4), Fraction(3, 2))
        assert (error.spent, error.reserved) == (Fraction(3), Fraction(1, 2))
        assert error.message == (
            "the study asks for epsilon 7/4, and the site's budget has less left. Ask for less, "
            "wait until open studies end, or have the site's administrator raise epsilon under "
            "[budget]"
        )
        assert error.detail == (
            "data set 'bank': the study asks for epsilon 7/4, and 3/2 is left of 5 (spent 3, "
            "reserved 1/2)"
        )
        assert ledger.balance() == balance(5, 3, "1/2", "3/2")
        ledger.reserve(C, Fraction(3, 2), D)
        assert ledger.balance().left == 0


def test_sums_are_exact(path):
    with opened(path, Fraction(1)) as ledger:
        for i in range(10):
            ledger.reserve(bytes([i]), Fraction(1, 10), D)
        assert ledger.balance().left == 0
        with pytest.raises(InsufficientBudget, match="asks for epsilon about 1e-12"):
            ledger.reserve(A, Fraction(1, 10**12), D)


@pytest.mark.parametrize(
    "epsilon", [Fraction(0), Fraction(-1), 0.1, 1, Fraction(1, 1 << 128), Fraction(10) ** 5000]
)
def test_epsilon_is_an_exact_positive_fraction(path, epsilon):
    with opened(path) as ledger, pytest.raises(InvalidEpsilon, match="was expected"):
        ledger.reserve(A, epsilon, D)
    with pytest.raises(InvalidEpsilon):
        opened(path.with_name("other"), epsilon)


def test_shares_do_not_appear_in_a_repr(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), D)
        pay(ledger, A, b"", b"noisy share")
        shown = repr(ledger.released(A)) + repr(ledger.history()) + repr(ledger)
        assert "noisy" not in shown and ledger.history()[2].share == b"noisy share"


def test_the_history_keeps_the_study_s_name(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), D, name="kendall-2026")
        pay(ledger, A, b"", b"")
        assert ledger.history()[-1].note == "kendall-2026"


# --- delta ------------------------------------------------------------------------------------


def test_delta_is_reserved_once_it_is_known_and_charged_with_epsilon(path):
    with opened(path, delta=Fraction(1, 10)) as ledger:
        ledger.reserve(A, Fraction(1))
        assert ledger.delta() == balance("1/10", 0, 0, "1/10")
        ledger.reserve_delta(A, Fraction(1, 30))
        assert (
            ledger.delta() == balance("1/10", 0, "1/30", "1/15") and ledger.balance().reserved == 1
        )
        pay(ledger, A, b"attempt", b"share")
        assert ledger.delta() == balance("1/10", "1/30", 0, "1/15") and ledger.balance().spent == 1
        assert kinds(ledger) == ["genesis", "total", "charge"]
        assert ledger.history()[2].delta == Fraction(1, 30)
    with opened(path, delta=Fraction(1, 10)) as ledger:
        assert ledger.delta() == balance("1/10", "1/30", 0, "1/15")


def test_nothing_is_charged_whose_delta_was_not_said(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1))
        with pytest.raises(LedgerError, match="there is none of delta"):
            pay(ledger, A, b"", b"")
        ledger.reserve_delta(A, Fraction(0))
        pay(ledger, A, b"", b"")
        assert ledger.delta().spent == 0


def test_delta_is_said_once_and_for_an_open_reservation(path):
    with opened(path) as ledger:
        with pytest.raises(LedgerError, match="there is none"):
            ledger.reserve_delta(A, D)
        ledger.reserve(A, Fraction(1), D)
        with pytest.raises(LedgerError, match="it has one"):
            ledger.reserve_delta(A, D)
        pay(ledger, A, b"", b"")
        with pytest.raises(LedgerError, match="there is none"):
            ledger.reserve_delta(A, D)


def test_a_cancelled_reservation_returns_delta_too(path):
    with opened(path, delta=D) as ledger:
        for _ in range(3):
            ledger.reserve(A, Fraction(1))
            ledger.reserve_delta(A, D)
            ledger.cancel(A)
        assert ledger.delta() == balance(D, 0, 0, D)


@pytest.mark.parametrize("later", [False, True])
def test_insufficient_delta_says_its_numbers_and_keeps_nothing(path, later):
    with opened(path, delta=Fraction(1, 100)) as ledger:
        ledger.reserve(A, Fraction(1), Fraction(1, 200))
        pay(ledger, A, b"", b"")
        ledger.reserve(B, Fraction(1), Fraction(1, 400))
        with pytest.raises(InsufficientBudget) as caught:
            if later:
                ledger.reserve(C, Fraction(1))
                ledger.reserve_delta(C, Fraction(1, 399))
            else:
                ledger.reserve(C, Fraction(1), Fraction(1, 399))
        ledger.cancel(C)
        error = caught.value
        assert (error.asked, error.left, error.spent) == (
            Fraction(1, 399),
            Fraction(1, 400),
            Fraction(1, 200),
        )
        assert (
            "asks for delta 1/399, and 1/400 is left of 1/100 (spent 1/200, reserved 1/400)"
            in error.detail
        )
        assert "1/400" not in error.message and "1/200" not in error.message
        assert (
            "raise delta under [budget]" in error.message
            and 'noise = "distributed"' in error.message
        )
        assert (
            ledger.delta() == balance("1/100", "1/200", "1/400", "1/400")
            and ledger.balance().reserved == 1
        )
        ledger.reserve(C, Fraction(1), Fraction(1, 400))


def test_without_a_budget_of_delta_studies_of_delta_0_run(path):
    with opened(path, delta=Fraction(0)) as ledger:
        ledger.reserve(A, Fraction(1), Fraction(0))
        pay(ledger, A, b"", b"")
        with pytest.raises(InsufficientBudget, match="delta about 1e-12, and the site's") as no:
            ledger.reserve(B, Fraction(1), D)
        assert "and 0 is left of 0" in no.value.detail


def test_a_total_of_delta_that_was_lowered(path):
    with opened(path, delta=Fraction(1, 10)) as ledger:
        ledger.reserve(A, Fraction(1), Fraction(1, 10))
        pay(ledger, A, b"", b"")
    with opened(path, delta=Fraction(1, 20)) as ledger:
        assert ledger.delta() == balance("1/20", "1/10", 0, 0) and kinds(ledger)[-1] == "total"
        with pytest.raises(InsufficientBudget):
            ledger.reserve(B, Fraction(1), D)
        charged_before = ledger.balance().spent
        ledger.reserve(B, Fraction(1), Fraction(0))
        assert ledger.balance().spent == charged_before


@pytest.mark.parametrize("delta", [Fraction(-1), 0.1, 0, Fraction(1, 1 << 128)])
def test_delta_is_an_exact_fraction(path, delta):
    with opened(path) as ledger:
        with pytest.raises(LedgerError, match="delta was expected"):
            ledger.reserve(A, Fraction(1), delta)
        ledger.reserve(A, Fraction(1))
        with pytest.raises(LedgerError, match="delta was expected"):
            ledger.reserve_delta(A, delta)
        charged(ledger, B)
    with pytest.raises(LedgerError, match="delta was expected"):
        opened(path.with_name("other"), delta=delta)


@pytest.mark.parametrize("delta", [5e-324, 1e-40, 1.234e-12, Fraction(1, 3**100)])
def test_a_delta_that_is_too_long_is_rounded_up(delta):
    delta = Fraction(delta)
    exact = exact_delta(delta)
    assert delta <= exact <= delta + Fraction(1, 2**DELTA_BITS)
    assert exact.denominator.bit_length() <= 128


@pytest.mark.parametrize(
    "delta", [Fraction(0), Fraction(1, 10**9), Fraction(1, 2**64), Fraction(1)]
)
def test_a_delta_that_is_short_is_itself(delta):
    assert exact_delta(delta) == delta


@pytest.mark.parametrize("delta", [Fraction(-1, 10**30), Fraction(3, 2), 2])
def test_a_delta_that_is_no_probability(delta):
    with pytest.raises(LedgerError, match="between 0 and 1"):
        exact_delta(delta)
