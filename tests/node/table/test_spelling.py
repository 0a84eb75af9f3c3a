"""umpc.node.table.survey: the guess of how words would be numbers, and what it advises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.site_tables import parquet
from umpc.node.table.conversions import BLANKS, PLAIN, NumberFormat
from umpc.node.table.source import TableSite, TableSource
from umpc.node.table.survey import FORMATS, Spelling, survey_table

COMMA = NumberFormat(",")


@pytest.mark.parametrize(
    ("texts", "format", "told"),
    [
        ({"115,1": 200, "63": 23}, PLAIN, "200 value(s), such as '115,1', have a decimal comma"),
        ({"1.5": 2, "7": 1}, COMMA, "such as '1.5', have a decimal point: write decimal = \".\""),
        ({"1.5": 1}, NumberFormat(",", "."), 'have a decimal point: write decimal = "." and no'),
        ({"1.234.567": 2}, COMMA, 'have thousands separators: write thousands = "."'),
        ({"1\u202f234": 2}, PLAIN, 'have thousands separators: write thousands = " "'),
        ({"1,5": 1, "2.5": 4}, PLAIN, "such as '2.5', do not: write all of them in one way"),
        ({"1.234": 9, "2,5": 1}, PLAIN, "'1.234', would be others (1234): correct these values"),
        ({"1.234,5": 9, "1.234": 1}, PLAIN, "thousands = \".\" under [data], if '1.234' is 1234"),
        ({"<5": 1, "7": 2}, PLAIN, "such as '<5', hold other characters beside the number"),
        ({"12 %": 9, "12,5 %": 9}, PLAIN, "18 value(s), such as '12 %', hold other characters"),
        ({"1 mg": 1, "?": 2}, PLAIN, "2 value(s), such as '?', often stand for a missing value"),
        ({"1": 9, "k.A.": 1}, PLAIN, "such as 'k.A.', are words: correct the table, or list them"),
    ],
)
def test_words_of_a_column_of_numbers_are_told_with_what_to_do(texts, format, told):
    spelling = Spelling(texts, format, ("",))
    assert spelling.is_of_numbers
    assert told in "; ".join(spelling.advice())


@pytest.mark.parametrize(
    "texts",
    [
        {"Lille": 2, "Paris": 1},
        {"w0": 1, "w1": 1},
        {"2026-05-01": 3, "5": 1},
        {"12 rue Foch": 2, "3 rue Foch": 1},
        {"1a": 1, "2b": 1, "3c": 1, "4d": 1, "7": 2},
        {"NA": 3},
        {},
    ],
)
def test_a_column_of_words_is_none_of_numbers(texts):
    assert not Spelling(texts, PLAIN).is_of_numbers


def test_numbers_by_their_type_count_too():
    assert not Spelling({"NA": 2}, PLAIN).is_of_numbers
    assert Spelling({"NA": 2}, PLAIN, typed=3).is_of_numbers


def test_a_column_of_numbers_has_no_advice():
    spelling = Spelling({"1.5": 1, "-inf": 1, "1e5": 1}, PLAIN)
    assert spelling.is_of_numbers and list(spelling.advice()) == []


def test_numbers_by_their_type_need_no_format(tmp_path):
    """A FLOAT column's text has a point, whatever [data] says of the texts of others."""
    query = (
        "SELECT 2.5::FLOAT AS f, 1.5::DECIMAL(20, 2) AS d, '115,1' AS crp, DATE '2020-01-01' AS b"
    )
    path = parquet(tmp_path, query)
    survey = survey_table(TableSource(path), None, TableSite("a", path))
    kinds = [str(survey.kinds[name]) for name in ("f", "d", "crp")]
    assert kinds == ["numbers", "numbers", "words"] and survey.refused == {"b": "DATE"}
    (told,) = survey.spelling("crp").advice()
    assert told.endswith('have a decimal comma: write decimal = "," under [data]')


PIECES = st.sampled_from([*"019", ".", ",", "'", " ", "\u00a0", "_", "-", "+", "e", "a", "mg", "€"])
TEXTS = st.one_of(
    st.lists(PIECES, min_size=1, max_size=9).map("".join),
    st.sampled_from(["NA", "?", "inf", "1.234,5", "1,234", "115,1", "12 mg", "12\u00a0", "Lille"]),
)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=12), format=st.sampled_from(FORMATS))
def test_a_survey_groups_texts_so_that_the_guess_is_the_one_of_all_texts(
    tmp_path_factory, texts, format
):
    path: Path = tmp_path_factory.getbasetemp() / "spelled.csv"
    path.write_text("x|y\n" + "".join(f'"{text}"|1\n' for text in texts), encoding="utf-8")
    source = TableSource(path, "|", numbers=format)
    survey = survey_table(source, ["x"], TableSite("a", path))
    found = survey.spelling("x")
    trimmed = [text.strip(BLANKS) for text in texts]
    there = Counter(text for text in trimmed if text not in source.missing)
    expected = Spelling(there, format, source.missing)
    kind = survey.kinds["x"]
    assert kind.values == sum(expected.texts.values())
    assert kind.numbers == sum(expected.numbers.values()) == sum(found.numbers.values())
    assert found.better == expected.better
    for part in ("words", "marks", "in_another_format", "with_unit"):
        counts = [sum(getattr(each, part).values()) for each in (found, expected)]
        assert counts[0] == counts[1], part
    assert found.is_of_numbers == expected.is_of_numbers
