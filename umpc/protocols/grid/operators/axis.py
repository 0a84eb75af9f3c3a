"""An axis of the grid: a number that one record makes, and its place among the axis's values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.protocols.arrays import Integers
from umpc.protocols.grid.operators.splitting import fields_of
from umpc.ustat.clear import Columns
from umpc.ustat.local import bound, evaluate_local
from umpc.ustat.normal_form import BitAtom, FieldAtom, LogicAtom, Monomial, Polynomial
from umpc.ustat.polynomial import atom, constant
from umpc.ustat.schema import Schema


@dataclass(frozen=True)
class Axis:
    """A number that one record makes: a field, a sum of fields, or any polynomial of them.

    Args:
        form: the number, as a polynomial of record 0 in steps of the fields' resolutions.
        low: the least value. size: the number of integers up to the largest value.
    """

    form: Polynomial
    low: int
    size: int

    @property
    def name(self) -> str:
        """The name under which polynomials refer to the axis's value."""
        return self.field or f"[{self.text}]"

    @cached_property
    def field(self) -> str:
        """The field that the axis is; empty if it is another number."""
        ((monomial, coefficient), *others) = self.form.terms
        if others or coefficient != 1 or len(monomial) != 1:
            return ""
        ((factor, power),) = monomial
        return factor.name if isinstance(factor, FieldAtom) and power == 1 else ""

    @cached_property
    def text(self) -> str:
        """The number in words, for reports."""
        terms = " + ".join(_text(monomial, c) for monomial, c in self.form.terms)
        return terms.replace("+ -", "- ")

    @property
    def values(self) -> Integers:
        """(size,) int64: the value of every place."""
        return np.arange(self.low, self.low + self.size, dtype=np.int64)

    def place_of(self, columns: Columns, count: int) -> Integers:
        """(count,) int64 in [0, size): each record's place, for fields within their bounds."""
        return evaluate_local(self.form, {0: columns}, count) - self.low

    def inside(self, columns: Columns, count: int) -> Integers:
        """(count,) int64 in [0, size): each record's place.

        Raises: LocalProtocolError where a field is outside its bounds.
        """
        place = self.place_of(columns, count)
        if count and (place.min() < 0 or place.max() >= self.size):
            raise LocalProtocolError(
                f"a record's value of {self.text} is outside the bounds; values are clipped "
                f"before they are tabulated"
            )
        return place


ONE = Axis(constant(1), 1, 1)
"""The axis of a table that needs none: one place."""


def axis_of(form: Polynomial, schema: Schema) -> Axis:
    """The axis of a number. Raises: RangeError where it may not fit 62 bits."""
    low, high = bound(form, schema)
    return Axis(form, low, high - low + 1)


def field_axis(name: str, schema: Schema) -> Axis:
    """The axis of a field. Raises: UnknownField."""
    return axis_of(atom(FieldAtom(0, name)), schema)


def _text(monomial: Monomial, coefficient: Fraction) -> str:
    parts = [] if abs(coefficient) == 1 else [str(abs(coefficient))]
    for factor, power in monomial:
        match factor:
            case FieldAtom(_, name):
                part = name
            case BitAtom(kind, form):
                part = f"[{kind} {' '.join(sorted(fields_of(form)))}]"
            case LogicAtom():
                part = "[logic]"
        parts.append(part if power == 1 else f"{part}^{power}")
    return ("-" if coefficient < 0 else "") + "·".join(parts)
