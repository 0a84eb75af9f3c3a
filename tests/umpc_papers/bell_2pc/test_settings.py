"""umpc_papers.bell_2pc.settings: the usual edges, and every refusal, by both doors."""

from __future__ import annotations

import pytest

from tests.support.bell import bell_study
from tests.support.protocols import assert_not_a_setting, assert_refused, usual, with_facts
from tests.support.studies import AUC, CLASSES, TRIPLE
from umpc.errors import StudyError
from umpc.protocols.registry import checked, decode_study
from umpc.study.parts import FieldText
from umpc_papers.bell_2pc.settings import BellTwoPcSettings

BELL = bell_study()
TWO_SAMPLE = {
    "kernels": (AUC,),
    "sampling": "two_sample",
    "fields": (FieldText("x", "0", "3", whole=True), CLASSES),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            (
                {"noise": noise},
                'noise of "bell-2pc" must be one of pair_laplace, randomised_response, '
                "group_laplace, got",
            )
            for noise in ("distributed", "in_mpc", "skellam", "local", "")
        ),
        ({"degree": 3, "kernels": (TRIPLE,)}, '"bell-2pc" is of pairs; got degree 3'),
        ({"degree": 1, "kernels": ("a.x",)}, '"bell-2pc" is of pairs; got degree 1'),
        ({"delta": "0"}, "delta must be between 0 and 1, got '0'"),
        ({"delta": "1"}, "delta must be between 0 and 1"),
        ({"delta": "few"}, "delta must be a number"),
        ({"edges": ""}, "edges must be"),
        ({"edges": "0p"}, 'pairings of all records such as "1p"'),
        ({"edges": "1np"}, 'pairings of all records such as "1p"'),
    ],
    ids=lambda value: str(value)[:50],
)
def test_settings_that_cannot_be_are_refused_by_both_doors(changes, message):
    assert_refused(with_facts(BELL, **changes), StudyError, message)


@pytest.mark.parametrize("noise", ["pair_laplace", "randomised_response"])
@pytest.mark.parametrize("delta", ["", "1e-9"])
def test_what_is_possible_survives_its_bytes(noise, delta):
    study = with_facts(BELL, noise=noise, delta=delta)
    assert decode_study(study.encode()) == checked(study)


def test_edges_that_nobody_names_are_one_pairing_of_all_records():
    assert usual(BELL.replaced(settings=BellTwoPcSettings())).edges == "1p"
    assert usual(BELL.replaced(edges="all")).edges == "all"


def test_pairings_are_of_all_records_so_two_classes_take_another_rule():
    study = with_facts(BELL, **TWO_SAMPLE)
    assert usual(study.replaced(settings=BellTwoPcSettings())).edges == "2n"


def test_a_study_of_pairs_chooses_neither_its_backend_nor_a_dealer():
    assert_not_a_setting(BELL, "backend", "shared")
    assert_not_a_setting(BELL, "preprocessing", "dealer")
    assert_not_a_setting(BELL, "dealer", {"name": "dealer", "address": "x:1"})


def test_its_pairs_are_always_garbled_without_a_dealer():
    assert (BELL.backend, BELL.preprocessing, BELL.dealer) == ("garbled", "none", None)
