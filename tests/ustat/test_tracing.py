"""umpc.ustat.tracing: what a Python function over records becomes, and what it may not do."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from umpc.errors import KernelError
from umpc.ustat.text import to_text
from umpc.ustat.tracing import Record, Traced, maximum, minimum, select, sign, trace

from .expressions import all_records, by_hand

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
        (lambda a, b: abs(a.age - b.half), lambda a, b: abs(a["age"] - b["half"])),
        (lambda a, b: -a.age, lambda a, b: -a["age"]),
        (lambda a, b: 1 - a.age, lambda a, b: 1 - a["age"]),
        (lambda a, b: sign(a.half), lambda a, b: (a["half"] > 0) - (a["half"] < 0)),
        (
            lambda a, b: select(a.age == b.age, a.half, b.third),
            lambda a, b: a["half"] if a["age"] == b["age"] else b["third"],
        ),
        (lambda a, b: (a.age > b.age) | (a.half >= b.half), lambda a, b: a["age"] > b["age"] or a["half"] >= b["half"]),
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


def branching(a, b):
    if a.x < b.x:
        return 1
    return 0


@pytest.mark.parametrize(
    "kernel",
    [
        branching,
        lambda a, b: 1 if a.x == b.x else 0,
        lambda a, b: a.x < b.x < 3,
        lambda a, b: (a.x < b.x) and (a.y < b.y),
        lambda a, b: (a.x < b.x) or (a.y < b.y),
        lambda a, b: not (a.x < b.x),
        lambda a, b: min(a.x, b.x),
        lambda a, b: sorted([a.x, b.x])[0],
        lambda a, b: a.x in (1, 2),
    ],
)
def test_branching_on_data_is_refused_and_select_is_named(kernel):
    with pytest.raises(KernelError, match=r"may not branch on data.*select\(condition"):
        trace(kernel)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda a, b: a.x & b.x, "& combines conditions"),
        (lambda a, b: (a.x < 1) | 1, r"\| combines conditions"),
        (lambda a, b: ~a.x, "~ combines conditions"),
        (lambda a, b: select(a.x, 1, 0), "select combines conditions"),
        (lambda a, b: None, "NoneType None"),
        (lambda a, b: a, "Record"),
        (lambda a, b: a.x + "1", "str '1'"),
        (lambda a, b: a.x + 1j, "complex"),
        (lambda a, b: a.x + float("nan"), "finite numbers, got nan"),
        (lambda a, b: a.x * float("-inf"), "finite numbers, got -inf"),
        (lambda a, b: a.x * Decimal("Infinity"), "finite numbers, got Infinity"),
        (lambda a, b: a[0], r'a\["age"\], got 0'),
        (lambda: 1, "takes 1 to 8 records, this one takes 0"),
        (lambda a, b, c, d, e, f, g, h, i: 1, "this one takes 9"),
    ],
)
def test_what_no_kernel_can_hold_is_refused(kernel, message):
    with pytest.raises(KernelError, match=message):
        trace(kernel)


def test_a_traced_value_has_no_hash_and_shows_its_text():
    value = Record(1).age
    assert repr(value) == "Traced(b.age)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    assert isinstance(value == 3, Traced)


def test_division_by_a_number_and_small_powers_are_products():
    assert trace(lambda a, b: (a.x - b.x) / 4) == trace(lambda a, b: (a.x - b.x) * Fraction(1, 4))
    assert trace(lambda a, b: (a.x - b.x) ** 3) == trace(lambda a, b: (a.x - b.x) * (a.x - b.x) * (a.x - b.x))
    assert trace(lambda a, b: a.x**1 + b.x) == trace(lambda a, b: a.x + b.x)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda a, b: a.x / b.x, "divides by numbers other than 0 only"),
        (lambda a, b: a.x / 0, "divides by numbers other than 0 only"),
        (lambda a, b: 1 / a.x, "cannot divide by data"),
        (lambda a, b: a.x**-1, "whole numbers from 1 to 8"),
        (lambda a, b: a.x**0.5, "whole numbers from 1 to 8"),
        (lambda a, b: a.x**b.x, "whole numbers from 1 to 8"),
    ],
)
def test_what_no_polynomial_is_is_refused(kernel, words):
    with pytest.raises(KernelError, match=words):
        trace(kernel)
