"""Pictures of counts, matrices, comparisons and medians in a real browser, as readers see them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import umpc
from tests.chromium.test_report_page import (
    LEAST_CONTRAST,
    PAPER,
    SCHEMES,
    check_marks,
    contrast,
    keep,
    looks,
    opened,
    serious,
)
from tests.support.released_tables import cells_of_columns, flag, lung, released, whole, words
from umpc.reporting.page import page as page_of
from umpc.study.report import Report

TESTS = ("logrank", "gehan")
WIDTHS = (360, 420, 1200)
MARKS = ".umpc-curve .mark, .umpc-picture .mark"
JOBS = ("unemployed", "in education", "employed part time", "employed full time", "retired")
COLUMNS = ["systolic_blood_pressure", *(f"marker_{number}" for number in range(19))]
RNG = np.random.default_rng(51)
HEAT = """(cells) => cells.map((each) => {
  let at = each.closest("svg").parentElement;
  while (getComputedStyle(at).backgroundColor === "rgba(0, 0, 0, 0)") at = at.parentElement;
  const numbers = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const style = getComputedStyle(each), share = Number(style.fillOpacity);
  const ground = numbers(getComputedStyle(at).backgroundColor);
  const mixed = numbers(style.fill).map((part, k) => share * part + (1 - share) * ground[k]);
  const text = each.nextElementSibling;
  return [`rgb(${mixed})`, getComputedStyle(text).fill, text.textContent,
    each.querySelector("title").textContent];
})"""
"""The color of each cell of a heat map on its ground, and of the text on it."""


@pytest.fixture(scope="module")
def plain() -> Report:
    """A report of any kind, whose table the cases of counts replace."""
    site = {"x": [1, 2, 3, 4], "y": [2, 1, 4, 3]}
    return asked("kendall_tau", {"x": (0, 7), "y": (0, 7)}, [site, site])


def asked(statistic: str, bounds: dict, sites: list, **settings) -> Report:
    usual = {"columns": list(bounds), "epsilon": 20}
    return umpc.estimate(statistic, sites, bounds=bounds, **usual | settings).report


def counted(plain: Report, statistic: str) -> Report:
    """A table of counts as a study of this statistic releases it."""
    data = lung()
    columns = {
        "time": whole("time", 0, 1099, range(50, 1099, 50)),
        "event": flag("event"),
        "age": whole("age", 30, 90, [65]),
        "job": words("job", *JOBS),
        "score": whole("score", 0, 99, range(5, 99, 5)),
    }
    count = len(data["time"])
    data["job"] = np.arange(count) % 5
    data["score"] = np.clip(40 + 15 * data["event"] + np.arange(count) % 40, 0, 99)
    names = {
        **dict.fromkeys(("kaplan_meier", "nelson_aalen", *TESTS), ("time", "event", "age")),
        "roc": ("score", "event"),
        "qq": ("score", "event"),
        "contingency": ("job", "event"),
        "histogram": ("score",),
    }.get(statistic, ("score",))
    axes = [columns[name] for name in names]
    cells = cells_of_columns(axes, [data[axis.field] for axis in axes])
    table = released(axes, cells, scale=1.0, rng=np.random.default_rng(5), statistic=statistic)
    nothing = {"estimate": None, "low": None, "high": None, "sums": [], "note": ""}
    return replace(plain, statistic=statistic, counts=table, records=count, **nothing)


def matrix(count: int) -> Report:
    common, names = RNG.normal(size=(60, 1)), COLUMNS[:count]
    signs = np.where(np.arange(count) % 3, 1, -1)
    values = np.clip(np.rint(50 + 10 * (2 * common * signs + RNG.normal(size=(60, count)))), 0, 99)
    sites = [dict(zip(names, half.T.astype(int), strict=True)) for half in np.split(values, 2)]
    vector = {"protocol": "vector", "delta": "1e-6", "edges": "all", "matrix": True}
    return asked("kendall_tau", {name: (0, 99) for name in names}, sites, **vector)


def pairs(statistic: str, *names: str, **settings) -> Report:
    sites = [{name: RNG.integers(0, 100, 30) for name in names} for _ in range(2)]
    return asked(statistic, {name: (0, 99) for name in names}, sites, **settings)


CURVES = ("kaplan_meier", "nelson_aalen", "roc", "ecdf", "contingency", "histogram", "qq")
COUNTED = (*CURVES, "quantiles", *TESTS)
OTHERS = {
    "matrix6": lambda: matrix(6),
    "matrix20": lambda: matrix(20),
    "weighted": lambda: pairs("kendall_tau", "x", "y", "w", columns=["x", "y"], weight="w"),
    "comparison": lambda: pairs("tau_difference", "x", "y", "z"),
    "median": lambda: pairs("hodges_lehmann", "x", backend="grid"),
}


@pytest.fixture(scope="module", params=[*COUNTED, *OTHERS])
def saved(request, plain, tmp_path_factory) -> Path:
    name = request.param
    report = counted(plain, name) if name in COUNTED else OTHERS[name]()
    path = tmp_path_factory.mktemp("pictures") / f"{name}.html"
    path.write_text(page_of(report), encoding="utf-8")
    return path


def check_picture(page, name: str) -> None:
    """Marks are seen, also in grey; numbers are read on their cells, and signs without color."""
    looks(page)
    if name == "quantiles":
        assert page.locator("svg").count() == 0, "three numbers need no picture"
        return
    if not name.startswith("matrix"):
        check_marks(page, MARKS)
        return
    cells = page.locator(".heat").evaluate_all(HEAT)
    assert len(cells) == int(name.removeprefix("matrix")) ** 2
    for ground, ink, text, told in cells:
        assert contrast(ground, ink) >= LEAST_CONTRAST
        assert contrast(ground, ink, grey=True) >= LEAST_CONTRAST
        assert ("−" in text) == ("−" in told), "a sign is told by more than its color"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_picture_fits_and_is_seen(browser, saved, width, scheme):
    with opened(browser, saved, width, scheme) as page:
        keep(page, saved, f"{width}-{scheme}")
        check_picture(page, saved.stem)
        assert serious(page) == []


def test_a_picture_is_seen_on_paper(browser, saved):
    with opened(browser, saved, PAPER, "dark") as page:
        page.emulate_media(media="print")
        keep(page, saved, "paper")
        check_picture(page, saved.stem)


def test_groups_are_told_apart_without_color(browser, saved):
    """Each curve has dashes of its own; the names below bars do not lie on each other."""
    with opened(browser, saved, 360, "light") as page:
        lines = page.locator(".umpc-curve polyline")
        dashes = [each.get_attribute("stroke-dasharray") for each in lines.all()]
        assert len(set(dashes)) == len(dashes)
        labels = page.locator(".umpc-curve text:not([transform])").all()
        boxes = [(each.bounding_box(), each.inner_html()) for each in labels]
        for place, (one, text) in enumerate(boxes):
            for other, beside in boxes[place + 1 :]:
                wide = min(one["x"] + one["width"], other["x"] + other["width"])
                high = min(one["y"] + one["height"], other["y"] + other["height"])
                apart = wide <= max(one["x"], other["x"]) or high <= max(one["y"], other["y"]) + 3
                assert apart, (text, beside)


def test_the_first_sentence_is_in_the_statistics_words(saved):
    found = re.search('<p class="value">([^<]*)</p>', saved.read_text("utf-8"))
    begins = {
        "kaplan_meier": "Kaplan–Meier curve of time: median, age 30–64 ",
        "nelson_aalen": "Nelson–Aalen curve of time: 88 counts of these 228 records (epsilon 20).",
        "roc": "ROC curve of score for event: area under the curve 0.",
        "contingency": "Table of job and event: Cramér",
        "histogram": "Counts of score: 20 counts of these 228 records (epsilon 20).",
        "ecdf": "Distribution of score: median ",
        "quantiles": "Quantiles of score: median ",
        "logrank": "Log-rank test of time between groups of age: p-value 0.",
        "gehan": "Gehan&#x27;s test of time between groups of age: p-value 0.",
        "qq": "Quantiles of score in two groups of event: ",
        "matrix6": "Kendall&#x27;s tau-a of each two of systolic_blood_pressure, marker_0, ",
        "matrix20": "Kendall&#x27;s tau-a of each two of 20 columns, for these 60 records.",
        "weighted": "Kendall&#x27;s tau-a of x and y weighted by w: ",
        "comparison": "Difference of Kendall&#x27;s tau-a, x minus y, for z: ",
        "median": "Hodges and Lehmann&#x27;s location of x: ",
    }
    assert found and found[1].startswith(begins[saved.stem])
