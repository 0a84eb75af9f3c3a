"""umpc.study.computation: the hash by which a site allows a computation covers all that leaves."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.support.studies import CLASSES, GINI, KENDALL, make_study
from umpc.study.computation import Computation, computation_hash
from umpc.study.parts import FieldText, Participant

X, Y = FieldText("x", "0", "3", whole=True), FieldText("y", "0", "3", whole=True)
LABEL = FieldText.of_categories("label", ["case", "control"])
TAU = make_study(fields=(X, Y))
AUC = make_study("a.x < b.x", sampling="two_sample")
SAME = "a.label == b.label"

DIFFERENT = {
    "kernel": (TAU, make_study(f"{KENDALL} * 2", fields=(X, Y))),
    "kernels": (make_study([KENDALL, GINI]), make_study([GINI, KENDALL])),
    "lower": (TAU, make_study(fields=(FieldText("x", "-1", "3", whole=True), Y))),
    "upper": (TAU, make_study(fields=(FieldText("x", "0", "4", whole=True), Y))),
    "resolution": (TAU, make_study(fields=(FieldText("x", "0", "3", "0.5"), Y))),
    "categories": (
        make_study(SAME, fields=(LABEL,)),
        make_study(SAME, fields=(FieldText.of_categories("label", ["control", "case"]),)),
    ),
    "public label": (make_study(SAME, fields=(LABEL,)), make_study(SAME, fields=(CLASSES,))),
    "the classes of a label": (
        AUC,
        AUC.replaced(fields=(X, FieldText.of_categories("label", ["a", "b"], public=True))),
    ),
    "which label": (
        AUC,
        AUC.replaced(fields=(X, FieldText.of_categories("sex", ["case", "control"], public=True))),
    ),
    "a further field": (TAU, make_study(fields=(X, Y, LABEL))),
    "sampling": (make_study(GINI), make_study(GINI, sampling="two_sample", fields=(X,))),
    "degree": (make_study("7", degree=1, fields=()), make_study("7", degree=2, fields=())),
    "estimator": (TAU, make_study(fields=(X, Y), estimator="total")),
    "protocol": (TAU, make_study(fields=(X, Y), protocol="central")),
    "where": (TAU.replaced(where="x >= 1"), TAU.replaced(where="x >= 2")),
    "a condition": (TAU, TAU.replaced(where="x >= 1")),
    "adversary": (TAU, TAU.replaced(adversary="lying_nodes", noise="distributed")),
}


@pytest.mark.parametrize("fact", DIFFERENT)
def test_another_computation_has_another_hash(fact):
    first, second = DIFFERENT[fact]
    assert computation_hash(first) != computation_hash(second)


@pytest.mark.parametrize(
    "study",
    [
        TAU.replaced(name="another", epsilon="1/7", statistic="named"),
        TAU.replaced(fields=(Y, X)),
        TAU.replaced(fields=(FieldText("x", "0.0", "6/2", "1.0"), Y)),
        TAU.replaced(edges="2n", max_colluding=1, coordinator="alice"),
        TAU.replaced(nodes=(Participant("north", "north:1"),)),
    ],
)
def test_names_numbers_and_participants_are_bounded_by_other_rules(study):
    assert computation_hash(study) == computation_hash(TAU)


def test_the_hash_covers_every_attribute():
    first = Computation.of(TAU)
    for attribute in fields(Computation):
        values = {**vars(first), attribute.name: _other(getattr(first, attribute.name))}
        assert Computation(**values).hash != first.hash, attribute.name


def _other(value):
    if isinstance(value, tuple):
        return value[1:] if value else (("kendall_tau", "mean", 1, ""),)
    return value * 2 or "x >= 1"


def test_the_hash_is_the_same_in_every_version_that_can_run_together():
    assert computation_hash(TAU) == GOLDEN


GOLDEN = "3a4800b389881fbe4c3ecb7d16b0446b7b8b6e7b3eefbb4a9de1f7eafa99e3a1"
