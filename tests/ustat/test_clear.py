"""umpc.ustat.clear: everybody's oracle, held against plain Fractions."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings

from tests.ustat.expressions import EVERY_KIND, SCHEMA, all_records, by_hand, columns, fits, numbers
from umpc.errors import LocalProtocolError, RangeError
from umpc.ustat import expression as ex
from umpc.ustat.clear import Exact, evaluate_clear, fits_words
from umpc.ustat.polynomial import polynomial_of
from umpc.ustat.schema import FieldSchema, Schema

RECORDS = all_records()
PAIRS = [(a, b) for a in RECORDS for b in RECORDS]
EVERY_PAIR = [columns(SCHEMA, [pair[side] for pair in PAIRS]) for side in (0, 1)]
FEW = PAIRS[:: len(PAIRS) // 60]
FEW_COLUMNS = [columns(SCHEMA, [pair[side] for pair in FEW]) for side in (0, 1)]


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_node_kind_is_right_on_all_pairs_of_records(kind):
    node = EVERY_KIND[kind]
    got = evaluate_clear(node, SCHEMA, EVERY_PAIR, Fraction(1, 6))
    assert got.dtype == np.int64
    assert got.tolist() == [6 * by_hand(node, pair) for pair in PAIRS]


@settings(max_examples=200)
@given(numbers())
def test_random_kernels_are_right_with_ties_and_bounds(node):
    expected = [by_hand(node, pair) for pair in FEW]
    unit = Fraction(1, lcm(*(value.denominator for value in expected)))
    assert evaluate_clear(node, SCHEMA, FEW_COLUMNS, unit).tolist() == [
        value / unit for value in expected
    ]


@settings(max_examples=100)
@given(numbers().filter(fits))
def test_the_unit_of_the_normal_form_divides_every_value(node):
    unit = polynomial_of(node, SCHEMA).unit
    assert (evaluate_clear(node, SCHEMA, FEW_COLUMNS, unit) * unit).tolist() == [
        by_hand(node, pair) for pair in FEW
    ]


def test_a_unit_that_does_not_divide_a_value_is_refused():
    with pytest.raises(LocalProtocolError, match="steps of 1/2 is no multiple of 1"):
        Exact(np.array([2, 3]), Fraction(1, 2), 3).rescaled(Fraction(1))


def test_a_constant_kernel_has_one_value_per_edge():
    assert evaluate_clear(ex.Constant(Fraction(3)), SCHEMA, FEW_COLUMNS, Fraction(1)).tolist() == [
        3
    ] * len(FEW)


def test_no_edges_no_values():
    nothing = columns(SCHEMA, [])
    assert evaluate_clear(EVERY_KIND["less"], SCHEMA, [nothing, nothing], Fraction(1)).shape == (0,)


WIDE = Schema(
    [
        FieldSchema("x", Fraction(0), Fraction(1 << 52), Fraction(1)),
        FieldSchema("y", Fraction(0), Fraction(1 << 12), Fraction(1, 1 << 40)),
    ]
)
TOP = [{"x": Fraction(1 << 52), "y": Fraction(1 << 12)}, {"x": Fraction(5), "y": Fraction(5)}]
X, Y = ex.Field(0, "x"), ex.Field(1, "y")


@pytest.mark.parametrize("build", [ex.Less, ex.Equal])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Y, X),
        (X, Y),
        (X, ex.Multiply(X, X)),
        (ex.Multiply(X, X), ex.Constant(Fraction(1 << 104))),
        (ex.Multiply(X, ex.Constant(Fraction(1 << 11))), ex.Constant(Fraction(0))),
        (ex.Multiply(X, ex.Constant(Fraction(1 << 12))), ex.Constant(Fraction(0))),
        (ex.Multiply(X, ex.Constant(Fraction(10**30))), X),
        (ex.Constant(Fraction(1, 10**31)), ex.Multiply(X, ex.Constant(Fraction(1, 10**30 + 1)))),
        (ex.Sign(ex.Subtract(Y, X)), ex.Constant(Fraction(0))),
        (ex.Absolute(ex.Subtract(Y, X)), ex.Select(ex.Less(Y, X), Y, X)),
    ],
)
def test_values_inside_a_kernel_never_wrap_around(build, left, right):
    node = build(left, right)
    tables = [columns(WIDE, TOP)] * 2
    assert evaluate_clear(node, WIDE, tables, Fraction(1)).tolist() == [
        by_hand(node, (edge, edge)) for edge in TOP
    ]


def test_bits_stay_bits_however_they_are_nested():
    node: ex.Expression = ex.Less(X, ex.Field(1, "x"))
    for build in (ex.And, ex.Or, ex.Xor) * 3:
        node = build(ex.Not(node), ex.Or(node, ex.Less(ex.Field(1, "x"), X)))
    assert fits_words(node, WIDE)
    pairs = [(first, second) for first in TOP for second in TOP]
    tables = [columns(WIDE, [pair[side] for pair in pairs]) for side in (0, 1)]
    assert evaluate_clear(node, WIDE, tables, Fraction(1)).tolist() == [
        by_hand(node, pair) for pair in pairs
    ]


@pytest.mark.parametrize(
    ("node", "fits"),
    [
        (X, True),
        (ex.Multiply(X, ex.Constant(Fraction((1 << 11) - 1))), True),
        (ex.Multiply(X, ex.Constant(Fraction(1 << 11))), False),
        (ex.Less(ex.Multiply(X, X), X), False),
        (ex.Less(X, Y), False),
        (ex.Less(X, ex.Field(1, "x")), True),
        (ex.Select(ex.Less(X, X), ex.Constant(Fraction(1 << 63)), X), False),
    ],
)
def test_whether_a_kernel_needs_more_than_words_is_known_from_its_bounds(node, fits):
    assert fits_words(node, WIDE) == fits


def test_a_kernels_own_value_that_needs_more_than_63_bits_is_refused():
    with pytest.raises(RangeError, match="63 bits; narrow"):
        evaluate_clear(ex.Multiply(X, X), WIDE, [columns(WIDE, TOP)] * 2, Fraction(1))
