"""umpc.ustat.kernel: symmetry, sensitivity, units."""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256

import pytest
from hypothesis import given, settings

from tests.ustat.expressions import SCHEMA, all_records, by_hand, columns, fits, numbers
from umpc.errors import KernelError, UnknownField
from umpc.testing import lying
from umpc.ustat import expression as ex
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import interval_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.tracing import maximum, minimum, select, sign, trace

RECORDS = all_records()[::2]
PAIRS = [(a, b) for a in RECORDS for b in RECORDS]


def kernel(function, schema: Schema = SCHEMA, degree: int = 2) -> Kernel:
    return Kernel(trace(function), schema, degree)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: abs(a.age - b.age),
        lambda a, b: minimum(a.age, b.age),
        lambda a, b: maximum(a.age, b.age),
        lambda a, b: sign(a.age - b.age) * sign(a.half - b.half),
        lambda a, b: (a.age - b.age) * (a.half - b.half),
        lambda a, b: (a.age == b.age) == (a.half == b.half),
        lambda a, b: (
            ((a.age == b.age) & (a.half == b.half)) | ((a.age != b.age) & (a.half != b.half))
        ),
        lambda a, b: select(a.age < b.age, b.age - a.age, a.age - b.age),
        lambda a, b: (a.age < b.age) + (b.age < a.age),
        lambda a, b: ((a.age < b.half) + (b.age < a.half)) * Fraction(1, 2),
        lambda a, b: 3,
    ],
)
def test_symmetric_kernels_are_accepted(function):
    assert kernel(function).degree == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a.age - b.age,
        lambda a, b: a.age,
        lambda a, b: a.age < b.age,
        lambda a, b: a.age <= b.age,
        lambda a, b: sign(a.age - b.age),
        lambda a, b: (a.age == 1) & (b.half == 1),
        lambda a, b: (a.age == b.half) == (b.age == b.half),
        lambda a, b: select(a.age < b.age, a.half, b.half),
        lambda a, b: abs(a.age - 2 * b.age),
    ],
)
def test_asymmetric_kernels_are_refused(function):
    with pytest.raises(KernelError, match=r"is not symmetric.*\(f\(a, b\) \+ f\(b, a\)\)"):
        kernel(function)


@settings(max_examples=200)
@given(numbers().filter(fits))
def test_an_accepted_kernel_is_symmetric_and_an_averaged_one_is_accepted(node):
    exchanged = ex.permute_records(node, (1, 0))
    assert Kernel(ex.Add(node, exchanged), SCHEMA)
    try:
        accepted = Kernel(node, SCHEMA)
    except KernelError:
        return
    assert all(
        by_hand(accepted.expression, (a, b)) == by_hand(node, (b, a)) for a, b in PAIRS[::17]
    )


@settings(max_examples=100)
@given(numbers().filter(fits))
def test_no_edge_changes_by_more_than_the_sensitivity_nor_exceeds_the_magnitude(node):
    symmetric = Kernel(ex.Add(node, ex.permute_records(node, (1, 0))), SCHEMA)
    chosen = PAIRS[::13]
    got = symmetric.evaluate([columns(SCHEMA, [pair[side] for pair in chosen]) for side in (0, 1)])
    assert (got * symmetric.unit).tolist() == [
        by_hand(symmetric.expression, pair) for pair in chosen
    ]
    assert got.max() - got.min() <= symmetric.sensitivity_units
    assert abs(got).max() <= symmetric.magnitude_units


def one(lower: str, upper: str, resolution: str) -> Schema:
    return Schema(
        [
            FieldSchema(name, Fraction(lower), Fraction(upper), Fraction(resolution))
            for name in ("x", "y")
        ]
    )


def test_kendalls_sensitivity_is_two_not_one():
    tau = kernel(lambda a, b: sign(a.x - b.x) * sign(a.y - b.y), one("0", "127", "1"))
    assert (tau.interval.low, tau.interval.high) == (-1, 1)
    assert (tau.unit, tau.sensitivity_units, tau.magnitude_units) == (1, 2, 1)


def test_ginis_sensitivity_is_the_width_of_the_field_in_steps():
    gini = kernel(lambda a, b: abs(a.x - b.x), one("-5", "20", "0.01"))
    assert (gini.interval.low, gini.interval.high) == (0, 25)
    assert (gini.unit, gini.sensitivity_units, gini.magnitude_units) == (
        Fraction(1, 100),
        2500,
        2500,
    )


def test_a_bound_between_two_steps_is_rounded_up():
    mixed = kernel(lambda a, b: 3 * a.x * b.x, one("0.5", "1.5", "0.5"))
    assert mixed.unit == Fraction(3, 4)
    assert mixed.sensitivity_units == 8 and mixed.magnitude_units == 9
    wide = kernel(
        lambda a, b: 4000 * abs(a.x - b.x) + (a.x * b.x - b.x * a.x), one("0", "2000", "1")
    )
    assert (wide.interval.low, wide.interval.high, wide.unit) == (-4_000_000, 12_000_000, 4000)
    narrow = kernel(
        lambda a, b: 4 * abs(a.x - b.x) + (a.x * b.x - b.x * a.x) * 3, one("0", "1", "1")
    )
    assert (narrow.interval.low, narrow.interval.high, narrow.unit) == (0, 4, 4)


def test_a_range_is_exact_where_few_points_allow_it_and_a_bound_elsewhere():
    def kernel_of(size):
        return kernel(lambda a, b: (a.x - b.x) * (a.x + b.x) * (a.x - b.x), one("-1", size, "1"))

    assert (kernel_of("1").interval.low, kernel_of("1").interval.high) == (-1, 1)
    assert kernel_of("2000").interval == interval_of(
        kernel_of("2000").expression, one("-1", "2000", "1")
    )


def test_the_range_is_found_when_it_is_asked_for_and_once():
    asked = []
    with lying("everybody", exact_interval=lambda honest, *given: asked.append(given)):
        gini = kernel(lambda a, b: abs(a.x - b.x), one("0", "5", "1"))
        assert asked == []
        assert gini.interval.high == gini.interval.high == 5 and len(asked) == 1


@pytest.mark.parametrize(
    "text", ["abs(a.x - b.x) + c.x", "abs(a.x - b.x) + c.x * 0", "abs(a.x - b.x) + (c.x == c.x)"]
)
def test_a_record_that_the_edge_lacks_is_refused_even_where_it_cancels(text):
    with pytest.raises(KernelError, match="uses record 3 of an edge of 2 records"):
        Kernel.from_text(text, one("0", "1", "1"))


def test_an_unknown_field_is_refused():
    with pytest.raises(UnknownField, match="'z'"):
        kernel(lambda a, b: abs(a.z - b.z))


def test_degree_three_is_symmetric_under_all_six_exchanges():
    def spread(a, b, c):
        return maximum(a.x, maximum(b.x, c.x)) - minimum(a.x, minimum(b.x, c.x))

    schema, large = one("0", "3", "1"), one("0", "3000", "1")
    assert kernel(lambda a, b, c: a.x * b.x * c.x, schema, 3).sensitivity_units == 27
    assert (
        kernel(lambda a, b, c: abs(a.x - b.x) + abs(b.x - c.x) + abs(c.x - a.x), schema, 3).degree
        == 3
    )
    with pytest.raises(KernelError, match="not symmetric"):
        kernel(lambda a, b, c: abs(a.x - b.x) * c.x, schema, 3)
    assert (
        kernel(spread, schema, 3).sensitivity_units == 3
    )  # the normal form does not prove it, all 64 points do
    with pytest.raises(KernelError, match="not symmetric"):  # it is, but here are too many points
        kernel(spread, large, 3)


def test_a_normal_form_that_proves_symmetry_needs_no_points():
    """10^18 points are too many: such a kernel without a normal form is refused."""
    assert kernel(lambda a, b, c: a.x * b.x + b.x * c.x + c.x * a.x, one("0", "1000000", "1"), 3)


def test_points_decide_where_an_exchanged_kernel_has_no_normal_form():
    def too_large_if_exchanged(honest, node: ex.Expression, schema: Schema):
        if not isinstance(node, ex.Absolute) or node.operand.left.record != 0:
            raise KernelError("the kernel expands into too many parts")
        return honest(node, schema)

    with lying("everybody", polynomial_of=too_large_if_exchanged):
        assert kernel(lambda a, b: abs(a.x - b.x), one("0", "9", "1"))
        for function, top in (
            (lambda a, b: abs(a.x - 2 * b.x), "9"),
            (lambda a, b: abs(a.x - b.x), "2000"),
        ):
            with pytest.raises(KernelError, match="not symmetric"):
                kernel(function, one("0", top, "1"))


def test_an_exchange_that_only_the_last_records_show_is_found():
    with pytest.raises(KernelError, match="not symmetric"):
        kernel(lambda a, b, c: (a.x + b.x) * c.x, one("0", "3", "1"), 3)
    with pytest.raises(KernelError, match="not symmetric"):
        kernel(lambda a, b, c: a.x * (b.x + c.x), one("0", "3", "1"), 3)


@pytest.mark.parametrize(
    "function", [lambda a, b: a.x < b.x, lambda a, b: a.x - 2 * b.y, lambda a, b: a.x]
)
def test_symmetry_is_not_asked_of_arguments_from_different_classes(function):
    with pytest.raises(KernelError, match="not symmetric"):
        Kernel(trace(function), one("0", "3", "1"))
    assert not Kernel(trace(function), one("0", "3", "1"), symmetric=False).symmetric


def test_the_fields_are_those_that_occur_in_order():
    assert Kernel.from_text("abs(a.y - b.y) * abs(a.x - b.x)", one("0", "3", "1")).fields == (
        "x",
        "y",
    )
    assert Kernel.from_text("abs(a.y - b.y)", one("0", "3", "1")).fields == ("y",)


def test_the_hash_covers_the_text_the_degree_and_what_the_occurring_fields_hold():
    def hash_with(text="abs(a.x - b.x)", degree=2, x=("x", 0, 3, 1), other=("y", 0, 3, 1)):
        fields = [
            FieldSchema(name, Fraction(low), Fraction(up), Fraction(step))
            for name, low, up, step in (x, other)
        ]
        return Kernel.from_text(text, Schema(fields), degree).hash

    assert hash_with() == hash_with(other=("z", 1, 2, 1)) == hash_with(x=("x", "0", "3.0", "1"))
    covered = b'["umpc kernel 1", "abs(a.x - b.x)", 2, [["x", "0", "3", "1", []]]]'
    assert hash_with() == sha256(covered).hexdigest()
    changed = [
        hash_with("abs(b.x - a.x)"),
        hash_with("1", 2),
        hash_with("1", 3),
        hash_with(x=("x", -1, 3, 1)),
        hash_with(x=("x", 0, 4, 1)),
        hash_with(x=("x", 0, 3, "1/2")),
        hash_with("abs(a.y - b.y)"),
    ]
    assert len({hash_with(), *changed}) == len(changed) + 1


def test_text_and_expression_give_one_kernel():
    tau = kernel(lambda a, b: sign(a.age - b.age) * sign(a.half - b.half))
    assert tau.text == "sign(a.age - b.age) * sign(a.half - b.half)"
    assert Kernel.from_text(tau.text, SCHEMA) == tau
    assert Kernel.from_text(tau.text, SCHEMA).hash == tau.hash


NO_ORDER = (
    "field 'colour' has categories ('red', 'green', 'blue', …), which have no order and no "
    "arithmetic; compare it with == or !=, or declare it as numbers"
)
COMPARE = (
    "compare it with the number of one of its categories (0 for 'red', 1 for 'green', 2 for "
    "'blue'), or with a field of the same categories"
)
COLOURS = Schema(
    [
        FieldSchema("colour", Fraction(0), Fraction(2), Fraction(1), ("red", "green", "blue")),
        FieldSchema("hair", Fraction(0), Fraction(1), Fraction(1), ("dark", "fair")),
        FieldSchema("age", Fraction(0), Fraction(99), Fraction(1)),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "(a.colour == b.colour)",
        "select((a.colour == b.colour), abs(a.age - b.age), 0)",
        "((a.colour == 1) & (b.colour == 1))",
        "((a.hair == 0) ^ (b.hair == 0))",
    ],
)
def test_categories_are_compared_for_equality(text):
    assert Kernel.from_text(text, COLOURS).text == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sign(a.colour - b.colour) * sign(a.age - b.age)", NO_ORDER),
        ("(a.colour < b.colour) + (b.colour < a.colour)", NO_ORDER),
        ("abs(a.colour - b.colour)", NO_ORDER),
        ("a.colour * b.colour", NO_ORDER),
        ("select((a.age == b.age), a.colour + b.colour, 0)", NO_ORDER),
        ("(a.colour == 3) & (b.colour == 3)", f"is compared with 3; {COMPARE}"),
        ("(a.colour == (1/2)) & (b.colour == (1/2))", f"is compared with 1/2; {COMPARE}"),
        ("(a.colour == a.age) + (b.colour == b.age)", f"depends on records; {COMPARE}"),
        (
            "(a.colour == b.hair) + (b.colour == a.hair)",
            "fields 'colour' and 'hair' are compared and have different categories; give both",
        ),
    ],
)
def test_categories_have_no_order_and_no_arithmetic(text, words):
    with pytest.raises(KernelError) as refusal:
        Kernel.from_text(text, COLOURS)
    assert words in refusal.value.message and "'colour'" in refusal.value.message


def test_the_hash_tells_categories_apart_however_they_are_written():
    def hash_with(*labels):
        field = FieldSchema("x", Fraction(0), Fraction(len(labels) - 1), Fraction(1), labels)
        return Kernel.from_text("(a.x == b.x)", Schema([field])).hash

    lists = [("a", "b"), ("b", "a"), ('a", "b', ""), ("a,b", ""), ("a", "b", "")]
    assert len({hash_with(*labels) for labels in lists}) == 5
