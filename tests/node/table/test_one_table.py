"""One list of values through every reader: a value is the same number and word, whatever holds it.

The readers: CSV, Parquet, a DuckDB file, SQLite, and data frames as lists, arrays and of pandas.
PostgreSQL has its own tests, beside a server.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from umpc.api.fields import columns_at, records_of
from umpc.api.in_memory import frame_table
from umpc.errors import ConfigError, DataError, StudyError
from umpc.node.records import load_records
from umpc.node.table.source import TableSource
from umpc.node.table.sql_source import SqlSource
from umpc.study.parts import FieldText

NUMBER = FieldText("x", "-100", "10000000000", "0.001").schema()
LARGE = 2**53 + 1
CASES: dict[str, tuple[str, Sequence[Any], Sequence[float], Sequence[str]]] = {
    "booleans": ("BOOLEAN", [True, False, None, True], [1, 0, 1], ["true", "false", "true"]),
    "whole numbers": ("BIGINT", [7, -3, None, 1234567], [7, -3, 1234567], ["7", "-3", "1234567"]),
    "whole doubles": ("DOUBLE", [1.0, -2.0, None, 1e9], [1, -2, 1e9], ["1", "-2", "1000000000"]),
    "doubles": ("DOUBLE", [0.5, None, 1.25, -0.0], [0.5, 1.25, 0], ["0.5", "1.25", "0"]),
    "short floats": ("FLOAT", [0.1, None, 2.0], [0.1, 2], ["0.1", "2"]),
    "decimals": (
        "DECIMAL(10,2)",
        [Decimal("1.00"), None, Decimal("2.50"), Decimal("-4.00")],
        [1, 2.5, -4],
        ["1", "2.50", "-4"],
    ),
    "wide decimals": ("DECIMAL(30,1)", [Decimal("5.0"), Decimal("0.5")], [5, 0.5], ["5", "0.5"]),
    "texts of booleans": (
        "VARCHAR",
        ["TRUE", "False", "true"],
        [1, 0, 1],
        ["true", "false", "true"],
    ),
    "texts of numbers": ("VARCHAR", [" 1.0", "2", "7.25 ", "NA"], [1, 2, 7.25], ["1", "2", "7.25"]),
    "words": ("VARCHAR", ["e\u0301", " é\u00a0", "É"], [-100, -100, -100], ["é", "é", "É"]),
}
"""Kind → the type, values of which None and NA are missing, and their numbers and words."""
Reader = Callable[[Path, str, Sequence[Any]], TableSource]


def _text(value: Any) -> str:
    return "" if value is None else str(value).upper() if isinstance(value, bool) else str(value)


def of_csv(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    path = folder / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("x", "row"), *((_text(v), i) for i, v in enumerate(values))])
    return TableSource(path)


def _in_duckdb(path: Path | str, kind: str, values: Sequence[Any]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path)
    connection.execute(f"CREATE TABLE t (x {kind})")
    for value in values:
        connection.execute(f"INSERT INTO t VALUES (CAST(? AS {kind}))", [value])
    return connection


def of_parquet(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    path = folder / "t.parquet"
    with _in_duckdb(":memory:", kind, values) as connection:
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    return TableSource(path)


def of_duckdb(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    path = folder / "t.duckdb"
    _in_duckdb(path, kind, values).close()
    return TableSource(path, sql=SqlSource(f"duckdb:///{path}", "t", None, folder))


def of_sqlite(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    path = folder / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    return TableSource(path, sql=SqlSource(f"sqlite:///{path}", "t", None, folder))


def of_list(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    listed = [np.float32(v) for v in values if v is not None] if kind == "FLOAT" else [*values]
    return frame_table({"x": listed}, ["x"], "a")


def of_array(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    kinds = {"BOOLEAN": bool, "BIGINT": np.int64, "DOUBLE": np.float64, "FLOAT": np.float32}
    hidden = [value is None for value in values]
    filled = [0 if value is None else value for value in values]
    array = np.ma.array(filled, dtype=kinds[kind], mask=hidden) if kind in kinds else values
    return frame_table({"x": array if kind in kinds else np.array(array, object)}, ["x"], "a")


def of_pandas(folder: Path, kind: str, values: Sequence[Any]) -> TableSource:
    kinds = {"BOOLEAN": "boolean", "BIGINT": "Int64", "FLOAT": "float32", "VARCHAR": "str"}
    series = pd.Series([*values], dtype=kinds.get(kind, object))
    return frame_table(pd.DataFrame({"x": series}), ["x"], "a")


READERS = [of_csv, of_parquet, of_duckdb, of_sqlite, of_list, of_array, of_pandas]
LACKING = {of_sqlite: ("BOOLEAN", "FLOAT", "DECIMAL(10,2)", "DECIMAL(30,1)")}
"""Types that a reader does not have."""
PAIRS = [
    pytest.param(reader, case, id=f"{reader.__name__}-{name}")
    for reader in READERS
    for name, case in CASES.items()
    if case[0] not in LACKING.get(reader, ())
]


def read(source: TableSource, *fields: Any) -> dict[str, list[int]]:
    found = load_records(source, fields, node="a")
    return {name: column.tolist() for name, column in found.columns.items()}


@pytest.mark.parametrize(("reader", "case"), PAIRS)
def test_a_value_is_the_same_number_and_the_same_word(tmp_path, reader, case):
    kind, values, numbers, words = case
    source = reader(tmp_path, kind, values)
    units = [int(Fraction(str(number)) * 1000) for number in numbers]
    assert read(source, NUMBER) == {"x": units}
    listed = [*sorted({*words}), "(another)"]
    places = [listed.index(word) for word in words]
    assert read(source, FieldText.of_categories("x", listed).schema()) == {"x": places}
    # the commands of the table's owner see the same texts
    seen = columns_at(source, ["x"])["x"].texts
    assert [text for text in seen if text is not None] == [*words]


@pytest.mark.parametrize("reader", [each for each in READERS if each is not of_csv])
def test_a_number_keeps_all_its_digits_as_a_word(tmp_path, reader):
    source = reader(tmp_path, "BIGINT", [LARGE, LARGE - 1, LARGE])
    field = FieldText.of_categories("x", [str(LARGE), str(LARGE - 1), "other"]).schema()
    assert read(source, field) == {"x": [0, 1, 0]}


@pytest.mark.parametrize("reader", [of_csv, of_parquet, of_duckdb, of_list])
def test_categories_have_the_form_of_values(tmp_path, reader):
    source = reader(tmp_path, "VARCHAR", ["true", "1", "é", "FALSE"])
    field = FieldText.of_categories("x", ["TRUE", "1.0", "e\u0301", "False", "other"]).schema()
    assert read(source, field) == {"x": [0, 1, 2, 3]}


REFUSED = {
    "DATE": ([date(2020, 1, 1), None], np.array(["2020-01-01"], "M8[D]")),
    "INTEGER[]": ([[1, 2]], np.array([[1], None], object)[:1]),
    "BLOB": ([b"\xff"], np.array([object()])),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("reader", [of_parquet, of_duckdb])
def test_another_type_is_refused_whatever_the_values_are(tmp_path, reader, kind):
    for folder, values in (("some", REFUSED[kind][0]), ("none", [None])):
        (tmp_path / folder).mkdir()
        source = reader(tmp_path / folder, kind, values)
        with pytest.raises(DataError, match=r"field 'x': a column of numbers, booleans or") as told:
            load_records(source, [NUMBER], node="a")
        assert "2020" not in str(told.value) and told.value.culprit == "a"


@pytest.mark.parametrize("kind", REFUSED)
def test_a_frame_of_another_type_is_refused(kind):
    listed, array = REFUSED[kind]
    for frame in ({"x": array}, {"x": listed}, pd.DataFrame({"x": listed})):
        if kind != "BLOB" or frame["x"] is array:
            with pytest.raises(DataError, match="column 'x' should"):
                frame_table(frame, ["x"], "a")


@pytest.mark.parametrize("reader", [of_csv, of_parquet, of_duckdb, of_list])
def test_na_is_missing_unless_a_category_is_na(tmp_path, reader):
    source = reader(tmp_path, "VARCHAR", ["NA", "DE", "FR"])
    field = FieldText.of_categories("x", ["DE", "NA"]).schema()
    assert read(source, FieldText.of_categories("x", ["DE", "FR"]).schema()) == {"x": [0, 1]}
    with pytest.raises(ConfigError, match=r"'NA' marks a missing value at this site.*missing = \["):
        load_records(source, [field], node="a")
    stated = TableSource(source.path, missing=("",), sql=source.sql, frame=source.frame)
    assert read(stated, field) == {"x": [1, 0, 1]}


def test_in_a_frame_a_category_na_is_no_missing_value():
    source = frame_table({"x": ["NA", "DE", None]}, ["x"], "a")
    found = records_of(source, [FieldText.of_categories("x", ["DE", "NA"]).schema()])
    assert found.columns["x"].tolist() == [1, 0]


@pytest.mark.parametrize("reader", [of_csv, of_parquet, of_duckdb, of_list])
def test_a_site_says_what_its_own_words_mean(tmp_path, reader):
    own = reader(tmp_path, "VARCHAR", ["WAHR", "falsch", "yes", "1", "<5"])
    words = {"WAHR": "true", "falsch": "false", "yes": "TRUE", "1": "true", "<5": "2.5"}
    source = TableSource(own.path, sql=own.sql, frame=own.frame, words=words)
    field = FieldText.of_categories("x", ["false", "true", "other"]).schema()
    assert read(source, field) == {"x": [1, 0, 1, 1, 2]}
    assert read(source, NUMBER)["x"] == [1000, 0, 1000, 1000, 2500]


def test_a_category_with_blanks_at_its_ends_is_refused(tmp_path):
    source = of_csv(tmp_path, "VARCHAR", ["f", "m"])
    field = FieldText.of_categories("x", ["f ", "m"]).schema()
    with pytest.raises(StudyError, match="a category without blanks at its ends was expected"):
        load_records(source, [field], node="a")
