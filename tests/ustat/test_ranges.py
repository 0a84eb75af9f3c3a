"""umpc.ustat.ranges: the interval holds every value, and is exact where it must be."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ustat.expressions import EVERY_KIND, SCHEMA, all_records, by_hand, numbers
from umpc.ustat import expression as ex
from umpc.ustat.ranges import Interval, interval_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.tracing import clamp, maximum, minimum, select, sign, trace

RECORDS = all_records()
PAIRS = [(a, b) for a in RECORDS for b in RECORDS]


def interval(low: object, high: object) -> Interval:
    return Interval(Fraction(low), Fraction(high))


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_interval_of_every_node_kind_is_reached_at_both_ends(kind):
    values = [by_hand(EVERY_KIND[kind], pair) for pair in PAIRS]
    assert interval_of(EVERY_KIND[kind], SCHEMA) == Interval(min(values), max(values))


@settings(max_examples=200)
@given(numbers(size=14), st.lists(st.sampled_from(PAIRS), min_size=20, max_size=20))
def test_every_value_of_a_random_kernel_lies_in_its_interval(node, pairs):
    found = interval_of(node, SCHEMA)
    for pair in pairs:
        assert found.low <= by_hand(node, pair) <= found.high


def field(low: int, high: int, name: str = "x") -> FieldSchema:
    return FieldSchema(name, Fraction(low), Fraction(high), Fraction(1))


@pytest.mark.parametrize(
    ("x", "y", "less", "equal", "sign_of_difference"),
    [
        ((0, 1), (2, 3), (1, 1), (0, 0), (-1, -1)),
        ((2, 3), (0, 1), (0, 0), (0, 0), (1, 1)),
        ((0, 2), (2, 3), (0, 1), (0, 1), (-1, 0)),
        ((2, 3), (0, 2), (0, 0), (0, 1), (0, 1)),
        ((0, 3), (1, 2), (0, 1), (0, 1), (-1, 1)),
        ((2, 2), (2, 2), (0, 0), (1, 1), (0, 0)),
    ],
)
def test_comparisons_that_bounds_decide_are_constants(x, y, less, equal, sign_of_difference):
    schema = Schema([field(*x, "x"), field(*y, "y")])
    assert interval_of(trace(lambda a: a.x < a.y), schema) == interval(*less)
    assert interval_of(trace(lambda a: a.x == a.y), schema) == interval(*equal)
    assert interval_of(trace(lambda a: sign(a.x - a.y)), schema) == interval(*sign_of_difference)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (lambda a: abs(a.x), (0, 3)),
        (lambda a: abs(a.x + 5), (3, 8)),
        (lambda a: abs(a.x - 5), (2, 7)),
        (lambda a: a.x * a.y, (-6, 9)),
        (lambda a: minimum(a.x, a.y), (-2, 3)),
        (lambda a: maximum(a.x, 7), (7, 7)),
        (lambda a: maximum(a.x, 1), (1, 3)),
        (lambda a: minimum(1, a.x), (-2, 1)),
        (lambda a: clamp(a.x, 0, 1), (0, 1)),
        (lambda a: clamp(a.x * a.y, -1, 20), (-1, 9)),
        (lambda a: clamp(a.x, 5, 7), (5, 5)),
        (lambda a: select(a.x < 1, 1, a.x), (1, 3)),
        (lambda a: a.x - a.x, (0, 0)),
        (lambda a: abs((a.x + a.y) - (a.x + a.y)), (0, 0)),
        (lambda a: (a.x - a.x) ** 2, (0, 0)),
        (lambda a: a.x < a.x, (0, 0)),
        (lambda a: a.x >= a.x, (1, 1)),
        (lambda a: a.x == a.x, (1, 1)),
        (lambda a: (a.x < a.y) ^ (a.x < a.y), (0, 0)),
        (lambda a: select(a.x < a.y, a.x, a.x), (-2, 3)),
        (lambda a: select(a.x < a.x, 100, a.x), (-2, 3)),
        (lambda a: select(a.x == a.x, a.y * 0 + 5, 100), (5, 5)),
        (lambda a: sign(a.x - a.x), (0, 0)),
        (lambda a: select(a.x < 10, a.y, 100), (-2, 3)),
        (lambda a: select(a.x > 10, 100, a.y), (-2, 3)),
        (lambda a: select(a.x < 0, 100, a.y), (-2, 100)),
        (lambda a: (a.x < 10) & (a.y < 10), (1, 1)),
        (lambda a: (a.x > 10) | (a.y > 10), (0, 0)),
        (lambda a: ~(a.x < 0), (0, 1)),
        (lambda a: (a.x < 0) ^ (a.y < 0), (0, 1)),
        (lambda a: (a.x < 10) ^ (a.y > 10), (1, 1)),
        (lambda a: (a.x < 10) ^ (a.y < 10), (0, 0)),
        (lambda a: (a.x < 0) ^ (a.y < 10), (0, 1)),
    ],
)
def test_known_intervals(kernel, expected):
    schema = Schema([field(-2, 3, "x"), field(-2, 3, "y")])
    assert interval_of(trace(kernel), schema) == interval(*expected)


def test_width_and_magnitude():
    assert (
        interval(-3, 2).width == 5
        and interval(-3, 2).magnitude == 3
        and interval(1, 4).magnitude == 4
    )


def test_an_interval_is_of_the_fields_bounds_not_of_its_steps():
    schema = Schema([FieldSchema("x", Fraction(-1, 2), Fraction(3, 2), Fraction(1, 4))])
    assert interval_of(ex.Field(0, "x"), schema) == interval("-1/2", "3/2")
