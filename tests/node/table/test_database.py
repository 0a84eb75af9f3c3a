"""umpc/node/table/database.py and sql_source.py, over SQLite by the code that reads PostgreSQL."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pytest

from tests.support.node_files import BUDGET, HEAD, load, refused
from tests.support.site_tables import check_owners_commands, columns
from umpc.errors import ConfigError, DataError, EmptyTable, UmpcError, UnknownField
from umpc.node.records import load_records
from umpc.node.table import database
from umpc.node.table.conversions import NO_NUMBER, typed
from umpc.node.table.database import SqlReading, why
from umpc.node.table.source import TableSite, TableSource
from umpc.node.table.sql_source import SqlSource, wrong_query, wrong_url
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(120), Fraction(1))
COST = FieldSchema("cost", Fraction(-100), Fraction(100), Fraction(1, 100))
SEX = FieldSchema("sex", Fraction(0), Fraction(1), Fraction(1), ("f", "m"))
SECRET = "hunter2-Zx"


@pytest.fixture
def visits(tmp_path) -> TableSource:
    """A view of a table with numbers, texts, a NULL, and a column of another name."""
    with sqlite3.connect(tmp_path / "ward 7.db") as db:
        db.execute('CREATE TABLE raw (age INTEGER, cost, sex TEXT, "odd ""name" INTEGER)')
        rows = [(40, 0.35, "f", 1), (None, 1, "m", 2), (50, "0.29", "m", 3), (60, "", "f", 4)]
        db.executemany("INSERT INTO raw VALUES (?, ?, ?, ?)", rows)
        db.execute("CREATE VIEW visits AS SELECT * FROM raw ORDER BY age DESC")
    db.close()
    sql = SqlSource("sqlite:///ward 7.db", "visits", folder=tmp_path)
    return TableSource(tmp_path / "node.toml", sql=sql)


def of(source: TableSource, query: str) -> TableSource:
    assert source.sql is not None
    return replace(source, sql=replace(source.sql, query=query))


def test_a_view_is_read_as_a_file_is(visits):
    records = load_records(visits, [AGE, COST, SEX], node="a")
    assert columns(records) == {"age": [50, 40], "cost": [29, 35], "sex": [1, 0]}
    assert (records.count, records.dropped, records.misfits) == (2, 2, ())
    counted = load_records(of(visits, "SELECT age FROM raw WHERE sex LIKE 'f%'"), [AGE], node="a")
    assert columns(counted) == {"age": [40, 60]}


def test_a_query_may_end_with_a_comment(visits):
    query = "SELECT age FROM raw WHERE age > 40 -- of adults)"
    assert columns(load_records(of(visits, query), [AGE], node="a")) == {"age": [50, 60]}


def test_names_are_exact_and_a_wrong_one_is_refused_by_name(visits):
    odd = FieldSchema('odd "name', Fraction(0), Fraction(9), Fraction(1))
    assert columns(load_records(visits, [odd], node="a")) == {'odd "name': [4, 3, 1, 2]}
    with pytest.raises(UnknownField, match="'Age' was expected as a column") as caught:
        load_records(visits, [replace(AGE, name="Age")], node="a")
    assert "did the study mean 'age'" in caught.value.detail


def test_owners_commands_read_it_too(visits):
    check_owners_commands(visits)


def test_no_rows_and_no_table_are_refused_without_the_drivers_text(visits):
    with pytest.raises(EmptyTable):
        load_records(of(visits, "SELECT * FROM raw WHERE age > 99"), [AGE], node="a")
    for query, advice in (
        ("patients_of_4711", "no such table or view: correct sql"),
        ("SELECT secret_column FROM raw", "no such column: correct sql"),
        ("SELECT FROM raw", "OperationalError"),
    ):
        with pytest.raises(DataError, match="could not be read") as caught:
            load_records(of(visits, query), [AGE], node="a")
        assert advice in caught.value.detail
        assert query not in caught.value.detail + caught.value.message
        assert caught.value.__suppress_context__


def test_it_cannot_write(visits):
    with database.read_query(visits.sql, TableSite("a", visits.path)) as reading:
        statements = ("DELETE FROM raw", "CREATE TABLE x (y)")
        failures = []
        for statement in statements:
            with pytest.raises(Exception, match="readonly database") as caught:
                reading.connection.exec_driver_sql(statement)
            failures.append(caught.value)
    assert "tries to change data" in why(failures[0])
    with pytest.raises(DataError):
        missing = replace(visits.sql, url="sqlite:///none.db")
        load_records(replace(visits, sql=missing), [AGE], node="a")
    assert not (visits.path.parent / "none.db").exists()


def test_values_are_typed_exactly():
    cases = {
        None: (None, None),
        True: ("true", 1),
        False: ("false", 0),
        7: ("7", 7),
        -(2**63): ("-9223372036854775808", -(2**63)),
        10**400: (str(10**400), float("inf")),
        0.1: ("0.1", 0.1),
        float("nan"): (None, None),
        Decimal("12.3400"): ("12.3400", 12.34),
        Decimal("1E+3"): ("1000", 1000),
        Decimal("NaN"): (None, None),
        Decimal("Infinity"): ("Infinity", float("inf")),
        "12": ("12", None),
        UUID(int=1): (str(UUID(int=1)), None),
        b"12": (NO_NUMBER, None),
    }
    found = typed([10**400 if value == "big" else value for value in cases])
    for place, (text, number) in enumerate(cases.values()):
        assert (found.texts[place] if found.known[place] else None) == text
        came = found.numbers[place]
        assert np.isnan(came) if number is None else came == number


def test_a_decimal_comma_counts_for_texts_and_not_for_numbers(visits, tmp_path):
    with sqlite3.connect(tmp_path / "ward 7.db") as db:
        db.execute("CREATE TABLE mixed (cost)")
        db.executemany("INSERT INTO mixed VALUES (?)", [(1.5,), ("1,5",), (2,), ("2.5",)])
    db.close()
    source = replace(
        of(visits, "mixed"), numbers=replace(visits.numbers, decimal=",", thousands=".")
    )
    records = load_records(source, [COST], node="a")
    assert columns(records) == {"cost": [150, 150, 200, -10000]}  # 2.5 is no German number


def test_a_type_that_is_no_number_is_refused_with_what_to_write():
    kinds = {"date": "visit_days", "timestamptz": "EPOCH", "interval": "days", "jsonb": "numeric"}
    kinds |= {"int4[]": "one element", "bytea": "cast it"}
    for kind, advice in kinds.items():
        reading = SqlReading(ConnectionTo(kind), SqlSource("", "t"), TableSite("a", None))
        with pytest.raises(DataError, match=f"(?s)field 'birth'.*has the type.*{advice}"):
            reading.fetch(["birth"])


class ConnectionTo:
    """SQLAlchemy's connection to a table with one column, and its dialect, result and cursor."""

    paramstyle = "qmark"

    def __init__(self, kind):
        self.description = [Column(("birth",), kind)]
        self.dialect = self.cursor = self

    def execution_options(self, **_):
        return self

    def exec_driver_sql(self, statement):
        return self

    def close(self): ...


class Column(tuple):
    """A column's description, with the type that psycopg shows."""

    def __new__(cls, values, kind):
        column = super().__new__(cls, values)
        column.type_display = kind
        return column


def test_what_a_drivers_error_says_is_said_in_our_own_words():
    cases = (
        ("28P01", "", "refuses the user"),
        ("42501", "", "GRANT SELECT"),
        ("42P01", f"relation {SECRET}", "no such table or view"),
        ("42601", "", "does not understand the query"),
        ("22P02", f"invalid input: {SECRET!r}", "cannot convert"),
        (None, f"password authentication failed for {SECRET}", "refuses the user"),
        (None, f"could not connect to {SECRET}: Connection refused", "nothing listens there"),
        (None, f"{SECRET}", ""),
    )
    for state, text, advice in cases:
        error = sqlite3.OperationalError(text)
        error.sqlstate = state
        said = why(error)
        assert advice in said and SECRET not in said and "OperationalError" in said


def test_the_packages_are_asked_for_by_name(visits, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlalchemy", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[sql\]'"):
        load_records(visits, [AGE], node="a")


# --- node.toml --------------------------------------------------------------------------------

URL = 'url = "postgresql://reader@db.north/hospital?sslmode=verify-full"\n'
SQL = 'sql = "SELECT age FROM visits"\n'


def test_the_configuration_names_address_query_and_password_file(site):
    (site / "db.pw").write_text(f"{SECRET}\n")
    (site / "db.pw").chmod(0o600)
    data = f'[data]\nname = "visits"\n{URL}{SQL}password_file = "db.pw"\n'
    source = load(site, HEAD + data + BUDGET).source
    sql = source.sql
    assert (sql.url, sql.query) == (
        "postgresql://reader@db.north/hospital?sslmode=verify-full",
        sql.select,
    )
    assert sql.password_file == site / "db.pw" and SECRET not in repr(source)
    url = database.engine_of(sql, TableSite("a", source.path)).url
    assert url.password == SECRET and SECRET not in repr(url) + str(url)
    assert "connect_timeout" in url.query and url.query["client_encoding"] == "utf8"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (SQL + URL.replace("reader@", f"reader:{SECRET}@"), "holds a password"),
        (SQL + URL.replace("hospital", f"h?password={SECRET}"), "holds a password"),
        (SQL + URL.replace("postgresql", "mysql"), "begins with none of postgresql://, sqlite://"),
        (SQL + 'url = "sqlite:///a.db?mode=rw"\n', "sqlite:///FILE"),
        (URL, "'data.sql' is missing"),
        (SQL, "'data.url' is missing"),
        (URL + 'sql = "DELETE FROM visits"\n', "neither one SELECT"),
        (URL + 'sql = "SELECT 1; COMMIT"\n', "semicolon"),
        (URL + SQL + 'path = "bank.csv"\n', "'data.path'"),
        (URL + SQL + 'encoding = "latin-1"\n', "'data.encoding'"),
        (URL + SQL + 'password_file = "open.pw"\n', "chmod 600"),
        (URL + SQL + 'password_file = "none.pw"\n', "no such file"),
        ('path = "bank.csv"\npassword_file = "open.pw"\n', "'data.password_file'"),
    ],
)
def test_a_mistake_is_named_and_no_password_is_shown(site, lines, message):
    (site / "open.pw").write_text(SECRET)
    (site / "open.pw").chmod(0o644)
    refused(site, f'{HEAD}[data]\nname = "visits"\n{lines}{BUDGET}', message)
    with pytest.raises(UmpcError) as caught:
        load(site, f'{HEAD}[data]\nname = "visits"\n{lines}{BUDGET}')
    assert SECRET not in caught.value.message + caught.value.detail


def test_the_dataset_needs_a_name(site):
    refused(site, f"{HEAD}[data]\n{URL}{SQL}{BUDGET}", "'data.name' is missing")


def test_a_password_whose_file_was_opened_to_others_is_refused(site):
    path = site / "db.pw"
    path.write_text(SECRET)
    path.chmod(0o640)
    sql = SqlSource("postgresql://reader@db/hospital", "visits", path)
    with pytest.raises(ConfigError, match="the node's user alone") as caught:
        database.engine_of(sql, TableSite("a", path))
    assert SECRET not in caught.value.message + caught.value.detail


def test_what_may_be_written():
    for query in ("visits", "ward.visits", "SELECT 1", " with x as (select 1) select * from x"):
        assert wrong_query(query) == ""
    for query in ("", "DROP TABLE x", "selected from", "a.b.c", "visits --", "select 1 ;"):
        assert wrong_query(query)
    for url in ("postgresql://r@h:5432/d?sslmode=verify-full", "postgresql://r@/d?host=/run/pg"):
        assert wrong_url(url) == ""
    for url in ("", "postgresql://r:@h/d", "postgresql://h:x/d", "/d", "postgresql://[h/d"):
        assert wrong_url(url)


@pytest.mark.parametrize(
    ("address", "is_let_in"),
    [
        ("reader@db.north/d", False),
        ("reader@db.north/d?sslmode=prefer", False),
        ("reader@db.north/d?sslmode=require", False),
        ("reader@db.north/d?sslmode=verify-full&sslmode=disable", False),
        ("reader@localhost/d?host=db.north", False),
        ("reader@/d?host=/run/pg,db.north", False),
        ("reader@/d?host=db.north:5432", False),
        ("reader@localhost/d?hostaddr=192.0.2.1", False),
        ("reader@/d?service=north", False),
        ("reader@db.north/d?sslmode=verify-ca", True),
        ("reader@db.north/d?sslmode=verify-full", True),
        ("reader@localhost:5432/d", True),
        ("reader@[::1]/d", True),
        ("reader@/d?host=/run/pg", True),
        ("reader@/d", True),
    ],
)
def test_a_server_elsewhere_must_show_a_certificate(address, is_let_in):
    """PostgreSQL's default sends the password and the records to whoever denies TLS."""
    wrong = wrong_url(f"postgresql://{address}")
    assert (wrong == "") is is_let_in
    assert is_let_in or "sslmode=verify-full" in wrong


@pytest.mark.parametrize(
    ("variable", "value", "is_let_in"),
    [
        ("PGHOST", "db.north", False),
        ("PGHOSTADDR", "192.0.2.7", False),
        ("PGSERVICE", "hospital", False),
        ("PGHOST", "/run/postgresql", True),
        ("PGHOSTADDR", "127.0.0.1", True),
    ],
)
def test_a_host_of_the_environment_needs_tls_as_one_of_the_address(
    monkeypatch, variable, value, is_let_in
):
    monkeypatch.setenv(variable, value)
    assert bool(wrong_url("postgresql:///hospital")) is not is_let_in
    assert not wrong_url("postgresql:///hospital?sslmode=verify-full")


def test_a_text_of_sqlite_that_is_no_utf_8_is_a_word_of_no_category(tmp_path):
    """It ended the study, so a coordinator learned that some record has one."""
    file = tmp_path / "ward.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE visits AS SELECT CAST(x'636166e9' AS TEXT) AS sex")
        connection.execute("INSERT INTO visits VALUES ('m')")
    connection.close()
    sql = SqlSource("sqlite:///ward.db", "visits", folder=tmp_path)
    sex = FieldSchema("sex", Fraction(0), Fraction(1), Fraction(1), ("m", "f"))
    found = load_records(TableSource(tmp_path / "node.toml", sql=sql), [sex], node="north")
    assert found.columns["sex"].tolist() == [1, 0]
