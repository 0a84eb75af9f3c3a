"""A function in other literals is the same function, and never longer."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.mpc.masked.compiler import conjunctions_of
from umpc.ustat import normal_form as logic
from umpc.ustat.normal_form import BitAtom, FieldAtom, Function
from umpc.ustat.polynomial import atom

FORMS = [atom(FieldAtom(record, name)) for record in (0, 1) for name in ("x", "y")]
ATOMS = [BitAtom(kind, form) for form in FORMS for kind in ("less", "equal")]
STATES = ("less", "equal", "above")
"""The relations of a compared number to zero."""


def clear(function: Function, states: dict) -> bool:
    """The function where each form is below, equal or above zero."""
    return sum(all(states[bit.form] == bit.kind for bit in bits) for bits in function) % 2 == 1


def rewritten(function: Function, states: dict) -> bool:
    conjunctions, constant = conjunctions_of(function)
    return (
        sum(all(states[form] == kind for form, kind in part) for part in conjunctions) + constant
    ) % 2 == 1


def check(function: Function) -> None:
    conjunctions, constant = conjunctions_of(function)
    for row in product(STATES, repeat=len(FORMS)):
        states = dict(zip(FORMS, row, strict=True))
        assert clear(function, states) == rewritten(function, states), row
    assert len(conjunctions) + constant <= len(function)
    assert len(set(conjunctions)) == len(conjunctions) and () not in conjunctions
    for part in conjunctions:
        assert len({form for form, _ in part}) == len(part), "one literal a comparison"


def above(form) -> Function:
    return logic.TRUE ^ logic.single(BitAtom("less", form)) ^ logic.single(BitAtom("equal", form))


def all_of(parts) -> Function:
    product = logic.TRUE
    for part in parts:
        product = logic.conjunction(product, part)
    return product


def test_every_function_of_one_comparison():
    less, equal = ATOMS[:2]
    for terms in product((False, True), repeat=3):
        parts = [
            frozenset([bits]) for bits, on in zip([(), (less,), (equal,)], terms, strict=True) if on
        ]
        function = logic.FALSE
        for (bits,) in parts:
            function ^= frozenset([frozenset(bits)])
        check(function)


conjunctions = st.lists(st.sampled_from(ATOMS), max_size=4).map(frozenset)
functions = st.lists(conjunctions, max_size=12).map(
    lambda found: frozenset(bits for bits in found if len({bit.form for bit in bits}) == len(bits))
)


@settings(max_examples=120)
@given(functions)
def test_any_function_keeps_its_values_under_all_assignments(function):
    check(function)


@pytest.mark.parametrize("number", [2, 3, 4])
def test_all_below_or_all_above_is_two_conjunctions(number):
    """4 comparisons: 80 conjunctions of below and equal become two."""
    below = all_of(logic.single(BitAtom("less", form)) for form in FORMS[:number])
    higher = all_of(above(form) for form in FORMS[:number])
    function = below ^ higher  # they exclude each other
    assert len(function) == 3**number - 1
    found, constant = conjunctions_of(function)
    assert (
        sorted({kind for _, kind in part} for part in found) == [{"above"}, {"less"}]
        and not constant
    )
    check(function)


@pytest.mark.parametrize("kinds", list(combinations(STATES, 2)), ids="-".join)
def test_one_literal_stays_one(kinds):
    """Above is one literal where below and equal do not occur otherwise."""
    (form, *_), (kind, _) = FORMS, kinds
    function = above(form) if kind == "above" else logic.single(BitAtom(kind, form))
    assert conjunctions_of(function) == ((((form, kind),),), False)


def test_the_choice_does_not_depend_on_the_order_of_a_set():
    """A function is a set; its literals come in a fixed order, so that all nodes make one plan."""
    parts = [frozenset(bits) for bits in combinations(ATOMS[::2], 2)]
    first, second = frozenset(parts), frozenset(reversed(parts))
    assert conjunctions_of(first) == conjunctions_of(second)
    assert list(conjunctions_of(first)[0]) == sorted(
        conjunctions_of(first)[0], key=lambda c: [f.order for f, _ in c]
    )
