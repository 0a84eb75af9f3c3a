"""The kernel in the clear, with numpy: what a node computes inside itself, and everybody's oracle.

Values are exact: an integer array together with the rational unit it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from umpc.errors import LocalProtocolError, RangeError
from umpc.ustat.expression import RECORD_NAMES, Expression, Interpreter, interpret
from umpc.ustat.schema import Schema

Columns = Mapping[str, np.ndarray]
"""Field name → (records,) int64, in steps of the field's resolution."""


@dataclass(frozen=True)
class Exact:
    """`units` × `unit`, elementwise; units is (edges,) int64 or a plain int.

    bound: the largest |units| that the schema allows; beyond 63 bits units is (edges,) of Python's integers.
    """

    units: np.ndarray | int
    unit: Fraction
    bound: int

    def widened(self, bound: int) -> np.ndarray | int:
        """The units, ready for arithmetic with results up to a bound."""
        narrow = bound < 1 << 63 or isinstance(self.units, int)
        return self.units if narrow else np.asarray(self.units).astype(object)

    def rescaled(self, unit: Fraction) -> np.ndarray | int:
        """The same values counted in another unit that divides them."""
        factor = self.unit / unit
        units = self.widened(self.bound * factor.numerator)
        if factor.denominator == 1:
            return units * int(factor)
        scaled = np.asarray(units) * factor.numerator
        quotient, rest = scaled // factor.denominator, scaled % factor.denominator
        if np.any(rest):
            raise LocalProtocolError(f"a value in steps of {self.unit} is no multiple of {unit}")
        return quotient


def evaluate_clear(
    expression: Expression, schema: Schema, records: Sequence[Columns], unit: Fraction
) -> np.ndarray:
    """The kernel on a batch of edges.

    Args:
        records: one Columns per record of the edge; row j of each is edge j.
        unit: what the result counts; every value of the kernel is a multiple of it.

    Returns: (edges,) int64.
    Raises: RangeError where a value does not fit.
    """
    value = evaluate_exact(expression, schema, records).rescaled(unit)
    edges = max((len(column) for columns in records for column in columns.values()), default=0)
    try:
        return np.broadcast_to(np.asarray(value, dtype=np.int64), (edges,))
    except OverflowError:
        raise RangeError(
            "a value of the kernel needs more than 63 bits; narrow the bounds of its fields"
        ) from None


def evaluate_exact(expression: Expression, schema: Schema, records: Sequence[Columns]) -> Exact:
    """The kernel on a batch of edges, in whatever unit its own arithmetic leads to."""
    return interpret(expression, _Clear(schema, records))


def fits_words(expression: Expression, schema: Schema) -> bool:
    """Whether no value inside the kernel needs Python's integers, which take a hundred times as long."""
    nothing = {field.name: np.empty(0, dtype=np.int64) for field in schema}
    inside = _Clear(schema, [nothing] * len(RECORD_NAMES))
    interpret(expression, inside)
    return inside.largest < 1 << 63


class _Clear(Interpreter[Exact]):
    def __init__(self, schema: Schema, records: Sequence[Columns]):
        self.schema, self.records = schema, records
        self.largest = 0

    def field(self, record: int, name: str) -> Exact:
        field = self.schema[name]
        return Exact(
            self.records[record][name],
            field.resolution,
            max(abs(field.lower_units), abs(field.upper_units)),
        )

    def constant(self, value: Fraction) -> Exact:
        return Exact(value.numerator, Fraction(1, value.denominator), abs(value.numerator))

    def add(self, left: Exact, right: Exact) -> Exact:
        x, y, unit, bound = self._common(left, right)
        return Exact(x + y, unit, bound)

    def subtract(self, left: Exact, right: Exact) -> Exact:
        x, y, unit, bound = self._common(left, right)
        return Exact(x - y, unit, bound)

    def multiply(self, left: Exact, right: Exact) -> Exact:
        bound = left.bound * right.bound
        self.largest = max(self.largest, bound)
        return Exact(left.widened(bound) * right.widened(bound), left.unit * right.unit, bound)

    def less(self, left: Exact, right: Exact) -> Exact:
        x, y, *_ = self._common(left, right)
        return _small(x < y)

    def equal(self, left: Exact, right: Exact) -> Exact:
        x, y, *_ = self._common(left, right)
        return _small(x == y)

    def sign(self, of: Exact) -> Exact:
        return _small(np.sign(of.units))

    def absolute(self, of: Exact) -> Exact:
        return Exact(np.abs(of.units), of.unit, of.bound)

    def complement(self, bit: Exact) -> Exact:
        return _small(np.bitwise_xor(bit.units, 1))

    def both(self, left: Exact, right: Exact) -> Exact:
        return _small(np.bitwise_and(left.units, right.units))

    def either(self, left: Exact, right: Exact) -> Exact:
        return _small(np.bitwise_or(left.units, right.units))

    def exclusive(self, left: Exact, right: Exact) -> Exact:
        return _small(np.bitwise_xor(left.units, right.units))

    def select(self, condition: Exact, then: Exact, otherwise: Exact) -> Exact:
        x, y, unit, bound = self._common(then, otherwise)
        return Exact(np.where(np.asarray(condition.units) == 1, x, y), unit, bound)

    def _common(
        self, left: Exact, right: Exact
    ) -> tuple[np.ndarray | int, np.ndarray | int, Fraction, int]:
        """Both values in the largest unit that divides both units, and a bound of their sum."""
        unit = (
            Fraction(1, lcm(left.unit.denominator, right.unit.denominator))
            if left.unit != right.unit
            else left.unit
        )
        first, second = int(left.unit / unit), int(right.unit / unit)
        bound = left.bound * first + right.bound * second
        self.largest = max(self.largest, bound)
        x, y = left.widened(bound), right.widened(bound)
        return x if first == 1 else x * first, y if second == 1 else y * second, unit, bound


def _small(values: np.ndarray | int | bool) -> Exact:
    """−1, 0 and 1."""
    return Exact(np.asarray(values).astype(np.int64), Fraction(1), 1)
