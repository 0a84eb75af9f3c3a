"""umpc.node.policy: a study is a statistic of the library only if it computes exactly that."""

from __future__ import annotations

import pytest

from tests.support.studies import CLASSES, GINI, KENDALL, library_study, make_study
from umpc.node.policy import computes
from umpc.protocols.registry import checked
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.ustat.statistics import LIBRARY

CATEGORIES = (FieldText("x", "0", "3", whole=True), FieldText("y", "0", "2", whole=True), CLASSES)
Z = FieldText("z", "0", "2", whole=True)
W = FieldText("w", "0", "1", whole=True)
COLUMNS = {1: ["x"], 2: ["y", "x"], 3: ["y", "x", "z"], 4: ["y", "x", "z", "w"]}


def of_library(name: str, columns=None, **changes) -> Study:
    chosen = columns or COLUMNS[len(LIBRARY[name].arguments)]
    return checked(library_study(name, (*CATEGORIES, Z, W), 2, chosen, **changes))


def same(study: Study) -> set[str]:
    return {name for name, statistic in LIBRARY.items() if computes(study, statistic)}


@pytest.mark.parametrize("name", [name for name in LIBRARY if name != "uniformity"])
def test_each_statistic_is_recognised_as_itself_alone(name):
    positive = {"parameters": {"thresholds": "1/2 1"}} if name == "hodges_lehmann" else {}
    assert same(of_library(name, **positive)) == {name}


def test_a_median_of_pairs_is_recognised_with_any_thresholds():
    found = of_library("theil_sen", parameters={"thresholds": "-1/2 1/3 1"})
    assert same(found) == {"theil_sen"}


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("kendall_tau", ["x", "y"]),
        ("ranking_hinge", ["y", "x"]),
        ("contrastive_loss", ["label", "y", "x"]),
    ],
)
def test_any_fields_may_be_its_arguments(name, columns):
    assert same(of_library(name, columns)) == {name}


def test_the_arguments_are_different_fields():
    assert same(of_library("covariance", ["x", "x"])) == {"variance"}
    assert same(of_library("kendall_tau", ["x", "x"])) == set()
    assert same(of_library("ranking_hinge", ["x", "x"])) == set()


def test_the_name_that_a_study_gives_itself_counts_for_nothing():
    assert same(make_study(GINI, statistic="kendall_tau")) == {"gini_mean_difference"}


@pytest.mark.parametrize(
    "study",
    [
        make_study(f"{KENDALL} * 2"),
        make_study(f"({KENDALL}) * ({KENDALL})"),
        make_study("1"),
        of_library("kendall_tau", estimator="total"),
        of_library("kendall_tau", sampling="two_sample"),
        of_library("ranking_hinge", parameters={"margin": "2"}),
        of_library("ranking_hinge", parameters={"weights": "1/2"}),
        of_library("contrastive_loss", ["label", "x", "y"], parameters={"weights": ["1", "2"]}),
        of_library("uniformity", parameters={"cells": "4"}),
        make_study([GINI, GINI], estimator="ratio"),
    ],
)
def test_what_is_not_exactly_the_librarys_is_none_of_it(study):
    assert same(study) == set()


def test_a_kernel_of_very_many_fields_is_none_and_takes_no_time():
    fields = tuple(FieldText(f"f{number}", "0", "1", whole=True) for number in range(600))
    terms = [f"a.{f.name} * b.{f.name}" for f in fields]
    while len(terms) > 1:
        terms = [f"({' + '.join(terms[i : i + 2])})" for i in range(0, len(terms), 2)]
    assert same(make_study(terms[0], fields=fields, sampling="balanced")) == set()
