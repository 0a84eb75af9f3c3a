"""Several statistics and strata from Python: values, intervals, tests, documents and pages."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import umpc
from umpc.cli.infer import infer
from umpc.cli.shared import print_report
from umpc.errors import KernelError, StudyError
from umpc.reporting.json_document import SCHEMA, check_document
from umpc.reporting.rows import rounded
from umpc.study.report import Report

RNG = np.random.default_rng(5)
BOUNDS = {"age": (20, 80), "dose": (0, 30)}
WITH_SEX = {**BOUNDS, "sex": ["f", "m"]}


def site(records: int) -> dict[str, np.ndarray]:
    sex = RNG.choice(["f", "m"], records)
    age = RNG.integers(20, 80, records)
    rises = np.where(sex == "f", age // 4, 20 - age // 4)
    return {"age": age, "dose": rises + RNG.integers(0, 8, records), "sex": sex}


SITES = [site(40), site(60)]
POOLED = {name: np.concatenate([each[name] for each in SITES]) for name in WITH_SEX}


def tau(kept: np.ndarray) -> float:
    age, dose = POOLED["age"][kept], POOLED["dose"][kept]
    signs = [np.sign(np.subtract.outer(each, each)) for each in (age, dose)]
    return (signs[0] * signs[1]).sum() / (len(age) * (len(age) - 1))


@pytest.fixture(scope="module")
def strata() -> umpc.Result:
    columns = ["age", "dose"]
    return umpc.estimate(
        "kendall_tau", SITES, columns, bounds=WITH_SEX, epsilon=8, strata="sex", backend="grid"
    )


@pytest.fixture(scope="module")
def two() -> umpc.Result:
    asked = [("kendall_tau", ["age", "dose"]), ("gini_mean_difference", ["age"])]
    return umpc.estimate(asked, SITES, bounds=BOUNDS, epsilon=4, split=["3/4", "1/4"])


def test_without_noise_strata_have_the_exact_values_over_pairs_and_over_the_grid():
    for settings in ({"backend": "grid"}, {"backend": "shared", "edges": "all"}):
        found = umpc.estimate(
            "kendall_tau",
            SITES,
            ["age", "dose"],
            bounds=WITH_SEX,
            epsilon=10**9,
            strata="sex",
            **settings,
        )
        assert list(found.parts) == ["f", "m"] and found.estimate is None
        for sex, part in found.parts.items():
            assert abs(part.estimate - tau(POOLED["sex"] == sex)) < 1e-5


def test_every_stratum_has_the_noise_of_one(strata):
    """The pair of sums of each stratum has the noise of `stratified_kendall_tau` at this ε."""
    alone = umpc.estimate(
        "stratified_kendall_tau",
        SITES,
        ["age", "dose", "sex"],
        bounds=WITH_SEX,
        epsilon=8,
        backend="grid",
    )
    noise = [entry.noise_std for entry in strata.report.sums]
    assert noise == pytest.approx([entry.noise_std for entry in alone.report.sums] * 2)
    assert [part.epsilon for part in strata.report.parts] == [8, 8]


def test_a_stratum_has_intervals_and_no_p_value_but_for_a_value(strata):
    part = strata.parts["f"]
    low, high = part.interval()
    wide = part.interval(kind="population")
    assert wide.low < low < part.estimate < high < wide.high
    assert part.interval().covers == "the value on all pairs of the records inside sex = 'f'"
    with pytest.raises(StudyError, match="inside sex = 'f' has no hypothesis whose law is known"):
        part.p_value()
    assert 0 < part.p_value(null=0.0) <= 1
    for refused in (strata.interval, strata.p_value, strata.errors):
        with pytest.raises(StudyError, match="no value to infer from: the study reports several"):
            refused()


def test_each_of_two_statistics_is_as_if_it_had_run_alone(two):
    name = "kendall_tau(age, dose)"
    part = two.parts[name]
    alone = umpc.estimate(
        "kendall_tau", SITES, ["age", "dose"], bounds=BOUNDS, epsilon=3, protocol=None
    )
    assert part.report.noise_std == pytest.approx(alone.report.noise_std)
    moved = replace(alone.report.sums[0], mean=part.report.sums[0].mean)
    same = umpc.Result(replace(alone.report, estimate=moved.mean, sums=[moved]))
    assert part.p_value() == pytest.approx(same.p_value())
    assert tuple(part.interval()) == pytest.approx(tuple(same.interval()))
    assert [each.epsilon for each in two.report.parts] == [3, 1]


def test_each_value_has_one_interval_of_the_noise_alone(strata, two):
    for part in [*strata.parts.values(), *two.parts.values()]:
        assert tuple(part.interval(kind="noise")) == (part.report.noise_low, part.report.noise_high)


def test_documents_tables_and_pages_show_every_value(strata, two, capsys, tmp_path):
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for result in (strata, two):
        values = json.loads(result.to_json())
        validator.validate(values)
        check_document(values)
        assert Report.from_dict(values) == result.report
        inferred = values["inference_of_parts"]
        assert [bool(each["test"]) for each in inferred] == [
            part.report.statistic == "kendall_tau" for part in result.parts.values()
        ]
        assert values["inference"] == {"intervals": [], "test": None, "errors": []}
        print_report(result.report, "table")
        texts = (capsys.readouterr().out, result.to_html())
        for name, part in result.parts.items():
            value = rounded(part.estimate, part.report.noise_std)
            assert all(value in text for text in texts)
            assert all(name in text for text in texts)
        assert all("not corrected" in " ".join(text.split()) for text in texts[1:])
        assert str(len(result.parts)) in repr(result)
    file = tmp_path / "report.json"
    file.write_text(strata.to_json())
    told = CliRunner().invoke(infer, [str(file), "--part", "2"])
    assert "0.95 interval" in told.output and "inside sex = 'm'" in told.output
    refused = CliRunner().invoke(infer, [str(file)])
    assert "take one by --part: 1 f; 2 m" in str(refused.exception)


def test_what_has_no_strata_or_differs_in_its_sets_is_refused():
    def refused(error: type[Exception], match: str, statistic, columns=None, **settings) -> None:
        with pytest.raises(error, match=match):
            umpc.estimate(statistic, SITES, columns, bounds=WITH_SEX, epsilon=1, **settings)

    both = [("kendall_tau", ["age", "dose"]), ("spearman_rho", ["age", "dose"])]
    refused(StudyError, "over the same sets, and these are not", both)
    refused(StudyError, "each of several statistics has its own columns", both, ["age"])
    refused(StudyError, "list of pairs", ["kendall_tau", "gini_mean_difference"])
    refused(StudyError, "at least one statistic", [])
    refused(StudyError, "came twice", [both[0], both[0]])
    refused(StudyError, "with categories", "kendall_tau", ["age", "dose"], strata="dose")
    refused(KernelError, "strata take", "renyi_entropy", ["age"], strata="sex")
