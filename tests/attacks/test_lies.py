"""The record of lies: an attack that did not happen fails its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.attacks import parties
from tests.attacks.lies import FILE, Lie, Record, check, told

LIE = Lie("bit", "bit-study", "material")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Provide a record of its own, for this process."""
    monkeypatch.setenv(FILE, str(tmp_path / "told"))
    return Record(tmp_path / "told")


def test_a_lie_is_written_down_and_the_truth_is_not(own):
    assert told("bit", "bit-study", "material", b"1", b"1") == b"1"
    assert own.new() == []
    assert told("bit", "bit-study", "material", b"1", b"2") == b"2"
    assert own.new() == [LIE]


def test_a_late_lie_of_a_former_study_is_not_new(own):
    for _ in range(2):
        told("bit", "bit-study", "material", 1, 2)
        first = own.new()
        assert first == [LIE] or not first
    assert not first


@pytest.mark.parametrize(
    ("due", "lies"),
    [
        (["bit"], []),
        ([], [LIE]),
        (["flip"], [LIE]),
        (["bit", "flip"], [LIE]),
        (["bit"], [LIE, Lie("bit", "truth", "material")]),
    ],
)
def test_other_lies_than_those_due_fail(due, lies):
    with pytest.raises(AssertionError):
        check(due, lies)
    check(["bit"], [LIE, LIE])
    check([], [])


def test_every_liar_of_the_table_has_a_test():
    """A marker may name a parameter, so its words are looked for as they stand in any test."""
    known = re.findall(r"^\| `(\w+)` \|", parties.__doc__ or "", flags=re.MULTILINE)
    files = Path(__file__).parent.glob("test_*.py")
    text = "".join(file.read_text() for file in files if file.name != Path(__file__).name)
    assert len(known) == 9
    assert [word for word in known if f'"{word}"' not in text] == []
