"""umpc.study.rules: what the library's statistics require of fields, by public bounds."""

from __future__ import annotations

import numpy as np
import pytest

import umpc
from tests.support.protocols import one_node_study
from tests.support.studies import CLASSES, make_study
from umpc.errors import RangeError
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.rules import check_fields, classes_of, with_other_direction
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

LABELLED = [name for name, each in sorted(LIBRARY.items()) if any(r.classes for r in each.rules)]
NUMBERS = {"1 to 2": ("1", "2"), "0 to 9": ("0", "9"), "-2 to 1": ("-2", "1")}
SICK = ["healthy", "sick"]


def study_of(name: str, **fields: FieldText) -> Study:
    """A study of a library's statistic whose fields are 0 to 9 unless they are given."""
    statistic = LIBRARY[name]
    names = [each.rstrip(".") for each in statistic.arguments]
    usual = {each: FieldText(each, "0", "9", whole=True) for each in names}
    for rule in statistic.rules:
        if rule.classes:
            top = str(rule.classes - 1)
            usual[rule.argument] = FieldText(rule.argument, "0", top, whole=True)
    return one_node_study(
        list({**usual, **fields}.values()),
        list(map(to_text, statistic.expressions(names))),
        degree=statistic.degree,
        estimator=statistic.estimator,
        sampling=statistic.sampling,
    ).replaced(statistic=name)


def test_the_statistics_of_a_label_are_known():
    """A kernel that asks for the value 1 takes a label, and each statistic of one declares it."""
    asks = {name for name, each in LIBRARY.items() if "parameters" not in name and _asks(each)}
    assert asks == set(LABELLED) and len(asks) > 7


def _asks(statistic) -> bool:
    names = [each.rstrip(".") for each in statistic.arguments]
    parameters = {"cells": 4} if statistic.name == "uniformity" else {}
    return any("== 1" in to_text(each) for each in statistic.expressions(names, parameters))


@pytest.mark.parametrize("bounds", NUMBERS, ids=str)
@pytest.mark.parametrize("name", LABELLED)
def test_a_label_of_other_numbers_is_refused_with_the_list_to_write(name, bounds):
    for rule in LIBRARY[name].rules:
        lower, upper = NUMBERS[bounds]
        study = study_of(name, **{rule.argument: FieldText(rule.argument, lower, upper, "1")})
        with pytest.raises(RangeError, match=f"^field {rule.argument!r}, the {rule.argument} of"):
            check_fields(study)
    check_fields(study_of(name))


def test_the_refusal_names_the_categories():
    study = study_of("auc_private", label=FieldText("label", "1", "2", whole=True))
    with pytest.raises(RangeError, match=r'write categories = \["1", "2"\], the second counts$'):
        check_fields(study)
    vus = study_of("vus", label=FieldText("label", "1", "3", whole=True))
    with pytest.raises(RangeError, match=r'write categories = \["1", "2", "3"\], in their order$'):
        check_fields(vus)


@pytest.mark.parametrize("name", [name for name in LABELLED if name != "vus"])
def test_labels_of_minus_one_and_one_and_two_categories_are_taken(name):
    for rule in LIBRARY[name].rules:
        for field in (
            FieldText(rule.argument, "-1", "1", whole=True),
            FieldText.of_categories(rule.argument, ["1", "2"]),
            FieldText.of_categories(rule.argument, ["a", "b", "c"]),
        ):
            check_fields(study_of(name, **{rule.argument: field}))
        alone = FieldText.of_categories(rule.argument, ["a", "b"])
        assert classes_of(study_of(name, **{rule.argument: alone}))[rule.argument].count("'b'") == 1


def test_a_gini_coefficient_is_of_amounts():
    for lower, upper in (("-5", "10"), ("-9", "-1"), ("0", "0")):
        with pytest.raises(RangeError, match=r"^field 'x', .*at least 0 with a mean above 0"):
            check_fields(study_of("gini_coefficient", x=FieldText("x", lower, upper, whole=True)))
    check_fields(study_of("gini_coefficient"))


def test_the_kernels_decide_and_not_the_name():
    private = study_of("auc_private", label=FieldText("label", "1", "2", whole=True))
    check_fields(private.replaced(statistic="my_auc"))
    check_fields(private.replaced(kernels=("abs(a.score - b.score)", "a.label == b.label")))
    swapped = study_of("kendall_tau_label", x=FieldText("x", "1", "2", whole=True))
    check_fields(swapped)


def test_each_of_several_statistics_and_each_stratum_is_asked():
    bounds = {"score": (0, 9), "label": [1, 2], "ward": ["a", "b"]}
    table = {"score": [1, 2, 3, 4], "label": [1, 2, 1, 2], "ward": ["a", "a", "b", "b"]}
    several = [("kendall_tau", ["score", "label"]), ("auc_private", ["score", "label"])]
    for asked, columns, more in (
        (several, None, {}),
        ("auc_private", ["score", "label"], {"strata": "ward"}),
    ):
        with pytest.raises(RangeError, match="field 'label', the label of auc_private"):
            umpc.estimate(asked, [table], columns, bounds=bounds, epsilon=1, **more)


def test_one_convention_for_public_and_private_labels():
    """The class that should score higher is the second category of a file, public or not."""
    scores = np.array([1.0, 2, 3, 4, 5, 6])
    table = {"score": scores, "state": np.array(["healthy", "sick"] * 3, dtype=object)}
    bounds = {"score": (0, 9), "state": SICK}
    private = umpc.estimate(
        "auc_private", [table], ["score", "state"], bounds=bounds, epsilon=10**9
    )
    public = umpc.estimate(
        "auc", [table], ["score"], bounds=bounds, label=("state", "sick"), epsilon=10**9
    )
    expected = np.mean([a > b for a in scores[1::2] for b in scores[::2]])
    assert [public.estimate, private.estimate] == pytest.approx([expected] * 2)
    told = {"state": "'sick' should score above 'healthy'"}
    assert public.report.classes == private.report.classes == told
    turned = umpc.estimate(
        "auc", [table], ["score"], bounds=bounds, label=("state", "healthy"), epsilon=10**9
    )
    assert turned.estimate == pytest.approx(1 - expected)


def test_only_the_librarys_statistics_of_two_classes_have_a_direction():
    auc = make_study(
        "(sign(a.x - b.x) + 1) * (1/2)",
        fields=(FieldText("x", "0", "9", whole=True), CLASSES),
        sampling="two_sample",
        statistic="auc",
    )
    other = with_other_direction(auc)
    assert other is not None and other.schema["label"].categories == ("control", "case")
    assert with_other_direction(other) == auc
    assert classes_of(auc) == {"label": "'case' should score above 'control'"}
    assert with_other_direction(auc.replaced(statistic="my_auc")) is None
    assert with_other_direction(make_study(statistic="kendall_tau")) is None
    assert classes_of(auc.replaced(statistic="my_auc")) == {}
