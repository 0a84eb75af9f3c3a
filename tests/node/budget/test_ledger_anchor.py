"""umpc.node.budget.ledger_place: key and anchor follow the ledger through crashes.

The loss of any of the three is detected.
"""

from __future__ import annotations

import hashlib
import os
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import A, B, charged, copies, kinds, opened, pay, refused
from umpc.errors import LedgerError
from umpc.node.budget.budget_account import FIRST_HASH
from umpc.node.budget.ledger_place import START, Mark, disagreement, read_anchor
from umpc.node.budget.ledger_store import StoredRelease


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where the anchor is: a folder of its own."""
    (tmp_path / "other disk").mkdir()
    return tmp_path / "other disk" / "anchor"


# --- the rule, exhaustively -------------------------------------------------------------------


def test_the_anchor_s_rule():
    """An anchor at row m of n is accepted if m is n or n - 1 and the hash is that of row m."""
    hashes = [FIRST_HASH, *(hashlib.sha256(bytes([i])).digest() for i in range(1, 7))]
    for rows in range(1, 6):
        for seq in range(7):
            for digest in hashes:
                expected = seq in (rows, rows - 1) and digest == hashes[seq]
                assert (disagreement(Mark(seq, digest), hashes[: rows + 1]) == "") == expected
    assert disagreement(START, hashes[:2]) == "" and disagreement(None, hashes[:2])


# --- companions -------------------------------------------------------------------------------


def test_the_companions_are_the_owner_s_alone(path, elsewhere):
    with opened(path, anchor=elsewhere) as ledger:
        charged(ledger, A)
    for file in (path, Path(f"{path}.key"), elsewhere):
        assert file.stat().st_mode & 0o777 == 0o600
    assert not Path(f"{path}.anchor").exists() and len(Path(f"{path}.key").read_bytes()) == 32


def test_the_anchor_follows_every_row(path):
    with opened(path) as ledger:
        for step in (
            lambda: charged(ledger, A),
            lambda: ledger.answer(A, b"", b"q" * 32, b""),
            lambda: ledger.reserve(B, Fraction(1), Fraction(0)),
            lambda: ledger.hold(B, b"", b""),
            lambda: ledger.drop(B),
            lambda: charged(ledger, B),
        ):
            step()
            last = ledger.history()[-1]
            assert read_anchor(Path(f"{path}.anchor")) == Mark(last.seq, last.hash)


def test_two_ledgers_have_two_keys(path):
    opened(path).close()
    opened(path.with_name("other")).close()
    assert Path(f"{path}.key").read_bytes() != path.with_name("other.key").read_bytes()


@pytest.mark.parametrize("end", ["", ".key", ".lock", ".new", "-wal"])
def test_an_anchor_in_another_file_s_place(path, end):
    copies(path)
    refused(path, "an anchor in a file of its own was expected", anchor=Path(f"{path}{end}"))


# --- a crash between ledger and anchor --------------------------------------------------------


def test_a_crash_after_the_row_and_before_the_anchor(path):
    """The charge is on disk, so it counts; the anchor is moved up, and the share is stored."""
    in_the_way = Path(f"{path}.anchor.new")
    with opened(path) as ledger:
        ledger.reserve(A, Fraction(1), Fraction(0))
        in_the_way.mkdir()
        for call in (lambda: pay(ledger, A, b"1", b"share"), lambda: ledger.released(A)):
            with pytest.raises(LedgerError, match="the system refused"):
                call()
        in_the_way.rmdir()
    assert read_anchor(Path(f"{path}.anchor")).seq == 2
    with opened(path) as ledger:
        assert ledger.released(A) == StoredRelease(b"1", b"share") and ledger.balance().spent == 1
        ledger.verify()
        assert read_anchor(Path(f"{path}.anchor")).seq == 3 and kinds(ledger)[-1] == "charge"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_crash_while_a_ledger_is_made(path, monkeypatch, at):
    """After 0, 1 or 2 durable files of anchor, key, ledger: the next start makes the rest."""
    real, made = os.replace, []

    def crash(source, target):
        if len(made) == at:
            raise OSError("power cut")
        made.append(target)
        real(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(LedgerError):
        opened(path)
    monkeypatch.undo()
    assert not path.exists()
    with opened(path) as ledger:
        assert kinds(ledger) == ["genesis", "total"]
        ledger.verify()


def test_a_draft_of_an_anchor_left_by_a_crash(path):
    opened(path).close()
    Path(f"{path}.anchor.new").write_text("half")
    with opened(path) as ledger:
        charged(ledger, A)
    opened(path).close()


# --- lost files -------------------------------------------------------------------------------


def test_a_lost_ledger(path):
    copies(path)
    path.unlink()
    assert "saw row 4" in refused(path, "the file was expected, for its anchor .* and it is gone")


def test_a_lost_ledger_whose_anchor_is_lost_too(path):
    copies(path)
    path.unlink()
    Path(f"{path}.anchor").unlink()
    refused(path, "the file was expected, for its key .* is there")


def test_a_lost_anchor(path):
    copies(path)
    Path(f"{path}.anchor").unlink()
    message = refused(path, "its anchor .* was expected, and there is no such file")
    assert "mount it" in message and "umpc budget anchor --config node.toml --accept" in message


@pytest.mark.parametrize(
    "content",
    ["", "umpc anchor 1: row 6", "row 6, hash 00\n", "umpc anchor 1: row -1, hash\n", "é"],
)
def test_an_anchor_that_is_none(path, content):
    copies(path)
    Path(f"{path}.anchor").write_text(content)
    refused(path, "one line with a row and its hash was expected")


def test_a_lost_key(path):
    copies(path)
    Path(f"{path}.key").unlink()
    refused(path, "its key .* was expected, and there is no such file. Put it back")


@pytest.mark.parametrize(
    ("key", "says"), [(b"short", "32 bytes were expected, and 5"), (bytes(32), "row 1 is wrong")]
)
def test_another_key(path, key, says):
    copies(path)
    Path(f"{path}.key").write_bytes(key)
    refused(path, says)
