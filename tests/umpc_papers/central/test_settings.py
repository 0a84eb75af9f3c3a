"""umpc_papers.central.settings: the rules of a study with a trusted curator, by both doors."""

from __future__ import annotations

import pytest

from tests.support.central import MECHANISMS, central_study
from tests.support.local import local_study
from tests.support.protocols import assert_not_a_setting, assert_refused, with_facts
from tests.support.studies import AUC, CLASSES, GINI, KENDALL, TRIPLE, make_study
from umpc.errors import StudyError
from umpc.protocols.registry import decode_study, find_protocol, possible_values, protocol_of
from umpc_papers.central.settings import usual_settings

LAPLACE, PART = central_study(), central_study("hajek_subsampled")
REFUSED = [
    (
        LAPLACE,
        {"noise": "distributed"},
        "noise of \"central\" must be one of laplace, coinpress_naive.*'distributed'",
    ),
    (LAPLACE, {"noise": "local"}, 'noise of "central" must be one of'),
    (
        LAPLACE,
        {"edges": "2n"},
        'edges of noise = "laplace" is "all"; leave edges out, or take one of coinpress_sub',
    ),
    (
        PART,
        {"edges": "all"},
        "over a number of independent sets: write edges = \"2n\" or a number, got 'all'",
    ),
    (PART, {"edges": "1p"}, "over a number of independent sets.*'1p'"),
    (PART, {"edges": "0"}, "edges must be"),
    (
        LAPLACE,
        {"kernels": (KENDALL, GINI), "estimator": "ratio"},
        "mean of one symmetric kernel.*the ratio of 2 sum",
    ),
    (LAPLACE, {"estimator": "total"}, "mean of one symmetric kernel.*the total of 1 sum"),
    (
        LAPLACE,
        {"kernels": (AUC,), "sampling": "two_sample", "fields": (*LAPLACE.fields, CLASSES)},
        'mean of one symmetric kernel, without classes.*"two_sample"',
    ),
    (LAPLACE, {"kernels": ("2",)}, "this kernel has none"),
]


@pytest.mark.parametrize(
    ("study", "changes", "message"), REFUSED, ids=lambda value: str(value)[:50]
)
def test_what_it_cannot_say_is_refused_by_both_doors(study, changes, message):
    assert_refused(with_facts(study, **changes), StudyError, message)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("backend", "shared"),
        ("preprocessing", "dealer"),
        ("delta", "1e-9"),
        ("dealer", {"name": "dealer", "address": "x:1"}),
        ("bins", [{"field": "x", "count": 2, "cuts": []}]),
        ("levels", 2),
    ],
)
def test_a_study_has_no_settings_but_noise_and_edges(key, value):
    assert_not_a_setting(LAPLACE, key, value)


def test_a_mechanism_is_no_noise_of_another_protocol():
    message = 'noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial'
    assert_refused(make_study(noise="laplace"), StudyError, message)
    assert_not_a_setting(local_study("bell-ldp"), "noise", "hajek")


def test_its_other_facts_are_fixed():
    assert (LAPLACE.backend, LAPLACE.preprocessing, LAPLACE.dealer) == ("none", "none", None)
    assert (LAPLACE.delta, LAPLACE.shufflers) == ("", ())


@pytest.mark.parametrize("noise", MECHANISMS)
def test_what_is_possible_survives_its_bytes(noise):
    for changes in (
        {},
        {"kernels": TRIPLE, "degree": 3},
        {"kernels": "a.x", "degree": 1},
        {"max_colluding": 1},
    ):
        study = central_study(noise, **changes)
        assert decode_study(study.encode()) == study
        assert protocol_of(study).trust(study).grade == "curator"
    assert noise in possible_values("noise") and "central" in possible_values("protocol")


def test_other_studies_have_no_curator():
    for study in (make_study(), local_study("bell-ldp")):
        protocol = protocol_of(study)
        assert protocol.trust(study).grade != "curator" and protocol.discloses(study) == ()


@pytest.mark.parametrize(
    ("entries", "edges"),
    [
        ({}, "all"),
        ({"noise": "hajek"}, "all"),
        ({"noise": "hajek_subsampled"}, "2n"),
        ({"noise": "coinpress_subsampled"}, "2n"),
        ({"noise": "hajek_subsampled", "edges": "30"}, "30"),
    ],
    ids=str,
)
def test_edges_that_a_file_leaves_out_are_those_of_the_mechanism(entries, edges):
    assert usual_settings(entries)["edges"] == edges
    assert find_protocol("central").read_settings(entries, 2, "1").edges == edges
