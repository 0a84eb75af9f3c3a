"""The exact interval of a kernel, by interval arithmetic over its expression.

From it follow the sensitivity Δf = hi − lo under replace-one adjacency (Kendall: 2, not 1)
and the proof that sums fit the ring. Interval arithmetic never reports an interval that is too small; it may
report one that is too large where a subexpression occurs twice. Known to be exact are squares, minimum and maximum
(hence clamp), and whatever two equal operands decide: x − x, x < x, x = x. Where a kernel has few points,
`enumeration.py` gives the exact interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from umpc.ustat.expression import Constant, Expression, Interpreter, Rebuild, interpret
from umpc.ustat.schema import Schema


@dataclass(frozen=True)
class Interval:
    """All values lie in [low, high]."""

    low: Fraction
    high: Fraction

    @property
    def width(self) -> Fraction:
        return self.high - self.low

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))


def interval_of(expression: Expression, schema: Schema) -> Interval:
    """The interval of all values that the kernel takes on records of the schema."""
    return interpret(interpret(expression, _Fold()), _Intervals(schema))


class _Fold(Rebuild):
    """What equal operands decide, as numbers: intervals know what a value may be, not that two values are one."""

    def subtract(self, left: Expression, right: Expression) -> Expression:
        return _ZERO if left == right else super().subtract(left, right)

    def less(self, left: Expression, right: Expression) -> Expression:
        return _ZERO if left == right else super().less(left, right)

    def equal(self, left: Expression, right: Expression) -> Expression:
        return _ONE if left == right else super().equal(left, right)

    def exclusive(self, left: Expression, right: Expression) -> Expression:
        return _ZERO if left == right else super().exclusive(left, right)

    def select(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return then if then == otherwise else super().select(condition, then, otherwise)


_ZERO, _ONE = Constant(Fraction(0)), Constant(Fraction(1))


class _Intervals(Interpreter[Interval]):
    def __init__(self, schema: Schema):
        self.schema = schema

    def field(self, record: int, name: str) -> Interval:
        field = self.schema[name]
        return Interval(field.lower, field.upper)

    def constant(self, value: Fraction) -> Interval:
        return Interval(value, value)

    def add(self, left: Interval, right: Interval) -> Interval:
        return Interval(left.low + right.low, left.high + right.high)

    def subtract(self, left: Interval, right: Interval) -> Interval:
        return Interval(left.low - right.high, left.high - right.low)

    def multiply(self, left: Interval, right: Interval) -> Interval:
        corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
        return Interval(min(corners), max(corners))

    def square(self, of: Interval) -> Interval:
        root = self.absolute(of)
        return Interval(root.low**2, root.high**2)

    def less(self, left: Interval, right: Interval) -> Interval:
        if left.high < right.low:
            return Interval(Fraction(1), Fraction(1))
        return Interval(Fraction(0), Fraction(0 if left.low >= right.high else 1))

    def equal(self, left: Interval, right: Interval) -> Interval:
        if left == right and left.width == 0:
            return Interval(Fraction(1), Fraction(1))
        apart = left.high < right.low or right.high < left.low
        return Interval(Fraction(0), Fraction(0 if apart else 1))

    def exclusive(self, left: Interval, right: Interval) -> Interval:
        if left.width and right.width:
            return Interval(Fraction(0), Fraction(1))
        fixed, other = (right, left) if left.width else (left, right)
        return self.complement(other) if fixed.low == 1 else other

    def absolute(self, of: Interval) -> Interval:
        low = Fraction(0) if of.low <= 0 <= of.high else min(abs(of.low), abs(of.high))
        return Interval(low, of.magnitude)

    def select(self, condition: Interval, then: Interval, otherwise: Interval) -> Interval:
        possible = ([then] if condition.high == 1 else []) + (
            [otherwise] if condition.low == 0 else []
        )
        return Interval(min(i.low for i in possible), max(i.high for i in possible))

    def minimum(self, left: Interval, right: Interval) -> Interval:
        return Interval(min(left.low, right.low), min(left.high, right.high))

    def maximum(self, left: Interval, right: Interval) -> Interval:
        return Interval(max(left.low, right.low), max(left.high, right.high))
