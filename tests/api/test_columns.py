"""umpc.api.fields: a field from a column's own values, and what is refused with which option."""

from __future__ import annotations

import pytest

from umpc.api.fields import describe_column, plain_column
from umpc.errors import DataError
from umpc.node.table.conversions import PLAIN, NumberFormat
from umpc.study.parts import FieldText


def test_the_line_of_a_column_says_its_resolution_and_what_it_keeps():
    found = describe_column("x", ["0.5", "-1.25", "3"])
    assert (
        str(found) == "field 'x': -1.25 to 3, in steps of 0.01; this resolution holds every value"
    )
    assert found.field.resolution == "0.01"
    whole = describe_column("x", ["1", "20"])
    assert whole.field == FieldText("x", "1", "20", whole=True)
    assert "1 to 20, whole numbers" in str(whole)
    assert str(describe_column("c", ["red", "blue"])) == "field 'c': 2 categories"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "?", "?"], r"2 time\(s\) '\?', which often marks .*; add --missing '\?' to leave"),
        (["1.5", "NA", "?"], r"add --missing '\?' --missing 'NA'"),
        (["1", "2", "1_0"], r"1 of its 3 values are none: '1_0'; correct them, add --missing"),
        (["1.5", "2.5", "1,5"], "say with --decimal and --thousands how"),
    ],
)
def test_words_among_numbers_are_refused_with_the_option_to_write(values, message):
    with pytest.raises(DataError, match=f"column 'x' holds numbers.*{message}"):
        describe_column("x", values)


def test_a_mark_among_words_is_a_word():
    assert describe_column("c", ["red", "?"]).field.categories == ("?", "red")


def test_numbers_become_plain_and_words_stay():
    german = NumberFormat(",", ".")
    assert plain_column(["1.234,5", "-0,5", "red", "1.5"], german) == [
        "1234.5",
        "-0.5",
        "red",
        "1.5",
    ]
    assert plain_column(["1_0", " 4"], PLAIN) == ["1_0", " 4"]


@pytest.mark.parametrize(
    ("values", "classes", "categories"),
    [
        (["1", "2", "1"], 2, ("1", "2")),
        (["10", "9"], 2, ("9", "10")),
        (["-1", "1"], 2, ("-1", "1")),
        (["0", "1"], 2, ("0", "1")),
        (["3", "1", "2"], 3, ("1", "2", "3")),
        (["2", "1"], 0, ()),
        (["2", "1", "9"], 2, ()),
        (["1.5", "2.5"], 2, ()),
        (["sick", "healthy"], 2, ("healthy", "sick")),
    ],
)
def test_a_label_of_whole_numbers_becomes_categories_in_their_order(values, classes, categories):
    assert describe_column("x", values, classes).field.categories == categories
