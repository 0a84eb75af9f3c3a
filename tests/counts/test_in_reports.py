"""A report with a table of counts: in Python, on its page, in the terminal, as a document."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import umpc
from tests.support.released_tables import cells_of_columns, flag, lung, released, whole, words
from umpc.cli.infer import infer
from umpc.cli.shared import print_report
from umpc.counts import COUNTED, headline
from umpc.counts.answers import BAND, POPULATION, POPULATION_BAND, RECORDS
from umpc.errors import ConfigError, StudyError
from umpc.reporting.json_document import SCHEMA, check_document
from umpc.reporting.page import page
from umpc.reporting.rows import sentence_of
from umpc.study.report import Report

TIME = whole("time", 0, 1099, range(100, 1099, 100))
BY_R = json.loads((Path(__file__).parent / "lung_by_r.json").read_text(encoding="utf-8"))
BOUNDS = {"time": (0, 1022), "event": (0, 1), "age": (30, 89), "group": (35, 94)}
EVENTS = ("time", "event", "group")
ORACLES = {
    "roc": (("age", "event"), {}, "area", BY_R["area"]),
    "quantiles": (("age",), {}, ("first", "median", "third"), BY_R["quartiles"]),
    "contingency": (("age", "event"), {"age": 2}, "chi-squared", BY_R["chi_squared"]),
    "logrank": (EVENTS, {"group": 2}, "chi-squared", BY_R["logrank"]),
    "kaplan_meier": (EVENTS, {"group": 2}, "median", BY_R["medians"][1:]),
}
"""Statistic → its columns of lung, their bins, how its numbers begin, and these numbers by R."""


@pytest.fixture(scope="module")
def plain() -> umpc.Result:
    table = {"x": list(range(9)), "y": [3, 1, 4, 1, 5, 9, 2, 6, 5]}
    bounds = {"x": (0, 15), "y": (0, 15)}
    return umpc.estimate("kendall_tau", [table, table], ["x", "y"], bounds=bounds, epsilon=9)


@pytest.fixture(scope="module")
def result(plain) -> umpc.Result:
    """Lung with two groups, at epsilon 2."""
    data, axes = lung(), [TIME, flag("event"), whole("age", 30, 90, [65])]
    cells = cells_of_columns(axes, [data[axis.field] for axis in axes])
    rng = np.random.default_rng(29)
    counts = released(axes, cells, scale=1.0, rng=rng, statistic="kaplan_meier")
    report = replace(
        plain.report, statistic="kaplan_meier", counts=counts, records=228, sums=[], estimate=None
    )
    return umpc.Result(replace(report, note="", low=None, high=None))


def test_a_result_answers_every_question_that_its_fields_fit(result):
    curves = result.km()
    assert [each.name for each in curves.series] == ["age 30–64", "age 65–90"]
    assert len(result.km(group=None).series) == 2
    assert result.nelson_aalen().kind == "nelson_aalen"
    assert 0 < result.logrank().number("p-value").value <= 1
    assert 0 < result.gehan().number("p-value").value <= 1
    assert result.roc("time", "age").number("area under the curve").value < 0.6
    assert result.roc(specificity=0.8).numbers[1].name == "sensitivity at specificity 0.8"
    assert result.ecdf("time", level=0.9).level == 0.9
    low, high = result.quantile(0.5, "time").intervals[RECORDS]
    assert 0 <= low <= 255 <= high <= 1099
    assert len(result.histogram("age").series[0].value) == 2
    assert result.contingency("event", "age").number("degrees of freedom").value == 1
    assert result.qq("time", "age").kind == "qq"
    assert "Kaplan–Meier" in repr(curves) and "median" in repr(curves)


def study_of_lung(statistic: str, columns: tuple[str, ...], **settings) -> umpc.Result:
    """A study of two sites with next to no noise."""
    data = {**lung(), "group": lung()["age"]}
    sites = [{name: data[name][part::2] for name in columns} for part in (0, 1)]
    bounds = {name: BOUNDS[name] for name in columns}
    return umpc.estimate(statistic, sites, columns, bounds=bounds, epsilon=10**6, **settings)


@pytest.mark.parametrize("statistic", ORACLES)
def test_a_study_of_lung_with_little_noise_has_the_numbers_of_r(statistic):
    columns, bins, first, due = ORACLES[statistic]
    found = study_of_lung(statistic, columns, bins=bins)
    answer = {
        "roc": found.roc,
        "quantiles": found.ecdf,
        "contingency": found.contingency,
        "logrank": found.logrank,
        "kaplan_meier": found.km,
    }[statistic]()
    numbers = [each.value for each in answer.numbers if each.name.startswith(first)]
    assert numbers == pytest.approx(due, abs=1e-9)
    if statistic == "roc":
        data = lung()
        for series, event in zip(answer.series, (1, 0), strict=True):
            those = data["age"][data["event"] == event]
            assert series.value == pytest.approx([np.mean(those >= at) for at in range(30, 90)])


def test_a_study_of_lung_with_little_noise_has_the_difference_of_two_areas():
    data, areas = lung(), []
    for score in ("age", "time"):
        ones, zeros = (data[score][data["event"] == event] for event in (1, 0))
        areas.append(stats.mannwhitneyu(ones, zeros).statistic / (len(ones) * len(zeros)))
    assert areas[0] == pytest.approx(BY_R["area"][0])
    found = study_of_lung("auc_difference", ("age", "time", "event"), edges="all")
    assert found.estimate == pytest.approx(areas[0] - areas[1], abs=1e-5)


def test_a_sentence_names_the_columns_and_the_number(result):
    axes = [TIME, flag("event")]
    cells = cells_of_columns(axes, [lung()[axis.field] for axis in axes])
    counts = released(axes, cells, statistic="kaplan_meier")
    value = headline(counts, 228)[0]
    found = replace(result.report, counts=counts, estimate=value)
    assert value is not None
    told = f"Kaplan–Meier curve of time: median {value:.0f} (95 % "
    assert sentence_of(found).startswith(told)


def test_where_a_person_has_several_records_nothing_needs_independent_ones(result, capsys):
    """Neither an interval for the population nor a p-value: in Python, page, terminal, document."""
    counts = replace(result.report.counts, people=3)
    several = umpc.Result(
        replace(result.report, counts=counts, protected="all records of one person")
    )
    alike = (
        lambda of: of.km(),
        lambda of: of.nelson_aalen(),
        lambda of: of.logrank(),
        lambda of: of.gehan(),
        lambda of: of.ecdf("time"),
        lambda of: of.histogram(),
        lambda of: of.contingency("event", "age"),
        lambda of: of.roc("time", "event"),
        lambda of: of.qq("time", "age"),
    )
    lost = set()
    for ask in alike:
        one, other = ask(result), ask(several)
        assert not any("depend on each other" in note for note in one.notes)
        assert "no interval for the population and no p-value" in other.notes[-1]
        for shown in (*other.series, *other.numbers):
            assert set(shown.intervals) <= {RECORDS, BAND}
        for before, after in zip(one.series, other.series, strict=True):
            assert after == replace(before, intervals=after.intervals)
            assert all(after.intervals[kind] == before.intervals[kind] for kind in after.intervals)
            lost.update(set(before.intervals) - set(after.intervals))
        names = {each.name for each in one.numbers} - {each.name for each in other.numbers}
        lost.update(names)
        assert names <= {"p-value"}
    assert lost == {POPULATION, POPULATION_BAND, "p-value"}
    assert set(several.quantile(0.5, "time").intervals) == {RECORDS}
    for of, has in ((result, True), (several, False)):
        print_report(of.report, "table", {})
        printed, document = capsys.readouterr().out, json.dumps(of.to_dict()["answers"])
        assert ("│   p-value " in printed) == has
        assert ("for the population<" in page(of.report)) == has
        assert ("<p>p-value: " in page(of.report)) == has
        assert ('"population": {' in document and '"p-value"' in document) == has
        assert all(("independent" in shown) != has for shown in (printed, page(of.report)))
    other = replace(several.report, counts=replace(counts, statistic="logrank"))
    assert headline(other.counts, other.records) is None
    assert sentence_of(other).startswith("Kaplan–Meier curve of time: median, age 30–64 ")
    assert "og-rank" not in sentence_of(several.report) + sentence_of(other)


def test_a_report_without_a_table_says_what_to_do(plain):
    assert "counts" not in plain.to_dict() and "answers" not in plain.to_dict()
    with pytest.raises(StudyError, match='statistic "counts"'):
        plain.km()


def test_pictures_are_single_and_safe(result, tmp_path):
    bars = words("job", "<b>&", "plain \u202e word")
    other = released([bars], np.array([3, 4]))
    named = umpc.Result(replace(result.report, counts=other, records=7))
    answers = [
        result.km(),
        result.nelson_aalen(),
        result.roc("time", "event"),
        result.ecdf("time"),
        result.contingency("event", "age"),
        result.qq("time", "age"),
        named.histogram(),
    ]
    for answer in answers:
        svg = answer.plot().svg
        HTMLParser().feed(svg)
        assert svg.count("<svg") == 1 and "http" not in svg.replace(
            "http://www.w3.org/2000/svg", ""
        )
        assert "prefers-color-scheme: dark" in svg and "@media print" in svg
        assert "nan" not in svg and "inf" not in svg.replace("info", "")
        assert "<b>" not in svg and "\u202e" not in svg
        assert svg in answer._repr_html_() and answer.plot()._repr_svg_() == svg
        json.dumps(answer.to_dict(), allow_nan=False)
    saved = result.km().plot().save(tmp_path / "curve.svg")
    assert saved.read_text(encoding="utf-8") == result.plot().svg
    with pytest.raises(ConfigError, match="cannot be written"):
        result.km().plot().save(tmp_path / "nowhere" / "curve.svg")


def test_the_page_the_terminal_and_the_document_show_it(result, capsys):
    shown = page(result.report)
    assert shown.count('umpc-curve"') == 1 and "Kaplan–Meier curve of time" in shown
    assert "log-rank test of time between groups of age" in shown
    print_report(result.report, "table", {})
    printed = capsys.readouterr().out
    assert "median, age 30–64" in printed and "these records" in printed
    document = result.to_dict()
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(document)
    check_document(document)
    assert [each["kind"] for each in document["answers"]] == ["kaplan_meier", "logrank"]
    told = sentence_of(result.report)
    assert repr(result) == f"<umpc.Result {told}>"
    assert told.startswith("Kaplan–Meier curve of time: median, age 30–64 ")
    assert "; median, age 65–90 " in told
    assert ", for these 228 records; " in told and ", for the population)" in told
    assert ". Log-rank test of time between groups of age: p-value 0." in told
    band = document["answers"][0]["series"][0]["intervals"][BAND]
    assert len(band["low"]) == len(band["high"]) == 11
    assert Report.from_dict(json.loads(result.to_json())) == result.report


def test_where_a_hazard_has_no_end_the_document_has_null_and_the_page_says_so(result):
    of = umpc.Result(
        replace(result.report, counts=replace(result.report.counts, statistic="nelson_aalen"))
    )
    document = json.loads(of.to_json())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(document)
    check_document(document)
    series = document["answers"][0]["series"][0]
    bounds = series["intervals"]["population"]
    assert bounds["high"][-1] is None and None not in bounds["low"] + series["value"]
    assert "no end for the population" in page(of.report) and "inf " not in page(of.report)
    assert sentence_of(of.report).startswith("Nelson–Aalen curve of time: 44 counts of these 228")


def test_infer_shows_the_answers_of_a_table_at_another_level(result, tmp_path):
    file = str(result.save(tmp_path / "report.json"))
    shown = CliRunner().invoke(infer, [file, "--level", "0.8"], catch_exceptions=False).output
    low, high = result.km(level=0.8).numbers[1].intervals[POPULATION]
    assert "Kaplan–Meier curve of time, 0.8 intervals" in shown and "p-value" in shown
    assert f"{low:.4g} … {high:.4g} for the population" in shown
    told = CliRunner().invoke(infer, [file, "--level", "0.8", "--format", "json"]).stdout
    assert json.loads(told)[0] == result.km(level=0.8).to_dict()
    for wrong in (["--level", "2"], ["--null", "0"]):
        with pytest.raises(StudyError, match="for another level take"):
            CliRunner().invoke(infer, [file, *wrong], catch_exceptions=False)


@pytest.mark.parametrize("name", COUNTED)
def test_every_statistic_has_its_roles_and_its_headline(name):
    counted = COUNTED[name]
    roles = (*counted.roles, *counted.optional)
    assert {*counted.two_cells, *counted.numeric} <= set(roles) and len(roles) <= 3
    axes = [
        flag(role) if role in (*counted.two_cells, "group") else whole(role, 0, 4, range(1, 5))
        for role in roles
    ]
    cells = np.arange(np.prod([2 if axis.cuts == [1] else 5 for axis in axes])) % 4 + 1
    cells = cells.reshape([len(axis.cuts) + 1 for axis in axes])
    found = headline(released(axes, cells, statistic=name), int(cells.sum()))
    assert (found is None) == (not counted.headline or name == "kaplan_meier")  # one a group
    if found is not None:
        value, low, high, std = found
        assert low is None or low <= value <= high
        assert std is None or std == pytest.approx(0, abs=1e-9)
