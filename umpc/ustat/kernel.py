"""A kernel with everything that follows from its expression and the schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from umpc.errors import KernelError
from umpc.ustat.clear import Columns, evaluate_clear
from umpc.ustat.enumeration import always_equal, exact_interval
from umpc.ustat.expression import (
    Expression,
    Interpreter,
    fields_of,
    interpret,
    permute_records,
    records_of,
)
from umpc.ustat.local import bound
from umpc.ustat.polynomial import Polynomial, polynomial_of
from umpc.ustat.ranges import Interval, interval_of
from umpc.ustat.schema import Schema
from umpc.ustat.text import from_text, to_text

HASH_TAG = "umpc kernel 1"
"""What `Kernel.hash` is a hash of, and which version of it."""


@dataclass(frozen=True)
class Kernel:
    """A function of `degree` records, symmetric unless its arguments come from different classes of records.

    Raises: KernelError where the expression is not known to be symmetric or uses records that the edge lacks;
    UnknownField where the schema lacks a field; RangeError where a value inside it may not fit 62 bits.
    """

    expression: Expression
    schema: Schema
    degree: int = 2
    symmetric: bool = True

    def __post_init__(self) -> None:
        beyond = records_of(self.expression) - set(range(self.degree))
        if beyond:
            raise KernelError(
                f"the kernel uses record {max(beyond) + 1} of an edge of {self.degree} records"
            )
        interpret(self.expression, _Kinds(self.schema))
        if self.symmetric:
            self._require_symmetry()
        bound(self.polynomial.scaled(1 / self.unit), self.schema)

    @classmethod
    def from_text(
        cls, text: str, schema: Schema, degree: int = 2, symmetric: bool = True
    ) -> Kernel:
        return cls(from_text(text), schema, degree, symmetric)

    def _require_symmetry(self) -> None:
        """Exchanges of neighbours generate all permutations, so these are proved."""
        _ = self.polynomial  # too large a kernel is refused for its size
        for first in range(self.degree - 1):
            order = list(range(self.degree))
            order[first], order[first + 1] = first + 1, first
            exchanged = permute_records(self.expression, tuple(order))
            if not (
                self._same_normal_form(exchanged)
                or always_equal(self.expression, exchanged, self.schema)
            ):
                raise KernelError(
                    f"the kernel {self.text!r} is not symmetric: exchanging its records changes its value; "
                    f"average it over the exchanges, for example (f(a, b) + f(b, a)) * (1/2)"
                )

    def _same_normal_form(self, other: Expression) -> bool:
        """Whether normal forms prove another expression equal; they prove nothing where they are too large."""
        try:
            return polynomial_of(other, self.schema) == self.polynomial
        except KernelError:
            return False

    @cached_property
    def text(self) -> str:
        return to_text(self.expression)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that occur in it, sorted."""
        return tuple(sorted({field.name for field in fields_of(self.expression)}))

    @cached_property
    def hash(self) -> str:
        """SHA-256, in hex, of all that the kernel's values depend on: what a site's administrator allows."""
        fields = [
            (
                field.name,
                str(field.lower),
                str(field.upper),
                str(field.resolution),
                field.categories,
            )
            for field in map(self.schema.__getitem__, self.fields)
        ]
        return hashlib.sha256(
            json.dumps([HASH_TAG, self.text, self.degree, fields]).encode()
        ).hexdigest()

    @cached_property
    def polynomial(self) -> Polynomial:
        """Normal form, in the kernel's own values."""
        return polynomial_of(self.expression, self.schema)

    @cached_property
    def interval(self) -> Interval:
        """All its values: the least and the greatest where it can be enumerated, else by interval arithmetic."""
        exact = exact_interval(self.expression, self.schema, self.polynomial)
        return exact or interval_of(self.expression, self.schema)

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
            raise KernelError(
                "a category is compared with something else; compare two fields with the same categories"
            )
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
