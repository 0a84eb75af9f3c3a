"""umpc.protocols.u_mpc.settings: the usual noise, and every refusal, by both doors."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.garbled import NO_DEALER
from tests.support.protocols import assert_refused
from tests.support.studies import STUDY, changed
from umpc.errors import StudyError
from umpc.protocols.registry import checked, decode_study, find_protocol
from umpc.protocols.u_mpc.settings import MOST_EPSILON_IN_MPC, UMpcSettings, usual_settings
from umpc.study.parts import Participant

SINGLE = {"nodes": (Participant("a", "x:1"),), "max_colluding": 0}
NOISES = "must be one of distributed, in_mpc, skellam, binomial, got"
REFUSED = [
    *(
        ({"noise": noise}, f"noise of \"u-mpc\" {NOISES} '{noise}'")
        for noise in ("none", "pair_laplace", "local", "shuffled", "gopa", "laplace", "hajek", "")
    ),
    ({"noise": "skellam"}, "delta goes with noise"),
    ({"noise": "in_mpc", "delta": "1e-9"}, "delta goes with noise"),
    ({"noise": "binomial", "delta": "1"}, "delta must be between 0 and 1"),
    ({"noise": "binomial", "delta": "0"}, "delta must be between 0 and 1"),
    ({"noise": "skellam", "delta": "tiny"}, "delta must be a number"),
    ({"noise": "in_mpc"} | SINGLE, "at least two nodes"),
    ({"noise": "binomial", "delta": "1e-9"} | SINGLE, "at least two nodes"),
    ({"backend": "clear"}, "backend must be one of shared, garbled, triples, got 'clear'"),
    ({"backend": "none"}, "backend must be one of shared, garbled, triples, got 'none'"),
    ({"coins": "fair"}, "coins must be one of transfers, dealt, got 'fair'"),
    ({"coins": "dealt"}, "which a committee draws; got noise = 'distributed'"),
    (
        NO_DEALER | {"noise": "in_mpc", "coins": "dealt"},
        "takes a dealer, and preprocessing = 'none' has none",
    ),
    ({"preprocessing": "ot"}, "preprocessing must be one of dealer, none, got 'ot'"),
    (
        {"backend": "garbled"},
        "go together: such edges take nothing.*'garbled' with 'dealer'",
    ),
    (
        {"preprocessing": "none"},
        "go together.*shared ones cannot do without; got 'shared' with 'none'",
    ),
    ({"dealer": None}, 'names no dealer; name one, or say preprocessing = "none"'),
    (NO_DEALER | {"dealer": STUDY.dealer}, "has no dealer; leave 'dealer' out"),
    (
        NO_DEALER | {"degree": 3},
        "one or two owners, and a statistic over 3 records.*edges of three and more",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_settings_that_cannot_be_are_refused_by_both_doors(changes, message):
    assert_refused(changed(**changes), StudyError, message)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"noise": "in_mpc"},
        {"noise": "in_mpc", "coins": "dealt"},
        {"noise": "skellam", "delta": "1e-9"},
        {"noise": "binomial", "delta": "1e-9"},
        SINGLE,
        NO_DEALER,
        NO_DEALER | {"backend": "triples"},
    ],
    ids=str,
)
def test_what_is_possible_survives_its_bytes(changes):
    study = changed(**changes)
    assert decode_study(study.encode()) == checked(study)


@pytest.mark.parametrize(
    ("nodes", "epsilon", "noise"),
    [
        (1, "1", "distributed"),
        (2, "1", "in_mpc"),
        (17, "1", "in_mpc"),
        (64, "1", "in_mpc"),
        (65, "1", "distributed"),
        (2, str(MOST_EPSILON_IN_MPC), "in_mpc"),
        (2, str(MOST_EPSILON_IN_MPC + Fraction(1, 1000)), "distributed"),
        (2, "no number", "distributed"),
    ],
)
def test_the_usual_noise_is_drawn_in_mpc_by_few_nodes_for_a_small_epsilon(nodes, epsilon, noise):
    assert usual_settings({}, nodes, epsilon) == {"noise": noise, "edges": ""}
    found = find_protocol("u-mpc").read_settings({}, nodes, epsilon)
    assert found == UMpcSettings(noise=noise, edges="")


def test_the_noise_that_a_file_names_is_not_replaced():
    for noise in ("distributed", "skellam"):
        assert usual_settings({"noise": noise}, 2, "1") == {"noise": noise, "edges": ""}


def test_a_key_without_effect_is_to_be_left_out():
    protocol = find_protocol("u-mpc")
    lines = dict(protocol.describe(STUDY.replaced(members_checked=64)))
    assert "leave it out of a new study" in lines["members_checked"]
    assert "members_checked" not in dict(protocol.describe(STUDY))
