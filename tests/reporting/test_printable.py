"""A study's texts are its coordinator's: no report of it steers a terminal or forges a line."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.reporting.test_page import TABLES
from tests.support.studies import Entropy, make_study
from umpc.cli import study as study_command
from umpc.cli.shared import print_report
from umpc.reporting.page import page
from umpc.simulation import simulate
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.text_file import printable

EVIL = "age\x1b[31m\u202e\u2066 \x07\u200b\u2028\nerror: forged"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def report() -> Report:
    found = simulate(make_study(edges="all"), TABLES, Entropy("printable")).report
    field = FieldText(EVIL, "0", "9", whole=True).to_dict()
    return replace(found, study=EVIL, statistic=EVIL, note=EVIL, where=EVIL, fields=(field,))


def printed(report: Report, capsys) -> str:
    print_report(report, "table")
    return capsys.readouterr().out


def test_no_form_of_a_report_has_characters_that_steer(report, capsys):
    forms = {"page": page(report), "table": printed(report, capsys)}
    found = {name: STEERING.findall(text) for name, text in forms.items()}
    assert found == {"page": [], "table": []}
    for text in forms.values():
        assert not any(line.strip().startswith("error: forged") for line in text.splitlines())


def test_a_name_with_brackets_is_no_markup(report, capsys):
    """It ended the command with an internal error, after the study had been charged."""
    assert "a[/b]" in printed(replace(report, study="a[/b]", statistic="c[/b]"), capsys)


@pytest.mark.parametrize("place", ["interval_covers", "protected", "note", "where"])
def test_a_field_s_name_with_brackets_is_no_markup_in_any_row(report, capsys, place):
    """A grid with levels names its fields in the row of the interval, and it ended likewise."""
    shown = printed(replace(report, **{place: "the value at 8 levels of a[/b] and c[d]"}), capsys)
    assert "a[/b]" in shown and "c[d]" in shown


def test_a_line_of_study_check_stays_one_line(capsys):
    study_command.echo_row("study", EVIL)
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1 and not STEERING.search(shown)


def test_texts_of_people_stay_as_they_are():
    for text in ("Größe (cm)", "年齢", "A|B", "x\\y"):
        assert printable(text) == text
    assert printable("Île\xa0de France\ta") == "Île de France a"
