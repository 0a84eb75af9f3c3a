"""A kernel with everything that follows from its expression and the schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np

from umpc.errors import KernelError
from umpc.ustat.clear import Columns, evaluate_clear
from umpc.ustat.expression import Expression, Interpreter, interpret, permute_records, records_of
from umpc.ustat.local import bound
from umpc.ustat.polynomial import Polynomial, polynomial_of
from umpc.ustat.ranges import Interval, interval_of
from umpc.ustat.schema import Schema
from umpc.ustat.text import from_text, to_text


@dataclass(frozen=True)
class Kernel:
    """A symmetric function of `degree` records.

    Raises: KernelError where the expression is not symmetric or uses records that the edge lacks; UnknownField where
    the schema lacks a field; RangeError where a value inside it may not fit 62 bits.
    """

    expression: Expression
    schema: Schema
    degree: int = 2

    def __post_init__(self) -> None:
        beyond = records_of(self.expression) - set(range(self.degree))
        if beyond:
            raise KernelError(f"the kernel uses record {max(beyond) + 1} of an edge of {self.degree} records")
        interpret(self.expression, _Kinds(self.schema))
        for order in permutations(range(self.degree)):
            if polynomial_of(permute_records(self.expression, order), self.schema) != self.polynomial:
                raise KernelError(
                    f"the kernel {self.text!r} is not symmetric: exchanging its records changes its value; "
                    f"average it over the exchanges, for example (f(a, b) + f(b, a)) * (1/2)"
                )

        bound(self.polynomial.scaled(1 / self.unit), self.schema)

    @classmethod
    def from_text(cls, text: str, schema: Schema, degree: int = 2) -> Kernel:
        return cls(from_text(text), schema, degree)

    @cached_property
    def text(self) -> str:
        return to_text(self.expression)

    @cached_property
    def polynomial(self) -> Polynomial:
        """Normal form, in the kernel's own values."""
        return polynomial_of(self.expression, self.schema)

    @cached_property
    def interval(self) -> Interval:
        return interval_of(self.expression, self.schema)

    @property
    def unit(self) -> Fraction:
        """All values are integer multiples of it; sums and noise are counted in it."""
        return self.polynomial.unit

    @property
    def sensitivity_units(self) -> int:
        """Δf = hi − lo in units, rounded up: what one edge changes when one record is replaced."""
        return _round_up(self.interval.width / self.unit)

    @property
    def magnitude_units(self) -> int:
        """max |f| in units, rounded up."""
        return _round_up(self.interval.magnitude / self.unit)

    def evaluate(self, records: Sequence[Columns]) -> np.ndarray:
        """The kernel in the clear on a batch of edges: (edges,) int64, in units."""
        return evaluate_clear(self.expression, self.schema, records, self.unit)


class _Kinds(Interpreter[tuple[str, ...]]):
    """A number is (), a category its labels: categories have no order and no arithmetic, only equality."""

    def __init__(self, schema: Schema):
        self.schema = schema

    def field(self, record: int, name: str) -> tuple[str, ...]:
        return self.schema[name].categories

    def constant(self, value: Fraction) -> tuple[str, ...]:
        return ()

    def equal(self, left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
        if left != right:
            raise KernelError("a category is compared with something else; compare two fields with the same categories")
        return ()

    def add(self, left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
        if left or right:
            raise KernelError(
                f"a field with the categories {', '.join((left or right)[:3])}, … has no order and no arithmetic; "
                f"compare it with == or !="
            )
        return ()

    multiply = less = add


def _round_up(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)
