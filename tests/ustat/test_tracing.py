"""umpc.ustat.tracing: what a Python function over records becomes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tests.ustat.expressions import all_records, by_hand
from umpc.errors import KernelError
from umpc.ustat.text import to_text
from umpc.ustat.tracing import (
    Record,
    Traced,
    arity,
    clamp,
    maximum,
    minimum,
    select,
    sign,
    trace,
    trace_all,
)

RECORDS = all_records()[::3]


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (lambda a, b: sign(a.x - b.x) * sign(a.y - b.y), "sign(a.x - b.x) * sign(a.y - b.y)"),
        (lambda a, b: abs(a["mean radius"] - b.x), 'abs(a["mean radius"] - b.x)'),
        (lambda a, b: 1 + a.x, "1 + a.x"),
        (lambda a, b: 1 - a.x, "1 - a.x"),
        (lambda a, b: 2 * a.x, "2 * a.x"),
        (lambda a, b: -a.x, "0 - a.x"),
        (lambda a, b: a.x + 0.1, "a.x + (1/10)"),
        (lambda a, b: a.x + Decimal("0.10"), "a.x + (1/10)"),
        (lambda a, b: a.x + Fraction(1, 3), "a.x + (1/3)"),
        (lambda a, b: a.x + np.float64(0.1), "a.x + (1/10)"),
        (lambda a, b: a.x * True, "a.x * 1"),
        (lambda a, b: a.x < b.x, "(a.x < b.x)"),
        (lambda a, b: a.x > b.x, "(b.x < a.x)"),
        (lambda a, b: a.x <= b.x, "(~(b.x < a.x))"),
        (lambda a, b: a.x >= b.x, "(~(a.x < b.x))"),
        (lambda a, b: a.x == b.x, "(a.x == b.x)"),
        (lambda a, b: a.x != b.x, "(~(a.x == b.x))"),
        (lambda a, b: 3 - a.x < 0, "(3 - a.x < 0)"),
        (lambda a, b: (a.x < b.x) & (a.y < b.y), "((a.x < b.x) & (a.y < b.y))"),
        (lambda a, b: (a.x < b.x) ^ (a.y < b.y), "((a.x < b.x) ^ (a.y < b.y))"),
        (lambda a, b: (a.x < b.x) | ~(a.y < b.y), "((a.x < b.x) | (~(a.y < b.y)))"),
        (lambda a, b: select(a.x < b.x, a.y, 0), "select((a.x < b.x), a.y, 0)"),
        (lambda a, b: a._index, "a._index"),
        (lambda a: a.x, "a.x"),
        (lambda a, b: 7, "7"),
    ],
)
def test_a_function_becomes_this_text(kernel, text):
    assert to_text(trace(kernel)) == text


@pytest.mark.parametrize(
    ("kernel", "meant"),
    [
        (lambda a, b: minimum(a.age, b.half), lambda a, b: min(a["age"], b["half"])),
        (lambda a, b: maximum(a.age, b.half), lambda a, b: max(a["age"], b["half"])),
        (lambda a, b: maximum(a.age, 0), lambda a, b: max(a["age"], 0)),
        (lambda a, b: clamp(a.age, b.half, 1), lambda a, b: min(max(a["age"], b["half"]), 1)),
        (lambda a, b: clamp(a.age, -1, 0), lambda a, b: min(max(a["age"], -1), 0)),
        (lambda a, b: abs(a.age - b.half), lambda a, b: abs(a["age"] - b["half"])),
        (lambda a, b: -a.age, lambda a, b: -a["age"]),
        (lambda a, b: 1 - a.age, lambda a, b: 1 - a["age"]),
        (lambda a, b: sign(a.half), lambda a, b: (a["half"] > 0) - (a["half"] < 0)),
        (
            lambda a, b: select(a.age == b.age, a.half, b.third),
            lambda a, b: a["half"] if a["age"] == b["age"] else b["third"],
        ),
        (
            lambda a, b: (a.age > b.age) | (a.half >= b.half),
            lambda a, b: a["age"] > b["age"] or a["half"] >= b["half"],
        ),
        (
            lambda a, b: (a.age > b.age) ^ (a.half >= b.half),
            lambda a, b: (a["age"] > b["age"]) != (a["half"] >= b["half"]),
        ),
        (
            lambda a, b: (a.age <= b.age) & ~(a.half != b.half),
            lambda a, b: a["age"] <= b["age"] and a["half"] == b["half"],
        ),
    ],
)
def test_a_function_means_what_python_means(kernel, meant):
    node = trace(kernel)
    for a in RECORDS:
        for b in RECORDS:
            assert by_hand(node, (a, b)) == meant(a, b)


def test_a_sum_of_a_list_and_an_absolute_value_are_fine():
    assert to_text(trace(lambda a, b: sum([a.x, b.x]))) == "0 + a.x + b.x"
    assert to_text(trace(lambda a, b: abs(a.x))) == "abs(a.x)"
    assert trace(lambda a, b: np.float64(0.5) * a.x) == trace(lambda a, b: 0.5 * a.x)


def test_a_method_and_an_object_with_call_are_functions_too():
    class Scaled:
        def __call__(self, a, b):
            return 2 * a.x

        def half(self, a, b):
            return a.x / b.x

    assert to_text(trace(Scaled())) == "2 * a.x"
    with pytest.raises(KernelError, match=r"divides by.*line \d+\)$"):
        trace(Scaled().half)


def test_a_kernel_may_return_several_values():
    def several(a, b):
        return a.x - b.x, [a.y, 3][1]

    assert [to_text(value) for value in trace_all(several)] == ["a.x - b.x", "3"]
    assert (
        trace_all(lambda a, b: [a.x]) == trace_all(lambda a, b: a.x) == (trace(lambda a, b: a.x),)
    )
    assert trace(lambda a, b: (a.x,)) == trace(lambda a, b: a.x)
    with pytest.raises(
        KernelError,
        match=r"several returns 2 values where one is expected; return one.*line \d+\)$",
    ):
        trace(several)
    with pytest.raises(KernelError, match="tuple"):
        trace_all(lambda a, b: (a.x, (b.x, b.y)))


def test_arity_counts_the_records_and_not_what_has_a_default():
    assert arity(lambda a: a.x) == 1 and arity(lambda a, b, c: a.x) == 3
    assert arity(lambda a, b, bound=5: minimum(a.x - b.x, bound)) == 2
    assert to_text(trace(lambda a, b, factor=5, *, shift=1: a.x * factor + shift)) == "a.x * 5 + 1"


def test_clamps_bounds_stand_in_order():
    with pytest.raises(KernelError, match="lower bound 3 is above its upper bound 1; swap them"):
        trace(lambda a, b: clamp(a.x, 3, 1))


def test_a_traced_value_has_no_hash_and_shows_its_text():
    value = Record(1).age
    assert repr(value) == "Traced(b.age)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    assert isinstance(value == 3, Traced)


def test_division_by_a_number_and_small_powers_are_products():
    assert trace(lambda a, b: (a.x - b.x) / 4) == trace(lambda a, b: (a.x - b.x) * Fraction(1, 4))
    assert trace(lambda a, b: (a.x - b.x) ** 3) == trace(
        lambda a, b: (a.x - b.x) * (a.x - b.x) * (a.x - b.x)
    )
    assert trace(lambda a, b: a.x**1 + b.x) == trace(lambda a, b: a.x + b.x)
