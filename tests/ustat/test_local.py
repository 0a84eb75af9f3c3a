"""umpc.ustat.polynomial: what an owner computes of its own records alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ustat.expressions import EVERY_KIND, SCHEMA, all_records, by_hand, columns, fits, numbers
from umpc.errors import RangeError
from umpc.ustat import expression as ex
from umpc.ustat.normal_form import Atom, BitAtom, Polynomial
from umpc.ustat.polynomial import bound, constant, evaluate_local, polynomial_of, relabel
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.text import to_text
from umpc.ustat.tracing import select, sign, trace

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
    assert evaluate_local(form, {0: COLUMNS}, len(RECORDS)).tolist() == expected


@settings(max_examples=100)
@given(numbers().map(of_one_record).filter(fits))
def test_random_kernels_of_one_record_equal_the_plain_value_and_keep_their_bound(node):
    form, expected = integers(node)
    assert evaluate_local(form, {0: COLUMNS}, len(RECORDS)).tolist() == expected
    low, high = bound(form, SCHEMA)
    assert low <= min(expected) and max(expected) <= high


FIRST, SECOND = (
    {name: column[rows] for name, column in COLUMNS.items()}
    for rows in np.divmod(np.arange(48**2), 48)
)
"""Every record with every other and itself."""
THREE = [
    lambda a, b: (a.age < b.age) & (a.half < b.half) & ~(a.third == b.third),
    lambda a, b: select((a.age < 0) | (b.age < 0) | (a.half == b.half), a.age * b.half, b.third),
    lambda a, b: abs(abs(a.age - b.half) - abs(b.third - a.half)) * 5,
]


@pytest.mark.parametrize("node", [*EVERY_KIND.values(), *map(trace, THREE)], ids=to_text)
def test_two_records_of_one_owner_equal_the_plain_value(node):
    form = polynomial_of(node, SCHEMA)
    values = evaluate_local(form.scaled(1 / form.unit), {0: FIRST, 1: SECOND}, 48**2)
    assert values.dtype == np.int64
    assert values.tolist() == [by_hand(node, (a, b)) / form.unit for a in RECORDS for b in RECORDS]


def test_only_records_that_occur_are_read():
    form = polynomial_of(trace(lambda a, b, c: c.age * (a.half == 1) * 2), SCHEMA)
    values = evaluate_local(form, {0: FIRST, 2: SECOND}, 48**2)
    assert (
        form.records == {0, 2}
        and values.tolist() == (2 * SECOND["age"] * (FIRST["half"] == 2)).tolist()
    )
    assert evaluate_local(constant(3), {}, 2).tolist() == [3, 3]


def values_of_pairs(form: Polynomial) -> list[Fraction]:
    """The values on all pairs of records. Equal functions in two forms may have two units."""
    counts = evaluate_local(form.scaled(1 / form.unit), {0: FIRST, 1: SECOND}, 48**2)
    return [count * form.unit for count in counts.tolist()]


def has_equality(form: Polynomial) -> bool:
    """Whether there is a bit [P = 0], by which P can be replaced in the other factors."""
    return any(is_equality(atom) for product, _ in form.terms for atom, _ in product)


def is_equality(atom: Atom) -> bool:
    return isinstance(atom, BitAtom) and atom.kind == "equal"


@settings(max_examples=100)
@given(numbers().filter(fits), st.permutations([0, 1]))
def test_relabelling_records_is_permuting_them_in_the_kernel(node, order):
    """Comparisons turn around with it, and stay in their one form where nothing must be equal.

    A bit [P = 0] replaces a value in P by others, and the order of records says which value.
    """
    form = polynomial_of(node, SCHEMA)
    relabelled = relabel(form, dict(enumerate(order)))
    permuted = polynomial_of(ex.permute_records(node, tuple(order)), SCHEMA)
    assert values_of_pairs(relabelled) == values_of_pairs(permuted)
    if not has_equality(form) and not has_equality(permuted):
        assert relabelled == permuted
        assert relabel(relabelled, {record: place for place, record in enumerate(order)}) == form


def test_a_product_of_two_equalities_keeps_its_values_when_records_are_relabelled():
    """Found by Hypothesis: the two forms differ by age·[half = 0]·[half = 2·age], which is 0."""
    node = trace(lambda a, b: select(a.age == b.half, a.half, b.half) * sign(b.half))
    form = polynomial_of(node, SCHEMA)
    relabelled = relabel(form, {0: 1, 1: 0})
    permuted = polynomial_of(ex.permute_records(node, (1, 0)), SCHEMA)
    assert has_equality(form) and relabelled != permuted
    assert values_of_pairs(relabelled) == values_of_pairs(permuted)


@settings(max_examples=100)
@given(numbers().map(of_one_record).filter(fits), st.integers(0, 3))
def test_a_value_of_one_record_is_the_same_of_another(node, record):
    """A wire is made so: the field of record 2 is that of record 0, of another table."""
    form, expected = integers(node)
    moved = relabel(form, {0: record})
    assert moved.records <= {record} and relabel(moved, {record: 0}) == form
    assert evaluate_local(moved, {record: COLUMNS}, len(RECORDS)).tolist() == expected


@pytest.mark.parametrize("kernel", THREE)
def test_relabelling_logic_moves_what_it_compares(kernel):
    form = polynomial_of(trace(kernel), SCHEMA)
    moved = relabel(form, {0: 5, 1: 2})
    assert moved.records == {2, 5} and moved != form
    values = [
        evaluate_local(polynomial.scaled(1 / form.unit), at, 48**2)
        for polynomial, at in ((form, {0: FIRST, 1: SECOND}), (moved, {5: FIRST, 2: SECOND}))
    ]
    assert np.array_equal(*values)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (lambda a: a.age, (-2, 1)),
        (lambda a: -3 * a.age + 1, (-2, 7)),
        (lambda a: a.age * a.age, (-2, 4)),
        (lambda a: (a.age < 0) * 5, (0, 5)),
        (lambda a: ((a.age < 0) ^ (a.half < 0) ^ (a.third < 1)) * -4, (-4, 0)),
        (lambda a: ~((a.age < 0) & (a.half < 0) & (a.third < 1)) * 4 + a.age, (-2, 5)),
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


@pytest.mark.parametrize(
    "kernel", [lambda a: a.x * a.x < 3, lambda a: (a.x * a.x < 3) & (a.x < 3) & (a.x == 5)]
)
def test_what_a_bit_compares_must_fit_too(kernel):
    inner = polynomial_of(trace(kernel), wide(31))
    assert bound(inner, wide(30)) == (0, 1)
    with pytest.raises(RangeError, match="computed from x may need"):
        bound(inner, wide(31))


def test_terms_that_cancel_must_fit_one_by_one():
    apart = polynomial_of(trace(lambda a: a.x * (1 << 60) - a.x * a.x * (1 << 59)), wide(2))
    with pytest.raises(RangeError):
        bound(apart, wide(2))


def test_a_constant_that_does_not_fit_is_called_one():
    with pytest.raises(RangeError, match="computed from constants"):
        bound(constant(1 << 62), wide(1))
