"""A table of many files: umpc/node/table/source.py, columns.py."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from tests.support.site_tables import AGE, columns
from umpc.errors import ConfigError, DataError
from umpc.node.records import load_records
from umpc.node.table.source import TableSource, is_same_table
from umpc.ustat.schema import FieldSchema

YEAR = FieldSchema("year", Fraction(0), Fraction(9), Fraction(1))


def write(path: Path, select: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


@pytest.fixture
def visits(tmp_path) -> TableSource:
    for year in (2, 1):
        write(tmp_path / f"visits/year={year}/a.parquet", f"SELECT {year * 10}::int AS age")
    return TableSource(tmp_path / "visits/*/*.parquet", is_pattern=True)


def test_rows_come_in_the_order_of_paths_with_the_keys_of_their_folders(visits):
    records = load_records(visits, [AGE, YEAR], node="a")
    assert columns(records) == {"age": [10, 20], "year": [1, 2]}
    assert (visits.name, visits.partitions) == ("visits", ("year",))


@pytest.mark.parametrize(
    "words", [("0x10", "7"), ("-0", "7"), ("2024-1-5",), ("epoch",), ("-0", "2024-1-5", "x")]
)
def test_no_folder_decides_how_another_one_is_read(tmp_path, words):
    """A type that follows from all folders makes 16 of 0x10, until one of them has a word."""
    for word in words:
        write(tmp_path / f"visits/code={word}/a.parquet", "SELECT 10::int AS age")
    source = TableSource(tmp_path / "visits/*/*.parquet", is_pattern=True)
    code = FieldSchema("code", Fraction(0), Fraction(len(words)), Fraction(1), (*words, "other"))
    found = columns(load_records(source, [code], node="a"))["code"]
    assert found == [words.index(word) for word in sorted(words)]


def test_files_with_other_types_are_refused_instead_of_rounded(visits):
    write(visits.root / "year=2/b.parquet", "SELECT 1.5::double AS age")
    with pytest.raises(DataError, match="same columns with the same"):
        load_records(visits, [AGE], node="a")


def test_csv_files_are_one_table_if_their_headers_are_one(tmp_path):
    source = TableSource(tmp_path / "*.csv", is_pattern=True)
    (tmp_path / "1.csv").write_text('"age","a note"\n40,"x\ny"')
    (tmp_path / "2.csv").write_text("age,a note\n50,\n60,z\n")
    assert columns(load_records(source, [AGE], node="a")) == {"age": [40, 50, 60]}
    (tmp_path / "3.csv").write_text("a note,age\n50,\n")
    with pytest.raises(DataError) as caught:
        load_records(source, [AGE], node="a")
    assert "another header" in caught.value.detail


def test_a_pattern_without_a_file_is_refused_and_a_shared_file_is_seen(visits, tmp_path):
    nothing = TableSource(tmp_path / "*.csv", is_pattern=True)
    with pytest.raises(ConfigError, match="no such file"):
        load_records(nothing, [AGE], node="a")
    assert is_same_table(visits, TableSource(visits.files()[1]))
    assert not is_same_table(visits, nothing)
