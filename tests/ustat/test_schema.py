"""umpc.ustat.schema: a field's bounds, its integers, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from umpc.errors import RangeError, UnknownField
from umpc.ustat.schema import MAX_UNITS, FieldSchema, Schema


def field(lower: str, upper: str, resolution: str = "1") -> FieldSchema:
    return FieldSchema("age", Fraction(lower), Fraction(upper), Fraction(resolution))


@pytest.mark.parametrize(
    ("lower", "upper", "resolution", "units"),
    [
        ("0", "127", "1", (0, 127)),
        ("-1.5", "2", "0.5", (-3, 4)),
        ("-1/3", "1", "1/3", (-1, 3)),
        ("10", "30", "10", (1, 3)),
        ("7", "7", "7", (1, 1)),
        (str(-MAX_UNITS), str(MAX_UNITS), "1", (-MAX_UNITS, MAX_UNITS)),
    ],
)
def test_bounds_become_integers_in_steps_of_the_resolution(lower, upper, resolution, units):
    declared = field(lower, upper, resolution)
    assert (declared.lower_units, declared.upper_units) == units


@pytest.mark.parametrize(
    ("lower", "upper", "resolution", "message"),
    [
        ("0", "1", "0", "resolution must be positive"),
        ("0", "1", "-1", "resolution must be positive"),
        ("2", "1", "1", "swap them"),
        ("0.5", "1", "1", "lower bound 1/2 is not a multiple"),
        ("0", "1", "2", "upper bound 1 is not a multiple"),
        ("0", str(MAX_UNITS + 1), "1", "narrow the bounds"),
        (str(-MAX_UNITS - 1), "0", "1", "narrow the bounds"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(lower, upper, resolution, message):
    with pytest.raises(RangeError, match=message) as refusal:
        field(lower, upper, resolution)
    assert "'age'" in str(refusal.value)


def test_a_schema_keeps_the_order_and_finds_by_name():
    fields = [FieldSchema(name, Fraction(0), Fraction(1), Fraction(1)) for name in ("z", "a", "m")]
    schema = Schema(fields)
    assert list(schema) == fields and len(schema) == 3 and schema["m"] is fields[2]


def test_an_unknown_field_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownField, match=r"'weight'.*\['age'\]"):
        Schema([field("0", "1")])["weight"]


@pytest.mark.parametrize(
    ("bounds", "labels", "words"),
    [
        ((0, 2, 1), ("a", "b"), "numbered from 0"),
        ((0, 1, 2), ("a", "b"), "numbered|multiple"),
        ((0, 1, 1), ("a", "a"), "twice"),
    ],
)
def test_categories_are_distinct_and_numbered(bounds, labels, words):
    with pytest.raises(RangeError, match=words):
        FieldSchema("x", *map(Fraction, bounds), labels)
