"""Tables as people write them: compressed, in other encodings, with other signs of numbers."""

from __future__ import annotations

import gzip
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.site_tables import columns, load, parquet, refused, table
from umpc import errors
from umpc.node.records import require_numbers
from umpc.node.table.conversions import NumberFormat
from umpc.ustat.schema import FieldSchema

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


@settings(max_examples=30)
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
        f'missing = ["", "nan", "NaN", "NA", "{mark}"] under [data]'
    )
    assert "forty" not in str(misfit)
    with pytest.raises(
        errors.NotNumeric, match=r"under .data.*Correct the table, or name the word"
    ):
        require_numbers(load(path), table="a")
    assert "marks" not in str(load(path, missing=("", mark)).misfits[0])


def test_a_mark_that_is_a_category_is_no_misfit(tmp_path):
    schema = FieldSchema("c", Fraction(0), Fraction(1), Fraction(1), ("red", "?"))
    assert load(table(tmp_path, "c\n?\nred\n"), schema).misfits == ()
    other = FieldSchema("c", Fraction(0), Fraction(1), Fraction(1), ("red", "blue"))
    assert "'?', which often marks" in str(load(table(tmp_path, "c\n?\n"), other).misfits[0])
