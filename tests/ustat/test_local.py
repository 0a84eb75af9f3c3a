"""umpc.ustat.local: what an owner computes of one record alone."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings

from umpc.errors import RangeError
from umpc.ustat import expression as ex
from umpc.ustat.local import bound, evaluate_local, rename
from umpc.ustat.polynomial import constant, polynomial_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.tracing import trace

from .expressions import EVERY_KIND, SCHEMA, all_records, by_hand, columns, fits, numbers

RECORDS = all_records()
COLUMNS = columns(SCHEMA, RECORDS)


def of_one_record(node: ex.Expression) -> ex.Expression:
    return ex.permute_records(node, (0, 0))


def integers(node: ex.Expression):
    """The normal form in units, and its values on all records."""
    form = polynomial_of(node, SCHEMA)
    return form.scaled(1 / form.unit), [by_hand(node, (record,)) / form.unit for record in RECORDS]


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_node_kind_of_one_record_equals_the_plain_value(kind):
    form, expected = integers(of_one_record(EVERY_KIND[kind]))
    assert evaluate_local(form, COLUMNS, len(RECORDS)).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(numbers().map(of_one_record).filter(fits))
def test_random_kernels_of_one_record_equal_the_plain_value_and_keep_their_bound(node):
    form, expected = integers(node)
    assert evaluate_local(form, COLUMNS, len(RECORDS)).tolist() == expected
    low, high = bound(form, SCHEMA)
    assert low <= min(expected) and max(expected) <= high


@settings(max_examples=100, deadline=None)
@given(numbers().map(of_one_record).filter(fits))
def test_renaming_a_record_is_renaming_in_the_kernel(node):
    renamed = rename(polynomial_of(node, SCHEMA), 1)
    assert renamed == polynomial_of(ex.permute_records(node, (1, 0)), SCHEMA)
    assert rename(renamed, 0) == polynomial_of(node, SCHEMA)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (lambda a: a.age, (-2, 1)),
        (lambda a: -3 * a.age + 1, (-2, 7)),
        (lambda a: a.age * a.age, (-2, 4)),
        (lambda a: (a.age < 0) * 5, (0, 5)),
        (lambda a: 7, (7, 7)),
        (lambda a: 0, (0, 0)),
    ],
)
def test_bounds_take_each_atom_within_its_own(kernel, expected):
    assert bound(polynomial_of(trace(kernel), SCHEMA), SCHEMA) == expected


def wide(bits: int) -> Schema:
    return Schema([FieldSchema("x", Fraction(0), Fraction(1 << bits), Fraction(1))])


def test_a_value_of_62_bits_or_more_is_refused_by_its_field():
    square = polynomial_of(trace(lambda a: a.x * a.x), wide(31))
    assert bound(square, wide(30)) == (0, 1 << 60)
    with pytest.raises(RangeError, match=r"computed from x may need more than 62 bits; narrow"):
        bound(square, wide(31))
    with pytest.raises(RangeError, match="computed from x may need"):
        bound(polynomial_of(trace(lambda a: (a.x < 5) * (1 << 62)), wide(3)), wide(3))


def test_terms_that_cancel_must_fit_one_by_one():
    apart = polynomial_of(trace(lambda a: a.x * (1 << 60) - a.x * a.x * (1 << 59)), wide(2))
    with pytest.raises(RangeError):
        bound(apart, wide(2))


def test_a_constant_that_does_not_fit_is_called_one():
    with pytest.raises(RangeError, match="computed from constants"):
        bound(constant(1 << 62), wide(1))
