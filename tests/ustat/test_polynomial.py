"""umpc.ustat.polynomial: the normal form has the kernel's values, and equal kernels meet in it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ustat.expressions import EVERY_KIND, SCHEMA, Record, all_records, by_hand, fits, numbers
from umpc.errors import KernelError
from umpc.ustat import expression as ex
from umpc.ustat.normal_form import BitAtom, FieldAtom, LogicAtom, Polynomial
from umpc.ustat.polynomial import constant, orient, polynomial_of
from umpc.ustat.text import from_text
from umpc.ustat.tracing import maximum, minimum, select, sign, trace

RECORDS = all_records()
PAIRS = [(a, b) for a in RECORDS for b in RECORDS]


def value(polynomial: Polynomial, records: Sequence[Record]) -> Fraction:
    """The polynomial at one edge, in Fractions, fields in steps of their resolution."""
    total = Fraction(0)
    for monomial, coefficient in polynomial.terms:
        for factor, power in monomial:
            if isinstance(factor, FieldAtom):
                step = records[factor.record][factor.name] / SCHEMA[factor.name].resolution
            elif isinstance(factor, LogicAtom):
                step = Fraction(
                    sum(all(bit_value(bit, records) for bit in bits) for bits in factor.function)
                    % 2
                )
            else:
                step = Fraction(bit_value(factor, records))
            coefficient *= step**power
        total += coefficient
    return total


def bit_value(factor: BitAtom, records: Sequence[Record]) -> bool:
    inner = value(factor.form, records)
    return inner < 0 if factor.kind == "less" else inner == 0


def normal(kernel) -> Polynomial:
    return polynomial_of(trace(kernel), SCHEMA)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_node_kind_has_its_values_on_all_pairs_of_records(kind):
    form = polynomial_of(EVERY_KIND[kind], SCHEMA)
    for pair in PAIRS:
        assert value(form, pair) == by_hand(EVERY_KIND[kind], pair)


@settings(max_examples=250)
@given(numbers(size=10).filter(fits), st.lists(st.sampled_from(PAIRS), min_size=15, max_size=15))
def test_a_random_kernel_and_its_normal_form_agree(node, pairs):
    form = polynomial_of(node, SCHEMA)
    for pair in pairs:
        assert value(form, pair) == by_hand(node, pair)


@settings(max_examples=150)
@given(numbers(size=10).filter(fits))
def test_terms_are_sorted_without_zeros_and_bits_without_powers(node):
    form = polynomial_of(node, SCHEMA)
    assert all(coefficient != 0 for _, coefficient in form.terms)
    assert len({monomial for monomial, _ in form.terms}) == len(form.terms)
    orders = [
        tuple((factor.order, power) for factor, power in monomial) for monomial, _ in form.terms
    ]
    assert orders == sorted(orders)
    for monomial, _ in form.terms:
        assert all(power == 1 for factor, power in monomial if not isinstance(factor, FieldAtom))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda a, b: a.age - b.age, lambda a, b: -(b.age - a.age)),
        (
            lambda a, b: (a.age + b.half) * (a.age - b.half),
            lambda a, b: a.age * a.age - b.half * b.half,
        ),
        (lambda a, b: a.age < b.age, lambda a, b: ~(b.age <= a.age)),
        (lambda a, b: a.age < b.half, lambda a, b: 2 * a.age < 2 * b.half),
        (lambda a, b: a.age == b.age, lambda a, b: b.age == a.age),
        (lambda a, b: abs(a.age - b.age), lambda a, b: abs(b.age - a.age)),
        (lambda a, b: abs(a.age - b.age), lambda a, b: sign(a.age - b.age) * (a.age - b.age)),
        (lambda a, b: maximum(a.age, b.age), lambda a, b: maximum(b.age, a.age)),
        (lambda a, b: minimum(a.age, b.age) + maximum(a.age, b.age), lambda a, b: a.age + b.age),
        (lambda a, b: (a.age < b.age) & (b.age < a.age), lambda a, b: 0),
        (lambda a, b: (a.age < b.age) * (a.age < b.age), lambda a, b: a.age < b.age),
        (lambda a, b: (a.age < b.age) | (a.age == b.age), lambda a, b: a.age <= b.age),
        (
            lambda a, b: select(a.age == b.age, a.age, 0),
            lambda a, b: select(b.age == a.age, b.age, 0),
        ),
        (lambda a, b: sign(a.age - b.age) + sign(b.age - a.age), lambda a, b: 0),
        (
            lambda a, b: a.age * a.age * (a.age == b.age),
            lambda a, b: b.age * b.age * (a.age == b.age),
        ),
        (
            lambda a, b: a.age * a.age * (2 * a.age == 3),
            lambda a, b: (2 * a.age == 3) * Fraction(9, 4),
        ),
    ],
)
def test_equal_kernels_have_one_normal_form(left, right):
    assert normal(left) == normal(right)


LOGIC = [
    lambda a, b: (a.age < b.age) & (a.half < b.half) & (a.third < b.third),
    lambda a, b: (a.age < b.age) | (a.half == b.half) | ~(a.third < b.third),
    lambda a, b: (a.age < b.age) ^ (b.half < a.half) ^ (a.third == b.third) ^ (a.age < b.half),
    lambda a, b: (
        ~((a.age <= b.age) & (b.half <= a.half) & (a.third != b.third)) * 3 + a.age * ~(b.age < 0)
    ),
    lambda a, b: ((a.age < b.age) & (b.age <= a.half) & (a.half < b.half)) == (a.age < 0),
]


@pytest.mark.parametrize("kernel", LOGIC)
def test_logic_over_three_comparisons_has_its_values_on_all_pairs_of_records(kernel):
    form, node = normal(kernel), trace(kernel)
    assert any(logic_atoms(form)), "logic over three comparisons is an atom of its own"
    for pair in PAIRS:
        assert value(form, pair) == by_hand(node, pair)


def logic_atoms(polynomial: Polynomial) -> list[LogicAtom]:
    """Those in it, also inside what it compares."""
    factors = [factor for monomial, _ in polynomial.terms for factor, _ in monomial]
    inner = [
        atom
        for factor in factors
        if isinstance(factor, BitAtom)
        for atom in logic_atoms(factor.form)
    ]
    return [factor for factor in factors if isinstance(factor, LogicAtom)] + inner


def test_logic_over_two_comparisons_is_written_out():
    form = normal(lambda a, b: ((a.age < b.age) & (a.half <= b.half)) ^ (b.age == a.age))
    assert not logic_atoms(form) and len(form.terms) == 3


def test_the_records_of_logic_are_those_of_its_comparisons():
    form = normal(
        lambda a, b, c: (a.age < b.age) & (a.half < 1) & (b.third < 1) & (c.age == c.half)
    )
    assert form.records == {0, 1, 2} and len(logic_atoms(form)) == 1


def test_different_kernels_have_different_normal_forms():
    assert normal(lambda a, b: a.age < b.age) != normal(lambda a, b: a.age <= b.age)
    assert normal(lambda a, b: a.age < b.age) != normal(lambda a, b: b.age < a.age)


@pytest.mark.parametrize(
    ("kernel", "unit"),
    [
        (lambda a, b: sign(a.age - b.age) * sign(a.half - b.half), 1),
        (lambda a, b: abs(a.half - b.half), Fraction(1, 2)),
        (lambda a, b: a.half + a.third, Fraction(1, 6)),
        (lambda a, b: a.half * a.third, Fraction(1, 6)),
        (lambda a, b: 4 * a.age + 6 * b.age, 2),
        (lambda a, b: (a.age < b.age) * Fraction(3, 7), Fraction(3, 7)),
        (lambda a, b: 0, 1),
    ],
)
def test_the_unit_is_the_largest_that_divides_every_coefficient(kernel, unit):
    assert normal(kernel).unit == unit


def test_comparisons_of_constants_are_decided():
    assert normal(lambda a, b: a.age - a.age < 1) == constant(1)
    assert normal(lambda a, b: a.age - a.age == 1) == constant(0)
    assert normal(lambda a, b: sign(b.age - b.age - 2)) == constant(-1)


def test_a_comparison_is_kept_primitive_with_a_positive_first_coefficient():
    form, flipped = orient(normal(lambda a, b: 6 * b.age - 4 * a.age + 2))
    assert flipped and form == normal(lambda a, b: 2 * a.age - 3 * b.age - 1)


def test_the_records_of_a_normal_form_are_those_its_value_depends_on():
    assert normal(lambda a, b: a.age + b.age - b.age).records == {0}
    assert normal(lambda a, b: sign(b.age)).records == {1}
    assert normal(lambda a, b: (a.age < 1) * (b.age < 1)).records == {0, 1}


@pytest.mark.parametrize(
    "text",
    [
        "sign(" * 60 + "a.age - b.age" + " - 1)" * 60,
        " * ".join(f"abs(a.age - b.age - {i})" for i in range(40)),
        " * ".join(f"(a.age + b.age + (a.age * b.age == {i}))" for i in range(40)),
        " * ".join(f"(~((a.age < {i}) & (b.age < {i})))" for i in range(40)),
    ],
    ids=["nested signs", "product of distances", "powers", "logic"],
)
def test_a_short_text_of_exponential_size_is_refused_and_not_computed(text):
    with pytest.raises(KernelError, match="expands into more than 10000 parts"):
        polynomial_of(from_text(text), SCHEMA)


def test_a_long_sum_and_a_deep_comparison_are_normalised():
    terms = " + ".join(f"abs(a.age - {i} * b.age)" for i in range(100))
    assert len(polynomial_of(from_text(terms), SCHEMA).terms) > 200
    deep: ex.Expression = ex.Field(0, "age")
    for _ in range(100):
        deep = ex.Less(deep, ex.Constant(Fraction(1)))
    assert polynomial_of(deep, SCHEMA).records == {0}
