"""umpc.node.budget.budget_account: every change of a ledger's rows is detected.

The running node detects it, and so does the next start. Some rows are of kinds that only earlier
versions wrote, so these tests show also that their ledgers still open and verify.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import A, B, C, D, former, former_charge, opened, pay
from umpc.errors import LedgerError
from umpc.node.budget.budget_account import FIRST_HASH, VERSION, row_hash


def tampered(path: Path, *statements: str) -> str:
    """Return what `verify` and the next start say of 8 rows after the statements."""
    with opened(path) as ledger:
        for study in (A, B, C):
            former(ledger, study, Fraction(1, 2), D)
            former_charge(ledger, study)
        ledger.verify()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            for statement in statements:
                assert other.execute(statement).rowcount != 0, "the statement changed nothing"
        with pytest.raises(LedgerError) as live:
            ledger.verify()
    with pytest.raises(LedgerError) as start:
        opened(path)
    assert start.value.message == live.value.message
    return start.value.message


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("at", "'2020-01-01'"),
        ("kind", "'cancel'"),
        ("study", "x'00'"),
        ("epsilon", "'1/3'"),
        ("epsilon", "'2/4'"),
        ("epsilon", "x'312f32'"),
        ("delta", "'0/1'"),
        ("delta", "''"),
        ("attempt", "x''"),
        ("share", "x'00'"),
        ("share", "'share'"),
        ("note", "'x'"),
        ("hash", "x'00'"),
        ("hash", "'text'"),
        ("seq", "60"),
    ],
)
def test_an_edited_cell(path, column, value):
    assert "row 6 is wrong" in tampered(path, f"UPDATE ledger SET {column} = {value} WHERE seq = 6")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (1, "row 1 is wrong: row 2 stands in its place"),
        (5, "row 5 is wrong: row 6 stands in its place"),
        (8, "agree with row 7, the last one; row 8 is missing"),
    ],
)
def test_a_deleted_row(path, row, fault):
    assert fault in tampered(path, f"DELETE FROM ledger WHERE seq = {row}")


def test_an_edited_row_that_is_hashed_anew_breaks_the_next(path):
    with opened(path) as ledger:
        former(ledger, A, Fraction(1), D)
        ledger.write_row("cancel", A, Fraction(1), D)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            before, row = other.execute("SELECT * FROM ledger WHERE seq IN (2, 3) ORDER BY seq")
            digest = row_hash(Path(f"{path}.key").read_bytes(), before[-1], (*row[:8], "edited"))
            other.execute("UPDATE ledger SET note = 'edited', hash = ? WHERE seq = 3", (digest,))
        with pytest.raises(
            LedgerError, match="row 4 is wrong: its content does not agree with its hash"
        ):
            ledger.verify()


def test_a_deleted_row_whose_gap_is_closed(path):
    message = tampered(
        path,
        "DELETE FROM ledger WHERE seq = 5",
        "UPDATE ledger SET seq = -seq WHERE seq > 5",
        "UPDATE ledger SET seq = -seq - 1 WHERE seq < 0",
    )
    assert "row 5 is wrong: its content does not agree with its hash" in message


def test_exchanged_rows(path):
    message = tampered(
        path,
        "UPDATE ledger SET seq = -4 WHERE seq = 4",
        "UPDATE ledger SET seq = 4 WHERE seq = 6",
        "UPDATE ledger SET seq = 6 WHERE seq = -4",
    )
    assert "row 4 is wrong" in message


def test_an_inserted_row(path):
    copied = (
        "INSERT INTO ledger SELECT 9, at, kind, study, epsilon, delta, attempt, share, note, hash"
        " FROM ledger"
    )
    assert "row 9 is wrong" in tampered(path, f"{copied} WHERE seq = 8")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM head",
        "UPDATE head SET seq = 7",
        "UPDATE head SET hash = x'00'",
        "DELETE FROM ledger",
    ],
)
def test_the_head(path, statement):
    assert "head" in tampered(path, statement)


def test_a_dropped_table(path):
    assert "ledger was expected" in tampered(path, "DROP TABLE ledger")


def test_a_row_from_elsewhere_stops_the_next_write(path):
    with opened(path) as ledger:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("UPDATE head SET seq = 1")
        ledger.reserve(A, Fraction(1), D)
        with pytest.raises(LedgerError, match="another process wrote"):
            pay(ledger, A, b"", b"")


@pytest.mark.parametrize(
    ("kind", "study"),
    [
        ("charge", A),
        ("cancel", A),
        ("reserve", A),
        ("delta", A),
        ("release", B),
        ("genesis", VERSION),
        ("accept", A),
        ("refund", A),
    ],
)
def test_rows_with_right_hashes_still_have_to_make_sense(path, kind, study):
    """Who has the key can rewrite history, but not into an impossible one."""
    with opened(path) as ledger:
        former(ledger, A, Fraction(1), D)
        former_charge(ledger, A)
        ledger.write_row(kind, study, Fraction(1), D)
        with pytest.raises(LedgerError, match=f"row 5 is wrong: '{kind}' cannot follow"):
            ledger.verify()


@pytest.mark.parametrize(
    ("kind", "epsilon", "delta"),
    [
        ("charge", Fraction(2), D),
        ("charge", Fraction(1), 2 * D),
        ("cancel", Fraction(1), None),
        ("delta", None, None),
    ],
)
def test_a_row_with_other_amounts_than_were_reserved(path, kind, epsilon, delta):
    with opened(path) as ledger:
        former(ledger, A, Fraction(1), D)
        ledger.write_row(kind, A, epsilon, delta)
        with pytest.raises(LedgerError, match=f"row 4 is wrong: '{kind}' cannot follow"):
            ledger.verify()


def test_a_history_rewritten_whole_without_the_key(path):
    """All hashes and the head are computed anew without the charge: the first row shows it."""
    with opened(path) as ledger:
        former(ledger, A, Fraction(1), D)
        former_charge(ledger, A)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        rows, last = (
            other.execute("SELECT * FROM ledger WHERE kind != 'charge' ORDER BY seq").fetchall(),
            FIRST_HASH,
        )
        other.execute("DELETE FROM ledger")
        for row in rows:
            last = row_hash(b"a guess", last, row[:-1])
            other.execute(
                f"INSERT INTO ledger VALUES ({', '.join('?' * len(row))})", (*row[:-1], last)
            )
        other.execute("UPDATE head SET seq = ?, hash = ?", (len(rows), last))
    with pytest.raises(
        LedgerError, match="row 1 is wrong: its content does not agree with its hash"
    ):
        opened(path)
