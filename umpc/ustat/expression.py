"""Kernels as immutable expressions over the fields of k records, and the visitor they share.

An expression says what is computed. An interpreter says how: numpy in the clear, intervals,
polynomials for shares, text. An interpreter is a class with one method per kind of node.
`interpret` walks an expression once and evaluates equal subexpressions once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

Meaning = TypeVar("Meaning")
"""The value that an interpreter gives a node: an array, an interval, a polynomial, a text, …"""

RECORD_NAMES = "abcdefgh"
"""The names of an edge's records in text: a, b, …"""


@dataclass(frozen=True)
class Expression:
    """A node of an expression. Numbers are exact rationals; a bit is the number 0 or 1."""

    is_bit: ClassVar[bool] = False

    @cached_property
    def _hash(self) -> int:
        """Computed once: interpreters look the same node up again and again."""
        parts = tuple(getattr(self, field.name) for field in fields(self))
        return hash((type(self), parts))

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        """This node's meaning, from the meanings of its parts."""
        raise TypeError(f"not an expression: {self!r}")


@dataclass(frozen=True)
class UnaryOperation(Expression):
    """A node with one part."""

    operand: Expression
    method: ClassVar[str]
    """The interpreter's method that gives the meaning."""

    def __hash__(self) -> int:
        return self._hash

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        found: Meaning = getattr(walk.interpreter, self.method)(walk(self.operand))
        return found


@dataclass(frozen=True)
class BinaryOperation(Expression):
    """A node with two parts."""

    left: Expression
    right: Expression
    method: ClassVar[str]
    """The interpreter's method that gives the meaning."""

    def __hash__(self) -> int:
        return self._hash

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        method: Callable[[Meaning, Meaning], Meaning] = getattr(walk.interpreter, self.method)
        return method(walk(self.left), walk(self.right))


@dataclass(frozen=True)
class Field(Expression):
    """A field's value in one record of the edge. record: from 0."""

    record: int
    name: str

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        return walk.interpreter.field(self.record, self.name)


@dataclass(frozen=True)
class Constant(Expression):
    """A public number."""

    value: Fraction

    def __hash__(self) -> int:
        return self._hash

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        return walk.interpreter.constant(self.value)


class Add(BinaryOperation):
    """left + right."""

    method = "add"


class Subtract(BinaryOperation):
    """left − right."""

    method = "subtract"


class Multiply(BinaryOperation):
    """left · right. A product of equal factors is interpreted as a square."""

    method = "multiply"

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        if self.left == self.right:
            return walk.interpreter.square(walk(self.left))
        return super().visit(walk)


class Less(BinaryOperation):
    """The bit [left < right]."""

    is_bit = True
    method = "less"


class Equal(BinaryOperation):
    """The bit [left = right]. The equality of two bits is interpreted as logic."""

    is_bit = True
    method = "equal"

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        if self.left.is_bit and self.right.is_bit:
            return walk.interpreter.same(walk(self.left), walk(self.right))
        return super().visit(walk)


class Sign(UnaryOperation):
    """−1, 0 or 1."""

    method = "sign"


class Absolute(UnaryOperation):
    """The absolute value."""

    method = "absolute"


@dataclass(frozen=True)
class Select(Expression):
    """`then` where the bit `condition` is 1, else `otherwise`.

    The two forms that stand for a minimum and a maximum are interpreted as such.
    """

    condition: Expression
    then: Expression
    otherwise: Expression

    def visit(self, walk: Walk[Meaning]) -> Meaning:
        if isinstance(self.condition, Less):
            left, right = self.condition.left, self.condition.right
            # select(x < y, x, y) and select(x < y, y, x)
            if (self.then, self.otherwise) == (left, right):
                return walk.interpreter.minimum(walk(left), walk(right))
            if (self.then, self.otherwise) == (right, left):
                return walk.interpreter.maximum(walk(left), walk(right))
        parts = (self.condition, self.then, self.otherwise)
        condition, then, otherwise = map(walk, parts)
        return walk.interpreter.select(condition, then, otherwise)


class Not(UnaryOperation):
    """The bit 1 − operand."""

    is_bit = True
    method = "complement"


class And(BinaryOperation):
    """The bit that is 1 where both bits are."""

    is_bit = True
    method = "both"


class Or(BinaryOperation):
    """The bit that is 1 where at least one of two bits is."""

    is_bit = True
    method = "either"


class Xor(BinaryOperation):
    """The bit that is 1 where exactly one of two bits is."""

    is_bit = True
    method = "exclusive"


class Interpreter(Generic[Meaning]):
    """The meaning of each kind of node.

    Six operations are required: field, constant, add, multiply, less and equal. All others follow
    from them.
    """

    def field(self, record: int, name: str) -> Meaning:
        raise NotImplementedError

    def constant(self, value: Fraction) -> Meaning:
        raise NotImplementedError

    def add(self, left: Meaning, right: Meaning, /) -> Meaning:
        raise NotImplementedError

    def multiply(self, left: Meaning, right: Meaning, /) -> Meaning:
        raise NotImplementedError

    def less(self, left: Meaning, right: Meaning, /) -> Meaning:
        raise NotImplementedError

    def equal(self, left: Meaning, right: Meaning, /) -> Meaning:
        raise NotImplementedError

    def subtract(self, left: Meaning, right: Meaning, /) -> Meaning:
        return self.add(left, self.multiply(self.constant(Fraction(-1)), right))

    def square(self, operand: Meaning, /) -> Meaning:
        return self.multiply(operand, operand)

    def same(self, left: Meaning, right: Meaning, /) -> Meaning:
        """Equality of two bits: logic, not a comparison of numbers."""
        return self.complement(self.exclusive(left, right))

    def complement(self, bit: Meaning, /) -> Meaning:
        return self.subtract(self.constant(Fraction(1)), bit)

    def sign(self, operand: Meaning, /) -> Meaning:
        zero = self.constant(Fraction(0))
        return self.subtract(self.less(zero, operand), self.less(operand, zero))

    def absolute(self, operand: Meaning, /) -> Meaning:
        return self.multiply(self.sign(operand), operand)

    def select(self, condition: Meaning, then: Meaning, otherwise: Meaning) -> Meaning:
        return self.add(otherwise, self.multiply(condition, self.subtract(then, otherwise)))

    def minimum(self, left: Meaning, right: Meaning, /) -> Meaning:
        return self.select(self.less(left, right), left, right)

    def maximum(self, left: Meaning, right: Meaning, /) -> Meaning:
        return self.select(self.less(left, right), right, left)

    def both(self, left: Meaning, right: Meaning, /) -> Meaning:
        return self.multiply(left, right)

    def either(self, left: Meaning, right: Meaning, /) -> Meaning:
        return self.complement(self.both(self.complement(left), self.complement(right)))

    def exclusive(self, left: Meaning, right: Meaning, /) -> Meaning:
        both = self.both(left, right)
        return self.subtract(self.add(left, right), self.add(both, both))


class Walk(Generic[Meaning]):
    """One walk of an interpreter over an expression. It remembers the meaning of every node."""

    def __init__(self, interpreter: Interpreter[Meaning]):
        self.interpreter = interpreter
        self._known: dict[Expression, Meaning] = {}

    def __call__(self, node: Expression) -> Meaning:
        if node not in self._known:
            self._known[node] = node.visit(self)
        return self._known[node]


def interpret(expression: Expression, interpreter: Interpreter[Meaning]) -> Meaning:
    """The meaning of an expression. Equal subexpressions are evaluated once.

    Raises: TypeError where it is no expression.
    """
    if not isinstance(expression, Expression):
        raise TypeError(f"not an expression: {expression!r}")
    return Walk(interpreter)(expression)


def _joined(node: type[BinaryOperation]) -> Callable[[Any, Expression, Expression], Expression]:
    """The method of an interpreter that makes such a node."""
    return lambda _, left, right: node(left, right)


def _applied(node: type[UnaryOperation]) -> Callable[[Any, Expression], Expression]:
    """The method of an interpreter that makes such a node."""
    return lambda _, operand: node(operand)


class Rebuild(Interpreter[Expression]):
    """The interpreter that builds the expression anew. Override one method to rewrite nodes."""

    def field(self, record: int, name: str) -> Expression:
        return Field(record, name)

    def constant(self, value: Fraction) -> Expression:
        return Constant(value)

    add, subtract, multiply = _joined(Add), _joined(Subtract), _joined(Multiply)
    less, equal, same = _joined(Less), _joined(Equal), _joined(Equal)
    both, either, exclusive = _joined(And), _joined(Or), _joined(Xor)
    sign, absolute, complement = _applied(Sign), _applied(Absolute), _applied(Not)

    def select(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return Select(condition, then, otherwise)


class _Permuted(Rebuild):
    def __init__(self, order: Sequence[int]):
        self.order = order

    def field(self, record: int, name: str) -> Expression:
        return Field(self.order[record], name)


def permute_records(expression: Expression, order: tuple[int, ...]) -> Expression:
    """The kernel with record order[i] in the place of record i. Symmetry proofs compare the two."""
    return interpret(expression, _Permuted(order))


class _Fields(Rebuild):
    def __init__(self) -> None:
        self.found: set[Field] = set()

    def field(self, record: int, name: str) -> Expression:
        field = Field(record, name)
        self.found.add(field)
        return field


def fields_of(expression: Expression) -> frozenset[Field]:
    """The fields, each of one record, that occur in an expression.

    A field counts even where the expression's value does not depend on it.
    """
    fields = _Fields()
    interpret(expression, fields)
    return frozenset(fields.found)


def records_of(expression: Expression) -> frozenset[int]:
    """The records, from 0, that occur in an expression."""
    return frozenset(field.record for field in fields_of(expression))
