"""umpc.node.budget.store: what studies leave beside the chain; a share leaves at most once."""

from __future__ import annotations

import errno
import resource
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import A, B, C, D, balance, charged, kinds, opened
from umpc.dp.events import LaplaceEvent
from umpc.errors import AlreadyReleased, AlreadyRunning, InsufficientBudget, LedgerError
from umpc.node.budget.budget_account import BudgetCost
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place, read_anchor
from umpc.node.budget.ledger_store import StoredRelease
from umpc.node.budget.ledgerfile import count_or_forget_fields, read_beside
from umpc.node.budget.store import COHORT, EVENTS, HELD, INSERT, MOST_HELD

HOUR = 3600


class Clock:
    """A ledger's clock that a test moves."""

    def __init__(self) -> None:
        self.time = 1_000_000.5

    def __call__(self) -> float:
        return self.time


def held(ledger: Ledger, study: bytes, epsilon: Fraction = Fraction(1), name: str = "") -> None:
    ledger.reserve(study, epsilon, D, name=name)
    ledger.hold(study, b"attempt", b"the share " + study)


def edited(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        assert other.execute(statement).rowcount == 1


# --- it survives the process, and only the charge is a row ------------------------------------


def test_a_held_share_survives_the_process_with_its_reservation(path):
    with opened(path) as ledger:
        held(ledger, A, name="tau")
    with opened(path) as ledger:
        assert ledger.held(A).share == b"the share " + A and ledger.held(B) is None
        assert ledger.balance() == balance(5, 0, 1, 4) and ledger.delta().reserved == D
        with pytest.raises(AlreadyRunning, match="is under way, and one at a time"):
            ledger.reserve(A, Fraction(1), D)
        ledger.cancel(A)
        assert ledger.holds(A) and kinds(ledger) == ["genesis", "total"]
        ledger.charge(A, b"attempt")
        assert ledger.released(A) == StoredRelease(b"attempt", b"the share " + A)
        assert ledger.held(A) is None and ledger.balance() == balance(5, 1, 0, 4)
        assert (
            kinds(ledger) == ["genesis", "total", "charge"] and ledger.history()[-1].note == "tau"
        )


def test_proposals_that_are_not_paid_leave_no_row_and_the_file_does_not_grow(path):
    with opened(path) as ledger:
        held(ledger, A)
        ledger.drop(A)
        size = path.stat().st_size
        for number in range(300):
            study = number.to_bytes(32, "big")
            ledger.reserve(study, Fraction(1), D, name=f"study {number}")
            if number % 3:
                ledger.hold(study, bytes(32), bytes(2000))
            ledger.drop(study)
            ledger.cancel(study)
        assert kinds(ledger) == ["genesis", "total"]
        assert ledger.balance() == balance(5, 0, 0, 5) and not ledger.names
    opened(path).close()  # the start copies the -wal file into the ledger
    assert path.stat().st_size <= size + 3 * 4096


def test_so_many_studies_reserve_at_once(path):
    with opened(path) as ledger:
        for number in range(MOST_HELD):
            ledger.reserve(bytes([number]), Fraction(1, 100), D)
        with pytest.raises(LedgerError, match=f"at most {MOST_HELD} studies at once"):
            ledger.reserve(A, Fraction(1, 100), D)
        ledger.cancel(bytes([7]))
        ledger.reserve(A, Fraction(1, 100), D)


# --- at most one attempt leaves ---------------------------------------------------------------


def test_only_the_held_attempt_is_charged_and_only_once(path):
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), D)
        with pytest.raises(LedgerError, match="there is none"):
            ledger.charge(A, b"attempt")
        ledger.hold(A, b"attempt", b"share")
        with pytest.raises(LedgerError, match="a share is held already"):
            ledger.hold(A, b"other", b"other share")
        with pytest.raises(LedgerError, match="another one is held"):
            ledger.charge(A, b"other")
        assert ledger.balance().spent == 0
        first = ledger.charge(A, b"attempt")
        assert ledger.charge(A, b"attempt") == first and ledger.balance().spent == 1
        with pytest.raises(AlreadyReleased, match="another one was charged"):
            ledger.charge(A, b"other")
        ledger.drop(A)
        assert ledger.released(A) == first


def test_a_dropped_attempt_cannot_be_charged(path):
    with opened(path) as ledger:
        held(ledger, A)
        ledger.drop(A)
        assert ledger.balance() == balance(5, 0, 0, 5)
        with pytest.raises(LedgerError, match="it was given up"):
            ledger.charge(A, b"attempt")
        ledger.reserve(A, Fraction(1), D)
        ledger.hold(A, b"second", b"second share")
        assert ledger.charge(A, b"second").share == b"second share"


def test_an_entry_that_is_put_back_after_the_charge_is_ignored_and_removed(path):
    """The copy has a right seal. The charge is a row of the chain, and counts."""
    with opened(path) as ledger:
        held(ledger, A)
        with closing(sqlite3.connect(path)) as other:
            entry = other.execute("SELECT * FROM store").fetchone()
        ledger.charge(A, b"attempt")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(INSERT, entry)
    assert read_beside(Place.of(path)).held == []
    with opened(path) as ledger:
        assert ledger.held(A) is None and ledger.balance() == balance(5, 1, 0, 4)
        assert ledger.ask("SELECT count(*) FROM store").fetchone() == (0,)


def test_an_entry_that_is_put_back_after_a_drop_is_not_noticed_and_lets_one_share_leave(path):
    """The docstring excludes this case: the share never left, and its study is charged as ever."""
    with opened(path) as ledger:
        held(ledger, A)
        with closing(sqlite3.connect(path)) as other:
            entry = other.execute("SELECT * FROM store").fetchone()
        ledger.drop(A)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(INSERT, entry)
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 0, 1, 4)
        ledger.charge(A, b"attempt")
        assert ledger.balance() == balance(5, 1, 0, 4)


def test_an_entry_that_is_removed_is_not_noticed_and_the_study_runs_anew(path):
    with opened(path) as ledger:
        held(ledger, A)
    edited(path, "DELETE FROM store")
    with opened(path) as ledger:
        assert ledger.held(A) is None and ledger.balance() == balance(5, 0, 0, 5)
        charged(ledger, A)


# --- edited entries ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "study = x'00'",
        "name = 'x'",
        "epsilon = '1/2'",
        "delta = '0/1'",
        "attempt = x'00'",
        "value = x'00'",
        "value = 'the share'",
        "until = until + 1",
        "until = until + 0.5",
        "seal = zeroblob(32)",
        "seal = 'text'",
    ],
)
def test_an_edited_entry_is_noticed_and_never_charged(path, change, caplog):
    with opened(path) as ledger:
        held(ledger, A)
        ledger.verify()
        edited(path, f"UPDATE store SET {change}")
        with pytest.raises(LedgerError, match=r"the held attempt of [0-9a-f]+ is wrong"):
            ledger.verify()
        with pytest.raises(LedgerError):
            ledger.charge(A, b"attempt")
        assert ledger.balance().spent == 0
    assert len(read_beside(Place.of(path)).damaged) == 1
    with opened(path) as ledger:
        assert "was changed on disk; it is dropped" in caplog.text
        assert ledger.held(A) is None and ledger.balance() == balance(5, 0, 0, 5)
        ledger.verify()


@pytest.mark.parametrize("value", ["5", "-1", "1.5", "'text'", "4611686018427387904"])
@pytest.mark.parametrize("kind", [HELD, EVENTS, COHORT])
def test_a_study_of_another_type_beside_the_chain_is_a_warning_and_no_traceback(
    path, caplog, kind, value
):
    with opened(path) as ledger:
        held(ledger, A)
        held(ledger, B)
    for other in (EVENTS, COHORT):
        row = f"'{other}', x'{A.hex()}', '', '0/1', '0/1', x'00', 'text', 0, x'00'"
        edited(path, f"INSERT INTO store VALUES ({row})")
    edited(path, f"UPDATE store SET study = {value} WHERE (kind, study) = ('{kind}', x'{A.hex()}')")
    found = read_beside(Place.of(path))
    assert len(found.held) == 2 - len(found.damaged) and (kind == HELD) == bool(found.damaged)
    for _ in range(2):
        with opened(path) as ledger:
            assert "was changed on disk" in caplog.text
            ledger.verify()
            assert ledger.held(B) is not None and not ledger.has_changed_since(A)
    assert not read_beside(Place.of(path)).damaged, "a damaged attempt was dropped, once"


@pytest.mark.parametrize("value", ["5", "-1", "'text'"])
def test_a_version_of_another_type_is_a_wrong_row(path, value):
    opened(path).close()
    edited(path, f"UPDATE ledger SET study = {value} WHERE seq = 1")
    with pytest.raises(LedgerError, match="row 1 is wrong"):
        read_beside(Place.of(path))


def test_one_flipped_bit_of_the_share_is_noticed(path):
    with opened(path) as ledger:
        held(ledger, A)
    share = bytearray(b"the share " + A)
    for position in (0, len(share) // 2, len(share) - 1):
        flipped = bytes(share[:position]) + bytes([share[position] ^ 1]) + share[position + 1 :]
        edited(path, f"UPDATE store SET value = x'{flipped.hex()}'")
        assert read_beside(Place.of(path)).damaged == [A]


def test_an_entry_of_another_ledger_is_noticed(path, caplog):
    with opened(path.with_name("other")) as other:
        held(other, A)
        with closing(sqlite3.connect(path.with_name("other"))) as db:
            entry = db.execute("SELECT * FROM store").fetchone()
    opened(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(INSERT, entry)
    with opened(path) as ledger:
        assert "was changed on disk" in caplog.text and not ledger.holds(A)


@pytest.mark.parametrize("kept", [0, 1, 100, 4096, 8192, -100, -1])
def test_a_truncated_file_is_refused(path, kept):
    with opened(path) as ledger:
        for study in (A, B, C):
            ledger.reserve(study, Fraction(1), D)
            ledger.hold(study, bytes(32), b"s" * 6000)
        ledger.charge(A, bytes(32))
    # SQLite reads what a page lacks at its end as zeros: zeros at the end can be cut unnoticed,
    # and one file in 256 ends with one, since its last bytes are a tag's
    data = path.read_bytes().rstrip(b"\0")
    assert len(data) > 3 * 8192
    path.write_bytes(data[:kept])
    with pytest.raises(LedgerError):
        opened(path)


def test_a_ledger_without_the_table_is_one_of_an_earlier_version(path):
    with opened(path) as ledger:
        charged(ledger, A)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TABLE store")
    assert read_beside(Place.of(path)).held == []
    with opened(path) as ledger:
        held(ledger, B)
        assert ledger.balance() == balance(5, 1, 1, 3)


def test_a_reservation_that_an_earlier_version_left_is_given_back_at_the_start(path):
    with opened(path) as ledger:
        ledger.write_row("reserve", A, Fraction(2), None)
    with opened(path) as ledger:
        assert ledger.balance() == balance(5, 0, 0, 5)
        assert kinds(ledger) == ["genesis", "total", "reserve", "cancel"]
        charged(ledger, A)
        ledger.verify()


# --- what is prepared ahead, and which fields were asked about --------------------------------


def test_the_sites_commands_see_what_a_prepared_study_reserves_until_its_time_is_up(path):
    clock, event = Clock(), LaplaceEvent(Fraction(10), 1)
    with opened(path, now=clock) as ledger:
        ledger.reserve(A, Fraction(1, 3), D, name="ahead", events=(event,))
        ledger.prepare(A, clock.time + HOUR)
        (shown,) = read_beside(Place.of(path), now=clock).prepared
        assert (shown.name, shown.cost) == ("ahead", BudgetCost(Fraction(1, 3), D))
        assert shown.cost.events == (event,)
        for passed, reserved in ((0, Fraction(1, 3)), (HOUR, 0)):
            clock.time += passed
            found = read_beside(Place.of(path), now=clock)
            assert (found.account.epsilon().reserved, len(found.prepared)) == (
                reserved,
                3 * reserved,
            )


@pytest.mark.parametrize("end", ["cancel", "hold", "close"])
def test_a_study_is_prepared_until_it_is_held_given_up_or_the_process_ends(path, end):
    with opened(path) as ledger:
        for study in (A, B):
            ledger.reserve(study, Fraction(1), D)
            ledger.prepare(study, 4e9)
        if end == "cancel":
            ledger.cancel(A)
        elif end == "hold":
            ledger.hold(A, b"attempt", b"share")
        found = read_beside(Place.of(path))
        assert [each.study for each in found.prepared] == ([A, B] if end == "close" else [B])
        assert found.account.epsilon().reserved == (1 if end == "cancel" else 2)
        assert ledger.balance().reserved == (1 if end == "cancel" else 2)
    with opened(path) as ledger:
        assert read_beside(Place.of(path)).prepared == [], "its material ended with its process"
        assert ledger.balance().reserved == (1 if end == "hold" else 0)


def test_only_a_study_with_a_reservation_is_prepared(path):
    with opened(path) as ledger:
        with pytest.raises(LedgerError, match="an open reservation was expected"):
            ledger.prepare(A, 4e9)
        assert read_beside(Place.of(path)).prepared == []


def test_after_a_failed_write_what_is_prepared_still_waits(path):
    with opened(path, at_step=full_once("drop-before-commit")) as ledger:
        for study in (A, B):
            ledger.reserve(study, Fraction(1), D)
            ledger.prepare(study, 4e9)
        with pytest.raises(LedgerError, match="the system refused"):
            ledger.cancel(A)
        assert ledger.balance().reserved == 1, "it was read again"
        ledger.cancel(A)
        assert [each.study for each in read_beside(Place.of(path)).prepared] == [B]


def test_sets_of_fields_are_counted_once_and_an_edited_one_still_counts(path):
    with opened(path) as ledger:
        assert ledger.count_fields(A, 1) and ledger.count_fields(A, 1)
        assert not ledger.count_fields(B, 1)
    edited(path, "UPDATE store SET seal = x'00'")
    with opened(path) as ledger:
        assert not ledger.count_fields(A, 1) and not ledger.count_fields(B, 1)
        assert count_or_forget_fields(Place.of(path), forget=False) == 1
        assert count_or_forget_fields(Place.of(path), forget=True) == 1
        assert ledger.count_fields(B, 1) and not ledger.count_fields(A, 1)
        charged(ledger, A)
        ledger.verify()


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["balance", "delta", "reserve", "held", "start", "beside"])
def test_its_time_is_up_and_its_budget_is_free(path, asked):
    clock = Clock()
    ledger = opened(path, Fraction(1), now=clock, hold_seconds=HOUR)
    held(ledger, A)
    clock.time += HOUR - 1
    assert ledger.balance().left == 0 and ledger.held(A)
    with pytest.raises(InsufficientBudget):
        ledger.reserve(B, Fraction(1), D)
    clock.time += 2
    match asked:
        case "balance":
            assert ledger.balance().left == 1
        case "delta":
            assert ledger.delta().reserved == 0
        case "reserve":
            ledger.reserve(B, Fraction(1), D)
        case "held":
            assert ledger.held(A) is None
        case "beside":
            snapshot = read_beside(Place.of(path), now=clock)
            assert not snapshot.held and snapshot.account.epsilon().left == 1
            assert ledger.balance().left == 1
        case "start":
            ledger.close()
            ledger = opened(path, Fraction(1), now=clock)
    with ledger:
        assert not ledger.holds(A)
        with pytest.raises(LedgerError, match="its time was up"):
            ledger.charge(A, b"attempt")


# --- a disk that refuses ----------------------------------------------------------------------


def test_a_full_disk_refuses_and_the_ledger_goes_on_when_there_is_room(path):
    """The kernel itself refuses every write beyond the file's present size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(path) as ledger:
        held(ledger, A)
        ledger.reserve(B, Fraction(1), D)
        wal = Path(f"{path}-wal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size, hard))
        try:
            for call in (
                lambda: ledger.charge(A, b"attempt"),
                lambda: ledger.hold(B, b"attempt", bytes(100_000)),
                lambda: ledger.drop(A),
            ):
                with pytest.raises(LedgerError, match="the system refused") as caught:
                    call()
                assert "reads the ledger again at its next study" in caught.value.message
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert ledger.released(A) is None and ledger.balance() == balance(5, 0, 2, 3)
        ledger.charge(A, b"attempt")
        ledger.hold(B, b"attempt", b"share")
        ledger.verify()
        assert ledger.balance() == balance(5, 1, 1, 3)
    with opened(path) as ledger:
        assert ledger.released(A) and ledger.held(B) and ledger.balance() == balance(5, 1, 1, 3)


def full_once(step: str) -> Callable[[str], None]:
    """A disk that is full when a write first comes to this step."""
    waiting = [step]

    def fails(name: str) -> None:
        if name in waiting:
            waiting.remove(name)
            raise OSError(errno.ENOSPC, "no space left")

    return fails


@pytest.mark.parametrize("step", ["before-commit", "after-commit", "anchor-drafted", "anchored"])
def test_a_write_that_fails_at_any_step_is_read_again_from_the_disk(path, step):
    with opened(path, at_step=full_once(f"charge-{step}")) as ledger:
        held(ledger, A)
        with pytest.raises(LedgerError, match="the system refused"):
            ledger.charge(A, b"attempt")
        committed = step != "before-commit"
        assert (ledger.released(A) is not None) == committed
        assert ledger.balance() == (balance(5, 1, 0, 4) if committed else balance(5, 0, 1, 4))
        assert read_anchor(Path(f"{path}.anchor")).seq == len(ledger.history())
        assert ledger.charge(A, b"attempt").share == b"the share " + A
        assert kinds(ledger).count("charge") == 1
        ledger.verify()


def test_rows_are_copied_into_the_ledger_before_it_goes_on(path):
    """A disk that failed to sync may keep a row in memory only: it has to be written once more."""
    rows = Path(f"{path}-wal")
    with (
        opened(path, at_step=full_once("charge-after-commit")) as ledger,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        assert len(other.execute("SELECT * FROM ledger").fetchall()) == 2  # SQLite copies nothing
        held(ledger, A)
        with pytest.raises(LedgerError, match="the system refused"):
            ledger.charge(A, b"attempt")
        assert rows.stat().st_size > 0
        ledger.balance()
        assert rows.stat().st_size == 0
        held(ledger, B)
        written = rows.stat().st_size
        ledger.balance()
        assert rows.stat().st_size == written > 0


def test_a_ledger_that_was_damaged_meanwhile_stays_closed(path):
    with opened(path, at_step=full_once("charge-after-commit")) as ledger:
        held(ledger, A)
        with pytest.raises(LedgerError, match="the system refused"):
            ledger.charge(A, b"attempt")
        edited(path, "UPDATE ledger SET note = 'x' WHERE seq = 2")
        for _ in range(2):
            with pytest.raises(LedgerError, match="row 2 is wrong"):
                ledger.balance()
    with pytest.raises(LedgerError, match="row 2 is wrong"):
        opened(path)


def test_a_held_share_does_not_appear_in_a_repr(path):
    with opened(path) as ledger:
        held(ledger, A)
        assert "share" not in repr(ledger.held(A)) + repr(ledger)
