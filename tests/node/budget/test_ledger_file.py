"""umpc.node.budget.ledgerfile: one owner, whole files, and processes that die."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import TOTAL, A, B, D, balance, kinds, opened, pay
from umpc.errors import InsufficientBudget, LedgerError
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_store import StoredRelease

# --- the file ---------------------------------------------------------------------------------


def test_a_commit_is_visible_to_others_when_the_call_returns(path):
    with opened(path) as ledger, closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ledger.ask("PRAGMA synchronous").fetchone() == (2,)
        assert ledger.ask("PRAGMA cache_size").fetchone() == (-256,), "in KiB; usually 2,000"
        ledger.reserve(A, Fraction(1), D)
        pay(ledger, A, b"attempt", b"share")
        found = other.execute(
            "SELECT kind, epsilon, share FROM ledger ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        assert found == ("charge", "1/1", b"share")


def test_only_its_owner_may_read_the_file(path):
    with opened(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_changed_total_is_a_row(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(4), D)
        pay(ledger, A, b"", b"")
    with opened(path, Fraction(15, 2)) as ledger:
        assert ledger.balance() == balance("15/2", 4, 0, "7/2")
    with opened(path, Fraction(3)) as ledger:  # lowered below what is spent
        assert ledger.balance() == balance(3, 4, 0, 0)
        assert kinds(ledger) == ["genesis", "total", "charge", "total", "total"]
        with pytest.raises(InsufficientBudget) as caught:
            ledger.reserve(B, Fraction(1, 100), D)
        assert "and 0 is left of 3" in caught.value.detail
    with opened(path, Fraction(3)) as ledger:
        assert len(ledger.history()) == 5


def test_another_data_set_is_refused(path):
    opened(path).close()
    with pytest.raises(LedgerError, match="'loans' was expected, and the file is that of 'bank'"):
        Ledger(path, "loans", TOTAL)
    opened(path).close()


def test_two_openers(path):
    with opened(path):
        with pytest.raises(LedgerError, match="another one holds") as caught:
            opened(path)
        assert str(path) in caught.value.message
        link = path.with_name("link")
        link.symlink_to(path)
        with pytest.raises(LedgerError, match="another one holds"):
            opened(link)
    opened(path).close()


def test_a_closed_ledger_refuses(path):
    ledger = opened(path)
    ledger.close()
    ledger.close()
    for call in (
        ledger.balance,
        ledger.history,
        ledger.verify,
        lambda: ledger.reserve(A, TOTAL, D),
        lambda: ledger.released(A),
        lambda: ledger.held(A),
        lambda: ledger.drop(A),
    ):
        with pytest.raises(LedgerError, match="it was closed"):
            call()


def test_no_folder(tmp_path):
    with pytest.raises(LedgerError, match="folder"):
        opened(tmp_path / "absent" / "ledger.sqlite")


@pytest.mark.parametrize(
    "content", [b"", b"not a database, but long enough to be read as one" * 100]
)
def test_a_file_that_is_no_ledger(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="readable and writable ledger was expected"):
        opened(path)
    assert path.read_bytes() == content


def test_a_lost_file_beside_its_wal_is_not_replaced(path):
    Path(f"{path}-wal").write_bytes(b"rows")
    with pytest.raises(LedgerError, match="beside its -wal file, and it is gone"):
        opened(path)
    Path(f"{path}-wal").write_bytes(b"")
    opened(path).close()


def test_a_draft_left_by_a_crash_is_replaced(path):
    Path(f"{path}.new").write_bytes(b"half")
    Path(f"{path}.new-journal").write_bytes(b"half")
    with opened(path) as ledger:
        assert kinds(ledger) == ["genesis", "total"]


def test_after_a_failed_write_the_disk_alone_counts(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), D)
        ledger.ask(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger "
            "BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
        with pytest.raises(LedgerError, match="the system refused") as caught:
            pay(ledger, A, b"", b"share")
        assert "full" in caught.value.detail and "full" not in caught.value.message
        assert ledger.released(A) is None and kinds(ledger) == ["genesis", "total"]
        assert ledger.held(A).share == b"share" and ledger.balance() == balance(5, 0, 1, 4)
        ledger.charge(A, b"")  # the trigger went with the connection: the ledger is open again
        assert ledger.released(A).share == b"share"
    with opened(path) as ledger:
        assert ledger.released(A).share == b"share" and ledger.balance() == balance(5, 1, 0, 4)


# --- processes that die -----------------------------------------------------------------------

CHILD = """
import sys, time
from fractions import Fraction
from pathlib import Path
from umpc.node.budget.ledger import Ledger
ledger, D = Ledger(Path(sys.argv[1]), "bank", Fraction(5)), Fraction(1, 10**12)
{body}
print("done", flush=True)
time.sleep(600)
"""


def killed(path: Path, body: str, lines: int = 1) -> list[str]:
    """Run the body in its own process and kill it with signal 9 after some lines of output."""
    command = [sys.executable, "-c", CHILD.format(body=body), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = [process.stdout.readline().strip() for _ in range(lines)]
        with pytest.raises(LedgerError, match="another one holds"):
            opened(path)
        os.kill(process.pid, signal.SIGKILL)
        said += process.stdout.read().split()
        assert process.wait() == -signal.SIGKILL
    return said


def test_killed_after_reserve(path):
    assert killed(path, "ledger.reserve(b'A', Fraction(2), D)") == ["done"]
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 0, 0, 5)
        assert kinds(ledger) == ["genesis", "total"]
        ledger.reserve(b"A", Fraction(2), D)


def test_killed_after_charge(path):
    body = """
ledger.reserve(b'A', Fraction(2), D)
ledger.charge(b'A', ledger.hold(b'A', b'1', b'share').attempt)
ledger.reserve(b'B', Fraction(1), D)
"""
    assert killed(path, body) == ["done"]
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 2, 0, 3)
        assert ledger.released(b"A") == StoredRelease(b"1", b"share")


def test_killed_while_writing(path):
    body = """
for i in range(100000):
    study = i.to_bytes(4, "big")
    ledger.reserve(study, Fraction(1, 100000), D)
    ledger.charge(study, ledger.hold(study, b"1", study).attempt)
    print(i, flush=True)
"""
    said = killed(path, body, lines=20)
    with opened(path) as ledger:
        charged = len(said)  # whoever may have seen a share, its charge is there
        assert ledger.balance().spent in (Fraction(charged, 100000), Fraction(charged + 1, 100000))
        assert all(ledger.released(int(i).to_bytes(4, "big")) for i in said)
        # a process that is killed between the hold and the charge leaves one attempt held
        assert ledger.balance().reserved in (0, Fraction(1, 100000))
