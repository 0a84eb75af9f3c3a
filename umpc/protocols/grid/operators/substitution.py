"""A change of variables: fields in terms of the axes' numbers.

A loss over s = x + 2·y is compared by s alone, and its values are written with x and y. In terms of
s, x cancels, and the table needs no more than the axis of s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from umpc.protocols.grid.operators.axis import Axis
from umpc.ustat import polynomial as poly
from umpc.ustat.normal_form import FieldAtom, Polynomial


def pivots(axis: Axis) -> Iterator[str]:
    """The fields that are integer combinations of a linear axis's number and its other fields."""
    for monomial, _ in axis.form.terms:
        ((factor, power), *others) = monomial
        if others or power > 1 or not isinstance(factor, FieldAtom):
            return
    if len(axis.form.terms) > 1:
        for ((factor, _),), coefficient in axis.form.terms:
            if abs(coefficient) == 1 and isinstance(factor, FieldAtom):
                yield factor.name


def substituted(polynomial: Polynomial, axis: Axis, pivot: str) -> Polynomial:
    """The polynomial with a field replaced, where it stands outside of comparisons.

    Raises: KernelError where it grows too large.
    """
    total = poly.constant(0)
    for monomial, coefficient in polynomial.terms:
        product = poly.constant(coefficient)
        for factor, power in monomial:
            is_pivot = isinstance(factor, FieldAtom) and factor.name == pivot
            part = poly.atom(factor)
            if is_pivot:
                part = _solved(axis, pivot, min(factor.records))
            for _ in range(power):
                product = poly.multiply(product, part)
        total = poly.add(total, product)
    return total


def _solved(axis: Axis, pivot: str, record: int) -> Polynomial:
    """The field by the axis's number: ±(number − the other fields)."""
    parts = [poly.atom(FieldAtom(record, axis.name))]
    sign = Fraction(1)
    for ((factor, _),), coefficient in axis.form.terms:
        if isinstance(factor, FieldAtom) and factor.name == pivot:
            sign = coefficient
        elif isinstance(factor, FieldAtom):
            parts.append(poly.atom(FieldAtom(record, factor.name)).scaled(-coefficient))
    return poly.add(*parts).scaled(sign)


def best_axes_first(axes: Sequence[Axis]) -> list[Axis]:
    """The axes of several fields, the widest first."""
    several = [axis for axis in axes if any(pivots(axis))]
    return sorted(several, key=lambda axis: -axis.size)
