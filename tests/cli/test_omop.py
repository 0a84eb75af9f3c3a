"""`umpc table omop`: its SELECT over a made-up model in DuckDB, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click
import duckdb
import pytest
from click.testing import CliRunner

from tests.support.omop import FIRST, LAST, statements
from umpc.cli.main import umpc
from umpc.errors import ConfigError
from umpc.node.records import load_records
from umpc.node.table.source import TableSource
from umpc.node.table.sql_source import SqlSource
from umpc.ustat.schema import FieldSchema

PLACES = ("--schema", "cdm", "--cohorts", "results.cohort")
CRP = ("--measurement", "crp=3020460", "--unit", "crp=8751")
IN_FIRST = ("--cohort", "7", *CRP, "--pick", "first", *PLACES)
IN_LAST = ("--cohort", "7", *CRP, "--unit", "crp=8840*10", "--pick", "last", *PLACES)


def written(into: Path, *words: str) -> str:
    """The text that the command writes."""
    given = ["table", "omop", *words, "--into", str(into)]
    ended = CliRunner().invoke(umpc, given, catch_exceptions=False, standalone_mode=False)
    assert f"{into}: a" in ended.stdout
    return into.read_text()


@pytest.fixture
def cdm(tmp_path):
    """A file with the model."""
    with duckdb.connect(str(tmp_path / "hospital.duckdb")) as database:
        for each in statements():
            database.execute(each)
        yield database


@pytest.mark.parametrize("words, expected", [(IN_FIRST, FIRST), (IN_LAST, LAST)])
def test_unit_cohort_period_and_person_are_fixed(words, expected, cdm, tmp_path):
    found = cdm.execute(written(tmp_path / "view.sql", *words))
    assert [each[0] for each in found.description] == ["person_id", "age", "sex", "crp"]
    assert [(*row[:3], row[3] and float(row[3])) for row in found.fetchall()] == [*expected]


def test_a_node_reads_the_select_and_the_view(cdm, tmp_path):
    select = written(tmp_path / "select.sql", *IN_LAST)
    view = written(tmp_path / "view.sql", *IN_LAST, "--view", "results.crp")
    assert view == f"CREATE VIEW results.crp AS\n{select};\n"
    cdm.execute(view)
    cdm.close()
    crp = FieldSchema("crp", Fraction(0), Fraction(500), Fraction(1, 2))
    sex = FieldSchema("sex", Fraction(0), Fraction(1), Fraction(1), ("male", "female"))
    for query in (select, "results.crp"):
        sql = SqlSource("duckdb:///hospital.duckdb", query, folder=tmp_path)
        source = TableSource(tmp_path / "node.toml", sql=sql)
        found = load_records(source, [crp, sex], node="north").columns
        rows = sorted(zip(found["crp"].tolist(), found["sex"].tolist(), strict=True))
        assert rows == [(6, 0), (18, 0), (25, 0), (44, 1)], "persons without a value are left out"


def test_several_columns_and_concepts_stand_beside_each_other(cdm, tmp_path):
    more = ("--measurement", "Hba1c=3004410,3005673", "--unit", "Hba1c=8554")
    found = cdm.execute(written(tmp_path / "view.sql", *IN_FIRST, *more))
    assert [each[0] for each in found.description] == ["person_id", "age", "sex", "crp", "Hba1c"]
    rows = [(row[0], row[4]) for row in found.fetchall() if row[4] is not None]
    assert [(person, float(value)) for person, value in rows] == [(1, 6.5)]


@pytest.mark.parametrize(
    "wrong, expected",
    [
        (("--measurement", "crp"), "NAME=CONCEPT was expected, as crp=3020460"),
        (("--measurement", "crp=1;DROP", "--unit", "crp=1"), "NAME=CONCEPT was expected"),
        (("--measurement", "Age=1", "--unit", "Age=1"), "another name than person_id, age, sex"),
        (("--measurement", "CRP=1", "--unit", "CRP=1"), "another name than .*, crp"),
        (("--measurement", "ldl=3028437"), "the unit of 'ldl' was expected"),
        (("--unit", "ldl=8840"), "there is no --measurement of it"),
        (("--unit", "crp=mg"), "NAME=CONCEPT was expected, as crp=8751"),
        (("--schema", "a b"), "a name or SCHEMA.NAME was expected"),
        (("--view", "x; DROP TABLE y"), "a name or SCHEMA.NAME was expected"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(wrong, expected, tmp_path):
    with pytest.raises(click.UsageError, match=expected):
        written(tmp_path / "view.sql", *IN_FIRST, *wrong)
    assert not (tmp_path / "view.sql").exists()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"view\.sql"):
        written(tmp_path / "none" / "view.sql", *IN_FIRST)
