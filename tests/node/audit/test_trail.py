"""The audit trail: its chain, two writers, crashes, and every way to change it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from umpc.errors import AuditError
from umpc.node.audit import reading
from umpc.node.audit.reading import Verified, add_missing_charges, compare, rows, verify
from umpc.node.audit.trail import (
    FIRST_HASH,
    MOST_LINE,
    AuditMark,
    AuditRow,
    AuditTrail,
    key_of,
    sealed,
)
from umpc.node.budget.budget_account import Row
from umpc.testing import lying

STUDY = "ab" * 32
KEY = key_of(b"k" * 32)


@pytest.fixture
def trail(tmp_path) -> AuditTrail:
    (tmp_path / "ledger.key").write_bytes(b"k" * 32)
    return AuditTrail(tmp_path / "ledger", clock=lambda: "2026-03-01T00:00:00+00:00")


def fill(trail, count=6) -> AuditMark:
    trail.append(AuditRow("start"), AuditRow("charge", study=STUDY, epsilon="1/3"))
    return [trail.append(AuditRow("proposal", name=f"tau {n}")) for n in range(count - 2)][-1]


def test_rows_are_chained_and_say_what_happened(trail):
    mark = fill(trail)
    assert mark.seq == 6 and verify(trail.path, KEY).head == mark
    assert verify(trail.path, KEY).charged == {bytes.fromhex(STUDY)}
    assert trail.path.stat().st_mode & 0o777 == 0o600
    second = list(rows(trail.path))[1]
    assert second["epsilon"] == "1/3" and second["at"] == "2026-03-01T00:00:00+00:00"
    assert verify(trail.path, KEY, AuditMark.parse(str(mark))).head == mark


def test_every_change_is_found_at_its_row(trail):
    fill(trail)
    whole = trail.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    forged, _ = sealed(b"another key", FIRST_HASH, AuditRow("start").line(1, "2026"))
    changes = {
        "row 3 is wrong": [*lines[:2], *lines[3:]],  # removed
        "row 2 is wrong": [lines[0], lines[2], lines[1], *lines[3:]],  # exchanged
        "row 4 is wrong": [*lines[:3], lines[2], *lines[3:]],  # repeated
        "row 1 is wrong": [forged, *lines[1:]],
        "row 6 is cut short": [*lines[:5], lines[5][:-1]],
        "row 5 is no row": [*lines[:4], b"{}\n", lines[5]],
    }
    for words, changed in changes.items():
        trail.path.write_bytes(b"".join(changed))
        with pytest.raises(AuditError, match=f"{words}.*Keep the file for inquiry"):
            verify(trail.path, KEY)
    for at in range(0, len(whole), 11):
        changed = bytearray(whole)
        changed[at] ^= 1
        trail.path.write_bytes(changed)
        with pytest.raises(AuditError):
            verify(trail.path, KEY)


def test_rows_that_were_cut_off_are_found_by_the_ledger_or_by_a_noted_place(trail):
    mark = fill(trail)
    lines = trail.path.read_bytes().splitlines(keepends=True)
    trail.path.write_bytes(b"".join(lines[:5]))
    found = verify(trail.path, KEY)
    compare(trail.path, found, frozenset([bytes.fromhex(STUDY)]))
    with pytest.raises(AuditError, match="row 6 with the hash that was noted is missing"):
        verify(trail.path, KEY, mark)
    trail.path.write_bytes(lines[0])
    with pytest.raises(AuditError, match=r"the ledger charged 1 studies .* abababababababab"):
        compare(trail.path, verify(trail.path, KEY), frozenset([bytes.fromhex(STUDY)]))
    trail.path.unlink()
    assert verify(trail.path, KEY) == Verified(AuditMark(), frozenset())
    with pytest.raises(AuditError, match="missing"):
        verify(trail.path, KEY, mark)
    with pytest.raises(AuditError, match="Correct --expect"):
        AuditMark.parse("6 abc")


def test_a_crash_in_a_row_is_repaired_and_told(trail):
    for torn in (b'{"seq":7,"at', b"x", b'{"seq":3,"hash":"'):
        fill(trail)
        before = verify(trail.path, KEY).head.seq
        with trail.path.open("ab") as file:
            file.write(torn)
        assert len(list(rows(trail.path))) == before  # a reader passes over it
        trail.append(AuditRow("start"))
        told, last = list(rows(trail.path))[-2:]
        assert told["note"] == f"{len(torn)} bytes of a row that was never finished"
        assert (last["event"], last["seq"]) == ("start", before + 2)
        assert verify(trail.path, KEY).head.seq == before + 2
    trail.path.write_bytes(b"only a beginning")
    assert trail.append(AuditRow("start")).seq == 2
    trail.path.write_bytes(b"something else\n")
    with pytest.raises(AuditError, match="a row was expected at its end"):
        trail.append(AuditRow("start"))


def test_many_writers_make_one_chain(trail):
    program = (
        "import sys; from pathlib import Path; from umpc.node.audit.trail import AuditTrail\n"
        "from umpc.node.audit.trail import AuditRow\n"
        "for n in range(20): AuditTrail(Path(sys.argv[1])).append(AuditRow('accepted'))"
    )
    beside = str(trail.path).removesuffix(".audit")
    other = subprocess.Popen([sys.executable, "-c", program, beside])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: trail.append(AuditRow("proposal", name=str(n))), range(40)))
    assert other.wait() == 0
    assert verify(trail.path, KEY).head.seq == 60


def test_texts_of_others_stay_one_short_line(trail):
    hostile = 'a\n{"seq":9}\x1b[2J\ud800"event":"charge"' + "é" * 9999
    trail.append(
        AuditRow("proposal", name=hostile, fields=(hostile,) * 999, note=hostile, statistic=hostile)
    )
    (line,) = trail.path.read_bytes().splitlines()
    assert len(line) < MOST_LINE
    row = json.loads(line)
    assert all(text.isprintable() for text in (row["name"], row["note"], *row["fields"]))
    assert len(row["fields"]) == 33 and row["fields"][-1] == "and 967 more"
    assert verify(trail.path, KEY).charged == frozenset()


def test_without_a_key_or_a_disk_no_row_is_lost_in_silence(trail, tmp_path, monkeypatch):
    fill(trail)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AuditError, match="takes part in no study") as caught:
        trail.append(AuditRow("start"))
    assert "No space left" in caught.value.detail
    monkeypatch.undo()
    (tmp_path / "ledger.key").unlink()
    with pytest.raises(AuditError, match=r"ledger\.key was expected"):
        trail.append(AuditRow("start"))


def write_many(path, count: int) -> None:
    """Write a trail of many rows, without waiting for the disk."""
    former = FIRST_HASH
    entry = AuditRow(
        "proposal", STUDY, "tau", "coordinator", "kendall_tau", ("age", "balance"), "1"
    )
    template = entry.line(1, "2026-03-01T00:00:00+00:00").removeprefix(b'{"seq":1,')
    with path.open("wb") as file:
        for seq in range(1, count + 1):
            line, former = sealed(KEY, former, b'{"seq":%d,%s' % (seq, template))
            file.write(line)


def test_verification_reads_one_row_at_a_time(tmp_path):
    write_many(tmp_path / "audit", 2000)
    held = []

    def counted(honest, *row):
        held.append(1)
        return honest(*row)

    found = reading.lines(tmp_path / "audit")
    next(found)
    assert found.gi_frame.f_locals["file"].tell() <= 1 << 16
    with lying("process", seal=counted):
        assert verify(tmp_path / "audit", KEY).head.seq == 2000 == len(held)


def test_charges_of_the_ledger_without_a_row_are_added_once(trail):
    fill(trail)
    kinds = {"charge": bytes.fromhex(STUDY), "course": b"c" * 32, "cancel": b"d" * 32}
    charges = [
        Row(2, "2026-02-02", kind, study, Fraction(1), Fraction(0), b"", b"", "train", b"")
        for kind, study in kinds.items()
    ]
    assert add_missing_charges(trail, charges) == 1
    added = list(rows(trail.path))[-1]
    assert (added["study"], added["epsilon"], added["name"]) == ("63" * 32, "1", "train")
    assert added["note"] == "found in the ledger, charged at 2026-02-02"
    assert add_missing_charges(trail, charges) == 0
    restore = Row(3, "2026-02-03", "restore", b"", Fraction(1), Fraction(0), b"", b"", "", b"")
    trail.append(AuditRow("restore", epsilon="1", delta="0"))
    assert add_missing_charges(trail, [*charges, restore]) == 0
    again = [charges[0], restore, charges[0]]
    assert [add_missing_charges(trail, again) for _ in range(2)] == [1, 0], "charged once more"
    trail.path.write_bytes(b'{"seq":1,"event":"charge"}\n')
    with pytest.raises(AuditError, match="row 1 is no row"):
        add_missing_charges(trail, charges)
