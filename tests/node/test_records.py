"""umpc.node.records: records and their units; no answer but the number of records tells of them."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.site_tables import (
    AGE,
    BALANCE,
    TENTHS,
    columns,
    digits,
    load,
    parquet,
    refused,
    table,
)
from umpc import errors
from umpc.node.records import load_records
from umpc.node.table.columns import new_cursor, open_table, shared_engine
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema

# --- what is read -----------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_quoted_names_with_spaces_and_any_delimiter(tmp_path, delimiter, newline):
    rows = [
        ['"id, text; x; y; z"', '"account balance"', '"age"'],
        ['"a;b,c|d"', "12.34", "30"],
        ['"q""q"', "-0.5", " 41 "],
    ]
    path = table(tmp_path, newline.join(delimiter.join(row) for row in rows) + newline)
    records = load(path, AGE, BALANCE)
    assert columns(records) == {"age": [30, 41], "account balance": [1234, -50]}
    assert (records.count, records.dropped) == (2, 0)
    assert columns(load(path, AGE, BALANCE, delimiter=delimiter)) == columns(records)


def test_the_shape_of_the_bank_data(tmp_path):
    header = '"age";"job";"account balance";"y"\n'
    path = table(tmp_path, header + '30;"unemployed";1787;"no"\n33;"services";-88;"yes"\n')
    assert columns(load(path, BALANCE, AGE)) == {
        "account balance": [178700, -8800],
        "age": [30, 33],
    }


def test_parquet(tmp_path):
    path = parquet(
        tmp_path,
        """SELECT * FROM (VALUES (30::TINYINT, 1.25::DECIMAL(9,2), 0.1::FLOAT, 'u', [1]),
        (NULL, 0, 0, 'v', []), (41, -0.01, 2.5::FLOAT, NULL, NULL)
        ) t(age, "account balance", x, job, list)""",
    )
    records = load(path, AGE, BALANCE, TENTHS)
    assert columns(records) == {"age": [30, 41], "account balance": [125, -1], "x": [1, 25]}
    assert records.dropped == 1


@pytest.mark.parametrize(
    "name", ['a "quoted" name', "'; DROP TABLE t; --", "Größe $1 ?", " pad ", "select"]
)
def test_any_column_name(tmp_path, name):
    schema = FieldSchema(name, Fraction(0), Fraction(9), Fraction(1))
    escaped = name.replace('"', '""')
    assert columns(load(table(tmp_path, f'"other","{escaped}"\n1,2\n'), schema)) == {name: [2]}
    assert columns(load(parquet(tmp_path, f'SELECT 1 AS other, 2 AS "{escaped}"'), schema)) == {
        name: [2]
    }


@pytest.mark.parametrize(
    "name", ["a*.csv", "a[1].csv", "a?.csv", "it's.csv", "; x.CSV", "ü.tsv", "a\\b.csv"]
)
def test_the_named_file_and_no_other(tmp_path, name):
    table(tmp_path, "age\n99\n", "a1.csv")
    table(tmp_path, "age\n99\n", "ab.csv")
    assert columns(load(table(tmp_path, "age\n7\n", name))) == {"age": [7]}


def test_names_are_exact_in_case(tmp_path):
    path = table(tmp_path, "Age,age,AGE\n1,2,3\n")
    assert columns(load(path)) == {"age": [2]}


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    assert columns(load(table(tmp_path, "\ufeffage,b\n1,2\n"))) == {"age": [1]}


def test_one_row_without_final_newline(tmp_path):
    assert columns(load(table(tmp_path, "age\n5"))) == {"age": [5]}


def test_without_fields_the_rows_are_counted(tmp_path):
    assert load_records(TableSource(table(tmp_path, "age\n5\n6\n")), [], node="a").count == 2


def test_order_is_kept_over_many_rows(tmp_path):
    values = (np.arange(100_000) * 7919) % 100_003
    lines = "\n".join("NA,1" if v % 1000 == 0 else f"{v},{v % 128}" for v in values)
    records = load(table(tmp_path, f"x,age\n{lines}\n"), TENTHS, AGE, missing=("NA",))
    kept = values[values % 1000 != 0]
    assert np.array_equal(records.columns["x"], kept * 10)
    assert np.array_equal(records.columns["age"], kept % 128)
    assert (records.count, records.dropped) == (len(kept), len(values) - len(kept))


def test_nothing_is_spilled_to_disk_or_fetched_from_the_network():
    with new_cursor() as connection:
        for setting, value in (
            ("temp_directory", ""),
            ("preserve_insertion_order", True),
            ("autoinstall_known_extensions", False),
            ("autoload_known_extensions", False),
            ("enable_external_file_cache", False),
        ):
            assert connection.execute("SELECT current_setting(?)", [setting]).fetchone() == (value,)


def test_repr_shows_the_count_only(tmp_path):
    assert repr(load(table(tmp_path, "age\n77\n78\n\n"))) == "Records(count=2)"


# --- missing values ---------------------------------------------------------------------------


def test_a_row_that_lacks_a_named_field_is_dropped(tmp_path):
    path = table(tmp_path, 'age,account balance,job\n1,1,\n,2,x\n3,,x\n"",4,x\n  ,5,x\n6,6,x\n')
    records = load(path, AGE, BALANCE)
    assert columns(records) == {"age": [1, 6], "account balance": [100, 600]}
    assert (records.count, records.dropped) == (2, 4)


def test_words_that_mean_missing_are_compared_after_trimming(tmp_path):
    path = table(tmp_path, "age,b\n1,x\n NA ,x\n-1,x\nnan,x\n4,x\n")
    records = load(path, missing=("NA", "-1", "nan"))
    assert columns(records) == {"age": [1, 4]} and records.dropped == 3
    assert load(path, missing=("na", "-1", "nan")).misfits[0].unknown.tolist() == [2]


def test_nan_is_missing_by_default_and_always_in_a_parquet_column_of_numbers(tmp_path):
    path = table(tmp_path, "age,b\nnan,1\n2,1\n NaN ,1\n")
    assert columns(load(path)) == {"age": [2]}
    path = parquet(tmp_path, "SELECT unnest([1.0, 'nan'::DOUBLE, 3.0]) AS age")
    assert columns(load(path, missing=("NA",))) == {"age": [1, 3]}


def test_an_absent_value_is_missing_whatever_the_words(tmp_path):
    assert load(table(tmp_path, "age,b\n,x\n2,x\n"), missing=()).dropped == 1


def test_what_a_dropped_row_holds_elsewhere_does_not_matter(tmp_path):
    records = load(table(tmp_path, "age,account balance\n,nonsense\n999,\n3,4\n"), AGE, BALANCE)
    assert columns(records) == {"age": [3], "account balance": [400]}


def test_every_row_dropped_is_no_error(tmp_path):
    records = load(table(tmp_path, "age,b\n,1\n,2\n"))
    assert columns(records) == {"age": []} and (records.count, records.dropped) == (0, 2)


# --- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolution", "text", "units"),
    [
        ("1", "0.5", 0),
        ("1", "1.5", 2),
        ("1", "2.5", 2),
        ("1", "-0.5", 0),
        ("1", "-1.5", -2),
        ("1", "2.49", 2),
        ("1/10", "0.35", 4),
        ("1/10", "0.25", 2),
        ("1/100", "1.015", 102),
        ("1/100", "-1.005", -100),
        ("2", "1", 0),
        ("2", "3", 2),
        ("2", "5", 2),
        ("2", "5.0001", 3),
        ("1/3", "0.5", 2),
        ("1/3", "0.1", 0),
        ("1", "1e3", 1000),
    ],
)
def test_half_goes_to_even(tmp_path, resolution, text, units):
    step = Fraction(resolution)
    schema = FieldSchema("x", -3000 * step, 3000 * step, step)
    assert columns(load(table(tmp_path, f"x\n{text}\n"), schema)) == {"x": [units]}


@settings(max_examples=30)
@given(
    values=st.lists(st.decimals(-(10**6), 10**6, places=3), min_size=1, max_size=30),
    resolution=st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
)
def test_units_are_exact_for_the_decimals_written(tmp_path_factory, values, resolution):
    bound = resolution * (10**6 // resolution + 1)
    schema = FieldSchema("x", -bound, bound, resolution)
    path = table(tmp_path_factory.getbasetemp(), "x\n" + "\n".join(map(str, values)) + "\n")
    assert columns(load(path, schema))["x"] == [round(Fraction(v) / resolution) for v in values]


def test_the_bounds_belong_to_the_domain(tmp_path):
    schema = FieldSchema("x", Fraction(-1, 10), Fraction(3, 10), Fraction(1, 10))
    records = load(table(tmp_path, "x\n-0.1\n0.3\n"), schema)
    assert columns(records) == {"x": [-1, 3]} and records.misfits == ()
    (misfit,) = load(table(tmp_path, "x\n-0.1\n0.30000001\n"), schema).misfits
    assert misfit.beyond.tolist() == [2] and not len(misfit.unknown)


def test_a_value_beyond_the_bounds_counts_as_the_nearer_bound(tmp_path):
    path = table(tmp_path, "age\n-1e9\n-1\n0\n127\n127.2\n1e300\n-inf\nInfinity\n1e999\n")
    records = load(path)
    assert columns(records) == {"age": [0, 0, 0, 127, 127, 127, 0, 127, 127]}
    assert records.misfits[0].beyond.tolist() == [1, 2, 5, 6, 7, 8, 9]


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("header", "hint"), [("Age,ward", "'Age'"), ("agee,ward", "'agee'")])
def test_an_unknown_field_is_suggested_in_detail_only(tmp_path, header, hint):
    error = refused(errors.UnknownField, table(tmp_path, f"{header}\n1,2\n"))
    assert (
        "field 'age'" in error.message and "ward" not in error.message and hint not in error.message
    )
    assert "'ward'" in error.detail and f"did the study mean {hint}?" in error.detail
    error = refused(errors.UnknownField, parquet(tmp_path, "SELECT 1 AS Age, 2 AS ward"))
    assert "ward" not in error.message and "'ward'" in error.detail


def test_a_field_that_is_there_twice(tmp_path):
    assert "'age'" in refused(errors.DataError, table(tmp_path, "age,age\n1,2\n")).message


@pytest.mark.parametrize("content", ["", "age\n", "age", "age,b\r\n", "\n", "\ufeff"])
def test_no_rows(tmp_path, content):
    refused(errors.EmptyTable, table(tmp_path, content))


def test_no_rows_in_parquet(tmp_path):
    refused(errors.EmptyTable, parquet(tmp_path, "SELECT 1 AS age WHERE false"))


def test_no_file(tmp_path):
    refused(errors.ConfigError, tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    refused(errors.ConfigError, tmp_path / "folder.csv")


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv.zip", "no-suffix", "t.json"])
def test_another_format(tmp_path, name):
    assert (
        ".csv, .tsv, .csv.gz, .tsv.gz, .parquet"
        in refused(errors.DataError, table(tmp_path, "age\n1\n", name)).message
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("short.csv", "age,b\n31,2\n4567\n"),
        ("long.csv", "age,b\n31,2\n4567,1,2\n"),
        ("open.csv", 'age,b\n4567,"x\n'),
        ("open-header.csv", '"age,b\n4567,1\n'),
        ("latin.csv", b"age,b\n4567,\xe9\n"),
        ("latin-header.csv", b"age,\xe9\n4567,1\n"),
        ("fake.parquet", "4567"),
    ],
)
def test_an_unreadable_file_shows_its_place_in_detail_only_and_its_text_nowhere(
    tmp_path, name, content
):
    error = refused(errors.DataError, table(tmp_path, content, name))
    assert digits(error.message) == {"8"}  # of UTF-8
    detail = error.detail.removeprefix(f"{tmp_path / name}: ")
    assert detail and "4567" not in detail
    if name in ("short.csv", "long.csv"):
        assert "Error on Line: 3; Expected Number of Columns: 2" in detail


def test_a_resolution_that_no_double_can_follow(tmp_path):
    tiny = Fraction(1, 10**400)
    error = refused(
        errors.RangeError, table(tmp_path, "x\n0\n"), FieldSchema("x", Fraction(0), tiny, tiny)
    )
    assert "field 'x'" in error.message


# --- categories -------------------------------------------------------------------------------

COLOUR = FieldSchema("colour", Fraction(0), Fraction(2), Fraction(1), ("red", "blue", "3"))


def test_a_category_is_the_number_of_its_label(tmp_path):
    path = table(tmp_path, "colour,age\nblue,30\n red ,31\n3,32\n,33\nred,\n")
    records = load(path, COLOUR, AGE)
    assert columns(records) == {"colour": [1, 0, 2], "age": [30, 31, 32]}
    assert records.dropped == 2


def test_parquet_holds_categories_too(tmp_path):
    path = parquet(tmp_path, "SELECT * FROM (VALUES ('red'), ('3'), (NULL)) t(colour)")
    assert columns(load(path, COLOUR)) == {"colour": [0, 2]}


@pytest.mark.parametrize("word", ["green", "Red", "0"])
def test_an_unknown_category_counts_as_the_last_one(tmp_path, word):
    records = load(table(tmp_path, f"colour\nred\n{word}\n"), COLOUR)
    assert columns(records) == {"colour": [0, 2]}
    (line,) = map(str, records.misfits)
    assert (
        "words of 3 categories were expected; values that do not fit: 1 of 2; data rows 2 are none"
        " of these words and count" in line
    )
    assert "doctor" not in line
    assert "as the last category '3'" in line and word not in line.split("'3'")[0]


@pytest.mark.parametrize("error", [duckdb.InternalException, duckdb.FatalException])
def test_an_engine_that_failed_inside_is_opened_anew(tmp_path, error):
    path = table(tmp_path, "age\n5\n6\n")
    source, engine = TableSource(path, ","), shared_engine()
    with pytest.raises(errors.DataError), open_table(source, TableSite("a", path)):
        raise error("an internal error of DuckDB")
    assert shared_engine() is not engine
    assert columns(load(path)) == {"age": [5, 6]}
