"""The kernel in the clear, with numpy: what a node computes inside itself, and everybody's oracle.

Values are exact: an integer array together with the rational unit it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.ustat.expression import Expression, Interpreter, interpret
from umpc.ustat.schema import Schema

Columns = Mapping[str, np.ndarray]
"""Field name → (records,) int64, in steps of the field's resolution."""


@dataclass(frozen=True)
class Exact:
    """`units` × `unit`, elementwise; units is (edges,) int64 or a plain int."""

    units: np.ndarray | int
    unit: Fraction

    def rescaled(self, unit: Fraction) -> np.ndarray | int:
        """The same values counted in another unit that divides them."""
        factor = self.unit / unit
        if factor.denominator == 1:
            return self.units * int(factor)
        quotient, rest = np.divmod(np.asarray(self.units) * factor.numerator, factor.denominator)
        if np.any(rest):
            raise LocalProtocolError(f"a value in steps of {self.unit} is no multiple of {unit}")
        return quotient


def evaluate_clear(expression: Expression, schema: Schema, records: Sequence[Columns], unit: Fraction) -> np.ndarray:
    """The kernel on a batch of edges.

    Args:
        records: one Columns per record of the edge; row j of each is edge j.
        unit: what the result counts; every value of the kernel is a multiple of it.

    Returns: (edges,) int64.
    """
    value = interpret(expression, _Clear(schema, records)).rescaled(unit)
    edges = max((len(column) for columns in records for column in columns.values()), default=0)
    return np.broadcast_to(np.asarray(value, dtype=np.int64), (edges,))


class _Clear(Interpreter[Exact]):
    def __init__(self, schema: Schema, records: Sequence[Columns]):
        self.schema, self.records = schema, records

    def field(self, record: int, name: str) -> Exact:
        return Exact(self.records[record][name], self.schema[name].resolution)

    def constant(self, value: Fraction) -> Exact:
        return Exact(value.numerator, Fraction(1, value.denominator))

    def add(self, left: Exact, right: Exact) -> Exact:
        x, y, unit = _common(left, right)
        return Exact(x + y, unit)

    def subtract(self, left: Exact, right: Exact) -> Exact:
        x, y, unit = _common(left, right)
        return Exact(x - y, unit)

    def multiply(self, left: Exact, right: Exact) -> Exact:
        return Exact(left.units * right.units, left.unit * right.unit)

    def less(self, left: Exact, right: Exact) -> Exact:
        x, y, _ = _common(left, right)
        return Exact(np.asarray(x < y).astype(np.int64), Fraction(1))

    def equal(self, left: Exact, right: Exact) -> Exact:
        x, y, _ = _common(left, right)
        return Exact(np.asarray(x == y).astype(np.int64), Fraction(1))

    def sign(self, of: Exact) -> Exact:
        return Exact(np.sign(of.units), Fraction(1))

    def absolute(self, of: Exact) -> Exact:
        return Exact(np.abs(of.units), of.unit)

    def select(self, condition: Exact, then: Exact, otherwise: Exact) -> Exact:
        x, y, unit = _common(then, otherwise)
        return Exact(np.where(np.asarray(condition.units) == 1, x, y), unit)


def _common(left: Exact, right: Exact) -> tuple[np.ndarray | int, np.ndarray | int, Fraction]:
    """Both values in the largest unit that divides both units."""
    if left.unit == right.unit:
        return left.units, right.units, left.unit
    denominator = lcm(left.unit.denominator, right.unit.denominator)
    unit = Fraction(1, denominator)
    return left.rescaled(unit), right.rescaled(unit), unit
