"""umpc.ustat.normal_form: Boolean functions of comparisons in one normal form over GF(2)."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ustat.expressions import SCHEMA
from umpc.errors import KernelError
from umpc.ustat import normal_form as logic
from umpc.ustat.clear import evaluate_clear
from umpc.ustat.kernel import Kernel
from umpc.ustat.normal_form import BitAtom, FieldAtom, Function, LogicAtom, Polynomial
from umpc.ustat.polynomial import (
    WRITTEN_OUT,
    add,
    atom,
    constant,
    evaluate_local,
    function_of,
    less_than_zero,
    logic_of,
    polynomial_of,
    relabel,
)
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.text import from_text
from umpc.ustat.tracing import trace

FORMS = [atom(FieldAtom(record, "age")) for record in range(4)]
ATOMS = [BitAtom(kind, form) for form in FORMS for kind in ("less", "equal")]
LESS, EQUAL = ATOMS[0], ATOMS[1]

conjunctions = st.lists(st.sampled_from(ATOMS), max_size=4).map(frozenset)
functions = st.lists(conjunctions, max_size=8).map(
    lambda found: frozenset(bits for bits in found if len({bit.form for bit in bits}) == len(bits))
)


def at(function: Function, signs: dict[Polynomial, int]) -> bool:
    """The function where each form has this sign."""

    def holds(bit: BitAtom) -> bool:
        return signs[bit.form] == (-1 if bit.kind == "less" else 0)

    return sum(all(map(holds, bits)) for bits in function) % 2 == 1


def value(polynomial: Polynomial, signs: dict[Polynomial, int]) -> int:
    """A polynomial of bits at the same place."""
    total = 0
    for monomial, coefficient in polynomial.terms:
        for factor, _ in monomial:
            function = factor.function if isinstance(factor, LogicAtom) else logic.single(factor)
            coefficient *= at(function, signs)
        total += coefficient
    return total


PLACES = [dict(zip(FORMS, row, strict=True)) for row in product((-1, 0, 1), repeat=4)]


@settings(max_examples=100)
@given(functions, functions)
def test_and_and_xor_are_what_they_are_called(left, right):
    both, either = logic.conjunction(left, right), left ^ right
    for signs in PLACES:
        assert at(both, signs) == (at(left, signs) and at(right, signs))
        assert at(either, signs) == (at(left, signs) != at(right, signs))


@settings(max_examples=60)
@given(functions, functions)
def test_functions_are_equal_where_they_are_the_same_everywhere_and_only_there(left, right):
    same = all(at(left, signs) == at(right, signs) for signs in PLACES)
    assert (left == right) == same
    assert logic.conjunction(left, right) == logic.conjunction(right, left)


@settings(max_examples=100)
@given(functions)
def test_a_polynomial_has_the_functions_values_and_gives_it_back(function):
    form = logic_of(function)
    assert function_of(form) == function
    assert all(value(form, signs) == at(function, signs) for signs in PLACES)


@settings(max_examples=60)
@given(functions)
def test_logic_over_more_comparisons_than_two_is_one_atom_without_a_constant(function):
    atoms = {factor for monomial, _ in logic_of(function).terms for factor, _ in monomial}
    large = {factor for factor in atoms if isinstance(factor, LogicAtom)}
    assert bool(large) == (len(logic.forms(function)) > WRITTEN_OUT)
    assert not large or (
        atoms == large and len(large) == 1 and frozenset() not in large.pop().function
    )


def test_below_and_equal_exclude_each_other():
    assert logic.conjunction(logic.single(LESS), logic.single(EQUAL)) == logic.FALSE
    rest = logic.single(ATOMS[2])
    assert (
        logic.conjunction(logic.conjunction(logic.single(LESS), rest), logic.single(EQUAL))
        == logic.FALSE
    )
    assert logic.conjunction(logic.single(LESS), logic.single(LESS)) == logic.single(LESS)


def test_the_constants():
    function = logic.single(LESS)
    assert logic.conjunction(function, logic.TRUE) == function
    assert logic.conjunction(function, logic.FALSE) == logic.FALSE == function ^ function
    assert (logic_of(logic.FALSE), logic_of(logic.TRUE)) == (constant(0), constant(1))


def normal(kernel) -> Polynomial:
    return polynomial_of(trace(kernel), SCHEMA)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            lambda a, b, c: (a.age < b.age) & (b.age < c.age) & (a.half < c.half),
            lambda a, b, c: ~((b.age <= a.age) | ~(c.half > a.half) | ~(b.age < c.age)),
        ),
        (
            lambda a, b, c: (a.age < b.age) | (b.age < c.age) | (c.age < a.age),
            lambda a, b, c: ~((b.age <= a.age) & (c.age <= b.age) & (a.age <= c.age)),
        ),
        (
            lambda a, b, c: (a.age > b.age) ^ (b.age > c.age) ^ (c.age > a.age),
            lambda a, b, c: (c.age > a.age) ^ (a.age > b.age) ^ (b.age > c.age),
        ),
        (
            lambda a, b, c: (a.age == b.age) & ((b.half < c.half) | (a.third == c.third)),
            lambda a, b, c: (
                ((b.age == a.age) & (c.half > b.half)) | ((a.age == b.age) & (c.third == a.third))
            ),
        ),
    ],
)
def test_logic_that_means_the_same_is_the_same_however_it_was_written(left, right):
    assert normal(left) == normal(right)


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_symmetric_logic_is_canonical_under_every_exchange_of_records(order):
    """An exchange turns comparisons around: below becomes neither below nor equal."""
    ordered = normal(
        lambda a, b, c: (
            ((a.age < b.age) & (b.age < c.age) & (a.age < c.age))
            | ((c.age < b.age) & (b.age < a.age) & (c.age < a.age))
        )
    )
    alike = normal(lambda a, b, c: (a.age == b.age) | (b.age == c.age) | (a.age == c.age))
    exchange = dict(enumerate(order))
    assert relabel(alike, exchange) == alike
    reverse = {0: 2, 1: 1, 2: 0}
    assert relabel(ordered, reverse) == ordered
    assert (relabel(ordered, exchange) == ordered) == (exchange == reverse)


def test_turned_around_a_comparison_is_neither_below_nor_equal():
    form = normal(lambda a, b: a.age - b.age)
    above = function_of(less_than_zero(form.scaled(-1)))
    assert above == logic.TRUE ^ logic.single(BitAtom("less", form)) ^ logic.single(
        BitAtom("equal", form)
    )
    assert add(
        less_than_zero(form), less_than_zero(form.scaled(-1)), atom(BitAtom("equal", form))
    ) == constant(1)


@pytest.mark.parametrize("join", [" & ~", " | "])
def test_logic_of_too_many_cases_is_refused(join):
    """A conjunction of n complements, or a disjunction, is 2^n conjunctions."""
    text = [
        "~" * ("~" in join)
        + join.join(f"(a.age == {number} * b.age + 1)" for number in range(count))
        for count in (6, 12)
    ]
    assert polynomial_of(from_text(text[0]), SCHEMA)
    with pytest.raises(KernelError, match="expands into more than"):
        polynomial_of(from_text(text[1]), SCHEMA)


def test_more_conjunctions_than_4096_are_refused():
    complements = [
        logic.TRUE ^ logic.single(BitAtom("less", atom(FieldAtom(0, f"x{n}")))) for n in range(13)
    ]
    function = reduce(logic.conjunction, complements[:12])
    assert len(function) == 4096
    with pytest.raises(KernelError, match="more than 4096 cases"):
        logic.conjunction(function, complements[12])


def test_an_and_that_takes_too_long_is_refused_before_it_is_computed():
    """f & f is f, but 4096² pairs of conjunctions would take half a minute."""
    complements = [
        logic.TRUE ^ logic.single(BitAtom("less", atom(FieldAtom(0, f"x{n}")))) for n in range(12)
    ]
    function = reduce(logic.conjunction, complements)
    assert logic.conjunction(complements[0], complements[0]) == complements[0]
    with pytest.raises(KernelError, match="combine fewer comparisons"):
        logic.conjunction(function, function)


def test_a_symmetric_kernel_that_is_too_large_is_refused_for_its_size():
    """12 equalities joined by | stay if a and b are exchanged, so no advice to average is given."""
    names = [f"x{number}" for number in range(12)]
    schema = Schema([FieldSchema(name, Fraction(0), Fraction(3), Fraction(1)) for name in names])
    with pytest.raises(KernelError) as caught:
        Kernel.from_text(" | ".join(f"(a.{name} == b.{name})" for name in names), schema)
    assert (
        "expands into more than" in caught.value.message
        and "not symmetric" not in caught.value.message
    )


def test_a_conjunction_of_300_by_300_comparisons_is_refused_before_it_expands():
    """A few thousand characters of kernel text would otherwise take minutes and gigabytes."""
    forms = [add(atom(FieldAtom(0, "x")), constant(number)) for number in range(600)]
    bits = [frozenset([BitAtom("less", form)]) for form in forms]
    many, others = frozenset(bits[:300]), frozenset(bits[300:])
    with pytest.raises(KernelError, match="combine fewer comparisons"):
        logic.conjunction(many, others)
    assert len(logic.conjunction(frozenset(bits[:60]), frozenset(bits[300:360]))) == 3600


# --- bits inside a comparison ---------------------------------------------------------------------

BITS = Schema([FieldSchema(name, Fraction(0), Fraction(1), Fraction(1)) for name in "xyzw"])
Q = "(2 * (a.x < b.x) + (a.y < b.y) == 3 * (a.z < b.z))"
"""A comparison of a sum of comparisons."""


def every_pair(names: str) -> list[dict[str, np.ndarray]]:
    """Return both records of every pair whose fields are 0 or 1: arrays of (4^names,) int64."""
    columns = np.array(list(product((0, 1), repeat=2 * len(names)))).T
    first, second = columns[: len(names)], columns[len(names) :]
    return [dict(zip(names, own, strict=True)) for own in (first, second)]


@pytest.mark.parametrize(
    "text",
    [
        f"(({Q} & (a.x < b.x)) & (a.w < b.w))",
        f"(({Q} & (a.x < b.x)) ^ (a.w < b.w))",
        f"((~({Q} & (a.x < b.x))) & (a.w < 1))",
        f"(({Q} & (a.x < b.x)) & (a.w < b.w)) * 1 - {Q} * (a.x < b.x) * (a.w < b.w)",
    ],
)
def test_bits_inside_a_comparison_are_not_replaced_by_what_they_equal(text):
    """Such a replacement gives polynomials with coefficients of one half, which are no bits."""
    kernel = Kernel.from_text(text, BITS, 2, symmetric=False)
    edges = every_pair("xyzw")
    clear = evaluate_clear(kernel.expression, BITS, edges, Fraction(1))
    shared = evaluate_local(kernel.polynomial, dict(enumerate(edges)), len(clear))
    assert (clear == shared).all()
