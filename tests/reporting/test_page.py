"""The report as a page: one file, nothing from elsewhere, and all that the table says."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.support.studies import Entropy, make_study
from umpc.cli.show import print_report
from umpc.errors import ConfigError
from umpc.reporting.page import page, save_page
from umpc.simulation import simulate
from umpc.study.measured import Moment
from umpc.study.parts import FieldText
from umpc.study.report import Report

TABLES = [{"x": np.arange(5), "y": np.arange(5) % 3}, {"x": np.arange(4), "y": np.arange(4)}]
STEPS = ("propose", "agree", "prepare", "evaluate", "release")
TIMELINE = [
    Moment(step, node, i, i + 0.5) for i, step in enumerate(STEPS) for node in ("node-0", "<b>&1")
]


class Parsed(HTMLParser):
    """Tags that are open, texts, and attributes that lead elsewhere."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.texts, self.links, self.tags = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [
            value for name, value in attributes if name in ("src", "href", "action", "xlink:href")
        ]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def report() -> Report:
    study = make_study("sign(a.x - b.x) * sign(a.y - b.y)", 2, edges="all")
    return replace(simulate(study, TABLES, Entropy("page")).report, timeline=TIMELINE)


def test_it_shows_every_field_with_its_bounds_and_its_resolution(report, capsys):
    fields = (
        FieldText("x", "0", "9", "0.25").to_dict(),
        FieldText.of_categories("[b]y", [f"label {number}" for number in range(99)]).to_dict(),
    )
    shown = replace(report, fields=list(fields))
    print_report(shown, "table")
    for text in (page(shown), capsys.readouterr().out):
        assert (
            "0 to 9, in steps of 0.25" in text and "field [b]y" in text and "label 98" not in text
        )
    assert "0 to 3, whole numbers" in page(report)


def test_it_is_well_formed_and_asks_for_nothing(report):
    text = page(report)
    parsed = Parsed(text)
    assert parsed.open == [] and parsed.links == []
    assert not {"script", "img", "link", "iframe"} & set(parsed.tags)
    assert "url(" not in text and "@import" not in text


def test_it_says_what_the_report_says(report):
    said = " ".join(Parsed(page(report)).texts)
    for value in (
        f"{report.estimate:.6g}",
        report.study_hash,
        report.sums[0].kernel,
        f"{report.bytes_online:,}",
    ):
        assert value in said
    assert "<b>&1" in said, "names are escaped, not interpreted"
    assert all(step in said for step in STEPS)


def test_every_step_of_every_node_is_a_bar(report):
    drawn = page(report).partition("Steps over time")[2]
    assert drawn.count("<rect") == len(TIMELINE)
    assert "Steps over time" not in page(replace(report, timeline=[]))


def test_a_report_without_a_value_says_why(report):
    nothing = dict.fromkeys(("estimate", "noise_std", "low", "high", "sampling_std_bound"))
    said = " ".join(Parsed(page(replace(report, **nothing, note="drowned in noise"))).texts)
    assert "no value" in said and "drowned in noise" in said


def test_a_replay_says_so_and_has_no_costs(report):
    said = " ".join(Parsed(page(replace(report, replayed=True))).texts)
    assert "replayed" in said and "What it cost" not in said


def test_a_page_that_cannot_be_written_is_told(report, tmp_path):
    with pytest.raises(ConfigError, match="printed above"):
        save_page(report, tmp_path / "nowhere" / "report.html")
    save_page(report, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page(report)
