"""The kernel in the clear, with numpy: a node's own computation, and every backend's oracle.

Values are exact: an array of integers together with the rational unit that they count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError, RangeError
from umpc.ustat.blocks import in_blocks
from umpc.ustat.expression import RECORD_NAMES, Expression, Interpreter, interpret
from umpc.ustat.schema import Schema

Columns: TypeAlias = Mapping[str, NDArray[np.int64]]
"""Field name → (records,) int64, in steps of the field's resolution."""

BLOCK_EDGES = 1 << 17
"""Edges that a thread evaluates at once. Their intermediate values stay in a processor's cache."""

Units: TypeAlias = NDArray[Any] | int
"""(edges,) int64, or Python's integers in an object array where they need more than 63 bits. A
plain int stands for all edges."""


@dataclass(frozen=True)
class Exact:
    """The values `units` × `unit`, elementwise.

    Args:
        units: (edges,) or one int for all edges.
        bound: the largest |units| that the schema allows. Beyond 63 bits, units are Python's
            integers.
    """

    units: Units
    unit: Fraction
    bound: int

    def widened(self, bound: int) -> Units:
        """The units in a type in which results of magnitude up to `bound` do not overflow."""
        is_narrow = bound < 1 << 63 or isinstance(self.units, int)
        return self.units if is_narrow else np.asarray(self.units).astype(object)

    def rescaled(self, unit: Fraction) -> Units:
        """Equal values counted in another unit, of which all of them are multiples.

        Raises: LocalProtocolError where one is no multiple of the other unit.
        """
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
) -> NDArray[np.int64]:
    """The kernel on a batch of edges.

    Args:
        records: one Columns per record of the edge; row j of each is edge j.
        unit: what the result counts; every value of the kernel is a multiple of it.

    Returns: (edges,) int64.
    Raises: RangeError where a value does not fit.
    """
    edges = max((len(column) for columns in records for column in columns.values()), default=0)
    if edges <= BLOCK_EDGES:
        return _evaluate_block(expression, schema, records, unit, edges)
    values = np.empty(edges, dtype=np.int64)

    def evaluate_from(start: int) -> None:
        part = slice(start, min(start + BLOCK_EDGES, edges))
        # a column of one value stands for all edges
        block = [
            {name: each[part] if len(each) == edges else each for name, each in columns.items()}
            for columns in records
        ]
        values[part] = _evaluate_block(expression, schema, block, unit, part.stop - start)

    in_blocks(evaluate_from, range(0, edges, BLOCK_EDGES))
    return values


def _evaluate_block(
    expression: Expression, schema: Schema, records: Sequence[Columns], unit: Fraction, edges: int
) -> NDArray[np.int64]:
    value = evaluate_exact(expression, schema, records).rescaled(unit)
    try:
        return np.broadcast_to(np.asarray(value, dtype=np.int64), (edges,))
    except OverflowError:
        raise RangeError(
            "a value of the kernel needs more than 63 bits; narrow the bounds of its fields"
        ) from None


def evaluate_exact(expression: Expression, schema: Schema, records: Sequence[Columns]) -> Exact:
    """The kernel on a batch of edges, in the unit to which its own arithmetic leads."""
    return interpret(expression, _Clear(schema, records))


def fits_words(expression: Expression, schema: Schema) -> bool:
    """Whether all values inside the kernel fit 63 bits.

    Others need Python's integers, which take a hundred times as long.
    """
    nothing = {field.name: np.empty(0, dtype=np.int64) for field in schema}
    inside = _Clear(schema, [nothing] * len(RECORD_NAMES))
    interpret(expression, inside)
    return inside.largest < 1 << 63


class _Clear(Interpreter[Exact]):
    def __init__(self, schema: Schema, records: Sequence[Columns]):
        self.schema = schema
        self.records = records
        self.largest = 0
        """The largest bound of any value inside the kernel."""

    def field(self, record: int, name: str) -> Exact:
        field = self.schema[name]
        bound = max(abs(field.lower_units), abs(field.upper_units))
        return Exact(self.records[record][name], field.resolution, bound)

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
        product = left.widened(bound) * right.widened(bound)
        return Exact(product, left.unit * right.unit, bound)

    def less(self, left: Exact, right: Exact) -> Exact:
        x, y, *_ = self._common(left, right)
        return _small(x < y)

    def equal(self, left: Exact, right: Exact) -> Exact:
        x, y, *_ = self._common(left, right)
        return _small(x == y)

    def sign(self, operand: Exact) -> Exact:
        return _small(np.sign(operand.units))

    def absolute(self, operand: Exact) -> Exact:
        return Exact(np.abs(operand.units), operand.unit, operand.bound)

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
        holds = np.asarray(condition.units) == 1
        return Exact(np.where(holds, x, y), unit, bound)

    def _common(self, left: Exact, right: Exact) -> tuple[Units, Units, Fraction, int]:
        """Both values in one unit that divides both units, that unit, and a bound of their sum."""
        unit = left.unit
        if right.unit != unit:
            unit = Fraction(1, lcm(unit.denominator, right.unit.denominator))
        first, second = int(left.unit / unit), int(right.unit / unit)
        bound = left.bound * first + right.bound * second
        self.largest = max(self.largest, bound)
        x, y = left.widened(bound), right.widened(bound)
        # multiplication by 1 would copy the column
        return x if first == 1 else x * first, y if second == 1 else y * second, unit, bound


def _small(values: Units | bool) -> Exact:
    """The values −1, 0 and 1."""
    return Exact(np.asarray(values).astype(np.int64), Fraction(1), 1)
