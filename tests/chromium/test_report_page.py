"""A saved report in a real browser: narrow and wide, light and dark, on screen and on paper."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.chromium.watched_page import watched_page
from tests.support.fields import number_field
from tests.support.several import several
from tests.support.studies import GINI, KENDALL, Entropy, library_study
from umpc.reporting.page import page as page_of
from umpc.simulation import simulate
from umpc.study.cost import Moment
from umpc.study.document import Study
from umpc.study.report import Report

LOOKS = (Path(__file__).parent / "looks.js").read_text(encoding="utf-8")
WIDTHS = (420, 1200)
PAPER = 718
"""Pixels: A4 without 1 cm at each side, at 96 dots per inch."""
SCHEMES = ("light", "dark")
LEAST_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3, level AA."""
MARKS_CONTRAST = 3.0
"""WCAG 2.2, 1.4.11: of a picture's marks beside what they lie on."""
MARKS = ".umpc-picture .mark"
COLOR = """(each) => {
  const style = getComputedStyle(each);
  const filled = each.tagName === "rect" && style.fill !== "none";  // its stroke is a gap
  const painted = filled || style.stroke === "none" ? style.fill : style.stroke;
  let at = each.closest("svg").parentElement;
  while (getComputedStyle(at).backgroundColor === "rgba(0, 0, 0, 0)") at = at.parentElement;
  return [each.tagName, painted, getComputedStyle(at).backgroundColor];
}"""
SERIOUS = ("serious", "critical")
SMALLEST = 9
"""Pixels: a size at which text in a picture can be read."""
LONG = "hospital-of-the-university-of-a-town-with-a-long-name"
NAMES = ("north", LONG)
STEPS = ("connect", "propose", "agree", "prepare", "evaluate", "release")
NO_VALUE = dict.fromkeys(("estimate", "noise_std", "low", "high", "sampling_std_bound"))


def _report(study: Study, *columns: str) -> Report:
    """The report of made-up records at two nodes, one of which has a long name."""
    generator = np.random.default_rng(1)
    tables = [{name: generator.integers(0, 3, 40) for name in columns} for _ in NAMES]
    timeline = [
        Moment(step, name, start, start + 0.5) for start, step in enumerate(STEPS) for name in NAMES
    ]
    return replace(simulate(study, tables, Entropy("pages")).report, timeline=timeline)


def report_named(name: str) -> Report:
    """One value with its test; two statistics inside three strata; or a value that is withheld."""
    if name == "several":
        statistics = {"kendall_tau": KENDALL, "gini_mean_difference": GINI}
        return _report(several(statistics, epsilon="1000"), "x", "y", "s")
    fields = [number_field(field, "0", "2") for field in ("x", "y")]
    one = _report(library_study("kendall_tau", fields, 2, ("x", "y"), epsilon="1"), "x", "y")
    return replace(one, **NO_VALUE, note="The noise is too large.") if name == "none" else one


@pytest.fixture(scope="module", params=["one", "several", "none"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report's file."""
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    path.write_text(page_of(report_named(request.param)), encoding="utf-8")
    return path


@contextmanager
def opened(browser: Browser, path: Path, width: int, scheme: str) -> Iterator[Page]:
    """The page, which may ask for no other address."""
    with watched_page(browser, width, scheme) as (page, asked):
        page.goto(path.as_uri())
        yield page
    assert asked == [path.as_uri()]


def looks(page: Page) -> dict[str, Any]:
    """Facts that hold for every page, checked: it fits, and its text is dark on light or back."""
    found = page.evaluate(LOOKS)
    assert found["width"] <= found["screen"], "the page is wider than the screen"
    assert found["scrolled"] == [], "a part is wider than its place"
    assert found["broken"] == [], "short words are broken"
    assert found["texts"]
    for text in found["texts"]:
        assert text["contrast"] >= LEAST_CONTRAST, text
        assert not text["visible"] or text["size"] >= SMALLEST, text
        if text["visible"] and not text["slides"]:
            assert text["left"] >= 0 and text["right"] <= found["screen"], text
    return found


def contrast(one: str, other: str, *, grey: bool = False) -> float:
    """The contrast of two colours as CSS writes them (WCAG 2.2), or of their greys in print."""
    lights = []
    for color in (one, other):
        channels = [float(value) / 255 for value in re.findall(r"[\d.]+", color)[:3]]
        if grey:  # ITU-R BT.601, as a printer without colours mixes them
            channels = [0.299 * channels[0] + 0.587 * channels[1] + 0.114 * channels[2]] * 3
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


def check_marks(page: Page, selector: str = MARKS) -> None:
    """Each mark of a picture is seen on its ground, and a dot on its bar, also in grey."""
    found = [each.evaluate(COLOR) for each in page.locator(selector).all()]
    assert found
    bars = {color for tag, color, _ in found if tag == "line"}
    for tag, color, ground in found:
        for beside in {ground} | (bars if tag == "circle" else set()):
            for grey in (False, True):
                assert contrast(color, beside, grey=grey) >= MARKS_CONTRAST, (tag, color, beside)


def serious(page: Page) -> list[str]:
    """Rules of axe-core that the page breaks in a way that matters to people."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['help']}" for each in found if each["impact"] in SERIOUS]


def is_dark(found: dict[str, Any]) -> bool:
    (ground,) = {text["ground"] < 0.5 for text in found["texts"]}
    return ground


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_screen_folded_and_open(browser, saved, width, scheme):
    with opened(browser, saved, width, scheme) as page:
        folded = looks(page)
        shown = {text["text"] for text in folded["texts"] if text["visible"]}
        assert folded["folded"] and "epsilon, delta" not in shown
        assert serious(page) == []
        if "no value" not in page.content():
            check_marks(page)
        assert "What was promised to whom" in shown
        keep(page, saved, f"{width}-{scheme}")
        for part in page.locator("summary").all():
            part.click()
        unfolded = looks(page)
        assert unfolded["folded"] == 0
        assert all(text["visible"] for text in unfolded["texts"])
        assert is_dark(folded) == is_dark(unfolded) == (scheme == "dark")
        keep(page, saved, f"{width}-{scheme}-open")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_paper_shows_all_parts_and_is_light(browser, saved, scheme):
    with opened(browser, saved, PAPER, scheme) as page:
        page.emulate_media(media="print")
        found = looks(page)
        assert found["folded"], "nobody opened them"
        assert all(text["visible"] for text in found["texts"])
        assert not is_dark(found)
        if "no value" not in page.content():
            check_marks(page)
        keep(page, saved, f"paper-{scheme}")


def test_contrast_is_that_of_wcag_and_a_pale_mark_is_found():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)
    yellow, white = "rgb(255, 221, 0)", "rgb(255, 255, 255)"
    assert contrast(yellow, white) < MARKS_CONTRAST and contrast(yellow, white, grey=True) < 2


def keep(page: Page, saved: Path, name: str) -> None:
    """Store a picture of the whole page where UMPC_PAGES names a folder, for people to look at."""
    if folder := os.environ.get("UMPC_PAGES"):
        page.screenshot(path=Path(folder) / f"{saved.stem}-{name}.png", full_page=True)
