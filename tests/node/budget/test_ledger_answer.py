"""umpc.node.budget.ledger: one answer follows a charge, at no cost, kept with its question."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from tests.support.ledgers import TOTAL, A, B, D, balance, charged, kinds, opened, pay
from umpc.errors import AlreadyReleased, LedgerError
from umpc.node.budget.budget_account import VERSION, Account
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledger_store import StoredAnswer
from umpc.node.budget.ledgerfile import read_beside

ASKED, OTHER = b"q" * 32, b"r" * 32


def test_an_answer_is_kept_with_its_question_and_costs_nothing(path):
    with opened(path) as ledger:
        charged(ledger, A, B)
        assert ledger.answered(A) is None
        before = ledger.balance(), ledger.delta()
        ledger.answer(A, b"attempt", ASKED, b"told")
        assert ledger.answered(A) == StoredAnswer(ASKED, b"told") and ledger.answered(B) is None
        assert (ledger.balance(), ledger.delta()) == before and ledger.balance() == balance(
            5, 2, 0, 3
        )
        assert ledger.released(A).share == b"share"
        ledger.verify()
    with opened(path) as ledger:
        assert ledger.answered(A) == StoredAnswer(ASKED, b"told") and ledger.balance() == before[0]
        assert kinds(ledger)[-1] == "answer"
    assert read_beside(Place.of(path)).account.answered.keys() == {A}


@pytest.mark.parametrize("question", [ASKED, OTHER], ids=["the same", "another"])
@pytest.mark.parametrize("restarted", [False, True])
def test_there_is_never_a_second_answer(path, question, restarted):
    ledger = opened(path)
    charged(ledger, A)
    ledger.answer(A, b"attempt", ASKED, b"told")
    if restarted:
        ledger.close()
        ledger = opened(path)
    with ledger:
        rows = len(ledger.history())
        with pytest.raises(
            AlreadyReleased, match="one question was expected, and it was answered before"
        ):
            ledger.answer(A, b"attempt", question, b"told again")
        assert ledger.answered(A) == StoredAnswer(ASKED, b"told") and len(ledger.history()) == rows


def test_an_answer_without_a_charge_or_a_digest_is_refused(path):
    with opened(path) as ledger:
        with pytest.raises(LedgerError, match="a charge was expected before an answer"):
            ledger.answer(A, b"", ASKED, b"")
        ledger.reserve(A, TOTAL, D)
        with pytest.raises(LedgerError, match="a charge was expected before an answer"):
            ledger.answer(A, b"", ASKED, b"")
        pay(ledger, A, b"", b"")
        with pytest.raises(LedgerError, match="a digest of 32 bytes"):
            ledger.answer(A, b"", b"short", b"")
        assert ledger.answered(A) is None
        ledger.answer(A, b"", ASKED, b"")
        assert ledger.answered(A) == StoredAnswer(ASKED, b"")


def test_rows_that_answer_twice_or_what_was_not_charged_cannot_stand(path):
    """However they came into the file: the account that reads it back refuses them too."""
    with opened(path) as ledger:
        charged(ledger, A)
        ledger.reserve(B, TOTAL / 5, D)
        ledger.answer(A, b"attempt", ASKED, b"told")
        *before, answer = ledger.history()
    account = Account()
    assert [account.apply(row) for row in (*before, answer)] == [""] * (len(before) + 1)
    for row in (answer, replace(answer, study=B), replace(answer, study=b"never seen")):
        assert account.apply(row) == "'answer' cannot follow the rows before it"


def test_an_edited_answer_is_noticed(path):
    with opened(path) as ledger:
        charged(ledger, A)
        ledger.answer(A, b"attempt", ASKED, b"told")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE ledger SET share = ? WHERE kind = 'answer'", (OTHER + b"told",))
        with pytest.raises(
            LedgerError, match="row 4 is wrong: its content does not agree with its hash"
        ):
            ledger.verify()


def test_a_ledger_of_before_there_were_answers_is_one_without_any(path):
    """The version is the same: nothing but a new kind of row, which only studies that ask write."""
    assert VERSION == b"umpc ledger 2"
    with opened(path) as ledger:
        charged(ledger, A)
        assert set(kinds(ledger)) == {"genesis", "total", "charge"}
    with opened(path) as ledger:
        assert ledger.answered(A) is None and ledger.balance() == balance(5, 1, 0, 4)


def test_an_answer_does_not_appear_in_a_repr(path):
    with opened(path) as ledger:
        charged(ledger, A)
        ledger.answer(A, b"", ASKED, b"noisy answer")
        assert "noisy" not in repr(ledger.answered(A)) + repr(ledger.history())
