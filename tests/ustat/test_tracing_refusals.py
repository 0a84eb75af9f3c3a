"""umpc.ustat.tracing: forbidden operations are refused with their place and with advice."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from umpc.errors import KernelError
from umpc.ustat.tracing import select, trace


def branching(a, b):
    if a.x < b.x:
        return 1
    return 0


@pytest.mark.parametrize(
    ("kernel", "instead"),
    [
        (branching, r"for `if` write select\(condition, then, otherwise\)"),
        (lambda a, b: 1 if a.x == b.x else 0, r"select\(condition"),
        (lambda a, b: a.x < b.x < 3, r"for `x < y < z` write \(x < y\) & \(y < z\)"),
        (lambda a, b: (a.x < b.x) and (a.y < b.y), "for `and`, `or` and `not` write &, | and ~"),
        (lambda a, b: (a.x < b.x) or (a.y < b.y), "for `and`, `or` and `not` write &, | and ~"),
        (lambda a, b: not (a.x < b.x), "for `and`, `or` and `not` write &, | and ~"),
        (lambda a, b: min(a.x, b.x), r"write minimum\(x, y\)"),
        (lambda a, b: max(a.x, b.x), r"maximum\(x, y\)"),
        (lambda a, b: sorted([a.x, b.x])[0], r"minimum\(x, y\)"),
        (lambda a, b: a.x in (1, 2), r"for `x in \(1, 2\)` write \(x == 1\) \| \(x == 2\)"),
        (lambda a, b: any([a.x < b.x]), "&, | and ~"),
    ],
)
def test_branching_on_data_is_refused_and_what_to_write_is_named(kernel, instead):
    with pytest.raises(KernelError, match="may not branch on data.*" + instead):
        trace(kernel)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda a, b: int(a.x),
        lambda a, b: float(a.x),
        lambda a, b: complex(a.x),
        lambda a, b: round(a.x),
        lambda a, b: round(a.x, 2),
        lambda a, b: math.sqrt(a.x),
        lambda a, b: math.log(a.x),
        lambda a, b: math.floor(a.x),
        lambda a, b: math.ceil(a.x),
        lambda a, b: math.trunc(a.x),
        lambda a, b: [1, 2][a.x],
        lambda a, b: list(range(a.x)),
    ],
)
def test_rounding_converting_and_functions_of_math_are_refused(kernel):
    with pytest.raises(
        KernelError,
        match=r"cannot round or convert.*Traced\(a\.x\).*leave out int\(\).*released number",
    ):
        trace(kernel)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda a, b: len(a.x),
        lambda a, b: a.x[0],
        lambda a, b: a.x["y"],
        lambda a, b: sum(a.x),
        lambda a, b: next(iter(a.x)),
        lambda a, b: 1 in a.x,
        lambda a, b: max(*a.x),
    ],
)
def test_a_value_is_no_list(kernel):
    with pytest.raises(
        KernelError, match=r"single numbers, which have no length, no items.*a\.x \+ a\.y"
    ):
        trace(kernel)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda a, b: a.x // 2,
        lambda a, b: 2 // a.x,
        lambda a, b: a.x % 2,
        lambda a, b: divmod(a.x, 2),
        lambda a, b: a.x @ b.x,
        lambda a, b: a.x << 1,
        lambda a, b: 1 >> a.x,
        lambda a, b: 2**a.x,
    ],
)
def test_other_operators_are_refused(kernel):
    with pytest.raises(
        KernelError, match=r"has no //, %, @.*write \+, -, \*, and / or \*\* by a number"
    ):
        trace(kernel)


@pytest.mark.parametrize(
    "kernel", [lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: b <= 1]
)
def test_records_are_not_compared_only_their_fields(kernel):
    with pytest.raises(
        KernelError,
        match=r"fields, not records: this is done to the record [ab]; write a\.x == b\.x",
    ):
        trace(kernel)


def own_mistakes():
    def absent(a, b):
        total = a.x
        return total + unheard_of  # noqa: F821

    def wrong(a, b):
        first = a.x.upper()
        return first

    return [
        (absent, 2, "NameError: name 'unheard_of' is not defined, in absent"),
        (wrong, 1, "AttributeError: 'Traced' object has no attribute 'upper', in wrong"),
        (lambda a, b: {a.x: 1}, 0, "TypeError: unhashable type: 'Traced', in <lambda>"),
        (lambda a, b: np.sqrt(a.x), 0, "TypeError: operand 'Traced' does not support ufuncs"),
        (lambda a, b: np.array([1, 2])[5], 0, "IndexError"),
        (lambda a, b: math.sqrt(a.x), 0, "cannot round or convert"),
        (lambda a, b: a.x + "1", 0, "str '1'"),
        (lambda a, b: None, 0, "NoneType None; let <lambda> return a number or several"),
        (lambda a, b: [], 0, "an empty list"),
        (lambda a, b, *c: a.x, None, "takes *, which is no number of records"),
        (lambda a, b, *, c: a.x, None, "takes *, which is no number of records"),
        (branching, 1, "may not branch"),
    ]


@pytest.mark.parametrize(("kernel", "offset", "words"), own_mistakes())
def test_a_refusal_names_file_and_line(kernel, offset, words):
    with pytest.raises(KernelError, match=re.escape(words)) as caught:
        trace(kernel)
    where = (
        ""
        if offset is None
        else f" ({Path(__file__).name}, line {kernel.__code__.co_firstlineno + offset})"
    )
    assert str(caught.value) == caught.value.message and caught.value.message.endswith(where)


def test_the_line_is_the_kernels_even_where_a_library_raises():
    with pytest.raises(
        KernelError, match=r"JSONDecodeError.* \(test_tracing_refusals\.py, line \d+\)$"
    ) as caught:
        trace(lambda a, b: Decimal(float("1")) + json.loads("not-a-number"))
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)


@pytest.mark.parametrize(
    "kernel", [partial(lambda c, a, b: c * a.x / b.y, 3), Decimal, 3, "a.x", print]
)
def test_what_has_no_source_is_refused_without_a_line(kernel):
    with pytest.raises(KernelError):
        trace(kernel)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda a, b: a.x & b.x, "& combines conditions"),
        (lambda a, b: (a.x < 1) | 1, r"\| combines conditions"),
        (lambda a, b: (a.x < 1) ^ b.x, r"\^ combines conditions"),
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
