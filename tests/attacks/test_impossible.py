"""Random material, or one flipped bit, gives no number instead of an impossible one."""

from __future__ import annotations

import pytest

from umpc.errors import ImpossibleResult
from umpc.protocols.u_mpc import coordinator
from umpc.study.report import Report

LINE = "random material or one flipped bit is released as ok"


@pytest.mark.attack(LINE, "honest", "noticed: impossible result")
@pytest.mark.parametrize(
    "lie", [pytest.param(lie, marks=pytest.mark.lies(lie)) for lie in ("random", "bit")]
)
def test_an_impossible_sum_is_no_result(liars, lie):
    ended = liars.attempt(name=f"{lie}-material", epsilon="1000")
    assert isinstance(ended, ImpossibleResult), ended
    assert "No estimate is shown" in ended.message and ended.step == "release"


@pytest.mark.attack(LINE, "honest", "noticed: also when the study is asked again")
@pytest.mark.lies("bit")
def test_a_replay_of_an_impossible_sum_is_no_result_either(liars):
    for _ in range(2):
        ended = liars.attempt(name="bit-again", epsilon="1000")
        assert isinstance(ended, ImpossibleResult), ended


@pytest.mark.attack(
    "a node flips opened bits", "honest", "outside the promise; in range or noticed"
)
@pytest.mark.parametrize(
    "lie", [pytest.param(lie, marks=pytest.mark.lies(lie)) for lie in ("flip", "widen")]
)
def test_flipped_bits_give_a_number_in_range_or_none(liars, lie):
    ended = liars.attempt(name=f"{lie}-honest", epsilon="1000")
    if isinstance(ended, Report):
        assert -1.5 <= ended.estimate <= 1.5
    else:
        assert isinstance(ended, ImpossibleResult), ended


def test_honest_studies_of_the_same_processes_are_released(liars):
    """The power of the tests above: without a lie there is a result."""
    ended = liars.attempt(name="truth", epsilon="1000")
    assert isinstance(ended, Report), ended
    assert all(liars.charged(name, "truth") for name in liars.names)


@pytest.mark.lies("bit")
def test_a_coordinator_that_checks_no_sum_shows_an_impossible_one(liars, monkeypatch):
    """A mutant of the defence: the attack then works, so the tests above see the check."""
    monkeypatch.setattr(coordinator, "check_sums", lambda *arguments: None)
    ended = liars.attempt(name="bit-mutant", epsilon="1000")
    assert isinstance(ended, Report) and abs(ended.estimate) > 1.5
