"""The report as a page: one file, nothing from elsewhere, and all that the table says."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.support.fields import number_field
from tests.support.several import several
from tests.support.studies import GINI, KENDALL, Entropy, library_study, make_study
from umpc.cli.shared import print_report
from umpc.errors import ConfigError
from umpc.inference.report_inference import Inference
from umpc.reporting.page import page
from umpc.reporting.rows import QUESTIONS, promise_of, rounded, sentence_of
from umpc.simulation import simulate
from umpc.study.cost import Moment
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


def test_it_says_what_a_value_counts_as_that_fits_no_bound_or_category(report):
    """So that no reader takes the last category for those who said so, or a bound for a value."""
    number, words = "counts as the nearer bound", "counts as the last of them"
    kinds = {number: FieldText("x", "0", "9", "1"), words: FieldText.of_categories("y", "ab")}
    for rule, field in kinds.items():
        text = page(replace(report, fields=[field.to_dict()]))
        assert [each for each in kinds if each in text] == [rule]
    both = page(replace(report, fields=[field.to_dict() for field in kinds.values()]))
    assert all(rule in both for rule in kinds)
    for protocol, has_tables in (("linked", True), ("people", False)):  # a device refuses it
        of_shares = page(replace(report, protocol=protocol, fields=[kinds[number].to_dict()]))
        assert (number in of_shares) == has_tables


def test_it_is_well_formed_and_asks_for_nothing(report):
    text = page(report)
    parsed = Parsed(text)
    assert parsed.open == [] and parsed.links == []
    assert not {"script", "img", "link", "iframe"} & set(parsed.tags)
    assert "url(" not in text and "@import" not in text


def test_it_says_what_the_report_says(report):
    said = " ".join(Parsed(page(report)).texts)
    for value in (
        f"{sentence_of(report)}.",
        f"for {report.interval_covers}",
        "Which interval of 95 % answers which question",
        *QUESTIONS.values(),
        *promise_of(report).lines,
        report.study_hash,
        report.sums[0].kernel,
        f"{report.bytes_online:,}",
    ):
        assert value in said
    assert "<b>&1" in said, "names are escaped, not interpreted"
    assert all(step in said for step in STEPS)


def test_the_headline_is_a_sentence_in_the_statistics_own_words():
    """A value, its interval for these records and for the population, and what it cost."""
    fields = [number_field(name, "0", "4") for name in ("x", "other", "y")]
    fields[1:2] = []
    study = library_study("kendall_tau", fields, 2, ("x", "y"), epsilon="9")
    ran = replace(simulate(study, TABLES, Entropy("quoted")).report, noise_std=0.03)
    known = replace(ran, estimate=0.4493, low=0.4001, high=0.4962, records=1750)
    drawn = " to ".join(f"{end:.3f}" for end in Inference(known).interval(kind="population"))
    quoted = (
        "Kendall's tau-a of x and y: 0.449 (95 % 0.400 to 0.496, for these 1,750 records; "
        f"{drawn}, for the population; epsilon 9)"
    )
    assert sentence_of(known) == quoted
    persons = sentence_of(replace(known, protected="all records of one person"))
    assert "population" not in persons, "several records of a person are no random sample"
    wide = replace(known, low=-0.5, high=1.4)
    assert sentence_of(wide).startswith("Kendall's tau-a of x and y: 0.45 (95 % -0.50 to 1.40, ")
    assert sentence_of(replace(known, low=None)) == "Kendall's tau-a of x and y: 0.449"
    assert sentence_of(replace(known, estimate=None)) == "Kendall's tau-a of x and y: no value"
    weighted = replace(known, statistic="kendall_tau weighted by y")
    assert sentence_of(weighted).startswith("Kendall's tau-a of x weighted by y: 0.449 (95 % ")
    covers = "the value of the grid's bins"
    coarse = sentence_of(replace(known, interval_covers=covers))
    assert f"0.496, for {covers}; {drawn}, for the same in the population; epsilon 9)" in coarse
    text = page(replace(known, version="0.2.0"))
    assert f'<p class="value">{escape(quoted)}.</p>' in text
    assert "asked by coordinator of node-0, node-1 · umpc 0.2.0 · study " in text


def test_each_site_has_its_rules_beside_its_name_in_page_and_table(report, capsys):
    rules = {"node-0": "no person is asked", "<b>&1": "<i>enough</i> rows"}
    for known, count in ((report, "5"), (replace(report, records_by_node=[]), "")):
        told = replace(known, policies=rules)
        said = " ".join(Parsed(page(told)).texts)
        assert f"node-0 {count}".strip() in said and "its rules: no person is asked" in said
        assert "its rules: <i>enough</i> rows" in said, "texts of sites are escaped"
        print_report(told, "table")
        assert "its rules: no person is asked" in " ".join(capsys.readouterr().out.split())
        former = replace(known, policies={"node-0": rules["node-0"]}, version="0.3.0")
        untold = "this site&#x27;s version does not tell its policy"
        assert page(former).count(untold) == 1
        assert untold not in page(known), "an estimate in memory has no sites"


def test_the_headline_of_a_difference_says_what_is_taken_from_what():
    """The fields' order in a file is not the statistic's, so it does not tell the direction."""
    fields = [number_field(name, "0", "4") for name in ("x", "y", "s")]
    columns = ("s", "x", "y")
    study = library_study("tau_difference", fields, 2, columns, epsilon="9")
    tables = [{name: np.arange(12) % (3 + at) for at, name in enumerate("xys")} for _ in range(2)]
    told = sentence_of(simulate(study, tables, Entropy("difference")).report)
    assert told.startswith("Difference of Kendall's tau-a, s minus x, for y: ")


def test_strata_and_own_statistics_keep_their_names():
    several_of = several({"kendall_tau": KENDALL, "gini_mean_difference": GINI}, epsilon="1000")
    tables = [{name: np.arange(12) % 3 for name in ("x", "y", "s")} for _ in range(2)]
    found = simulate(several_of, tables, Entropy("parts")).report
    told = [sentence_of(found.of_part(place)) for place in range(len(found.parts))]
    assert all(" inside s = " in each for each in told), told
    assert any(each.startswith("Kendall's tau-a of ") for each in told)


@pytest.mark.parametrize(
    ("value", "noise", "shown"),
    [
        (0.449333, 0.0075, "0.4493"),
        (-0.449333, 0.03, "-0.449"),
        (-0.0004, 0.03, "0.000"),
        (0.449333, 12.3, "0"),
        (56789.3, 1234.0, "56800"),
        (12.5, 1e-9, "12.5000"),
        (1.5e-7, 1e-9, "1.5e-07"),
        (0.449333, None, "0.449333"),
        (0.449333, 0.0, "0.449333"),
        (3e20, 1e18, "3e+20"),
    ],
)
def test_a_value_has_the_digits_that_its_noise_leaves(value, noise, shown):
    assert rounded(value, noise) == shown


def test_the_value_the_interval_and_the_date_stand_together_in_every_form(report, capsys):
    """The page had 0.449333 alone, with six digits and noise of 0.0075."""
    known = replace(
        report,
        estimate=0.449333,
        noise_std=0.0075,
        low=0.43123456,
        high=0.47123456,
        finished="2026-11-28T07:43:39+00:00",
        prepared=True,
        prepared_at="2026-11-27T09:00:00+00:00",
    )
    print_report(known, "table")
    for text in (page(known), capsys.readouterr().out):
        assert "0.449 (95 % 0.431 to 0.471" in " ".join(text.replace("│", " ").split())
        assert "0.44933" not in text and "0.43123" not in text
        assert "2026-11-28 07:43 UTC" in text
        assert "2026-11-27 09:00 UTC" in text and "the records are those of" in text
    unknown = page(replace(known, prepared_at=""))
    assert "before this run; the records are those of the tables at that time" in unknown
    assert "shown again 2026-11-28" in page(replace(known, replayed=True))
    assert "prepared" not in page(report).partition("<h2>")[0]


@pytest.mark.parametrize(
    ("columns", "widest"), [("60", 60), ("200", 200), ("", 110), ("wide", 110)]
)
def test_a_piped_table_is_as_wide_as_columns_says(report, capsys, monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    print_report(replace(report, finished="2026-11-28T07:43:39+00:00"), "table")
    text = capsys.readouterr().out
    most = max(map(len, text.splitlines()))
    assert widest - 40 < most <= widest
    assert "2026-11-28 07:43 UTC" in " ".join(text.replace("│", " ").split())


def test_the_records_that_count_are_told_with_the_number_of_columns(report):
    assert "complete in all 2 columns of the study" in page(report)
    where = page(replace(report, where="x &gt;= 1", person="patient"))
    assert "complete in all 3 columns of the study; only where" in where
    assert "with a missing value in any column is left out" in where


def test_every_step_of_every_node_has_its_seconds(report):
    told = page(report).partition("Steps over time")[2]
    assert told.count("<tr>") == len(TIMELINE)
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
        print_report(report, "table", page=tmp_path / "nowhere" / "report.html")
    print_report(report, "table", page=tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page(report)
