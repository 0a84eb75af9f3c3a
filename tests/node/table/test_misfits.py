"""Values that do not fit, or lie between two steps: only the administrator reads of them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.site_tables import TENTHS, columns, load, parquet, table
from umpc import errors
from umpc.node.records import require_numbers
from umpc.ustat.schema import FieldSchema

# --- values that do not fit -------------------------------------------------------------------

NO_NUMBER = ["forty", "1.234,5", "truely", "0x1F"]


@pytest.mark.parametrize("word", NO_NUMBER)
def test_text_counts_as_the_lower_bound_and_only_the_administrator_reads_where(tmp_path, word):
    schema = FieldSchema("age", Fraction(5), Fraction(127), Fraction(1))
    records = load(table(tmp_path, f"age;b\n30;1\n;2\n{word};3\n31;4\n{word};5\n"), schema)
    assert columns(records) == {"age": [30, 5, 31, 5]} and records.dropped == 1
    assert [str(misfit) for misfit in records.misfits] == [
        "field 'age': numbers from 5 to 127 were expected; values that do not fit: 2 of 4; data "
        "rows 3, 5 are no numbers and count as the lower bound 5 (the first row below the header "
        "is 1); `umpc node doctor` says how these are written, and what to do"
    ]
    assert "30" not in repr(records) and "[" not in repr(records.misfits)


def test_parquet_counts_alike(tmp_path):
    records = load(parquet(tmp_path, "SELECT 'x' AS age"))
    assert columns(records) == {"age": [0]}
    assert records.misfits[0].unknown.tolist() == [1]


def test_both_kinds_of_a_field_are_in_one_line_of_at_most_twenty_rows_each(tmp_path):
    path = table(tmp_path, "age\n" + "200\n" * 25 + "x\n" * 20)
    (line,) = map(str, load(path).misfits)
    assert (
        "values that do not fit: 45 of 45; data rows 1, 2, 3," in line
        and ", 19, 20 and 5 more count" in line
    )
    assert ", 44, 45 are no numbers and count as the lower bound 0 (" in line and "\n" not in line


def test_an_owner_is_refused_text_where_nobody_else_hears_it(tmp_path):
    clipped = load(table(tmp_path, "age\n200\n"))
    assert require_numbers(clipped, table="a") is clipped
    with pytest.raises(
        errors.NotNumeric, match="data rows 1 are no numbers and count as the lower"
    ):
        require_numbers(load(table(tmp_path, "age\nx\n")), table="a")


CELLS = st.sampled_from(["", "NA", "nan", "0", "-3", "7341", "1e999", "-inf", "red", "blue", "x y"])


@settings(max_examples=30)
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
        "field 'age': numbers from 0 to 127 in steps of 1 were expected; values that do not fit: "
        "2 of 4; data rows 2, 4 were rounded to the nearest step, which can change ranks (the first"
    )
    assert "umpc study check STUDY --table" in str(misfit) and "30" not in repr(records)
    assert require_numbers(records, table="a") is records


@settings(max_examples=30)
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
