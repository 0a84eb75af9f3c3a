"""Kernels as immutable expressions over the fields of k records, and the one visitor they share.

A kernel says what is computed; how is up to an interpreter: numpy in the clear,
intervals, polynomials for shares, text. An interpreter is a class with one method per node kind;
`interpret` walks the expression once and evaluates equal subexpressions once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

T = TypeVar("T")

RECORD_NAMES = "abcdefgh"
"""How the records of an edge are called in text: a, b, …"""


@dataclass(frozen=True)
class Expression:
    """A node. Numbers are exact rationals; a bit is the number 0 or 1."""

    @property
    def is_bit(self) -> bool:
        return isinstance(self, Less | Equal | Not | And | Or | Xor)


@dataclass(frozen=True)
class Field(Expression):
    record: int
    name: str


@dataclass(frozen=True)
class Constant(Expression):
    value: Fraction


@dataclass(frozen=True)
class Add(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Subtract(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Multiply(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Less(Expression):
    """The bit [left < right]."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Equal(Expression):
    """The bit [left = right]."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Sign(Expression):
    """−1, 0 or 1."""

    of: Expression


@dataclass(frozen=True)
class Absolute(Expression):
    of: Expression


@dataclass(frozen=True)
class Select(Expression):
    """`then` where the bit `condition` is 1, else `otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True)
class Not(Expression):
    of: Expression


@dataclass(frozen=True)
class And(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Or(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Xor(Expression):
    """The bit that is 1 where exactly one of two bits is."""

    left: Expression
    right: Expression


class Interpreter(Generic[T]):
    """What each node means. Five operations are required, the rest follows from them."""

    def field(self, record: int, name: str) -> T:
        raise NotImplementedError

    def constant(self, value: Fraction) -> T:
        raise NotImplementedError

    def add(self, left: T, right: T) -> T:
        raise NotImplementedError

    def multiply(self, left: T, right: T) -> T:
        raise NotImplementedError

    def less(self, left: T, right: T) -> T:
        raise NotImplementedError

    def equal(self, left: T, right: T) -> T:
        raise NotImplementedError

    def subtract(self, left: T, right: T) -> T:
        return self.add(left, self.multiply(self.constant(Fraction(-1)), right))

    def square(self, of: T) -> T:
        return self.multiply(of, of)

    def same(self, left: T, right: T) -> T:
        """Equality of two bits: logic, not a comparison of numbers."""
        return self.complement(self.exclusive(left, right))

    def complement(self, bit: T) -> T:
        return self.subtract(self.constant(Fraction(1)), bit)

    def sign(self, of: T) -> T:
        zero = self.constant(Fraction(0))
        return self.subtract(self.less(zero, of), self.less(of, zero))

    def absolute(self, of: T) -> T:
        return self.multiply(self.sign(of), of)

    def select(self, condition: T, then: T, otherwise: T) -> T:
        return self.add(otherwise, self.multiply(condition, self.subtract(then, otherwise)))

    def minimum(self, left: T, right: T) -> T:
        return self.select(self.less(left, right), left, right)

    def maximum(self, left: T, right: T) -> T:
        return self.select(self.less(left, right), right, left)

    def both(self, left: T, right: T) -> T:
        return self.multiply(left, right)

    def either(self, left: T, right: T) -> T:
        return self.complement(self.both(self.complement(left), self.complement(right)))

    def exclusive(self, left: T, right: T) -> T:
        both = self.both(left, right)
        return self.subtract(self.add(left, right), self.add(both, both))


def interpret(expression: Expression, interpreter: Interpreter[T]) -> T:
    """The meaning of an expression; equal subexpressions are evaluated once."""
    known: dict[Expression, T] = {}

    def visit(node: Expression) -> T:
        if node not in known:
            known[node] = apply(node)
        return known[node]

    def apply(node: Expression) -> T:
        match node:
            case Field(record, name):
                return interpreter.field(record, name)
            case Constant(value):
                return interpreter.constant(value)
            case Add(left, right):
                return interpreter.add(visit(left), visit(right))
            case Subtract(left, right):
                return interpreter.subtract(visit(left), visit(right))
            case Multiply(left, right) if left == right:
                return interpreter.square(visit(left))
            case Multiply(left, right):
                return interpreter.multiply(visit(left), visit(right))
            case Less(left, right):
                return interpreter.less(visit(left), visit(right))
            case Equal(left, right) if left.is_bit and right.is_bit:
                return interpreter.same(visit(left), visit(right))
            case Equal(left, right):
                return interpreter.equal(visit(left), visit(right))
            case Sign(of):
                return interpreter.sign(visit(of))
            case Absolute(of):
                return interpreter.absolute(visit(of))
            case Select(Less(left, right), then, otherwise) if (then, otherwise) == (left, right):
                return interpreter.minimum(visit(left), visit(right))
            case Select(Less(left, right), then, otherwise) if (then, otherwise) == (right, left):
                return interpreter.maximum(visit(left), visit(right))
            case Select(condition, then, otherwise):
                return interpreter.select(visit(condition), visit(then), visit(otherwise))
            case Not(of):
                return interpreter.complement(visit(of))
            case And(left, right):
                return interpreter.both(visit(left), visit(right))
            case Or(left, right):
                return interpreter.either(visit(left), visit(right))
            case Xor(left, right):
                return interpreter.exclusive(visit(left), visit(right))
        raise TypeError(f"not an expression: {node!r}")

    return visit(expression)


def permute_records(expression: Expression, order: tuple[int, ...]) -> Expression:
    """The same kernel with record i in place of record order[i]'s role: used to prove symmetry."""

    class Permuted(Rebuild):
        def field(self, record: int, name: str) -> Expression:
            return Field(order[record], name)

    return interpret(expression, Permuted())


def fields_of(expression: Expression) -> frozenset[Field]:
    """The fields, each of one record, that occur in an expression, whether or not its value depends on them."""
    found: set[Field] = set()

    class Fields(Rebuild):
        def field(self, record: int, name: str) -> Expression:
            found.add(Field(record, name))
            return Field(record, name)

    interpret(expression, Fields())
    return frozenset(found)


def records_of(expression: Expression) -> frozenset[int]:
    """The records that occur in an expression."""
    return frozenset(field.record for field in fields_of(expression))


class Rebuild(Interpreter[Expression]):
    """The identity interpreter; override one method to rewrite."""

    field = staticmethod(Field)
    constant = staticmethod(Constant)
    add = staticmethod(Add)
    subtract = staticmethod(Subtract)
    multiply = staticmethod(Multiply)
    less = staticmethod(Less)
    equal = staticmethod(Equal)
    same = staticmethod(Equal)
    sign = staticmethod(Sign)
    absolute = staticmethod(Absolute)
    select = staticmethod(Select)
    complement = staticmethod(Not)
    both = staticmethod(And)
    either = staticmethod(Or)
    exclusive = staticmethod(Xor)
