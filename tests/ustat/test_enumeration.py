"""umpc.ustat.ranges: the exact interval, and which fields matter by their order only."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ustat.expressions import EVERY_KIND, SCHEMA, all_records, by_hand, numbers
from umpc.errors import LocalProtocolError
from umpc.ustat import expression as ex
from umpc.ustat import ranges
from umpc.ustat.polynomial import add, constant, polynomial_of
from umpc.ustat.ranges import (
    MAX_POINTS,
    Interval,
    always_equal,
    domains_of,
    exact_interval,
    interval_of,
)
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.text import from_text, to_text
from umpc.ustat.tracing import maximum, minimum, select, sign, trace

RECORDS = all_records()
PAIRS = [(a, b) for a in RECORDS for b in RECORDS]


def schema(size: int, lower: int = 0) -> Schema:
    """The fields x and y, each with `size` values."""
    return Schema(
        [FieldSchema(n, Fraction(lower), Fraction(lower + size - 1), Fraction(1)) for n in "xy"]
    )


def reached(node: ex.Expression, edges) -> Interval:
    values = [by_hand(node, edge) for edge in edges]
    return Interval(min(values), max(values))


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_node_kinds_range_is_that_of_all_pairs_of_records(kind):
    assert exact_interval(EVERY_KIND[kind], SCHEMA) == reached(EVERY_KIND[kind], PAIRS)


@settings(max_examples=40)
@given(numbers(["age", "half"]))
def test_a_random_kernels_range_is_reached_and_lies_in_interval_arithmetics(node):
    values = [{"age": a, "half": h} for a, h in {(r["age"], r["half"]) for r in RECORDS}]
    exact, outer = exact_interval(node, SCHEMA), interval_of(node, SCHEMA)
    assert exact == reached(node, product(values, repeat=2))
    assert outer.low <= exact.low and exact.high <= outer.high


def comparisons(records: int) -> st.SearchStrategy[ex.Expression]:
    """A comparison of one field between two records, in any of the spellings that count."""
    fields = [
        (ex.Field(i, n), ex.Field(j, n))
        for n in "xy"
        for i in range(records)
        for j in range(records)
    ]
    factor, zero = ex.Constant(Fraction(3, 2)), ex.Constant(Fraction(0))
    spellings = [
        ex.Less,
        ex.Equal,
        lambda x, y: ex.Less(ex.Subtract(x, y), zero),
        lambda x, y: ex.Equal(zero, ex.Multiply(ex.Subtract(x, y), factor)),
        lambda x, y: ex.Sign(ex.Subtract(x, y)),
        lambda x, y: ex.Sign(ex.Subtract(ex.Multiply(factor, x), ex.Multiply(y, factor))),
    ]
    return st.builds(
        lambda build, pair: build(*pair), st.sampled_from(spellings), st.sampled_from(fields)
    )


def order_only(records: int) -> st.SearchStrategy[ex.Expression]:
    def grow(parts: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
        bits = comparisons(records).filter(lambda node: node.is_bit)
        pairs = st.sampled_from([ex.Add, ex.Subtract, ex.Multiply])
        return st.builds(lambda build, x, y: build(x, y), pairs, parts, parts) | st.builds(
            ex.Select, bits, parts, parts
        )

    return st.recursive(comparisons(records), grow, max_leaves=6)


@settings(max_examples=60)
@given(order_only(3), st.integers(1, 4))
def test_the_order_of_few_values_stands_for_all_of_a_larger_domain(node, size):
    wide = schema(size, -1)
    assert all(len(domain) <= 3 for domain in domains_of(node, wide).values())
    occurring = sorted({field.name for field in ex.fields_of(node)})
    rows = [
        dict(zip(occurring, row, strict=True))
        for row in product(range(-1, size - 1), repeat=len(occurring))
    ]
    assert exact_interval(node, wide) == reached(node, product(rows, repeat=3))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (lambda a, b, c: a.x < b.x, {"x": 2}),
        (lambda a, b, c: (a.x < b.x) & (b.x <= c.x), {"x": 3}),
        (lambda a, b, c: a.x - b.x < 0, {"x": 2}),
        (lambda a, b, c: sign(sign((a.x - b.x) / 2)), {"x": 2}),
        (lambda a, b, c: (2 * a.x > 2 * c.x) * (a.y != b.y), {"x": 2, "y": 2}),
        (lambda a, b, c: (a.x + 1 == b.x + 1) | (a.x == a.x), {"x": 2}),
        (lambda a, b, c: a.x < b.x + 1, {"x": 100}),
        (lambda a, b, c: a.x < 2 * b.x, {"x": 100}),
        (lambda a, b, c: a.x + b.x < 0, {"x": 100}),
        (lambda a, b, c: a.x - b.x < b.x - c.x, {"x": 100}),
        (lambda a, b, c: a.x < 5, {"x": 100}),
        (lambda a, b, c: a.x < b.y, {"x": 100, "y": 100}),
        (lambda a, b, c: a.x * b.x < 0, {"x": 100}),
        (lambda a, b, c: abs(a.x - b.x), {"x": 100}),
        (lambda a, b, c: select(a.x < b.x, a.x, a.y), {"x": 100, "y": 100}),
        (lambda a, b, c: select(a.x < b.x, a.y, 0), {"x": 2, "y": 100}),
        (lambda a, b, c: minimum(a.x, b.x) < c.x, {"x": 100}),
        (lambda a, b, c: (a.x < b.x) + (a.x + b.x), {"x": 100}),
    ],
)
def test_a_field_keeps_its_domain_unless_only_its_order_among_records_matters(kernel, expected):
    domains = domains_of(trace(kernel), schema(100, 7))
    assert {field.name: len(domain) for field, domain in domains.items()} == expected
    assert all(domain.start == 7 for domain in domains.values())


def test_a_small_domain_stays_as_small_as_it_is():
    node = trace(lambda a, b, c: (a.x < b.x) & (b.x < c.x))
    assert exact_interval(node, schema(2)) == Interval(Fraction(0), Fraction(0))
    assert exact_interval(node, schema(3)) == Interval(Fraction(0), Fraction(1))


def test_categories_are_enumerated_by_their_labels_or_by_equality_alone():
    colours = Schema([FieldSchema("x", Fraction(0), Fraction(4), Fraction(1), tuple("abcde"))])
    assert [len(d) for d in domains_of(trace(lambda a, b: a.x == b.x), colours).values()] == [2, 2]
    assert (
        exact_interval(
            trace(lambda a, b, c: (a.x == b.x) + (b.x == c.x) + (a.x == c.x)), colours
        ).high
        == 3
    )


def test_too_many_points_are_not_enumerated():
    gini = trace(lambda a, b: abs(a.x - b.x))
    assert MAX_POINTS == 1024 * 1024
    assert exact_interval(gini, schema(1024, -3)) == Interval(Fraction(0), Fraction(1023))
    assert exact_interval(gini, schema(1025)) is None
    assert always_equal(gini, gini, schema(1025)) is None


@pytest.mark.parametrize("chunk", [1, 7, 16, 1000])
def test_chunks_leave_out_no_point(limit, chunk):
    limit(ranges, CHUNK=chunk)
    for target in product(range(4), repeat=2):
        node = trace(lambda a, b, t=target: (a.x == t[0]) & (b.y == t[1]))
        assert exact_interval(node, schema(4)).high == 1


def test_a_constant_has_one_value():
    assert exact_interval(trace(lambda a: Fraction(-2, 3)), SCHEMA) == Interval(
        Fraction(-2, 3), Fraction(-2, 3)
    )


def test_values_beyond_63_bits_are_exact():
    node = trace(lambda a, b: (a.x - b.x) * 10**30 + Fraction(1, 7))
    assert exact_interval(node, schema(4)) == Interval(
        Fraction(1, 7) - 3 * 10**30, Fraction(1, 7) + 3 * 10**30
    )


def test_wide_values_are_enumerated_on_fewer_points():
    node = trace(lambda a, b: (a.x - b.x) * 10**30)
    assert exact_interval(node, schema(64)).high == 63 * 10**30
    assert exact_interval(node, schema(65)) is None


def test_equality_on_all_records_is_decided_both_ways():
    least = trace(lambda a, b: minimum(a.x, b.x))
    assert always_equal(least, trace(lambda a, b: a.x + b.x - maximum(a.x, b.x)), schema(9)) is True
    assert (
        always_equal(
            least,
            trace(lambda a, b: select((a.x == 8) & (b.x == 8), 0, minimum(a.x, b.x))),
            schema(9),
        )
        is False
    )


def test_kendalls_range_is_minus_one_to_one_whatever_the_bounds():
    tau = trace(lambda a, b: sign(a.x - b.x) * sign(a.y - b.y))
    assert exact_interval(tau, schema(1 << 40)) == Interval(Fraction(-1), Fraction(1))


def separates(w, x, y, z):
    """Whether {w, x} lie strictly to one side of {y, z}."""
    return ((w < y) & (w < z) & (x < y) & (x < z)) ^ ((y < w) & (z < w) & (y < x) & (z < x))


def bergsma_dassios(a, b, c, d):
    """Bergsma & Dassios 2014: the covariance of the three splits of four records, in x and in y."""

    def splits(name):
        w, x, y, z = a[name], b[name], c[name], d[name]
        return separates(w, x, y, z), separates(w, y, x, z), separates(w, z, x, y)

    first, second = splits("x"), splits("y")
    return sum(p * q for p, q in zip(first, second, strict=True)) - sum(first) * sum(second) / 3


def test_bergsma_dassios_range_and_symmetry_are_exact():
    node, wide = trace(bergsma_dassios), schema(1 << 40)
    assert from_text(to_text(node)) == node
    assert exact_interval(node, wide) == Interval(Fraction(-1, 3), Fraction(2, 3))
    for order in ((1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)):
        assert always_equal(node, ex.permute_records(node, order), wide)
    outer = interval_of(node, wide)
    assert outer.low <= Fraction(-1, 3) and outer.high >= Fraction(2, 3)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_normal_form_that_is_not_the_kernel_is_noticed(kind):
    normal = polynomial_of(EVERY_KIND[kind], SCHEMA)
    assert exact_interval(EVERY_KIND[kind], SCHEMA, normal) == reached(EVERY_KIND[kind], PAIRS)
    with pytest.raises(LocalProtocolError, match="normal form differs from the kernel"):
        exact_interval(EVERY_KIND[kind], SCHEMA, add(normal, constant(1)))
