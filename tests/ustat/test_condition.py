"""umpc/ustat/condition.py: the grammar of `where`, and exact comparisons."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.errors import StudyError
from umpc.ustat.condition import COMPARISONS, fields_read, parse_condition
from umpc.ustat.schema import FieldSchema, Schema

SCHEMA = Schema(
    [
        FieldSchema("age", Fraction(0), Fraction(120), Fraction(1)),
        FieldSchema("cost", Fraction(-2), Fraction(2), Fraction(1, 2)),
        FieldSchema("third", Fraction(0), Fraction(1), Fraction(1, 3)),
        FieldSchema("sex", Fraction(0), Fraction(2), Fraction(1), ("f", "m", "it's")),
        FieldSchema("and so", Fraction(0), Fraction(1), Fraction(1)),
        FieldSchema("größe", Fraction(0), Fraction(1), Fraction(1)),
    ]
)
RECORDS = {
    "age": np.array([39, 40, 41, 40]),
    "cost": np.array([-4, -1, 0, 4]),
    "third": np.array([0, 1, 2, 3]),
    "sex": np.array([0, 0, 1, 2]),
    "and so": np.array([0, 1, 0, 1]),
    "größe": np.array([0, 0, 1, 1]),
}


def holds(text: str) -> list[int]:
    return parse_condition(text, SCHEMA).holds(RECORDS).astype(int).tolist()


def test_conditions_hold_as_they_are_written():
    cases = {
        "age >= 40": [0, 1, 1, 1],
        "age >= 40 and sex = 'f'": [0, 1, 0, 0],
        "age<40 or age>40": [1, 0, 1, 0],
        "not age = 40": [1, 0, 1, 0],
        "not (age = 40 or sex = 'f') or cost = 2": [0, 0, 1, 1],
        "age = 40 or age = 41 and sex = 'f'": [0, 1, 0, 1],
        "(age = 40 or age = 41) and sex = 'f'": [0, 1, 0, 0],
        "age in (39, 41)": [1, 0, 1, 0],
        "sex not in ('f', 'm')": [0, 0, 0, 1],
        "sex == 'it''s'": [0, 0, 0, 1],
        "sex <> 'f'": [0, 0, 1, 1],
        "cost < 0.25": [1, 1, 1, 0],
        "cost >= -0.75": [0, 1, 1, 1],
        "cost = -.5": [0, 1, 0, 0],
        "third <= 0.4": [1, 1, 0, 0],
        '"and so" = 1 AND größe = 0': [0, 1, 0, 0],
    }
    for text, expected in cases.items():
        assert holds(text) == expected, text


def test_a_comparison_is_exact_for_constants_between_two_steps():
    """Every sign, every value and constants on, between and next to the steps, by fractions."""
    units = np.arange(-4, 5)
    for sign, compare in COMPARISONS.items():
        for constant in [Fraction(number, 20) for number in range(-40, 41)]:
            if sign in ("=", "!=") and (constant * 2).denominator != 1:
                continue
            written = f"cost {sign} {float(constant)}"
            found = parse_condition(written, SCHEMA).holds({"cost": units})
            assert found.tolist() == [compare(Fraction(int(u), 2), constant) for u in units]


def test_one_condition_has_one_spelling():
    spellings = (
        "age>=40 and sex='f'",
        "  (age >= 40.0)\n AND (sex == 'f') ",
        "\"age\" >= +40 and sex = 'f'",
    )
    assert {parse_condition(text, SCHEMA).text for text in spellings} == {"age >= 40 and sex = 'f'"}
    other = parse_condition("cost in (-0.5, 1) or not sex in ('it''s')", SCHEMA)
    assert other.text == "cost in (-0.5, 1) or not (sex in ('it''s'))"
    assert other.fields == fields_read(other.text) == ("cost", "sex")


def conditions(depth: int = 3):
    leaf = st.sampled_from(
        ["age >= 40", "sex = 'f'", "cost < 0.25", "sex not in ('f', 'm')", '"and so" = 1']
    )
    if not depth:
        return leaf
    inner = conditions(depth - 1)
    word = st.sampled_from(["and", "or"])
    joined = st.builds(lambda a, w, b: f"({a}) {w} ({b})", inner, word, inner)
    return st.one_of(leaf, joined, st.builds("not ({})".format, inner))


@given(conditions())
@settings(max_examples=60, deadline=None)
def test_the_canonical_text_means_the_same(text):
    once = parse_condition(text, SCHEMA)
    again = parse_condition(once.text, SCHEMA)
    assert again.text == once.text and again.root == once.root
    assert again.holds(RECORDS).tolist() == once.holds(RECORDS).tolist()


def test_a_mistake_says_where_it_is_and_what_to_write():
    cases = {
        "": "the name of a field was expected at character 1, and the end came",
        "age": "one of = != < <= > >= or `in` was expected at character 4, and the end came",
        "age >= ": "a number, or a word as in 'f',",
        "age >= 40 sex = 'f'": "`and`, `or` or the end was expected at character 11, and `sex`",
        "(age >= 40": "`)` was expected at character 11",
        "age >= 'f'": "field 'age' holds numbers, and 'f' came; write a number without quotes",
        "age >= 40; drop": "expected at character 10, and `;` came",
        "age >= 1e9": "came",
        "age >= 40x": "expected at character 8",
        "__import__('os')": "was expected",
        "height > 1": "'height' was expected to be a field of the study",
        "Age > 1": "'Age' was expected to be a field",
        "sex = 'x'": "field 'sex' has the categories 'f', 'm', 'it's', and 'x' came",
        "sex = 1": "field 'sex' has the categories",
        "sex < 'm'": "have no order",
        "age > 121": "lies from 0 to 120, and 121 came",
        "cost = 0.25": "steps of 1/2, so it is never equal to 0.25",
        "cost in (0.25)": "steps of 1/2",
        "age in ()": "a number, or a word",
        "40 <= age": "the name of a field",
        "age >= 40 and": "the name of a field was expected at character 14",
        "age not 40": "or `in` was expected",
        "(" * 40 + "age = 1" + ")" * 40: "at most 32 levels",
        "not " * 40 + "age = 1": "at most 32 levels",
        "age = 1 or " * 200 + "age = 1": "at most 2000 characters",
    }
    for text, expected in cases.items():
        with pytest.raises(StudyError) as caught:
            parse_condition(text, SCHEMA)
        assert expected in caught.value.message, (text, caught.value.message)


def test_the_signs_are_those_of_python():
    assert set(COMPARISONS.values()) == {
        getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
    }
