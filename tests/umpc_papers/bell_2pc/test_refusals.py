"""Studies of noisy pairs that are refused before anything is sent or charged."""

from __future__ import annotations

import pytest

from tests.support.bell import (
    EQUAL,
    bell_study,
)
from tests.support.protocols import coordinator_of
from tests.support.silent_pairs import changed
from tests.support.studies import (
    GINI,
    KENDALL,
    Entropy,
    make_members,
    make_study,
    random_tables,
    table,
)
from umpc.errors import (
    InvalidEpsilon,
    KernelError,
    RangeError,
    StudyError,
)
from umpc.protocols.registry import attempt_of, checked
from umpc.simulation import simulate
from umpc.study.sizes import Sizes
from umpc_papers.bell_2pc.noise_binding import MAX_RELEASED, check_released

pytestmark = pytest.mark.usefixtures("fast")


@pytest.mark.parametrize(
    ("changes", "records", "error", "reason"),
    [
        (
            {"edges": "all"},
            600,
            RangeError,
            f"at most {MAX_RELEASED} are possible; ask for fewer edges",
        ),
        (
            {"edges": "999999999999999999p"},
            4,
            RangeError,
            "at most 65536 pairings can be drawn; ask for fewer",
        ),
        (
            {"edges": "1p", "sampling": "two_sample"},
            8,
            StudyError,
            'those of two classes; ask for "2n"',
        ),
    ],
    ids=str,
)
def test_sizes_that_are_refused(changes, records, error, reason):
    """The coordinator refuses them before any opening, and a node does not rely on that."""
    study = bell_study(**changes)
    half = records // 2
    members, openings = make_members(study, [half, half], first=[half // 2, half // 2])
    with pytest.raises(error, match=reason):
        coordinator_of(study).check_sizes(members)
    with pytest.raises(error, match=reason):
        attempt_of(study, members, openings)


def test_as_many_values_as_a_message_holds_are_possible():
    study = bell_study((EQUAL, GINI), 2, estimator="ratio", edges=str(MAX_RELEASED // 2))
    sizes = Sizes(study, 1000)
    assert sizes.edges == MAX_RELEASED // 2
    check_released(sizes)
    with pytest.raises(RangeError, match="releases a value of every pair"):
        check_released(Sizes(changed(study, edges=str(MAX_RELEASED // 2 + 1)), 1000))


@pytest.mark.parametrize("records", [2, 1000])
def test_pairings_without_end_are_refused_under_every_protocol(records):
    """They are listed one by one, so their number has a bound: whatever the number of different
    pairs is.
    """
    study = checked(make_study(KENDALL, 2, edges="999999999999999999p"))
    with pytest.raises(RangeError, match="ask for fewer"):
        _ = Sizes(study, records).edges


def test_noise_that_takes_too_large_a_circuit_is_refused_before_anything_is_sent():
    wide = {"x": ("0", "1000000", "0.001"), "y": ("0", "1000000", "0.001")}
    study = bell_study("(a.x - b.x) * (a.y - b.y)", 2, epsilon="1e-3", **wide)
    with pytest.raises(
        (KernelError, InvalidEpsilon), match=r"narrow its fields' bounds|larger epsilon"
    ):
        simulate(study, [table([0, 1], [0, 1])] * 2, Entropy("wide"))


def test_an_epsilon_that_leaves_nothing_of_a_response_is_refused_before_anything_is_charged():
    study = bell_study(noise="randomised_response", epsilon="1e-15")
    with pytest.raises(InvalidEpsilon, match="larger epsilon"):
        simulate(study, random_tables([3, 3], "nothing", 0, 1), Entropy("nothing"))
