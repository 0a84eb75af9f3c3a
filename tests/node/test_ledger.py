"""umpc.node.ledger: its epsilon is never below the true one, through crashes, threads and tampering."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from umpc.errors import AlreadyReleased, InsufficientBudget, InvalidEpsilon, LedgerError
from umpc.node.chain import Balance
from umpc.node.ledger import Ledger, Release

from .ledgers import TOTAL, A, B, C, balance, kinds, opened

# --- one study -----------------------------------------------------------------------------------------


def test_reserve_charge_release(path):
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 0, 0, 5)
        ledger.reserve(A, Fraction(1, 3))
        assert ledger.balance() == balance(5, 0, "1/3", "14/3") and ledger.released(A) is None
        ledger.charge(A, b"attempt", b"noisy share")
        assert ledger.balance() == balance(5, "1/3", 0, "14/3")
        assert ledger.released(A) == Release(b"attempt", b"noisy share") and ledger.released(B) is None
        ledger.record_release(A, "sent to the coordinator")
        ledger.record_release(A)
        assert kinds(ledger) == ["genesis", "total", "reserve", "charge", "release", "release"]
        assert [row.seq for row in ledger.history()] == [1, 2, 3, 4, 5, 6]
        assert [row.epsilon for row in ledger.history()][1:4] == [Fraction(5), Fraction(1, 3), Fraction(1, 3)]
        assert ledger.history()[4].note == "sent to the coordinator"


def test_the_stored_release_survives_the_process(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1))
        ledger.charge(A, b"attempt", bytes(range(256)))
    with opened(path) as ledger:
        assert ledger.released(A) == Release(b"attempt", bytes(range(256)))
        assert ledger.balance() == balance(5, 1, 0, 4)


def test_cancel_returns_a_reservation_and_nothing_else(path):
    with opened(path) as ledger:
        ledger.cancel(A)
        ledger.reserve(A, Fraction(2))
        ledger.cancel(A)
        ledger.cancel(A)
        assert ledger.balance() == balance(5, 0, 0, 5)
        ledger.reserve(A, Fraction(3))
        ledger.charge(A, b"", b"")
        ledger.cancel(A)
        assert ledger.balance() == balance(5, 3, 0, 2)
        assert kinds(ledger) == ["genesis", "total", "reserve", "cancel", "reserve", "charge"]


def test_steps_out_of_order_are_refused_and_change_nothing(path):
    with opened(path) as ledger:
        for step in (lambda: ledger.charge(A, b"", b""), lambda: ledger.record_release(A)):
            with pytest.raises(LedgerError, match=r"'bank', study a1a1a1a1a1a1a1a1: .* expected before"):
                step()
        ledger.reserve(A, Fraction(1))
        with pytest.raises(LedgerError, match="Finish or cancel"):
            ledger.reserve(A, Fraction(1))
        ledger.charge(A, b"1", b"one")
        with pytest.raises(LedgerError, match="expected before the charge"):
            ledger.charge(A, b"2", b"two")
        with pytest.raises(AlreadyReleased, match="stored release"):
            ledger.reserve(A, Fraction(1))
        assert ledger.released(A) == Release(b"1", b"one") and ledger.balance() == balance(5, 1, 0, 4)
        ledger.verify()


def test_insufficient_budget_says_its_numbers(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(3))
        ledger.charge(A, b"", b"")
        ledger.reserve(B, Fraction(1, 2))
        with pytest.raises(InsufficientBudget) as caught:
            ledger.reserve(C, Fraction(7, 4))
        error = caught.value
        assert (error.asked, error.left) == (Fraction(7, 4), Fraction(3, 2))
        assert (error.spent, error.reserved) == (Fraction(3), Fraction(1, 2))
        assert "asks for epsilon 7/4, and 3/2 is left of 5 (spent 3, reserved 1/2)" in error.message
        assert "'bank'" in error.message and "raise epsilon under [budget]" in error.message
        assert ledger.balance() == balance(5, 3, "1/2", "3/2")
        ledger.reserve(C, Fraction(3, 2))
        assert ledger.balance().left == 0


def test_sums_are_exact(path):
    with opened(path, Fraction(1)) as ledger:
        for i in range(10):
            ledger.reserve(bytes([i]), Fraction(1, 10))
        assert ledger.balance().left == 0
        with pytest.raises(InsufficientBudget, match="asks for epsilon about 1e-12"):
            ledger.reserve(A, Fraction(1, 10**12))


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), 0.1, 1, Fraction(1, 1 << 128), Fraction(10) ** 5000])
def test_epsilon_is_an_exact_positive_fraction(path, epsilon):
    with opened(path) as ledger, pytest.raises(InvalidEpsilon, match="was expected"):
        ledger.reserve(A, epsilon)
    with pytest.raises(InvalidEpsilon):
        opened(path.with_name("other"), epsilon)


def test_shares_do_not_appear_in_a_repr(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1))
        ledger.charge(A, b"", b"noisy share")
        shown = repr(ledger.released(A)) + repr(ledger.history()) + repr(ledger)
        assert "noisy" not in shown and ledger.history()[3].share == b"noisy share"


# --- the file ------------------------------------------------------------------------------------------


def test_a_commit_is_visible_to_others_when_the_call_returns(path):
    with opened(path) as ledger, closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ledger._db.execute("PRAGMA synchronous").fetchone() == (2,)
        ledger.reserve(A, Fraction(1))
        ledger.charge(A, b"attempt", b"share")
        found = other.execute("SELECT kind, epsilon, share FROM ledger ORDER BY seq DESC LIMIT 1").fetchone()
        assert found == ("charge", "1/1", b"share")


def test_only_its_owner_may_read_the_file(path):
    with opened(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_changed_total_is_a_row(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(4))
        ledger.charge(A, b"", b"")
    with opened(path, Fraction(15, 2)) as ledger:
        assert ledger.balance() == balance("15/2", 4, 0, "7/2")
    with opened(path, Fraction(3)) as ledger:  # lowered below what is spent
        assert ledger.balance() == balance(3, 4, 0, 0)
        assert kinds(ledger) == ["genesis", "total", "reserve", "charge", "total", "total"]
        with pytest.raises(InsufficientBudget, match="and 0 is left of 3"):
            ledger.reserve(B, Fraction(1, 100))
    with opened(path, Fraction(3)) as ledger:
        assert len(ledger.history()) == 6


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
        lambda: ledger.reserve(A, TOTAL),
        lambda: ledger.released(A),
        lambda: ledger.cancel(A),
    ):
        with pytest.raises(LedgerError, match="it was closed"):
            call()


def test_no_folder(tmp_path):
    with pytest.raises(LedgerError, match="folder"):
        opened(tmp_path / "absent" / "ledger.sqlite")


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be read as one" * 100])
def test_a_file_that_is_no_ledger(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="readable and writable ledger was expected"):
        opened(path)
    assert path.read_bytes() == content


def test_a_lost_file_beside_its_wal_is_not_replaced(path):
    opened(path).close()
    path.unlink()
    Path(f"{path}-wal").touch()
    with pytest.raises(LedgerError, match="it is gone"):
        opened(path)


def test_a_draft_left_by_a_crash_is_replaced(path):
    Path(f"{path}.new").write_bytes(b"half")
    Path(f"{path}.new-journal").write_bytes(b"half")
    with opened(path) as ledger:
        assert kinds(ledger) == ["genesis", "total"]


def test_after_a_failed_write_the_disk_alone_counts(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1))
        ledger._db.execute(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
        with pytest.raises(LedgerError, match="the system refused") as caught:
            ledger.charge(A, b"", b"share")
        assert "full" in caught.value.detail and "full" not in caught.value.message
        with pytest.raises(LedgerError, match="Start the node again"):
            ledger.released(A)
    with opened(path) as ledger:
        assert ledger.released(A) is None and kinds(ledger) == ["genesis", "total", "reserve", "cancel"]


def test_threads(path):
    refusals: list[InsufficientBudget] = []

    def study(number: int) -> None:
        try:
            ledger.reserve(bytes([number]), Fraction(1, 4))
        except InsufficientBudget as error:
            refusals.append(error)
        else:
            ledger.charge(bytes([number]), b"", bytes([number]))

    with opened(path) as ledger:
        threads = [threading.Thread(target=study, args=(i,)) for i in range(25)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.balance() == balance(5, 5, 0, 0) and len(refusals) == 5
        ledger.verify()


# --- processes that die --------------------------------------------------------------------------------

CHILD = """
import sys, time
from fractions import Fraction
from pathlib import Path
from umpc.node.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), "bank", Fraction(5))
{body}
print("done", flush=True)
time.sleep(600)
"""


def killed(path: Path, body: str, lines: int = 1) -> list[str]:
    """Runs the body in a process of its own and kills it with signal 9 after some lines of output."""
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
    assert killed(path, "ledger.reserve(b'A', Fraction(2))") == ["done"]
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 0, 0, 5)
        assert kinds(ledger) == ["genesis", "total", "reserve", "cancel"]
        assert "ended before charging" in ledger.history()[-1].note
        ledger.reserve(b"A", Fraction(2))


def test_killed_after_charge(path):
    body = """
ledger.reserve(b'A', Fraction(2))
ledger.charge(b'A', b'1', b'share')
ledger.reserve(b'B', Fraction(1))
"""
    assert killed(path, body) == ["done"]
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 2, 0, 3)
        assert ledger.released(b"A") == Release(b"1", b"share")


def test_killed_while_writing(path):
    body = """
for i in range(100000):
    study = i.to_bytes(4, "big")
    ledger.reserve(study, Fraction(1, 100000))
    ledger.charge(study, b"1", study)
    print(i, flush=True)
"""
    said = killed(path, body, lines=20)
    with opened(path) as ledger:
        charged = len(said)  # whoever may have seen a share, its charge is there
        assert ledger.balance().spent in (Fraction(charged, 100000), Fraction(charged + 1, 100000))
        assert all(ledger.released(int(i).to_bytes(4, "big")) for i in said)
        assert ledger.balance().reserved == 0


# --- any sequence of calls, against a model ------------------------------------------------------------


class AnySequence(RuleBasedStateMachine):
    """The model is two dictionaries. A crash is a close: a kill's other half is in the tests above."""

    studies = st.integers(0, 4).map(lambda i: bytes([i]))
    epsilons = st.fractions(Fraction(1, 100), 2, max_denominator=100)

    @initialize(total=st.fractions(1, 5, max_denominator=9))
    def open(self, total):
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.total = Path(self.folder.name) / "ledger", total
        self.ledger = opened(self.path, total)
        self.open_, self.charged, self.true_spent = {}, {}, Fraction(0)

    @rule(study=studies, epsilon=epsilons)
    def reserve(self, study, epsilon):
        left = self.total - self.true_spent - sum(self.open_.values())
        if study in self.charged:
            expected = AlreadyReleased
        elif study in self.open_:
            expected = LedgerError
        elif epsilon > left:
            expected = InsufficientBudget
        else:
            self.ledger.reserve(study, epsilon)
            self.open_[study] = epsilon
            return
        with pytest.raises(expected):
            self.ledger.reserve(study, epsilon)

    @rule(study=studies)
    def cancel(self, study):
        self.ledger.cancel(study)
        self.open_.pop(study, None)

    @rule(study=studies, share=st.binary(max_size=9))
    def charge(self, study, share):
        if study not in self.open_:
            with pytest.raises(LedgerError):
                self.ledger.charge(study, b"attempt", share)
            return
        self.ledger.charge(study, b"attempt", share)
        self.true_spent += self.open_.pop(study)
        self.charged[study] = share

    @rule(study=studies)
    def ask_again(self, study):
        stored = self.ledger.released(study)
        assert (stored and stored.share) == self.charged.get(study)
        if study in self.charged:
            self.ledger.record_release(study)

    @precondition(lambda self: self.total < 9)
    @rule(more=st.fractions(0, 1, max_denominator=3))
    def crash_and_start_again(self, more):
        self.ledger.close()
        self.total += more
        self.ledger = opened(self.path, self.total)
        self.open_.clear()

    @invariant()
    def agrees(self):
        reserved = sum(self.open_.values(), Fraction(0))
        left = self.total - self.true_spent - reserved
        assert self.ledger.balance() == Balance(self.total, self.true_spent, reserved, left) and left >= 0
        self.ledger.verify()

    def teardown(self):
        self.ledger.close()
        self.folder.cleanup()


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
