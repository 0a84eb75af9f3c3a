"""umpc.node.budget.store: the files and tables of former versions move into the Store, once."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.former_store import CHARGED, DELTA, HELD, PREPARED, TOTAL, copy_former
from tests.support.ledgers import A, B
from umpc.dp.composition import ZCDP, Composition
from umpc.errors import LedgerError
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledger_store import StoredRelease
from umpc.node.budget.ledgerfile import read_beside

CLOSER = Composition(ZCDP, Fraction(1, 10**9))
STUDY_SHARE = b"share of held"


@pytest.fixture
def former(tmp_path) -> Path:
    return copy_former(tmp_path)


def opened(path: Path, **options) -> Ledger:
    return Ledger(path, "bank", TOTAL, DELTA, hold_seconds=1e11, **options)


def tables(path: Path) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute(query)}


def holds_everything(path: Path) -> None:
    """All that the former files have is there, at the same ε, and nothing of them is left."""
    with opened(path) as ledger:
        ledger.verify()
        assert (ledger.balance().spent, ledger.balance().reserved) == (1, 1)
        assert ledger.released(CHARGED).share == b"share of charged"
        assert ledger.answered(CHARGED).answer == b"the answer"
        assert ledger.held(HELD).share == STUDY_SHARE and ledger.held(HELD).name == "held"
        assert ledger.has_changed_since(CHARGED) and ledger.cohort(HELD) is not None
        assert not ledger.count_fields(A, 2), "two sets of fields were counted before"
        assert [row.kind for row in ledger.history()] == ["genesis", "total", "charge", "answer"]
    with opened(path, composition=CLOSER) as ledger:
        assert ledger.delta().spent == 0, "its mechanism is known, which costs no delta"
    assert tables(path) == {"ledger", "head", "store"}
    assert not [name for name in (".prepared", ".fieldsets") if Path(f"{path}{name}").exists()]


def test_what_a_former_version_left_moves_into_the_store_after_a_copy(former):
    holds_everything(former)
    copy = Path(f"{former}.former-4")
    assert copy.stat().st_mode & 0o777 == 0o600 and tables(copy) >= {"events", "cohorts"}
    assert STUDY_SHARE not in copy.read_bytes(), "this share has not left"
    names = {file.name.removeprefix(former.name) for file in former.parent.iterdir()}
    assert names == {"", ".key", ".anchor", ".lock", ".former-4"}, "one copy, and no draft"


def test_a_held_share_of_a_former_version_is_released_once(former):
    with opened(former) as ledger:
        attempt = ledger.held(HELD).attempt
        assert ledger.charge(HELD, attempt) == StoredRelease(attempt, STUDY_SHARE)
        assert (ledger.balance().spent, ledger.balance().reserved) == (2, 0)
    with opened(former) as ledger:
        assert ledger.held(HELD) is None and ledger.charge(HELD, attempt).share == STUDY_SHARE
        assert ledger.balance().spent == 2


def test_the_commands_read_a_former_ledger_before_its_first_start(former):
    before = {file: file.read_bytes() for file in former.parent.iterdir()}
    found = read_beside(Place.of(former))
    assert [each.study for each in found.held] == [HELD] and found.account.epsilon().reserved == 1
    assert found.cohorts.keys() == {CHARGED, HELD} and not found.damaged
    assert {file: file.read_bytes() for file in before} == before


def test_a_prepared_study_of_a_former_process_is_prepared_anew_at_no_cost(former):
    with opened(former) as ledger:
        assert not ledger.holds(PREPARED) and ledger.reservation(PREPARED) is None
        ledger.reserve(PREPARED, Fraction(1, 2), Fraction(0))


STEPS = (
    *("store-before-copy", "store-copied", "store-copy-kept", "store-before-move"),
    *("store-before-commit", "store-after-commit", "store-without-fieldsets"),
    "store-without-prepared",
)
START = """
import sys
from fractions import Fraction
from pathlib import Path
from umpc.node.budget.ledger import Ledger
Ledger(Path(sys.argv[1]), "bank", Fraction(5), Fraction(1, 10**9), hold_seconds=1e11)
"""


def test_every_step_is_one_of_those_below(former):
    steps = []
    opened(former, at_step=steps.append).close()
    assert steps == list(STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_a_start_that_is_killed_between_two_writes_goes_on_at_the_next(former, step, monkeypatch):
    monkeypatch.setenv("UMPC_FAILPOINT", f"{step}:kill")
    killed = subprocess.run([sys.executable, "-c", START, former], check=False)
    assert killed.returncode == -signal.SIGKILL
    holds_everything(former)
    assert Path(f"{former}.former-4").exists()
    assert not list(former.parent.glob("*.draft*"))


@pytest.mark.parametrize("damage", [b"\xff", b"0123\n", b"ab" * 32])
def test_damaged_sets_of_fields_refuse_the_start_until_they_are_removed(former, damage):
    fields = Path(f"{former}.fieldsets")
    fields.write_bytes(damage)
    with pytest.raises(LedgerError, match="Put the file back, or remove it"):
        opened(former)
    assert "held" in tables(former)
    fields.unlink()
    with opened(former) as ledger:
        assert ledger.held(HELD) and ledger.count_fields(A, 1)


@pytest.mark.parametrize("table", ["held", "events", "cohorts"])
def test_a_former_entry_that_was_edited_is_noticed(former, table, caplog):
    with closing(sqlite3.connect(former)) as db:
        db.execute(f"UPDATE {table} SET attempt = x'00'")
        db.commit()
    assert [HELD] * (table == "held") == read_beside(Place.of(former)).damaged
    with opened(former, composition=CLOSER) as ledger:
        assert ledger.cohort(CHARGED) is None or table != "cohorts"
        assert "was changed on disk" in caplog.text
        ledger.verify()
        assert (ledger.held(HELD) is None) == (table == "held")
        assert (ledger.cohort(HELD) is None) == (table != "events")
        assert (ledger.delta().spent > 0) == (table == "events")


def test_a_site_that_went_back_to_a_former_version_moves_again(former):
    """The former version makes its tables anew, and reads no Store."""
    opened(former).close()
    other = copy_former(_folder(former.parent / "other"))
    with closing(sqlite3.connect(former)) as db:
        db.execute("ATTACH ? AS other", (str(other),))
        for table in ("held", "events", "cohorts"):
            db.execute(f"CREATE TABLE {table} AS SELECT * FROM other.{table}")
        db.commit()
    Path(f"{former}.fieldsets").write_text(f"{B.hex()}\n")
    with opened(former) as ledger:
        assert ledger.held(HELD).share == STUDY_SHARE and ledger.count_fields(B, 3)
        assert not ledger.count_fields(A, 3), "three sets of fields were counted"
    assert tables(former) == {"ledger", "head", "store"}


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
