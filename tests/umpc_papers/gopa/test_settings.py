"""umpc_papers.gopa.settings: the rules of a study of `gopa`, refused by both doors."""

from __future__ import annotations

import pytest

from tests.support.gopa import gopa_study
from tests.support.protocols import assert_not_a_setting, assert_refused, with_facts
from tests.support.studies import KENDALL, make_study
from umpc.errors import StudyError
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.study.parts import Participant

GOPA = gopa_study(3)
MANY = tuple(Participant(f"node-{i}", f"node-{i}:1") for i in range(65))
REFUSED = [
    ({"nodes": MANY[:1], "max_colluding": 0}, "for 2 to 64 nodes, .*; got 1"),
    ({"nodes": MANY}, "got 65"),
    ({"delta": ""}, "takes a delta between 0 and 1, got ''; a usual value is 1e-9"),
    ({"delta": "0"}, "got '0'"),
    ({"delta": "1"}, "got '1'"),
    ({"delta": "-1e-9"}, "got '-1e-9'"),
    ({"delta": "some"}, "delta must be a number"),
    (
        {"degree": 2, "kernels": (KENDALL,)},
        "mean of one kernel over single records.*over sets of 2 record",
    ),
    ({"estimator": "total"}, "mean of one kernel over single records.*the total of 1 sum"),
    ({"estimator": "ratio", "kernels": ("a.x", "a.y")}, "the ratio of 2 sum"),
    ({"max_colluding": 3}, "max_colluding must be between 0 and 2"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_what_gopa_cannot_be_is_refused_by_both_doors(changes, message):
    assert_refused(with_facts(GOPA, **changes), StudyError, message)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("edges", "2n"),
        ("noise", "distributed"),
        ("noise", "local"),
        ("backend", "shared"),
        ("preprocessing", "dealer"),
        ("dealer", {"name": "dealer", "address": "x:1"}),
        ("levels", 2),
        ("rounding", "randomised"),
    ],
)
def test_a_study_has_no_setting_but_delta(key, value):
    assert_not_a_setting(GOPA, key, value)


def test_its_other_facts_are_fixed():
    assert (GOPA.edges, GOPA.noise, GOPA.backend) == ("all", "gopa", "none")
    assert (GOPA.preprocessing, GOPA.dealer, GOPA.shufflers) == ("none", None, ())


def test_its_noise_is_no_other_protocols():
    with pytest.raises(
        StudyError,
        match='noise of "u-mpc" must be one of distributed, in_mpc, skellam, binomial, got',
    ):
        checked(make_study(noise="gopa"))


@pytest.mark.parametrize("nodes", [2, 64])
def test_what_is_possible_survives_its_bytes(nodes):
    for study in (
        gopa_study(nodes, colluding=nodes - 1),
        gopa_study(nodes, colluding=0, delta="1e-5"),
    ):
        assert decode_study(study.encode()) == study
        assert protocol_of(study).questions == 0
