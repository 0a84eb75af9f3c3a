"""The ledger with a composition closer than basic: more studies, never below the truth."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from contextlib import closing
from fractions import Fraction

import pytest

from tests.support.ledgers import A, B, C, D, balance, kinds, opened, pay
from umpc.dp.composition import ADVANCED, ZCDP, Composition, concentrated_epsilon, rho_of_pure
from umpc.dp.events import ConcentratedEvent, PureEvent
from umpc.errors import InsufficientBudget
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

DELTA = Fraction(1, 1000)
CLOSER = Composition(ZCDP, DELTA)
SMALL = Fraction(1, 20)
MANY = [bytes([i]) * 32 for i in range(1, 60)]
GAUSSIAN = (ConcentratedEvent(Fraction(1, 60)),)


def spend(ledger, studies, epsilon=SMALL, delta=Fraction(0), events=()) -> int:
    """Reserve and charge studies until the ledger refuses. Return their number."""
    for number, study in enumerate(studies):
        try:
            ledger.reserve(study, epsilon, events=events)
        except InsufficientBudget:
            return number
        ledger.reserve_delta(study, delta, events)
        pay(ledger, study, bytes(32), b"share")
    return len(studies)


def test_more_studies_fit_and_the_refusal_comes_at_the_composed_epsilon(path):
    with opened(path, Fraction(1), composition=CLOSER) as ledger:
        paid = spend(ledger, MANY)
        rho = rho_of_pure(SMALL)
        assert 20 < paid < len(MANY)
        assert concentrated_epsilon(paid * rho, DELTA) <= 1
        assert concentrated_epsilon((paid + 1) * rho, DELTA) > 1
        sums = ledger.balance()
        assert sums.spent == concentrated_epsilon(paid * rho, DELTA)
        assert sums.spent + sums.left == sums.total == 1
        with pytest.raises(InsufficientBudget) as caught:
            ledger.reserve(C, SMALL)
        assert "all composed by zcdp at delta 1/1000" in caught.value.detail
        assert "zcdp" not in caught.value.message
    with opened(path, Fraction(1), composition=CLOSER) as ledger:
        assert ledger.balance() == sums and kinds(ledger).count("total") == 1
    with opened(path, Fraction(1)) as ledger:  # back to basic: all of it counts in full
        assert ledger.balance() == balance(1, paid * SMALL, 0, 0)
        assert [row.note for row in ledger.history() if row.kind == "total"] == [
            "the configured total, composed by zcdp at delta 1/1000",
            "the configured total",
        ]


def test_few_studies_never_cost_more_than_their_sum(path):
    for name in (ADVANCED, ZCDP):
        place = path.with_name(f"{name}.sqlite")
        with opened(place, composition=Composition(name, DELTA)) as ledger:
            assert spend(ledger, MANY[:9], Fraction(1, 2), D) == 9
            assert ledger.balance().spent == Fraction(9, 2) and ledger.delta().spent == 9 * D
            ledger.reserve(A, Fraction(1, 4))
            assert ledger.balance() == balance(5, "9/2", "1/4", "1/4")
            with pytest.raises(InsufficientBudget):
                ledger.reserve(B, Fraction(2))


def test_the_mechanism_is_kept_over_restarts_and_copies(path):
    with opened(path, composition=CLOSER) as ledger:
        ledger.reserve(A, Fraction(1), events=GAUSSIAN)
        ledger.reserve_delta(A, DELTA / 2000, GAUSSIAN)
        held = ledger.hold(A, bytes(32), b"share")
    with opened(path, composition=CLOSER) as ledger:
        assert ledger.balance().reserved == concentrated_epsilon(Fraction(1, 60), DELTA)
        ledger.charge(A, held.attempt)
        spent = ledger.balance().spent
        assert spent == concentrated_epsilon(Fraction(1, 60), DELTA)
        assert ledger.delta().spent == 0
        ledger.verify()
    with opened(path, composition=CLOSER) as ledger:
        assert ledger.balance().spent == spent
    beside = read_beside(Place.of(path), composition=CLOSER).account
    assert beside.epsilon().spent == spent
    assert 0 < beside.largest_epsilon() < beside.epsilon().total
    basic = read_beside(Place.of(path)).account
    assert basic.epsilon().spent == 1 and basic.delta().spent == DELTA / 2000


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM store",
        "UPDATE store SET value = CAST('zcdp 1/6000' AS BLOB)",
        "UPDATE store SET attempt = x'01'",
        "UPDATE store SET seal = 'x'",
        "DROP TABLE store",
    ],
)
def test_a_mechanism_changed_on_disk_only_makes_its_study_count_in_full(path, statement):
    tiny = (ConcentratedEvent(Fraction(1, 10**6)),)
    with opened(path, composition=CLOSER) as ledger:
        assert spend(ledger, [A], Fraction(1), D, tiny) == 1
        less = ledger.balance().spent
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement)
    with opened(path, composition=CLOSER) as ledger:
        ledger.verify()
        assert ledger.balance().spent == 1 > less and ledger.delta().spent == D


def test_a_dropped_attempt_takes_its_mechanism_along(path):
    event = ConcentratedEvent(Fraction(1, 61))
    in_memory = weakref.ref(event)
    with opened(path, composition=CLOSER) as ledger:
        ledger.reserve(A, Fraction(1), D, events=(event,))
        del event
        ledger.hold(A, bytes(32), b"share")
        ledger.drop(A)
        assert ledger.ask("SELECT COUNT(*) FROM store").fetchone() == (0,)
        gc.collect()
        assert in_memory() is None
        ledger.reserve(A, Fraction(1), D)
        pay(ledger, A, b"\x01" * 32, b"share")
        assert ledger.balance().spent == 1


def test_by_default_nothing_changes_for_a_ledger(path):
    """The rows of a site with basic composition are those of earlier versions."""
    plain = path.with_name("plain.sqlite")
    rows = []
    for place, events in ((path, (PureEvent(Fraction(1, 3)),)), (plain, ())):
        with opened(place, clock=lambda: "2026-01-01") as ledger:
            ledger.reserve(A, Fraction(1, 3), events=events)
            ledger.reserve_delta(A, D, events)
            assert ledger.balance() == balance(5, 0, "1/3", "14/3")
            pay(ledger, A, bytes(32), b"share")
            assert ledger.balance() == balance(5, "1/3", 0, "14/3")
            rows.append(ledger.ask("SELECT seq, at, kind, epsilon, note FROM ledger").fetchall())
    assert rows[0] == rows[1]
    with closing(sqlite3.connect(plain, isolation_level=None)) as other:
        other.execute("DROP TABLE store")  # as an earlier version leaves it
    with opened(plain) as ledger:
        ledger.verify()
        assert ledger.balance() == balance(5, "1/3", 0, "14/3")
