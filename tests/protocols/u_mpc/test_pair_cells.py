"""Cells of pairs share one ε: their events, their noise, and kernels that claim it wrongly."""

from __future__ import annotations

from fractions import Fraction

import pytest

import umpc
from umpc.dp.events import ApproximateEvent, PureEvent
from umpc.errors import StudyError
from umpc.protocols.registry import checked, protocol_of
from umpc.study.sizes import Sizes

NODES = {"north": "north:1", "south": "south:1"}


def study_of(statistic: str = "hodges_lehmann", **changes):
    settings = {
        "parameters": {"thresholds": "1 2 3"},
        "edges": "all",
        "backend": "shared",
    } | changes
    names = ["x", "y"] if statistic == "theil_sen" else ["x"]
    asked = umpc.Study(
        "cells",
        statistic,
        names,
        bounds={name: (0, 5, 1) for name in names},
        epsilon=2,
        nodes=NODES,
        dealer={"dealer": "dealer:1"},
        identity="coordinator",
        **settings,
    )
    return asked.file.study("coordinator")


@pytest.mark.parametrize("statistic", ["hodges_lehmann", "theil_sen"])
@pytest.mark.parametrize("backend", ["shared", "grid"])
def test_all_cells_are_one_event_of_all_of_epsilon(statistic, backend):
    if (statistic, backend) == ("theil_sen", "grid"):
        return
    edges = {"edges": "all"} if backend == "shared" else {"edges": None}
    study = study_of(statistic, backend=backend, noise="distributed", **edges)
    sizes = Sizes(study, 20)
    assert set(study.epsilons) == {Fraction(1)}
    assert protocol_of(study).events(sizes) == (PureEvent(Fraction(2)),)
    (law,) = {(each.epsilon, each.sensitivity) for each in protocol_of(study).noise(sizes)}
    assert law == (1, 19)


def test_a_committees_cells_add_up_their_deltas():
    study = study_of(noise="in_mpc")
    sizes = Sizes(study, 20)
    (event,) = protocol_of(study).events(sizes)
    bits = sum(law.delta for law in protocol_of(study).noise(sizes))
    assert event == ApproximateEvent(Fraction(2), bits) and 0 < bits < 1e-9


@pytest.mark.parametrize(
    "kernels",
    [
        # a pair may be in both
        ("((a.x + b.x) * (1/2) < 1)", "(~((a.x + b.x) * (1/2) < 1/2))"),
        ("a.x * b.x", "a.x + b.x"),
        ("((a.x + b.x) * (1/2) < 1)",) * 2,
    ],
)
def test_a_node_refuses_kernels_that_are_no_disjoint_cells(kernels):
    study = study_of(noise="distributed").replaced(kernels=kernels)
    with pytest.raises(StudyError, match="disjoint cells between ascending thresholds"):
        checked(study)


def test_without_the_estimator_the_same_kernels_split_epsilon():
    study = study_of(noise="distributed").replaced(estimator="means")
    assert set(checked(study).epsilons) == {Fraction(1, 2)}
    assert set(study.replaced(kernels=study.kernels[:1]).epsilons) == {Fraction(2)}
