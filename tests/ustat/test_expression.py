"""umpc.ustat.expression: the visitor, its derived operations, and rewriting."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings

from tests.ustat.expressions import EVERY_KIND, all_records, by_hand, numbers
from umpc.ustat import expression as ex

RECORDS = all_records()
x, y, ONE = ex.Field(0, "age"), ex.Field(1, "age"), ex.Constant(Fraction(1))


class Numbers(ex.Interpreter[Fraction]):
    """Only the required operations; sign, abs, select and logic are derived."""

    def __init__(self, records):
        self.records, self.visits = records, 0

    def field(self, record, name):
        self.visits += 1
        return self.records[record][name]

    def constant(self, value):
        return value

    def add(self, left, right):
        return left + right

    def multiply(self, left, right):
        return left * right

    def less(self, left, right):
        return Fraction(left < right)

    def equal(self, left, right):
        return Fraction(left == right)


def test_the_examples_cover_every_node_kind():
    nodes = [cls for cls in vars(ex).values() if isinstance(cls, type)]
    kinds = {cls for cls in nodes if issubclass(cls, ex.Expression) and not cls.__subclasses__()}
    assert {type(node) for node in EVERY_KIND.values()} == kinds and len(kinds) == 14


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_derived_operations_mean_what_they_say_on_all_pairs_of_records(kind):
    node = EVERY_KIND[kind]
    for a in RECORDS:
        for b in RECORDS[::5]:
            assert ex.interpret(node, Numbers((a, b))) == by_hand(node, (a, b))


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_only_comparisons_and_logic_are_bits(kind):
    assert EVERY_KIND[kind].is_bit == (kind in {"less", "equal", "not", "and", "or", "xor"})


def test_equal_subexpressions_are_evaluated_once():
    node: ex.Expression = ex.Field(0, "age")
    for _ in range(10):
        node = ex.Add(node, node)
    numbers = Numbers(RECORDS[:1])
    assert ex.interpret(node, numbers) == 1024 * RECORDS[0]["age"] and numbers.visits == 1


SMALLER, LARGER = (
    ex.Select(
        ex.Less(ex.Field(0, "age"), ex.Field(1, "age")), ex.Field(i, "age"), ex.Field(1 - i, "age")
    )
    for i in (0, 1)
)


def test_the_smaller_and_the_larger_of_two_are_recognised():
    class Ends(Numbers):
        def minimum(self, left, right):
            return "minimum", left, right

        def maximum(self, left, right):
            return "maximum", left, right

    a, b = RECORDS[5], RECORDS[40]
    assert ex.interpret(SMALLER, Ends((a, b))) == ("minimum", a["age"], b["age"])
    assert ex.interpret(LARGER, Ends((a, b))) == ("maximum", a["age"], b["age"])
    for node in (
        ex.Select(ex.Equal(x, y), x, y),
        ex.Select(ex.Less(x, y), y, y),
        ex.Select(ex.Less(y, x), ONE, y),
    ):
        assert isinstance(ex.interpret(node, Ends((a, b))), Fraction)


@pytest.mark.parametrize("node", [SMALLER, LARGER])
def test_an_interpreter_that_knows_no_minimum_sees_the_select(node):
    assert ex.interpret(node, ex.Rebuild()) == node
    for a in RECORDS[::5]:
        for b in RECORDS[::5]:
            assert ex.interpret(node, Numbers((a, b))) == by_hand(node, (a, b))


def test_what_is_no_node_is_refused():
    with pytest.raises(TypeError, match="not an expression: 3"):
        ex.interpret(3, ex.Rebuild())


@pytest.mark.parametrize("method", ["field", "constant", "add", "multiply", "less", "equal"])
def test_an_interpreter_must_define_the_required_operations(method):
    arguments = (Fraction(0),) if method == "constant" else (0, "age")
    with pytest.raises(NotImplementedError):
        getattr(ex.Interpreter(), method)(*arguments)


@settings(max_examples=100)
@given(numbers())
def test_rebuilding_changes_nothing_and_exchanging_twice_neither(node):
    assert ex.interpret(node, ex.Rebuild()) == node
    exchanged = ex.permute_records(node, (1, 0))
    assert ex.permute_records(exchanged, (1, 0)) == node
    a, b = RECORDS[5], RECORDS[40]
    assert by_hand(exchanged, (a, b)) == by_hand(node, (b, a))


def test_the_records_of_an_expression_are_those_that_occur_in_it_even_if_they_cancel():
    a, c = ex.Field(0, "age"), ex.Field(2, "age")
    assert ex.fields_of(ex.Add(a, ex.Subtract(c, c))) == {a, c}
    assert ex.records_of(ex.Add(a, ex.Subtract(c, c))) == {0, 2}
    assert ex.records_of(ex.Constant(Fraction(1))) == frozenset()
