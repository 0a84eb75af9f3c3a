"""The picture: the numbers of the report, well-formed, and nothing from outside."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

import pytest
from IPython.core.formatters import HTMLFormatter

import umpc
from umpc.approval_page.server import PARTS
from umpc.approval_page.server import STYLE as APPROVAL_STYLE
from umpc.cli.shared import print_report
from umpc.reporting.page import STYLE as PAGE_STYLE
from umpc.reporting.page import page, ticks
from umpc.reporting.rows import promises


@pytest.fixture(scope="module")
def result() -> umpc.Result:
    table = {"x": list(range(12)), "y": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]}
    bounds = {"x": (0, 15), "y": (0, 15)}
    return umpc.estimate(
        "kendall_tau", [table, table], ["x", "y"], bounds=bounds, epsilon=9, edges="2n"
    )


def test_the_picture_has_a_bar_for_each_interval_at_its_place(result):
    drawn = ElementTree.fromstring(result.plot().svg)
    space = "{http://www.w3.org/2000/svg}"
    bars = [each for each in drawn.iter(f"{space}line") if each.find(f"{space}title") is not None]
    dots = list(drawn.iter(f"{space}circle"))
    assert len(bars) == len(dots) == 4
    widths = [float(bar.get("x2")) - float(bar.get("x1")) for bar in bars]
    assert widths == sorted(widths)
    for bar, dot, kind in zip(
        bars, dots, ("noise", "records", "population", "hoeffding"), strict=True
    ):
        interval = result.interval(kind=kind)
        assert f"{interval.low:.5g} to {interval.high:.5g}" in bar.find(f"{space}title").text
        share = (result.estimate - interval.low) / (interval.high - interval.low)
        at = float(bar.get("x1")) + share * (float(bar.get("x2")) - float(bar.get("x1")))
        assert float(dot.get("cx")) == pytest.approx(at, abs=0.2)
    assert "prefers-color-scheme: dark" in result.plot().svg and "@media print" in page(
        result.report
    )


def luminance(color: str) -> float:
    """Relative luminance of #rgb or #rrggbb (WCAG 2.2)."""
    digits = color.lstrip("#")
    if len(digits) == 3:
        digits = "".join(each * 2 for each in digits)
    parts = (int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def themes(style: str) -> list[dict[str, str]]:
    """The colors of each theme of a style, by name: light, dark, and print where there is one."""
    roots = r"(dark\) \{|print \{)?\s*(?::root|\.umpc-picture) \{([^{}]*--[^{}]*)\}"
    found: dict[str, dict[str, str]] = {}
    for theme, block in re.findall(roots, style):
        found.setdefault(theme, {}).update(re.findall(r"--(\w+): (#\w+)", block))
    return list(found.values())


def test_what_is_drawn_stands_out_from_what_it_lies_on(result):
    """The dot had a contrast of 1.23 with its bar; 3 is the norm for what is no text."""
    assert contrast("#3b6ea5", "#a23b3b") < 1.3
    drawn = themes(result.plot().svg)
    papers = [each["paper"] for each in themes(PAGE_STYLE)]
    assert len(drawn) == len(papers) == 3
    for colors, paper in zip(drawn, papers, strict=True):
        pairs = [(colors["dot"], colors["bar"]), (colors["bar"], paper), (colors["dot"], paper)]
        assert min(contrast(*pair) for pair in pairs) >= 3
    for colors in themes(APPROVAL_STYLE):
        assert min(contrast(colors[part], colors["paper"]) for part in PARTS) >= 3
    assert "svg rect { stroke: var(--paper)" in APPROVAL_STYLE, "parts of a bar have a gap"


def test_ticks_are_round_and_inside():
    for low, high in ((-1.3, 2.2), (0.0001, 0.0004), (-9e6, 1e7)):
        found = ticks(low, high)
        assert 3 <= len(found) <= 11 and low <= found[0] and found[-1] <= high


def test_the_page_begins_with_the_picture_and_folds_the_rest(result):
    text = page(result.report)
    assert (
        text.index("umpc-picture")
        < text.index("What was promised")
        < text.index("<details>", text.index("What was promised"))
    )
    promised = text[text.index("What was promised") :]
    assert all(f"<p>{escape(each)}</p>" in promised for each in promises(result.report))
    shown = HTMLFormatter()(result)
    assert shown and "<script" not in shown and "p = " in shown


def test_a_file_that_cannot_be_written_is_refused(result, tmp_path):
    with pytest.raises(umpc.errors.ConfigError, match="printed above"):
        print_report(result.report, "table", page=tmp_path / "nowhere" / "report.html")
    with pytest.raises(umpc.errors.ConfigError):
        result.plot().save(tmp_path / "nowhere" / "a.svg")
    assert result.save(tmp_path / "a.html").exists() and result.plot().save(tmp_path / "a.svg")
