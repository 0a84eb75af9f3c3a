"""umpc.protocols.registry: every protocol by its name, and no setting of another protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.bell import bell_study
from tests.support.central import central_study
from tests.support.counts import counts_study
from tests.support.gopa import gopa_study
from tests.support.grid import grid_study
from tests.support.local import local_study
from tests.support.overlap import overlap_study
from tests.support.people import linked_study, people_study
from tests.support.protocols import (
    assert_not_a_setting,
    coordinator_of,
    make_node,
    with_setting_in_bytes,
)
from tests.support.shuffled import shuffled_study
from tests.support.studies import STUDY, Entropy, changed, make_members
from tests.support.vector import vector_study
from umpc.errors import EncodingError, InvalidEpsilon, StudyError
from umpc.protocols.base.one_message import OneMessageNode
from umpc.protocols.base.one_message_protocol import OneMessageCoordinator
from umpc.protocols.counts.protocol import CountsCoordinator, CountsNode
from umpc.protocols.grid.node import GridNode
from umpc.protocols.grid.protocol import GridCoordinator
from umpc.protocols.overlap.node import OverlapNode
from umpc.protocols.overlap.protocol import OverlapCoordinator
from umpc.protocols.people.in_memory import shared_out
from umpc.protocols.people.node import PeopleNode
from umpc.protocols.people.protocol import PeopleCoordinator
from umpc.protocols.registry import (
    PROTOCOLS,
    USUAL,
    attempt_of,
    checked,
    decode_study,
    delta_of,
    find_protocol,
    possible_values,
    protocol_of,
)
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.protocols.u_mpc.protocol import UMpcCoordinator
from umpc.simulation import AUTHORITY
from umpc.study.settings import keys_of, name_of
from umpc.study.sizes import Sizes
from umpc_papers.bell_2pc.coordinator import BellCoordinator
from umpc_papers.bell_2pc.node import BellNode
from umpc_papers.central.coordinator import CuratorCoordinator
from umpc_papers.central.settings import MECHANISMS
from umpc_papers.ghazi_rounds.coordinator import RoundsCoordinator
from umpc_papers.ghazi_rounds.node import RoundsNode
from umpc_papers.ghazi_shuffle.coordinator import ShuffleCoordinator
from umpc_papers.ghazi_shuffle.node import ShuffleNode
from umpc_papers.gopa.node import GopaNode
from umpc_papers.hajek_grid.coordinator import HajekGridCoordinator
from umpc_papers.hajek_grid.node import HajekGridNode

NAMES = (
    "u-mpc",
    "grid",
    "people",
    "linked",
    "vector",
    "overlap",
    "counts",
    "bell-2pc",
    "bell-auc",
    "bell-ldp",
    "central",
    "ghazi-ldp",
    "ghazi-rounds",
    "ghazi-shuffle",
    "gopa",
    "hajek-grid",
    "local-mean",
)
STUDIES = {
    "u-mpc": STUDY,
    "grid": grid_study(),
    "people": people_study(),
    "linked": linked_study(),
    "hajek-grid": grid_study(protocol="hajek-grid", delta="1e-9"),
    "vector": vector_study(),
    "overlap": overlap_study(),
    "counts": counts_study(),
    "bell-2pc": bell_study(),
    "bell-ldp": local_study("bell-ldp"),
    "bell-auc": local_study("bell-auc"),
    "ghazi-ldp": local_study("ghazi-ldp"),
    "local-mean": local_study("local-mean"),
    "ghazi-rounds": local_study("ghazi-rounds"),
    "ghazi-shuffle": shuffled_study(),
    "gopa": gopa_study(),
    "central": central_study(),
}
VALUES: dict[str, Any] = {
    "people": {"places": 2},
    "linked": {"rows": 2},
    "transfers": "unchecked",
    "members_checked": 0,
    "edges": "2n",
    "noise": "in_mpc",
    "delta": "1e-9",
    "coins": "dealt",
    "backend": "shared",
    "preprocessing": "dealer",
    "dealer": {"name": "dealer", "address": "dealer:1"},
    "bins_epsilon_share": "1/4",
    "bins": [{"field": "x", "count": 2, "cuts": []}],
    "rounding": "randomised",
    "cell_kernel": "average",
    "group": 4,
    "levels_by": "budget",
    "discarded": "zero",
    "levels": 2,
    "concentration": "0.5",
    "spread": "0.25",
    "distance": "0.1",
    "spread_share": "1/2",
    "chunks": 3,
    "bound_share": "1/2",
    "loss": "auc_hinge",
    "coordinates": ["x"],
    "weights": ["1"],
    "margin": "2",
    "centres": ["1"],
    "scales": ["1"],
    "clip": "2",
    "matrix": True,
    "course": "train",
    "step": 2,
    "neighbours": 1,
    "steps": 2,
    "cells": ["x"],
    "tree": "x",
    "shufflers": [{"name": "one", "address": "one:1"}, {"name": "two", "address": "two:1"}],
}
"""A value that some protocol takes, for every setting."""
FOREIGN = [
    (name, key)
    for name, protocol in PROTOCOLS.items()
    for key in VALUES
    if key not in (*keys_of(protocol.settings), *protocol.settings().fixed)
]
FIXED = [(name, key) for name, protocol in PROTOCOLS.items() for key in protocol.settings().fixed]


def test_the_protocols_are_these_in_the_order_of_a_planner():
    assert tuple(PROTOCOLS) == NAMES and set(NAMES) == set(STUDIES) and USUAL == "u-mpc"
    for name, protocol in PROTOCOLS.items():
        assert protocol.name == name_of(protocol.settings) == name
        assert find_protocol(name) is protocol_of(STUDIES[name]) is protocol


def test_an_unknown_name_is_refused_with_all_names():
    with pytest.raises(
        StudyError,
        match=r"one of u-mpc, grid, people, linked, vector, overlap, counts, bell.*'bell'",
    ):
        find_protocol("bell")


KINDS = {
    "u-mpc": (UMpcNode, UMpcCoordinator),
    "grid": (GridNode, GridCoordinator),
    "people": (PeopleNode, PeopleCoordinator),
    "linked": (PeopleNode, PeopleCoordinator),
    "hajek-grid": (HajekGridNode, HajekGridCoordinator),
    "vector": (UMpcNode, UMpcCoordinator),
    "overlap": (OverlapNode, OverlapCoordinator),
    "counts": (CountsNode, CountsCoordinator),
    "bell-2pc": (BellNode, BellCoordinator),
    "bell-ldp": (OneMessageNode, OneMessageCoordinator),
    "bell-auc": (OneMessageNode, OneMessageCoordinator),
    "ghazi-ldp": (OneMessageNode, OneMessageCoordinator),
    "local-mean": (OneMessageNode, OneMessageCoordinator),
    "ghazi-rounds": (RoundsNode, RoundsCoordinator),
    "ghazi-shuffle": (ShuffleNode, ShuffleCoordinator),
    "gopa": (GopaNode, OneMessageCoordinator),
    "central": (OneMessageNode, CuratorCoordinator),
}
"""The classes of both sides."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_has_its_own_sides(protocol):
    study = STUDIES[protocol]
    columns = {field.name: np.zeros(40, dtype=np.int64) for field in study.fields}
    if study.settings.shares_tables:
        owns = [AUTHORITY.credentials(each.name) for each in study.nodes]
        study, (columns, _), _ = shared_out(study, [columns], owns, Entropy(protocol))
    node = make_node(study.nodes[0].name, study, columns, 40, Entropy(protocol))
    assert (type(node), type(coordinator_of(study))) == KINDS[protocol]


# --- what a study may say -------------------------------------------------------------------------


def test_every_setting_has_a_value_below():
    assert set(VALUES) == {key for each in PROTOCOLS.values() for key in keys_of(each.settings)}


@pytest.mark.parametrize(("protocol", "key"), FOREIGN)
def test_a_setting_of_another_protocol_is_refused_by_every_door(protocol, key):
    assert_not_a_setting(STUDIES[protocol], key, VALUES[key])


@pytest.mark.parametrize(("protocol", "key"), FIXED)
def test_a_setting_that_a_protocol_fixes_is_refused_by_every_door(protocol, key):
    study, value = STUDIES[protocol], {"levels": 5}.get(key, "other")
    with pytest.raises(StudyError, match=f"leave {key} out"):
        decode_study(with_setting_in_bytes(study, **{key: value}))
    with pytest.raises(StudyError, match=f"`{key}` is not a setting of protocol"):
        protocol_of(study).read_settings({key: value}, len(study.nodes), study.epsilon)
    with pytest.raises(StudyError, match=f"`{key}` is not a setting of protocol"):
        study.replaced(**{key: value})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_setting_is_described(protocol):
    described = keys_of(PROTOCOLS[protocol].settings)
    assert all(meta.description for meta in described.values())


def test_the_possible_values_are_those_of_all_protocols():
    assert possible_values("protocol") == NAMES
    assert sorted(possible_values("noise")) == sorted(
        (
            "distributed",
            "in_mpc",
            "skellam",
            "binomial",
            "gaussian",
            "laplace",
            "pair_laplace",
            "randomised_response",
            "group_laplace",
            "local",
            "shuffled",
            "gopa",
            "overlap",
            *(each for each in MECHANISMS if each != "laplace"),
        )
    )
    assert possible_values("backend") == ("shared", "garbled", "triples", "grid", "none")
    assert possible_values("preprocessing") == ("dealer", "none")
    assert possible_values("coins") == ("transfers", "dealt", "none")


EDGES_OF = ("u-mpc", "grid", "people", "linked", "hajek-grid", "vector", "bell-2pc")
"""The protocols that evaluate sets of records, or count them in a grid."""


def test_facts_that_a_protocol_fixes_are_seen_of_every_study():
    no_edges = [STUDIES[name] for name in NAMES if name not in EDGES_OF]
    assert {(each.backend, each.preprocessing, each.coins, each.dealer) for each in no_edges} == {
        ("none", "none", "none", None)
    }
    assert {each.edges for each in no_edges} == {"all"}
    noises = [each.noise for each in no_edges]
    assert sorted(noises) == [
        "distributed",
        "gopa",
        "laplace",
        *["local"] * 5,
        "overlap",
        "shuffled",
    ]
    with_delta = ("gopa", "overlap")
    assert {each.delta for each in no_edges if each.protocol not in with_delta} == {""}


# --- checked and decoded studies ------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_study_of_every_protocol_is_checked_and_survives_its_bytes(protocol):
    study = STUDIES[protocol]
    assert checked(study) is study and decode_study(study.encode()) == study


def test_the_rules_of_every_study_come_before_those_of_its_protocol():
    with pytest.raises(InvalidEpsilon):
        checked(changed(epsilon="0", noise="none"))
    with pytest.raises(StudyError, match="noise of"):
        checked(changed(noise="none", seconds_per_step=0))
    with pytest.raises(StudyError, match="seconds_per_step"):
        checked(changed(seconds_per_step=0))


def test_bytes_of_an_unknown_protocol_are_refused():
    with pytest.raises(EncodingError, match="Invalid value 'bell'"):
        decode_study(with_setting_in_bytes(STUDY, protocol="bell"))


@pytest.mark.parametrize("protocol", NAMES[1:])
def test_bytes_that_name_another_protocol_than_their_settings_are_refused(protocol):
    with pytest.raises(EncodingError):
        decode_study(with_setting_in_bytes(STUDY, protocol=protocol))


def test_an_attempt_and_its_delta_are_those_of_the_protocol():
    for study in (STUDY, STUDIES["gopa"], STUDIES["ghazi-shuffle"]):
        counts = [40] * len(study.nodes)
        attempt = attempt_of(study, *make_members(study, counts))
        assert attempt.study is study
        assert delta_of(attempt.sizes) == protocol_of(study).delta(attempt.sizes)
    assert delta_of(Sizes(STUDY, 120)) == 0 < delta_of(Sizes(STUDIES["gopa"], 120))


def test_only_the_curator_is_shown_raw_values_and_only_of_the_kernels_fields():
    for name, study in STUDIES.items():
        shown = protocol_of(study).discloses(study)
        assert shown == (("x", "y") if name == "central" else ())
    one = central_study(kernels="a.x", degree=1)
    assert protocol_of(one).discloses(one) == ("x",)


def test_two_protocols_ask():
    assert {name: each.questions for name, each in PROTOCOLS.items() if each.questions} == {
        "hajek-grid": 1,
        "ghazi-rounds": 1,
    }
    for name, protocol in PROTOCOLS.items():
        assert protocol.questions_of(STUDIES[name]) == protocol.questions
    twice = STUDIES["bell-ldp"].replaced(bins_epsilon_share="1/4")
    assert protocol_of(twice).questions_of(twice) == 1
