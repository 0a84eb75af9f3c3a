"""The files of the first release with a protocol's version, opened by the code of today.

`tests/support/release_0_2_0` has the files of two nodes that commit 8528f06 wrote: it ran the study
`first`, which node-2's administrator accepted, and proposed `second`, which they rejected.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.old_release import FOLDER, copy_release
from umpc.errors import LedgerError
from umpc.node.approvals import ACCEPTED, REJECTED, Approvals
from umpc.node.audit.reading import compare, verify
from umpc.node.audit.trail import AuditTrail
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside

NODES = ("node-1", "node-2")


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}


@pytest.mark.parametrize("name", NODES)
def test_a_former_ledger_gets_new_tables_after_a_copy_and_loses_nothing(tmp_path, name):
    path = copy_release(tmp_path, name)
    copy = Path(f"{path}.former-3")
    assert "store" not in tables(path)
    for _ in range(2):
        with Ledger(path, name, Fraction(10), Fraction(1, 10**9)) as ledger:
            assert ledger.balance().spent == 1
            (charged,) = [row for row in ledger.history() if row.kind == "charge"]
            assert charged.note == "first" and ledger.released(charged.study).share
    assert "store" in tables(path) and "store" not in tables(copy)
    assert not Path(f"{path}.fieldsets").exists(), "it is in the Store"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.glob("*former*")] == [copy.name], "one copy, no draft"

    # The audit trail of then goes with the ledger of now.
    trail = AuditTrail(path)
    verified = verify(trail.path, trail.key())
    compare(trail.path, verified, frozenset(read_beside(Place.of(path)).account.charged))

    # Whoever puts the copy back after another charge is found out by the anchor.
    with Ledger(path, name, Fraction(10), Fraction(1, 10**9)) as ledger:
        ledger.reserve(b"s" * 32, Fraction(1), Fraction(0), name="later")
        ledger.hold(b"s" * 32, b"attempt", b"share")
        ledger.charge(b"s" * 32, b"attempt")
    shutil.copy(copy, path)
    with pytest.raises(LedgerError, match="anchor"):
        Ledger(path, name, Fraction(10), Fraction(1, 10**9))


def test_the_copy_has_no_share_that_has_not_left(tmp_path):
    path = copy_release(tmp_path, "node-1")
    with closing(sqlite3.connect(path)) as db:
        values = (b"h" * 32, "held", "1/1", "0/1", b"attempt", b"this share has not left", 0, b"")
        db.execute("INSERT INTO held VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        db.commit()
    with Ledger(path, "node-1", Fraction(10), Fraction(1, 10**9)):
        pass
    assert b"this share has not left" not in Path(f"{path}.former-3").read_bytes()


def test_a_new_ledger_is_not_copied(tmp_path):
    for _ in range(2):
        with Ledger(tmp_path / "ledger.sqlite", "data", Fraction(10)):
            pass
    assert list(tmp_path.glob("*former*")) == []


def test_former_decisions_hold():
    found = {
        each.name: each
        for each in Approvals(FOLDER / f"{NODES[1]}-ledger.sqlite.approvals").entries()
    }
    assert {name: each.state for name, each in found.items()} == {
        "first": ACCEPTED,
        "second": REJECTED,
    }
    assert found["second"].reason == "not agreed"
