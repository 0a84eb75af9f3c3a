"""umpc/node/table/duckdb_file.py: the cases of test_database.py, and what a query may not reach."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from tests.support.node_files import BUDGET, HEAD, load, refused
from tests.support.site_tables import check_owners_commands, columns
from umpc.cli.doctor import check_table
from umpc.errors import ConfigError, DataError, EmptyTable, UnknownField
from umpc.node.records import Records, load_records
from umpc.node.table.duckdb_file import read_duckdb
from umpc.node.table.source import TableSite, TableSource
from umpc.node.table.sql_source import SqlSource, wrong_url
from umpc.node.table.survey import survey_table
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(120), Fraction(1))
COST = FieldSchema("cost", Fraction(-100), Fraction(100), Fraction(1, 100))
SEX = FieldSchema("sex", Fraction(0), Fraction(1), Fraction(1), ("f", "m"))
FILE = "ward 7.duckdb"


@pytest.fixture
def visits(tmp_path) -> TableSource:
    """A view of a table with numbers, texts, a NULL, and a column of another name."""
    write(
        tmp_path,
        'CREATE TABLE raw (age INTEGER, cost DECIMAL(9, 4), sex VARCHAR, "odd ""name" INTEGER)',
        "INSERT INTO raw VALUES (40, 0.35, 'f', 1), (NULL, 1, 'm', 2), (50, 0.29, 'm', 3),"
        " (60, NULL, 'f', 4)",
        "CREATE VIEW visits AS SELECT * FROM raw ORDER BY age DESC NULLS LAST",
    )
    sql = SqlSource(f"duckdb:///{FILE}", "visits", folder=tmp_path)
    return TableSource(tmp_path / "node.toml", sql=sql)


def write(folder: Path, *statements: str) -> None:
    with duckdb.connect(folder / FILE) as db:
        for statement in statements:
            db.execute(statement)


def of(source: TableSource, query: str) -> TableSource:
    assert source.sql is not None
    return replace(source, sql=replace(source.sql, query=query))


def read(source: TableSource, *fields: FieldSchema) -> Records:
    return load_records(source, fields, node="a")


def test_a_view_is_read_as_a_file_is(visits):
    records = read(visits, AGE, COST, SEX)
    assert columns(records) == {"age": [50, 40], "cost": [29, 35], "sex": [1, 0]}
    assert (records.count, records.dropped, records.misfits) == (2, 2, ())
    for query in ("SELECT age FROM raw WHERE sex LIKE 'f%'", "SELECT 40 AS age -- and no more"):
        assert columns(read(of(visits, query), AGE))["age"][0] == 40


def test_names_are_exact_and_a_wrong_one_is_refused_by_name(visits):
    odd = FieldSchema('odd "name', Fraction(0), Fraction(9), Fraction(1))
    assert columns(read(visits, odd)) == {'odd "name': [4, 3, 1, 2]}
    with pytest.raises(UnknownField, match="'Age' was expected as a column") as caught:
        read(visits, replace(AGE, name="Age"))
    assert "did the study mean 'age'" in caught.value.detail
    both = of(visits, 'SELECT 1 AS age, 2 AS "Age"')
    assert columns(read(both, AGE, replace(AGE, name="Age"))) == {"age": [1], "Age": [2]}
    with pytest.raises(DataError, match="more than once"):
        read(of(visits, "SELECT 1 AS age, 2 AS age"), AGE)


def test_owners_commands_read_it_too(visits):
    check_owners_commands(visits)


def test_values_are_typed_exactly(visits):
    cases = {
        "NULL": (None, None),
        "NULL::INTEGER": (None, None),
        "true": ("true", 1),
        "9223372036854775807": ("9223372036854775807", 2**63),
        "170141183460469231731687303715884105727": (str(2**127 - 1), 2**127),
        "255::UTINYINT": ("255", 255),
        "0.1::FLOAT": ("0.1", 0.1),
        "'nan'::FLOAT": (None, None),
        "'nan'::DOUBLE": (None, None),
        "'-inf'::DOUBLE": ("-inf", float("-inf")),
        "12.3400::DECIMAL(38, 4)": ("12.3400", 12.34),
        "' 12 '": (" 12 ", None),
        "'a'::ENUM('a', 'b')": ("a", None),
        "'00000000-0000-0000-0000-000000000001'::UUID": (f"{'0' * 8}-0000-0000-0000-{1:012}", None),
    }
    chosen = ", ".join(f"{value} AS v{place}" for place, value in enumerate(cases))
    source = of(visits, f"SELECT {chosen}")
    with read_duckdb(source.sql, TableSite("a", visits.path)) as reading:
        found = reading.fetch([f"v{place}" for place in range(len(cases))])
    for value, (text, number) in zip(found.values(), cases.values(), strict=True):
        assert (value.texts[0] if value.known[0] else None) == text
        came = value.numbers[0]
        assert np.isnan(came) if number is None else came == number
    # a decimal comma counts for texts, and not for numbers
    german = replace(source, numbers=replace(source.numbers, decimal=",", thousands="."))
    for value in ("1.5::DECIMAL(9, 1)", "'1,5'"):
        assert columns(read(of(german, f"SELECT {value} AS cost"), COST)) == {"cost": [150]}


def test_a_type_that_is_no_number_is_refused_and_the_advice_works(visits):
    cases = (
        ("DATE '2000-01-31'", "DATE", "(VISIT - DATE '2000-01-01') AS visit_days", 30),
        ("TIMESTAMP '1970-01-01 00:00:09'", "TIMESTAMP", "EXTRACT(EPOCH FROM VISIT)::bigint", 9),
        ("'1970-01-01 00:00:09'::TIMESTAMP_NS", "TIMESTAMP_NS", "EXTRACT(EPOCH FROM VISIT)", 9),
        ("TIME '07:00:00'", "TIME", "EXTRACT(HOUR FROM VISIT)", 7),
        ("INTERVAL 3 DAY", "INTERVAL", "EXTRACT(DAY FROM STAY)", 3),
        ("""'{"value": 1.5}'::JSON""", "JSON", "(RESULT->>'value')::double", 1.5),
        ("[4, 5]", "LIST", "RESULTS[1]", 4),
        ("{'value': 4}", "STRUCT", "RESULTS.value", 4),
        ("'ab'::BLOB", "BLOB", "cast it in the query", None),
        ("MAP {'secret': 1}", "MAP", "cast it in the query", None),
    )
    for value, kind, advice, number in cases:
        with pytest.raises(DataError) as caught:
            read(of(visits, f"SELECT {value} AS age"), AGE)
        message = caught.value.message
        assert "field 'age'" in message and f"has the type {kind}." in message
        assert advice in message and "secret" not in message
        if number is None:
            continue
        written, _, _ = advice.partition(" AS ")
        for word in ("VISIT", "STAY", "RESULTS", "RESULT"):
            written = written.replace(word, "x")
        taken = of(visits, f"SELECT {written} AS cost FROM (SELECT {value} AS x)")
        assert columns(read(taken, COST)) == {"cost": [100 * number]}


def test_a_query_reads_this_file_alone(visits, tmp_path):
    other = tmp_path / "secret.csv"
    other.write_text("age\n77\n")
    with duckdb.connect(tmp_path / "other.duckdb") as db:
        db.execute("CREATE TABLE t AS SELECT 77 AS age")
    write(tmp_path, f"CREATE VIEW outside AS SELECT * FROM read_csv('{other}')")
    queries = (
        f"SELECT * FROM read_csv('{other}')",
        f"SELECT * FROM '{other}'",
        f"SELECT content AS age FROM read_text('{other}')",
        f"SELECT file AS age FROM glob('{tmp_path}/*')",
        "SELECT * FROM outside",
        f"SELECT * FROM query_table('{other}')",
        f"WITH x AS (SELECT 1) SELECT * FROM '{tmp_path / 'other.duckdb'}'.t",
    )
    for query in queries:
        with pytest.raises(DataError, match="could not be read") as caught:
            read(of(visits, query), AGE)
        assert "77" not in caught.value.message + caught.value.detail.replace(str(tmp_path), "")
    python_variable = {"age": np.array([77])}
    with read_duckdb(visits.sql, TableSite("a", visits.path)) as reading:
        for statement in (
            "SELECT * FROM python_variable",
            f"ATTACH '{tmp_path / 'other.duckdb'}' AS other",
            f"COPY raw TO '{tmp_path / 'copy.csv'}'",
            "SET enable_external_access = true",
            "SET python_enable_replacements = true",
            "DELETE FROM raw",
            "CREATE TABLE x (y INTEGER)",
        ):
            with pytest.raises(duckdb.Error):
                reading.connection.execute(statement)
    assert python_variable["age"][0] == 77
    assert not (tmp_path / "copy.csv").exists()


def test_one_select_only(visits):
    for query in ("WITH x AS (SELECT 1) DELETE FROM raw", "SELECT 1 AS age; SELECT 2 AS age"):
        with pytest.raises(ConfigError, match="one SELECT was expected"):
            read(of(visits, query), AGE)
    assert survey_table(visits, [], TableSite("a", visits.path)).rows == 4


def test_refusals_say_what_to_do_without_duckdbs_text(visits, tmp_path):
    with pytest.raises(EmptyTable):
        read(of(visits, "SELECT * FROM raw WHERE age > 99"), AGE)
    cases = (
        ("patients_of_4711", "no such table, view or function: correct sql"),
        ("SELECT secret_column FROM raw", "no such column"),
        ("SELECT FROM raw", "does not understand the query"),
        ("SELECT sex::INTEGER AS age FROM raw", "cannot convert or compute a value"),
    )
    for query, advice in cases:
        with pytest.raises(DataError, match="could not be read") as caught:
            read(of(visits, query), AGE)
        said = caught.value.message + caught.value.detail
        assert advice in said and query not in said and "LINE" not in said
        assert caught.value.__suppress_context__
    assert visits.sql is not None
    with pytest.raises(ConfigError, match=r"no such file\. Correct url under"):
        read(replace(visits, sql=replace(visits.sql, url="duckdb:///none.duckdb")), AGE)
    assert not (tmp_path / "none.duckdb").exists()
    (tmp_path / "text.duckdb").write_text("no database" * 999)
    with pytest.raises(DataError) as caught:
        read(replace(visits, sql=replace(visits.sql, url="duckdb:///text.duckdb")), AGE)
    assert "no database of this version of DuckDB: correct url" in caught.value.detail


def test_a_file_that_another_process_writes_is_refused_until_it_is_closed(visits, tmp_path):
    program = (
        "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / FILE)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as writer:
        assert writer.stdout.readline() == b"\n"
        with pytest.raises(DataError) as caught:
            read(visits, AGE)
        assert "another process writes to the file: read a copy" in caught.value.detail
        writer.stdin.close()
    assert read(visits, AGE).count == 3


def test_the_fingerprint_is_that_of_the_same_values_in_a_file(visits, tmp_path):
    table = tmp_path / "same.csv"
    table.write_text("age,sex\n60,f\n40,f\n50,m\n")
    of_file = read(TableSource(table), AGE, SEX).cohort
    same = read(visits, AGE, SEX).cohort
    assert (same.whole, same.fields) == (of_file.whole, of_file.fields)
    write(tmp_path, "UPDATE raw SET age = 41 WHERE age = 40")
    changed = read(visits, AGE, SEX).cohort
    assert changed.selection == same.selection and changed.whole != same.whole


def test_a_node_is_configured_with_it_and_doctor_reads_it(visits, site):
    data = f'[data]\nname = "visits"\nurl = "duckdb:///{FILE}"\nsql = "visits"\n'
    policy = '[policy]\npublic_filters = ["sex"]\n'
    config = load(site, HEAD + data + BUDGET + policy)
    assert columns(read(config.source, AGE))["age"] == [60, 50, 40]
    table, column, _people = check_table(config)
    assert "4 rows and 4 columns" in table.text and "'sex': words" in column.text
    wrong = load(site, HEAD + data + BUDGET + policy.replace('"sex"', '"sexe"'))
    assert "did you mean 'sex'" in list(check_table(wrong))[1].error.message
    few = load(site, HEAD + data + BUDGET + "[policy]\nmin_records = 5\n")
    with pytest.raises(DataError, match="has 4 rows, and min_records"):
        list(check_table(few))
    refused(site, HEAD + data.replace(FILE, f"{FILE}?access_mode=rw") + BUDGET, "duckdb:///FILE")
    assert wrong_url("duckdb:////srv/ward.duckdb") == ""
