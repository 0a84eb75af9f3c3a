"""Tools of the kernels' tests: small schemas, random kernels, a second evaluator in Fractions.

The evaluator reads the expression as a person would, one record at a time. It shares no code with
umpc.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from umpc.errors import KernelError
from umpc.ustat import expression as ex
from umpc.ustat.polynomial import polynomial_of
from umpc.ustat.schema import FieldSchema, Schema

SCHEMA = Schema(
    [
        FieldSchema("age", Fraction(-2), Fraction(1), Fraction(1)),
        FieldSchema("half", Fraction(-1, 2), Fraction(1), Fraction(1, 2)),
        FieldSchema("third", Fraction(1, 3), Fraction(1), Fraction(1, 3)),
    ]
)
"""4, 4 and 3 values: negative bounds, fractional resolutions, a field that is never 0."""

NAMES = [field.name for field in SCHEMA]

Record = Mapping[str, Fraction]


def values_of(field: FieldSchema) -> list[Fraction]:
    return [units * field.resolution for units in range(field.lower_units, field.upper_units + 1)]


def all_records(schema: Schema = SCHEMA) -> list[Record]:
    fields = list(schema)
    return [
        dict(zip([f.name for f in fields], row, strict=True))
        for row in product(*(values_of(f) for f in fields))
    ]


def columns(schema: Schema, records: Sequence[Record]) -> dict[str, np.ndarray]:
    return {
        field.name: np.array(
            [int(record[field.name] / field.resolution) for record in records], dtype=np.int64
        )
        for field in schema
    }


def by_hand(node: ex.Expression, records: Sequence[Record]) -> Fraction:
    """The kernel's value on one edge, in Fractions."""
    match node:
        case ex.Field(record, name):
            return records[record][name]
        case ex.Constant(value):
            return value
        case ex.Select(condition, then, otherwise):
            chosen = then if by_hand(condition, records) else otherwise
            return by_hand(chosen, records)
        case ex.UnaryOperation(operand):
            return Fraction(UNARY[type(node)](by_hand(operand, records)))
        case ex.BinaryOperation(left, right):
            return Fraction(BINARY[type(node)](by_hand(left, records), by_hand(right, records)))
    raise AssertionError(f"the evaluator knows no {node!r}")


UNARY = {
    ex.Sign: lambda x: (x > 0) - (x < 0),
    ex.Absolute: abs,
    ex.Not: lambda x: not x,
}
BINARY = {
    ex.Add: operator.add,
    ex.Subtract: operator.sub,
    ex.Multiply: operator.mul,
    ex.Less: operator.lt,
    ex.Equal: operator.eq,
    ex.And: lambda x, y: bool(x and y),
    ex.Or: lambda x, y: bool(x or y),
    ex.Xor: operator.ne,
}


constants = st.fractions(min_value=-3, max_value=3, max_denominator=6).map(ex.Constant)


SMALL = st.integers(0, 11)


@st.composite
def numbers(
    draw: st.DrawFn, names: Sequence[str] | st.SearchStrategy[str] = NAMES, size: int = 8
) -> ex.Expression:
    """A random kernel of two records, of about `size` nodes of all fourteen kinds.

    Conditions stand only where a kernel may have them.
    """
    name = names if isinstance(names, st.SearchStrategy) else st.sampled_from(list(names))

    def number(size: int) -> ex.Expression:
        choice = draw(SMALL) if size > 1 else 0
        if choice < 2:
            return draw(constants) if draw(SMALL) == 0 else ex.Field(draw(SMALL) % 2, draw(name))
        if choice < 8:
            kind = (ex.Add, ex.Subtract, ex.Multiply)[choice % 3]
            return kind(number(size // 2), number(size - 1 - size // 2))
        if choice < 10:
            return (ex.Sign, ex.Absolute)[choice % 2](number(size - 1))
        return (
            bit(size)
            if choice == 10
            else ex.Select(bit(size // 3), number(size // 3), number(size // 3))
        )

    def bit(size: int) -> ex.Expression:
        choice = draw(SMALL) if size > 4 else 0
        if choice < 6:
            return (ex.Less, ex.Equal)[draw(SMALL) % 2](number(size // 2), number(size // 2))
        if choice < 8:
            return ex.Not(bit(size - 1))
        return (ex.And, ex.Or, ex.Xor)[choice % 3](bit(size // 2), bit(size // 2))

    return number(size)


def fits(node: ex.Expression) -> bool:
    """Whether the normal form is small enough for umpc, which refuses signs nested in signs."""
    try:
        return bool(polynomial_of(ex.Add(node, ex.permute_records(node, (1, 0))), SCHEMA))
    except KernelError:
        return False


x, y = ex.Field(0, "age"), ex.Field(1, "age")
HALF = ex.Field(0, "half")
EVERY_KIND = {
    "field": x,
    "constant": ex.Constant(Fraction(-2, 3)),
    "add": ex.Add(x, HALF),
    "subtract": ex.Subtract(HALF, y),
    "multiply": ex.Multiply(x, HALF),
    "less": ex.Less(x, y),
    "equal": ex.Equal(HALF, y),
    "sign": ex.Sign(ex.Subtract(x, y)),
    "absolute": ex.Absolute(ex.Subtract(x, HALF)),
    "select": ex.Select(ex.Less(x, y), HALF, ex.Constant(Fraction(1, 3))),
    "not": ex.Not(ex.Less(x, y)),
    "and": ex.And(ex.Less(x, y), ex.Equal(HALF, y)),
    "or": ex.Or(ex.Less(x, y), ex.Equal(HALF, y)),
    "xor": ex.Xor(ex.Less(x, y), ex.Equal(HALF, y)),
}
"""One small kernel per node kind."""
