"""umpc.node.records: records and their units; no answer but the number of records tells of them."""

from __future__ import annotations

import gzip
import re
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc import errors
from umpc.node.records import Records, TableSource, load_records, require_numbers
from umpc.node.table.columns import _connect
from umpc.node.table.number_format import NumberFormat
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(127), Fraction(1))
BALANCE = FieldSchema("account balance", Fraction(-10000), Fraction(10000), Fraction(1, 100))
TENTHS = FieldSchema("x", Fraction(-(10**6)), Fraction(10**6), Fraction(1, 10))


def table(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parquet(folder: Path, select: str) -> Path:
    path = folder / "t.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return path


def load(path: Path, *fields: FieldSchema, **source: object) -> Records:
    return load_records(TableSource(path, **source), fields or (AGE,), node="hospital-a")


def columns(records: Records) -> dict[str, list[int]]:
    assert all(
        c.dtype == np.int64 and c.shape == (records.count,) for c in records.columns.values()
    )
    return {name: column.tolist() for name, column in records.columns.items()}


def refused(
    cls: type[errors.UmpcError], path: Path, *fields: FieldSchema, **options
) -> errors.UmpcError:
    """Return the refusal, whose message has the node's name and advice, no path, no value."""
    with pytest.raises(errors.UmpcError) as caught:
        load(path, *fields, **options)
    error = caught.value
    assert type(error) is cls
    assert error.message.startswith("node 'hospital-a': ") and error.culprit == "hospital-a"
    assert re.search(
        r"\. (Correct|Put|Export|Rename|Remove|Take|The node's own log)", error.message
    )
    assert str(path.parent) not in error.message and path.name not in error.message
    assert str(path) in error.detail
    assert error.__cause__ is None
    return error


def digits(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


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
    with _connect() as connection:
        for setting, value in (
            ("temp_directory", ""),
            ("preserve_insertion_order", True),
            ("autoinstall_known_extensions", False),
            ("autoload_known_extensions", False),
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


@settings(deadline=None)
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


# --- values that do not fit -------------------------------------------------------------------

NO_NUMBER = ["forty", "1.234,5", "true", "0x1F"]


@pytest.mark.parametrize("word", NO_NUMBER)
def test_text_counts_as_the_lower_bound_and_only_the_administrator_reads_where(tmp_path, word):
    schema = FieldSchema("age", Fraction(5), Fraction(127), Fraction(1))
    records = load(table(tmp_path, f"age;b\n30;1\n;2\n{word};3\n31;4\n{word};5\n"), schema)
    assert columns(records) == {"age": [30, 5, 31, 5]} and records.dropped == 1
    assert [str(misfit) for misfit in records.misfits] == [
        "field 'age': numbers from 5 to 127 were expected; values that do not fit: 2; data rows "
        "3, 5 count as the lower bound 5 (the first row below the header is 1)"
    ]
    assert "30" not in repr(records) and "[" not in repr(records.misfits)


@pytest.mark.parametrize("value", ["DATE '2020-01-01'", "[1]", "'x'"])
def test_parquet_counts_alike(tmp_path, value):
    records = load(parquet(tmp_path, f"SELECT {value} AS age"))
    assert columns(records) == {"age": [0]}
    assert records.misfits[0].unknown.tolist() == [1]


def test_both_kinds_of_a_field_are_in_one_line_of_at_most_twenty_rows_each(tmp_path):
    path = table(tmp_path, "age\n" + "200\n" * 25 + "x\n" * 20)
    (line,) = map(str, load(path).misfits)
    assert (
        "values that do not fit: 45; data rows 1, 2, 3," in line
        and ", 19, 20 and 5 more count" in line
    )
    assert ", 44, 45 count as the lower bound 0 (" in line and "\n" not in line


def test_an_owner_is_refused_text_where_nobody_else_hears_it(tmp_path):
    clipped = load(table(tmp_path, "age\n200\n"))
    assert require_numbers(clipped, node="a") is clipped
    with pytest.raises(errors.NotNumeric, match="data rows 1 count as the lower bound"):
        require_numbers(load(table(tmp_path, "age\nx\n")), node="a")


CELLS = st.sampled_from(["", "NA", "nan", "0", "-3", "7341", "1e999", "-inf", "red", "blue", "x y"])


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12),
    bounds=st.tuples(st.integers(-9000, 9000), st.integers(1, 9000)),
    labels=st.lists(st.sampled_from(["red", "blue", "0", "nan", "x y"]), min_size=1, unique=True),
)
def test_what_a_study_says_of_a_field_changes_neither_the_number_of_records_nor_the_outcome(
    tmp_path_factory, rows, bounds, labels
):
    """Otherwise a coordinator would learn about values by proposing bounds or categories."""
    text = "".join(f"{a},{b}\n" for a, b in rows)
    path = table(tmp_path_factory.getbasetemp(), f"a,b\n{text}", "told.csv")
    lower, width = bounds
    number = FieldSchema("a", Fraction(lower), Fraction(lower + width), Fraction(1))
    category = FieldSchema("a", Fraction(0), Fraction(len(labels) - 1), Fraction(1), tuple(labels))
    other = FieldSchema("b", Fraction(0), Fraction(1), Fraction(1))
    missing = ("", "NA", "nan")
    complete = sum(a not in missing and b not in missing for a, b in rows)
    for field in (number, category):
        assert load(path, field, other, missing=missing).count == complete


# --- values between two steps -----------------------------------------------------------------


def test_values_between_two_steps_are_told_to_the_administrator_only(tmp_path):
    records = load(table(tmp_path, "age\n30\n30.25\n31\n31.5\n"))
    assert columns(records) == {"age": [30, 30, 31, 32]}
    (misfit,) = records.misfits
    assert misfit.rounded.tolist() == [2, 4]
    assert str(misfit).startswith(
        "field 'age': numbers from 0 to 127 in steps of 1 were expected; values that do not fit: 2;"
        " data rows 2, 4 were rounded to the nearest step, which can change ranks (the first row"
    )
    assert "umpc study check STUDY --table" in str(misfit) and "30" not in repr(records)
    assert require_numbers(records, node="a") is records


@settings(deadline=None)
@given(
    values=st.lists(st.decimals(-(10**6), 10**6, places=4), min_size=1, max_size=30),
    digits=st.integers(0, 5),
    thirds=st.booleans(),
)
def test_a_value_is_rounded_exactly_where_it_is_no_multiple(
    tmp_path_factory, values, digits, thirds
):
    step = Fraction(1, 10**digits) / (3 if thirds else 1)
    schema = FieldSchema("x", Fraction(-(10**6)), Fraction(10**6), step)
    path = table(tmp_path_factory.getbasetemp(), "x\n" + "\n".join(map(str, values)), "steps.csv")
    between = [i for i, v in enumerate(values, 1) if (Fraction(v) / step).denominator != 1]
    found = load(path, schema).misfits
    assert [row for misfit in found for row in misfit.rounded.tolist()] == between


def test_a_double_that_is_as_near_as_a_double_can_be_is_on_its_step(tmp_path):
    path = parquet(tmp_path, "SELECT unnest([0.1::DOUBLE + 0.2::DOUBLE, 0.7, 1e5 + 0.1]) AS x")
    assert load(path, TENTHS).misfits == ()


# --- real files -------------------------------------------------------------------------------

SWISS = NumberFormat(".", "'")
GERMAN = NumberFormat(",", ".")
FRENCH = NumberFormat(",", " ")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["t.csv.gz", "T.CSV.GZ", "t.tsv.gz"])
def test_a_compressed_table(tmp_path, name, newline):
    text = newline.join(["\ufeffage,b", "1,x", "2,y", ""])
    assert columns(load(table(tmp_path, gzip.compress(text.encode()), name))) == {"age": [1, 2]}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "mac-roman"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_another_encoding(tmp_path, encoding, suffix):
    schema = FieldSchema("größe", Fraction(0), Fraction(2), Fraction(1), ("süß", "é", "ok"))
    content = "größe;b\nsüß;1\nok;2\né;3\n".encode(encoding)
    path = table(tmp_path, gzip.compress(content) if suffix else content, f"t.csv{suffix}")
    assert columns(load(path, schema, encoding=encoding)) == {"größe": [0, 2, 1]}


def test_a_wrong_encoding_is_refused_with_the_setting_and_its_place(tmp_path):
    error = refused(errors.DataError, table(tmp_path, "age,b\n1,\u20ac\n".encode("cp1252")))
    assert "encoding under [data]" in error.message and "encoding 'utf-8'" in error.detail
    late = b"age,b\n" + b"1,x\n" * 700_000 + b"2,\xff\n"
    assert "encoding 'utf-8'" in refused(errors.DataError, table(tmp_path, late)).detail


@pytest.mark.parametrize("content", [b"age\n1\n", gzip.compress(b"age\n1\n" * 99, mtime=0)[:-9]])
def test_a_broken_compressed_file_is_unreadable(tmp_path, content):
    refused(errors.DataError, table(tmp_path, content, "t.csv.gz"))


@settings(deadline=None)
@given(ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=3, max_size=12))
def test_mixed_line_ends(tmp_path_factory, ends):
    rows = ['age,"b"', *(f'{i},"x"' for i in range(len(ends) - 1))]
    text = "".join(row + end for row, end in zip(rows, ends, strict=True))
    path = table(tmp_path_factory.getbasetemp(), text, "ends.csv")
    assert columns(load(path)) == {"age": list(range(len(ends) - 1))}


@pytest.mark.parametrize(
    ("numbers", "texts", "values"),
    [
        (GERMAN, ["1.234,5", "-0,5", ",5", "1234", "1.234.567,0", "1e3"], "1234.5 -.5 .5 1234"),
        (FRENCH, ["1 234,5", "-0,5", "1\u00a0234", "1\u202f234,5"], "1234.5 -.5 1234 1234.5"),
        (SWISS, ["1'234.5", "1\u2019234", "0.5"], "1234.5 1234 .5"),
    ],
)
def test_numbers_as_other_countries_write_them(tmp_path, numbers, texts, values):
    path = table(tmp_path, "x;b\n" + "".join(f"{text};1\n" for text in texts))
    records = load(path, FieldSchema("x", *map(Fraction, ("-9", "1e7", "1/2"))), numbers=numbers)
    expected = [int(2 * float(value)) for value in values.split()]
    assert columns(records)["x"][: len(expected)] == expected and not records.misfits


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        (NumberFormat(), "1_0"),
        (NumberFormat(), "1,5"),
        (NumberFormat(), "1'000"),
        (NumberFormat(), "\uff11\uff12"),
        (GERMAN, "1.5"),
        (GERMAN, "12.34"),
        (GERMAN, "1.2345"),
        (GERMAN, "1,234,5"),
        (NumberFormat(".", ","), "1,23"),
    ],
)
def test_a_text_that_may_mean_two_numbers_is_none(tmp_path, numbers, word):
    records = load(table(tmp_path, f'age;b\n"{word}";1\n'), numbers=numbers)
    assert records.misfits[0].unknown.tolist() == [1] and columns(records) == {"age": [0]}
    assert numbers.plain(word) is None


def test_a_power_of_ten_is_the_number_that_people_mean(tmp_path):
    schema = FieldSchema("x", Fraction(0), Fraction(10**13), Fraction(1))
    records = load(table(tmp_path, "x\n1e12\n1E+3\n2.5e1\n"), schema)
    assert columns(records) == {"x": [10**12, 1000, 25]} and not records.misfits


def test_parquet_numbers_have_a_point_whatever_the_texts_have(tmp_path):
    path = parquet(tmp_path, "SELECT 1.5::DOUBLE AS x, '1,5' AS y, 2.5::DECIMAL(9,1) AS z")
    tenths = [FieldSchema(name, Fraction(0), Fraction(9), Fraction(1, 10)) for name in "xyz"]
    assert columns(load(path, *tenths, numbers=GERMAN)) == {"x": [15], "y": [15], "z": [25]}


@pytest.mark.parametrize("other", [b"age", b"aGe", b"AGE"])
def test_parquet_columns_that_differ_by_case_at_most_are_refused(tmp_path, other):
    path = parquet(tmp_path, "SELECT 1 AS age, 2 AS agf, {'age': 3} AS nested, [4] AS list")
    assert columns(load(path)) == {"age": [1]}
    path.write_bytes(path.read_bytes().replace(b"agf", other))
    error = refused(errors.DataError, path)
    assert "differ by more than upper and lower case" in error.message
    assert other.decode() in error.detail and "agf" not in error.detail


@pytest.mark.parametrize("mark", ["?", "N/A", "NULL", "-"])
def test_a_mark_of_missing_values_is_named_with_the_setting_to_write(tmp_path, mark):
    path = table(tmp_path, f"age,b\n1,x\n{mark},x\nforty,x\n")
    (misfit,) = load(path).misfits
    assert str(misfit).endswith(
        f"; among them is '{mark}', which often marks a missing value: if so, write "
        f'missing = ["", "nan", "NaN", "{mark}"] under [data]'
    )
    assert "forty" not in str(misfit)
    with pytest.raises(
        errors.NotNumeric, match=r"under .data.*Correct the table, or name the word"
    ):
        require_numbers(load(path), node="a")
    assert "marks" not in str(load(path, missing=("", mark)).misfits[0])


def test_a_mark_that_is_a_category_is_no_misfit(tmp_path):
    schema = FieldSchema("c", Fraction(0), Fraction(1), Fraction(1), ("red", "?"))
    assert load(table(tmp_path, "c\n?\nred\n"), schema).misfits == ()
    other = FieldSchema("c", Fraction(0), Fraction(1), Fraction(1), ("red", "blue"))
    assert "'?', which often marks" in str(load(table(tmp_path, "c\n?\n"), other).misfits[0])


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
def test_an_unreadable_file_shows_its_text_in_detail_only(tmp_path, name, content):
    error = refused(errors.DataError, table(tmp_path, content, name))
    assert digits(error.message) == {"8"}  # of UTF-8
    assert len(error.detail) > len(str(tmp_path / name)) + 2


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
        "words of 3 categories were expected; values that do not fit: 1; data rows 2 count" in line
    )
    assert "as the last category '3'" in line and word not in line.split("'3'")[0]
