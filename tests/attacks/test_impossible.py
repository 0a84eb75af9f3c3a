"""Random material, or one flipped bit, gives no number instead of an impossible one."""

from __future__ import annotations

import pytest

from umpc.errors import ImpossibleResult, UmpcError
from umpc.study.report import Report
from umpc.testing import lying

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
    "a node learns from a refusal what its lie met", "honest", "bounded: nodes hear of no refusal"
)
@pytest.mark.lies("bit")
def test_a_node_hears_nothing_of_a_refusal_in_a_run_or_when_it_is_asked_again(liars):
    """The refusal is the coordinator's answer to a lie; a node's run ends as after any result.

    A node that keeps its stream open would be told why the study ended.
    """
    told: list[UmpcError] = []

    async def abort(honest, link, error: UmpcError, **_: object) -> None:
        told.append(error)

    with lying("coordinator", abort=abort):
        for _ in range(2):
            assert isinstance(liars.attempt(name="bit-unheard", epsilon="1000"), ImpossibleResult)
    assert told == []
    for name in liars.names:
        lines = [line for line in liars.log(name).splitlines() if "bit-unheard" in line]
        assert lines and not any("ended" in line or "cannot give" in line for line in lines), lines


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
def test_a_coordinator_that_checks_no_sum_shows_an_impossible_one(liars):
    """A mutant of the defence: the attack then works, so the tests above see the check."""
    with lying("coordinator", check_sums=lambda honest, *given: None):
        ended = liars.attempt(name="bit-mutant", epsilon="1000")
    assert isinstance(ended, Report) and abs(ended.estimate) > 1.5
