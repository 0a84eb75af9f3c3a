"""umpc.node.budget.ledger_place: an older copy is detected, and accepted on purpose only."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import A, B, C, charged, copies, kinds, opened, pay, refused
from umpc.errors import LedgerError
from umpc.node.budget.ledger_place import Mark, read_anchor


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where the anchor is: a folder of its own."""
    (tmp_path / "other disk").mkdir()
    return tmp_path / "other disk" / "anchor"


# --- put back from an older copy --------------------------------------------------------------


def test_an_older_ledger(path, elsewhere):
    older, _ = copies(path, anchor=elsewhere)
    path.write_bytes(older[path])
    message = refused(path, "an older copy was put back", anchor=elsewhere)
    assert (
        "saw row 4 of the ledger, which ends at row 3" in message
        and "1 row(s) are missing" in message
    )
    assert "umpc budget anchor" in message and str(elsewhere) in message


def test_a_ledger_without_its_last_row(path):
    """One row less is enough: the charge."""
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), Fraction(0))
        with (
            closing(sqlite3.connect(path)) as live,
            closing(sqlite3.connect(f"{path}.copy")) as copy,
        ):
            live.backup(copy)
        pay(ledger, A, b"", b"")
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.replace(f"{path}.copy", path)
    refused(path, "saw row 3 of the ledger, which ends at row 2")


def test_rows_that_were_in_the_wal_only(path):
    """A killed node leaves rows in the -wal file; the removal of that file takes them back."""
    opened(path).close()
    before = path.read_bytes()
    with opened(path) as ledger:
        charged(ledger, A)
        shutil.copy(f"{path}.anchor", f"{path}.kept")
    path.write_bytes(before)
    os.replace(f"{path}.kept", f"{path}.anchor")
    refused(path, "an older copy was put back")


def test_an_older_ledger_on_which_was_built_anew(path, elsewhere):
    """The ledger has the number of rows that the anchor saw, but other rows."""
    older, newer = copies(path, anchor=elsewhere)
    path.write_bytes(older[path])
    elsewhere.write_bytes(older[elsewhere])
    with opened(path, anchor=elsewhere) as ledger:
        charged(ledger, C)
    elsewhere.write_bytes(newer[elsewhere])
    refused(path, "saw another row 4 than the ledger's", anchor=elsewhere)


def test_an_older_anchor(path, elsewhere):
    older, *_ = copies(path, (A, B, C), anchor=elsewhere)
    elsewhere.write_bytes(older[elsewhere])
    refused(
        path,
        "stands at row 3, and the ledger is at row 5, .* an older anchor was put back",
        anchor=elsewhere,
    )


def test_ledger_and_anchor_put_back_together_are_not_noticed(path):
    """The docstring excludes this case. A note of the last row's hash elsewhere shows it."""
    older, newer = copies(path)
    noted = str(read_anchor(Path(f"{path}.anchor")))
    assert noted.encode() in newer[Path(f"{path}.anchor")]
    for file, data in older.items():
        file.write_bytes(data)
    with opened(path) as ledger:
        assert ledger.balance().spent == 1 and ledger.released(B) is None
        charged(ledger, C)
        assert str(Mark(4, ledger.history()[3].hash)) != noted


def test_the_anchor_that_is_moved_under_a_running_node(path):
    with opened(path) as ledger:
        charged(ledger, A)
        older = Path(f"{path}.anchor").read_bytes()
        charged(ledger, B, C)
        Path(f"{path}.anchor").write_bytes(older)
        with pytest.raises(LedgerError, match="stands at row 3"):
            ledger.verify()
        Path(f"{path}.anchor").write_text(f"umpc anchor 1: {Mark(4, ledger.history()[3].hash)}\n")
        with pytest.raises(LedgerError, match="somebody moved it"):
            ledger.verify()


# --- accepted on purpose ----------------------------------------------------------------------


def astray(path: Path, how: str) -> None:
    older, *_ = copies(path, (A, B, C))
    match how:
        case "lost anchor":
            Path(f"{path}.anchor").unlink()
        case "older ledger":
            path.write_bytes(older[path])
        case "older anchor":
            Path(f"{path}.anchor").write_bytes(older[Path(f"{path}.anchor")])


@pytest.mark.parametrize("how", ["lost anchor", "older ledger", "older anchor"])
def test_an_administrator_may_accept_a_ledger_and_the_ledger_tells(path, how):
    astray(path, how)
    with pytest.raises(LedgerError):
        opened(path)
    with opened(path, accept=True) as ledger:
        assert (
            kinds(ledger)[-1] == "accept"
            and "an administrator accepted" in ledger.history()[-1].note
        )
        ledger.verify()
    with opened(path) as ledger:
        charged(ledger, bytes(32))
        ledger.verify()


def test_what_agrees_needs_no_accepting(path):
    copies(path)
    with opened(path, accept=True) as ledger:
        assert "accept" not in kinds(ledger)


def test_rows_that_are_wrong_cannot_be_accepted(path):
    copies(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE ledger SET note = 'x' WHERE seq = 3")
    refused(path, "row 3 is wrong", accept=True)


# --- other versions ---------------------------------------------------------------------------


def test_a_ledger_of_version_1_is_refused_with_what_it_spent(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(
            "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, at TEXT, kind TEXT, study BLOB,"
            " epsilon TEXT, attempt BLOB, share BLOB, note TEXT, hash BLOB)"
        )
        for row in (
            (1, "genesis", ""),
            (2, "charge", "1/3"),
            (3, "charge", "1/6"),
            (4, "reserve", "1/1"),
        ):
            db.execute("INSERT INTO ledger VALUES (?, '', ?, x'', ?, x'', x'', 'bank', x'')", row)
    message = refused(path, "'umpc ledger 2' was expected, and this file is of version 1")
    assert "epsilon 1/2 was spent" in message and "move it away" in message
    refused(path, "version 1", accept=True)


def test_a_ledger_of_a_later_version_is_refused(path):
    copies(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE ledger SET study = ? WHERE seq = 1", (b"umpc ledger 3",))
    assert "epsilon 2 was spent" in refused(path, "this file is of 'umpc ledger 3'")
