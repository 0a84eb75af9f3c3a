"""The interval of a kernel's values, by interval arithmetic over its expression.

From this interval follow the sensitivity Δf = high − low under replace-one adjacency (2 for
Kendall's tau, not 1) and the proof that sums fit the ring.

Interval arithmetic never reports an interval that is too small. It may report one that is too large
where a subexpression occurs twice. Some repetitions are exact nevertheless: squares, minimum and
maximum (hence clamp), and whatever two equal operands decide: x − x, x < x, x = x. Where a kernel
has few points, `enumeration.py` gives the exact interval.
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
        """high − low."""
        return self.high - self.low

    @property
    def magnitude(self) -> Fraction:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))


def interval_of(expression: Expression, schema: Schema) -> Interval:
    """An interval that holds all values of the kernel on records of the schema."""
    folded = interpret(expression, _Fold())
    return interpret(folded, _Intervals(schema))


class _Fold(Rebuild):
    """Writes what two equal operands decide as a number.

    Intervals know which values are possible. They do not know that two values are the same value.
    """

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


_ZERO = Constant(Fraction(0))
_ONE = Constant(Fraction(1))


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

    def square(self, operand: Interval) -> Interval:
        root = self.absolute(operand)
        return Interval(root.low**2, root.high**2)

    def less(self, left: Interval, right: Interval) -> Interval:
        if left.high < right.low:
            return Interval(Fraction(1), Fraction(1))
        never = left.low >= right.high
        return Interval(Fraction(0), Fraction(0 if never else 1))

    def equal(self, left: Interval, right: Interval) -> Interval:
        if left == right and left.width == 0:
            return Interval(Fraction(1), Fraction(1))
        never = left.high < right.low or right.high < left.low
        return Interval(Fraction(0), Fraction(0 if never else 1))

    def exclusive(self, left: Interval, right: Interval) -> Interval:
        if left.width and right.width:
            return Interval(Fraction(0), Fraction(1))
        # one of the bits is known: it passes or inverts the other
        fixed, other = (right, left) if left.width else (left, right)
        return self.complement(other) if fixed.low == 1 else other

    def absolute(self, operand: Interval) -> Interval:
        if operand.low <= 0 <= operand.high:
            return Interval(Fraction(0), operand.magnitude)
        return Interval(min(abs(operand.low), abs(operand.high)), operand.magnitude)

    def select(self, condition: Interval, then: Interval, otherwise: Interval) -> Interval:
        possible = []
        if condition.high == 1:
            possible.append(then)
        if condition.low == 0:
            possible.append(otherwise)
        low = min(interval.low for interval in possible)
        return Interval(low, max(interval.high for interval in possible))

    def minimum(self, left: Interval, right: Interval) -> Interval:
        return Interval(min(left.low, right.low), min(left.high, right.high))

    def maximum(self, left: Interval, right: Interval) -> Interval:
        return Interval(max(left.low, right.low), max(left.high, right.high))
