"""umpc_papers.ghazi_shuffle.settings: two shufflers, and the rules of studies of cells."""

from __future__ import annotations

import pytest

from tests.support.local import bins
from tests.support.protocols import assert_not_a_setting, assert_refused, with_facts
from tests.support.shuffled import SHUFFLERS, shuffled_study
from tests.support.studies import make_study
from umpc.errors import DuplicateParticipant, StudyError
from umpc.protocols.registry import decode_study, protocol_of
from umpc.study.parts import Participant

SHUFFLED = shuffled_study()
THREE = tuple(Participant(name, "x:1") for name in ("one", "two", "three"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"shufflers": ()},
            StudyError,
            r"exactly two shufflers.*got 0: write two \[\[shufflers\]\]",
        ),
        ({"shufflers": THREE[:1]}, StudyError, "exactly two shufflers.*got 1"),
        ({"shufflers": THREE}, StudyError, "exactly two shufflers.*got 3"),
        (
            {"shufflers": (THREE[0], THREE[0])},
            DuplicateParticipant,
            "two participants are named 'one'",
        ),
        (
            {"shufflers": (THREE[0], Participant("node-0", "x:1"))},
            DuplicateParticipant,
            "two participants are named 'node-0'",
        ),
        (
            {"shufflers": (THREE[0], Participant("No", "x:1"))},
            StudyError,
            "lower-case letters",
        ),
        ({"bins": ()}, StudyError, "takes bins for each field of the kernel"),
        ({"bins": bins(x=2, y=5)}, StudyError, "1 to 4 bins are possible"),
        ({"rounding": "up"}, StudyError, "rounding must be one of simple, randomised"),
        ({"estimator": "total"}, StudyError, '"ghazi-shuffle" computes the mean of one kernel'),
    ],
    ids=lambda value: str(value)[:50],
)
def test_settings_that_cannot_be_are_refused_by_both_doors(changes, error, message):
    assert_refused(with_facts(SHUFFLED, **changes), error, message)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("noise", "local"),
        ("noise", "distributed"),
        ("delta", "1e-9"),
        ("edges", "2n"),
        ("backend", "shared"),
        ("preprocessing", "dealer"),
        ("dealer", {"name": "dealer", "address": "x:1"}),
        ("levels", 2),
    ],
)
def test_a_study_has_settings_of_cells_and_shufflers_only(key, value):
    assert_not_a_setting(SHUFFLED, key, value)


def test_its_other_facts_are_fixed():
    assert (SHUFFLED.edges, SHUFFLED.noise, SHUFFLED.delta) == ("all", "shuffled", "")
    assert (SHUFFLED.backend, SHUFFLED.preprocessing, SHUFFLED.dealer) == ("none", "none", None)


def test_shuffled_noise_is_no_noise_of_another_protocol():
    message = 'noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial'
    assert_refused(make_study(noise="shuffled"), StudyError, message)


def test_what_is_possible_survives_its_bytes():
    study = shuffled_study(5, bins=bins(y=["1", "3"], x=2), rounding="simple")
    assert decode_study(study.encode()) == study


def test_people_see_the_bins_and_the_shufflers():
    lines = dict(protocol_of(SHUFFLED).describe(SHUFFLED))
    assert lines["bins"] == "simple rounding to bins: 4 of 'x', 4 of 'y'"
    names = " and ".join(shuffler.name for shuffler in SHUFFLERS)
    assert lines["shufflers"] == (
        f"{names}; neither may collude with coordinator or with the other"
    )
