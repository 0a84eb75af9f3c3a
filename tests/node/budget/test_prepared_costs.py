"""umpc/node/budget/prepared_costs.py: the site's commands see what prepared studies reserve."""

from __future__ import annotations

import stat
from fractions import Fraction

import pytest

from tests.support.ledgers import A, B, opened, pay
from umpc.dp.events import LaplaceEvent
from umpc.node.budget.budget_account import BudgetCost
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledger_reading import read_beside
from umpc.node.budget.prepared_costs import (
    PreparedCost,
    prepared_beside,
    reserve_prepared,
    write_prepared,
)

COST = BudgetCost(Fraction(1, 3), Fraction(1, 10**12), (LaplaceEvent(Fraction(10), 1),))


def waiting(study: bytes, until: float = 100, cost: BudgetCost = COST) -> PreparedCost:
    return PreparedCost(study, "tau [1]", cost, until)


def test_a_line_is_read_back():
    for cost in (COST, BudgetCost(Fraction(2), None)):
        line = waiting(A, cost=cost).encode()
        found = PreparedCost.decode(line)
        assert found == waiting(A, cost=cost) and found.cost.events == cost.events


def test_they_are_reserved_until_their_time_is_up(path):
    with opened(path):
        pass
    write_prepared(prepared_beside(path), [waiting(A), waiting(B, 50)])
    assert stat.S_IMODE(prepared_beside(path).stat().st_mode) == 0o600
    for now, reserved in ((0, Fraction(2, 3)), (50, Fraction(1, 3)), (100, 0)):
        account = read_beside(Place.of(path)).account
        assert len(reserve_prepared(account, path, now)) == 3 * reserved
        assert account.epsilon().reserved == reserved
    write_prepared(prepared_beside(path), [])
    assert not prepared_beside(path).exists()
    assert reserve_prepared(account, path, 0) == []


def test_a_study_that_was_charged_or_is_held_counts_once(path):
    write_prepared(prepared_beside(path), [waiting(A), waiting(B)])
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1, 3), Fraction(0))
        pay(ledger, A, b"attempt", b"share")
        ledger.reserve(B, Fraction(1, 3), Fraction(0))
        ledger.hold(B, b"attempt", b"share")
        account = read_beside(Place.of(path)).account
    assert reserve_prepared(account, path, 0) == []
    assert account.epsilon().reserved == Fraction(1, 3)


LINE = waiting(A).encode()
EPSILON = f'"epsilon": "{waiting(A).cost.epsilon}"'


@pytest.mark.parametrize(
    "text",
    [
        *("{", "{}\n", "[]\n", '"x"\n', "\xff", LINE[:-9]),
        LINE.replace(EPSILON, '"epsilon": "1/0"'),
        LINE.replace(EPSILON, '"epsilon": "-1"'),
        LINE.replace(f'"until": {waiting(A).until}', '"until": Infinity'),
    ],
)
def test_another_text_counts_nothing(path, text):
    with opened(path):
        pass
    prepared_beside(path).write_text(text, encoding="latin-1")
    assert reserve_prepared(read_beside(Place.of(path)).account, path, 0) == []


def test_a_disk_that_refuses_is_only_logged(path, caplog):
    write_prepared(path.parent / "none" / "x", [waiting(A)])
    assert "commands do not show prepared studies" in caplog.text
