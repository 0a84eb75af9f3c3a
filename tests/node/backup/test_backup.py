"""umpc/node/backup: an archive is whole or refused, and a restored ledger never forgets."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.backup_sites import ALL, TOTAL, Site, refused
from tests.support.former_store import CHARGED, HELD, copy_former
from tests.support.ledgers import A, B, C, D, pay
from tests.support.studies import KENDALL, make_study
from umpc import errors as e
from umpc.cli.main import umpc
from umpc.dp.composition import ZCDP, Composition
from umpc.dp.events import PureEvent
from umpc.node.approvals import ACCEPTED, PENDING, REJECTED, Approvals, approvals_beside
from umpc.node.audit.reading import rows
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.backup.archive import CONFIG, FIELD_SETS, LEDGER, Manifest, write_archive
from umpc.node.backup.restoring import (
    Restored,
    Statement,
    charges_after,
    note_of,
    restore,
)
from umpc.node.budget.budget_account import Account
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place, read_anchor, read_key
from umpc.node.budget.ledger_store import QUESTION_BYTES
from umpc.node.budget.store import FOR_EVER
from umpc.node.table.fingerprint import Cohort
from umpc.study.parts import Course
from umpc.testing import lying
from umpc.transport.files import digest_of

ASKED = b"q" * QUESTION_BYTES


def lost_after_a_charge(site: Site, *kept: str) -> Path:
    """A backup after A, a charge of B, and a loss of all but these files. Returns: the archive."""
    site.charge(A)
    archive = site.back_up()
    site.charge(B, epsilon="3/2")
    site.lose(*kept)
    return archive


def test_an_archive_is_for_its_owner_and_without_keys_unless_asked(site):
    site.charge(A)
    with site.open() as ledger:  # a node runs
        ledger.reserve(B, Fraction(1), D)
        ledger.hold(B, b"attempt", b"this share has not left")
        plain, whole = site.back_up("plain.tar", keys=False), site.back_up("whole.tar")
        with pytest.raises(e.LedgerError, match="a new file"):
            site.back_up("plain.tar")
    assert plain.stat().st_mode & 0o777 == whole.stat().st_mode & 0o777 == 0o600
    for path, secret in ((plain, False), (whole, True)):
        with tarfile.open(path) as tar:
            names = set(tar.getnames())
        assert ({"key.pem", "ledger.key"} <= names) == secret
        assert {"node.toml", "ledger.sqlite", "ledger.audit", "ca.pem", "cert.pem"} <= names
        content = path.read_bytes()
        assert b"this share has not left" not in content
        assert (Path(f"{site.ledger}.key").read_bytes() in content) == secret
    assert [path.name for path in site.folder.parent.glob(".umpc*")] == []


def test_a_move_with_the_last_anchor_costs_nothing(site, tmp_path):
    site.charge(A)
    archive = site.back_up(keys=False)
    other = tmp_path / "other"
    other.mkdir()
    for ending in (".key", ".anchor"):
        shutil.copy(f"{site.ledger}{ending}", other / f"{site.ledger.name}{ending}")
    done = restore(archive, other / "node.toml")
    assert (done.cost.epsilon, done.known.is_complete) == (0, True)
    assert done.absent == (other / "id/key.pem",)
    assert (other / "node.toml").read_bytes() == site.config.read_bytes()
    with Ledger(done.ledger, "bank", TOTAL) as ledger:
        assert ledger.released(A).share == b"share of " + A
        assert ledger.balance().spent == 1
        assert not [row for row in ledger.history() if row.kind.startswith("restore")]


def test_a_newer_ledger_is_never_overwritten(site):
    site.charge(A)
    archive = site.back_up()
    site.charge(B)
    refused(archive, site, "is newer than the backup", ALL)
    os.replace(site.ledger, site.folder / "moved")
    Path(f"{site.ledger}-wal").write_bytes(b"rows of the lost ledger")
    refused(archive, site, "-wal is there", ALL)


def test_without_a_proof_somebody_must_say_what_was_charged(site):
    archive = lost_after_a_charge(site, ".key", ".audit", ".anchor")
    refused(archive, site, "saw 1 rows after .* shows 1 charges of epsilon 3/2")
    refused(archive, site, "at least what is proven", Statement(Fraction(1), D))
    refused(archive, site, "at least what is proven", Statement(Fraction(2)))  # no delta
    done = restore(archive, site.config, Statement(Fraction(2), D))
    assert site.spent() == 3 == 1 + done.cost.epsilon
    last = list(rows(Path(f"{site.ledger}.audit")))[-1]
    assert (last["event"], last["epsilon"]) == ("restore", "2") and "3/2" in last["note"]
    with site.open() as ledger:
        assert ledger.balance().left == 2
        ledger.verify()
    # The sum that was stated once is known when the same backup returns a second time.
    site.lose(".key", ".audit")
    refused(archive, site, "at least what is proven", Statement(Fraction(3, 2), D))


def test_an_anchor_ahead_is_not_answered_with_nothing(site):
    archive = lost_after_a_charge(site, ".key", ".anchor")
    refused(archive, site, "at least what is proven", Statement())


def test_an_anchor_that_the_trail_refutes_proves_nothing(site):
    site.charge(A)
    old = Path(f"{site.ledger}.anchor").read_bytes()
    archive = lost_after_a_charge_of_more(site)
    Path(f"{site.ledger}.anchor").write_bytes(old)
    refused(archive, site, "shows 1 charges")


def lost_after_a_charge_of_more(site: Site) -> Path:
    archive = site.back_up()
    site.charge(B)
    site.lose(".key", ".audit")
    return archive


def test_all_that_was_left_counts_where_nothing_is_known(site, tmp_path):
    archive = lost_after_a_charge(site)
    refused(archive, site, "no anchor tells")
    for composition in ("", 'composition = "zcdp"\ncomposition_delta = "1e-9"\n'):
        other = Site(tmp_path / f"other{len(composition)}")
        shutil.rmtree(other.folder / "id")
        other.config.write_text(site.config.read_text() + composition)
        restore(archive, other.config, ALL)
        loaded = other.loaded() if (other.folder / "id/key.pem").exists() else None
        assert loaded is not None, "the keys were in the archive"
        with other.open(composition=loaded.composition) as ledger:
            assert ledger.balance().left == 0 and ledger.balance().spent >= TOTAL
            assert ledger.released(A).share == b"share of " + A
            with pytest.raises(e.InsufficientBudget):
                ledger.reserve(C, Fraction(1, 100), D)
    # A larger total in node.toml may have been there before the loss, so it counts too.
    larger = Site(tmp_path / "larger")
    larger.config.write_text(larger.config.read_text().replace("5", "8"))
    restore(archive, larger.config, ALL)
    with larger.open(Fraction(8)) as ledger:
        assert ledger.balance().left == 0


def test_what_the_lost_ledger_may_have_told_is_not_told_again(site):
    course = Course(b"c" * 32, 1, 3)
    with site.open() as ledger:
        ledger.reserve(A, Fraction(1), D, course=course)
        attempt = b"a" * 32
        ledger.charge(A, ledger.hold(A, attempt, b"step 1", course.encode()).attempt)
        ledger.reserve(B, Fraction(1), D)
        pay(ledger, B, b"b" * 32, b"share", b"t" * 32)
        held = ledger_with_a_held_attempt(ledger)
    archive = site.back_up()
    with site.open() as ledger:  # after the backup: the answer, the next step, the held attempt
        ledger.answer(B, b"b" * 32, ASKED, b"the answer")
        later = Course(b"c" * 32, 2, 3)
        ledger.reserve(b"d" * 32, Fraction(1), D, course=later)
        assert ledger.balance().reserved == 1, "held, and the step itself is paid"
        ledger.charge(C, held)
    site.lose(".key")
    restore(archive, site.config, Statement(Fraction(1), D))
    with site.open() as ledger:
        with pytest.raises(e.AlreadyReleased, match="restored from a backup"):
            ledger.answered(B)
        with pytest.raises(e.AlreadyReleased, match="restored from a backup"):
            ledger.answer(B, b"b" * 32, b"r" * QUESTION_BYTES, b"another answer")
        assert not ledger.holds(C)
        before = ledger.balance()
        assert (before.spent, before.reserved) == (3, 0)
        ledger.reserve(b"d" * 32, Fraction(1), D, course=later)
        assert ledger.balance().reserved == 1, "the lost ledger may have released this step"
        ledger.charge(b"d" * 32, ledger.hold(b"d" * 32, attempt, b"x", later.encode()).attempt)
        assert ledger.balance().spent == 4
    with site.open() as ledger:
        ledger.verify()
        assert ledger.balance().spent == 4


def ledger_with_a_held_attempt(ledger: Ledger) -> bytes:
    ledger.reserve(C, Fraction(1), D)
    return ledger.hold(C, b"e" * 32, b"held").attempt


def test_an_accepted_study_waits_again_and_a_rejected_one_stays_so(site):
    site.charge(A)
    approvals = Approvals(approvals_beside(site.ledger))
    studies = [make_study(KENDALL, name=name) for name in ("one", "two")]
    for study in studies:
        with pytest.raises(e.ApprovalPending):
            approvals.require(study, "north")
    approvals.decide(studies[0].hash.hex(), ACCEPTED)
    approvals.decide(studies[1].hash.hex(), REJECTED, "no")
    archive = site.back_up()
    site.lose()
    restore(archive, site.config, ALL)
    states = [entry.state for entry in Approvals(approvals_beside(site.ledger)).entries()]
    assert states == [PENDING, REJECTED]


def test_another_history_is_refused(site, tmp_path):
    site.charge(A)
    archive = site.back_up()
    other = Site(tmp_path / "other")
    other.charge(A)
    other.lose(".anchor")
    refused(archive, other, "saw another row", ALL)
    other.lose()
    Path(f"{other.ledger}.key").write_bytes(b"k" * 32)
    refused(archive, other, "another one", ALL)
    site.lose(".key", ".audit")
    trail = Path(f"{site.ledger}.audit")
    whole = trail.read_bytes()
    trail.write_bytes(b"")
    refused(archive, site, "goes on from the backup's row 1", ALL)
    trail.write_bytes(whole.replace(b"charge", b"chance"))
    refused(archive, site, "goes on from the backup's row 1", ALL)
    trail.write_bytes(whole + b'{"seq":2,"a')  # a crash cut the last row short
    assert isinstance(restore(archive, site.config, ALL), Restored)
    assert [row["event"] for row in rows(trail)] == ["charge", "repair", "restore"]


def test_the_commands_say_what_they_do(site, tmp_path):
    def run(*words: str) -> str:
        return CliRunner().invoke(umpc, words, catch_exceptions=False, standalone_mode=False).stdout

    site.charge(A)
    archive = str(tmp_path / "a.tar")
    config = ("--config", str(site.config))
    assert "without secret keys" in run("node", "backup", *config, "--to", archive)
    site.charge(B)
    site.lose(".key", ".audit")
    said = run("node", "restore", archive, *config, "--charged-since", "1", "--delta-since", "1e-9")
    assert "shows 1 charges of epsilon 1 " in said
    assert "counts as charged since: epsilon 1, delta 1/1000000000" in said
    shown = run("budget", "show", *config)
    assert "epsilon 1 and delta 1e-09 count as spent" in shown
    assert '"restores": [{"when": "' in run("budget", "show", *config, "--format", "json")
    for wrong in ("-1", "nan", "1/0", "none"):
        with pytest.raises(Exception, match="a number of 0 or more"):
            run("node", "restore", archive, *config, "--charged-since", wrong)
    site.lose(".key")
    assert "epsilon 13/10" in run("node", "restore", archive, *config, "--charged-since", "13/10")


@pytest.mark.parametrize(
    ("note", "sum_of_all"),
    [(note_of(0, "restore"), 2), (note_of(1, "restore"), 3), ("of a former version", 3)],
)
def test_a_study_that_a_restored_node_charged_again_counts_twice(tmp_path, note, sum_of_all):
    """The ledger of the first restore did not know the study, and was lost as well.

    Its backup was older than the study's charge in the first case, and newer in the second.
    """
    place = Place.of(tmp_path / "ledger.sqlite")
    place.key.write_bytes(b"k" * 32)
    place.key.chmod(0o600)
    trail = AuditTrail(tmp_path / "ledger.sqlite")
    charge = AuditRow("charge", study="ab" * 32, epsilon="1", delta="0")
    trail.append(charge, charge, AuditRow("restore", epsilon="1", delta="0", note=note), charge)
    found = charges_after(trail.path, read_key(place.key), Account(), 0)
    assert found == (3, Fraction(sum_of_all), Fraction(0))


def test_what_was_counted_after_a_newer_backup_counts_after_an_older_one(site):
    site.charge(C)
    older = site.back_up("older.tar")
    site.charge(A)
    newer = site.back_up("newer.tar")
    site.lose(".key", ".audit")
    restore(newer, site.config, Statement(Fraction(2), D))
    assert site.spent() == 4
    site.lose(".key", ".audit")
    refused(older, site, "epsilon 2 and delta .* came", Statement(Fraction(2), 2 * D))
    restore(older, site.config, Statement(Fraction(3), 2 * D))
    assert site.spent() == 4


def test_charges_that_a_restore_counted_count_once_for_backups_after_it(site):
    site.charge(C)
    older = site.back_up("older.tar")
    site.charge(A)
    site.lose(".key", ".audit")
    restore(older, site.config, Statement(Fraction(1), D))
    newer = site.back_up("newer.tar")
    site.charge(B)
    site.lose(".key", ".audit")
    refused(newer, site, "1 charges of epsilon 1 ", Statement(Fraction(1, 2), D))
    restore(newer, site.config, Statement(Fraction(1), D))
    assert site.spent() == 3


def test_a_restore_that_ends_in_the_middle_has_told_the_trail_what_it_counts(site):
    archive = lost_after_a_charge(site, ".key", ".audit")
    full = lying("process", append=no_space)
    with full, pytest.raises(e.AuditError, match="no space"):
        restore(archive, site.config, Statement(Fraction(3), D))
    assert not site.ledger.exists(), "the ledger is in use, and no trail says what it counts"
    crash = lying("process", put=crash_before_the_ledger)
    with crash, pytest.raises(e.LedgerError, match="a crash"):
        restore(archive, site.config, Statement(Fraction(3), D))
    assert not site.ledger.exists()
    refused(archive, site, "a sum of at least what is proven", Statement(Fraction(2), D))
    restore(archive, site.config, Statement(Fraction(3), D))
    assert site.spent() == 4


def no_space(honest: Callable[..., None], trail: AuditTrail, *rows: AuditRow) -> None:
    raise e.AuditError("no space")


def crash_before_the_ledger(
    put: Callable[..., None], restoration: object, name: str, target: Path
) -> None:
    if name == LEDGER:
        raise e.LedgerError("a crash")
    put(restoration, name, target)


def test_a_restore_that_cost_nothing_is_no_charge_for_the_next_one(site, tmp_path):
    """It ended before the ledger was in its place, and the anchor proves what it proved before."""
    site.charge(A)
    archive = site.back_up()
    site.lose(".key", ".audit", ".anchor")
    trail = AuditTrail(site.ledger)
    trail.append(AuditRow("restore", epsilon="0", delta="0", note=note_of(1, "nothing was lost")))
    restore(archive, site.config)
    assert site.spent() == 1


def test_a_copy_has_what_is_for_ever_and_nothing_that_could_still_leave(site):
    with site.open() as ledger:
        for study, name in ((A, "charged"), (B, "held"), (C, "prepared")):
            ledger.reserve(study, Fraction(1), D, name=name, events=(PureEvent(Fraction(1)),))
            ledger.note_cohort(study, Cohort(2, b"whole", {"age": b"age"}))
        pay(ledger, A, b"a" * 32, b"share")
        ledger.hold(B, b"b" * 32, b"this share has not left")
        ledger.prepare(C, 4e9)
        assert ledger.count_fields(C, 1)
        ledger.keep_start(b"south", b"a start of a peer")
        archive = site.back_up()
    assert b"this share has not left" not in archive.read_bytes()
    site.lose(".anchor", ".key")
    restore(archive, site.config)
    with closing(sqlite3.connect(site.ledger)) as db:
        assert {kind for (kind,) in db.execute("SELECT kind FROM store")} == set(FOR_EVER)
    with site.open(composition=Composition(ZCDP, Fraction(1, 10**9))) as ledger:
        assert ledger.balance().reserved == 0 and not ledger.holds(B)
        assert ledger.cohort(A) is not None and not ledger.count_fields(A, 1)
        assert ledger.charge(A, b"a" * 32).share == b"share", "a charge is for ever"
        with pytest.raises(e.LedgerError, match="a held attempt was expected"):
            ledger.charge(B, b"b" * 32)
        ledger.verify()


def test_an_archive_of_a_former_version_is_restored(site, tmp_path):
    """Its ledger has the former tables, and the sets of fields are in a file of their own."""
    (former := tmp_path / "former").mkdir()
    ledger = copy_former(former)
    place = Place.of(ledger)
    key, mark = read_key(place.key), read_anchor(place.anchor)
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("DELETE FROM held")
        db.commit()
    files = {LEDGER: ledger, FIELD_SETS: Path(f"{ledger}.fieldsets"), CONFIG: site.config}
    found = {name: digest_of(file) for name, file in files.items()}
    manifest = Manifest("then", "0", "north", "bank", mark.seq, mark.hash.hex(), "", found)
    write_archive(tmp_path / "a.tar", manifest, files, key)
    shutil.copy(place.key, f"{site.ledger}.key")
    restore(tmp_path / "a.tar", site.config, Statement(Fraction(1, 10), D))
    with site.open(delta=Fraction(1, 10**9)) as opened:
        assert opened.balance().spent == Fraction(11, 10)
        assert opened.answered(CHARGED).answer == b"the answer" and not opened.holds(HELD)
        assert not opened.count_fields(A, 2), "two sets of fields were counted before"
        opened.verify()
    assert not Path(f"{site.ledger}.fieldsets").exists()


@pytest.mark.parametrize("amount", ["1/10", "3/2", "0.5", "01/020", "10/100", "2e-1"])
def test_an_amount_is_a_decimal_or_any_fraction(site, amount):
    archive = lost_after_a_charge(site, ".key")
    words = ("--config", str(site.config), "--charged-since", amount, "--delta-since", "1/1000")
    done = CliRunner().invoke(umpc, ["node", "restore", str(archive), *words])
    assert done.exit_code == 0, done.output
    assert f"counts as charged since: epsilon {Fraction(amount)}, delta 1/1000\n" in done.output


def test_the_delta_of_the_lost_studies_composition_is_said_and_is_above_the_total(site):
    text = site.config.read_text() + 'composition = "advanced"\ncomposition_delta = "1e-10"\n'
    site.config.write_text(text)
    archive = lost_after_a_charge(site, ".key")
    words = ("--config", str(site.config), "--charged-since", "all")
    said = CliRunner().invoke(umpc, ["node", "restore", str(archive), *words]).output
    assert "1/10000000000 is the lost studies' composition_delta: the delta spent is above" in said
    loaded, total, own = site.loaded(), Fraction(1, 10**9), Fraction(1, 10**10)
    for more, left in ((Fraction(0), 0), (own, 0), (own + D, D)):
        with site.open(delta=total + more, composition=loaded.composition) as ledger:
            assert (ledger.delta().spent, ledger.delta().left) == (total + own, left)
