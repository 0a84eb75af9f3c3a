"""`umpc plan --like`: a table like the sites' own, and what is said about it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.support.studyfiles import participants, planned_file
from umpc.cli.main import umpc
from umpc.coordinator.studyfile_text import field_entry
from umpc.study.parts import FieldText

FIELDS = (FieldText("age", "0", "99", whole=True), FieldText("wage", "0", "999", whole=True))
RECORDS = "60,50,40"


@pytest.fixture
def study(tmp_path):
    (dealer,) = participants("dealer")
    return planned_file(
        tmp_path,
        ("north", "south", "west"),
        statistic="kendall_tau",
        columns=["age", "wage"],
        fields=[field_entry(field) for field in FIELDS],
        edges="2n",
        dealer=dealer,
    )


def test_a_table_with_missing_words_and_values_outside_is_read_and_said(study, tmp_path):
    path = tmp_path / "like.csv"
    path.write_text("age,wage\n30,100\n?,7\n500,8\n40,90\n", encoding="utf-8")
    options = ["--records", RECORDS, "--like", str(path), "--missing", "?"]
    ended = CliRunner().invoke(umpc, ["plan", str(study), *options])
    assert ended.exit_code == 0, ended.output
    assert "warning: like.csv" in ended.output and "1 records with a missing" in ended.output


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [("none.csv", None, "no such file"), ("short.csv", "age\n30\n", "the study's field 'wage'")],
)
def test_an_error_of_a_table_like_the_sites_names_the_file_and_no_node(
    study, tmp_path, name, text, reason
):
    path = tmp_path / name
    if text:
        path.write_text(text, encoding="utf-8")
    options = ["--records", RECORDS, "--like", str(path)]
    ended = CliRunner().invoke(umpc, ["plan", str(study), *options])
    said = str(ended.exception)
    assert str(path) in said and reason in said and "node" not in said
