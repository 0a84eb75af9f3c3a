"""The record of lies, and the steps that a test replaces: an attack must really happen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.attacks import parties
from tests.attacks.lies import FILE, Lie, Record, check, told
from tests.support.studies import make_attempt, make_study
from umpc.errors import LocalProtocolError
from umpc.study.sizes import Sizes
from umpc.testing import STEPS, lying
from umpc_papers import testing as papers

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


@pytest.mark.parametrize(
    ("table", "role"), [(table, role) for table in (STEPS, papers.STEPS) for role in table]
)
def test_every_step_of_a_role_is_where_the_table_says(table, role):
    names = {name.strip("_") for names in table[role].values() for name in names.split()}
    steps = dict.fromkeys(names, lambda honest, *given, **named: honest)
    with lying(role, table=table, **steps):
        pass


def test_properties_and_functions_of_a_class_are_replaced_and_come_back():
    study = make_study(nodes=3, max_colluding=1)
    members = make_attempt(study, [4, 4, 4]).members
    sizes, epsilons = Sizes.of(study, members), study.epsilons
    lies = {
        "honest": lambda honest, study: honest(study) + 5,
        "epsilons": lambda honest, study: (*honest(study), 7),
        "of": lambda honest, study, members: honest(study, members[:2]),
    }
    with lying("everybody", **lies):
        assert study.honest == 7 and study.epsilons == (*epsilons, 7)
        assert Sizes.of(study, members) == Sizes.of(study, members[:2]) != sizes
    assert study.honest == 2 and study.epsilons == epsilons
    assert Sizes.of(study, members) == sizes


def test_a_step_that_a_role_does_not_have_is_refused():
    with (
        pytest.raises(LocalProtocolError, match="dealer has no step own_noise"),
        lying("dealer", own_noise=lambda honest, *given: []),
    ):
        pass
