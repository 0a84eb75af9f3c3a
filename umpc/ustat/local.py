"""Polynomials of a single record: what its owner evaluates alone, in the clear."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from umpc.errors import RangeError
from umpc.ustat.clear import Columns
from umpc.ustat.polynomial import (
    Atom,
    BitAtom,
    FieldAtom,
    Polynomial,
    add,
    atom,
    constant,
    equal_to_zero,
    less_than_zero,
    multiply,
)
from umpc.ustat.schema import Schema

_LIMIT = 1 << 62


def rename(of: Polynomial, record: int) -> Polynomial:
    """The same polynomial of another record."""
    total = constant(0)
    for monomial, coefficient in of.terms:
        product = constant(coefficient)
        for factor, power in monomial:
            for _ in range(power):
                product = multiply(product, _renamed(factor, record))
        total = add(total, product)
    return total


def _renamed(factor: Atom, record: int) -> Polynomial:
    if isinstance(factor, FieldAtom):
        return atom(FieldAtom(record, factor.name))
    form = rename(factor.form, record)
    return less_than_zero(form) if factor.kind == "less" else equal_to_zero(form)


def bound(of: Polynomial, schema: Schema) -> tuple[int, int]:
    """An interval [low, high] of an integer polynomial, each atom within its own bounds.

    Raises: RangeError where it, a monomial, or what one of its bits compares does not fit 62 bits: with that, whatever
    is evaluated in 64 bits is right.
    """
    low = high = Fraction(0)
    for monomial, coefficient in of.terms:
        interval = (Fraction(1), Fraction(1))
        for factor, power in monomial:
            for _ in range(power):
                interval = _times(interval, _atom_bounds(factor, schema))
        interval = _times(interval, (coefficient, coefficient))
        low, high = low + interval[0], high + interval[1]
        if max(abs(low), abs(high), abs(interval[0]), abs(interval[1])) >= _LIMIT:
            fields = sorted({name for f, _ in monomial for name in _names(f)})
            raise RangeError(
                f"a value computed from {', '.join(fields) or 'constants'} may need more than 62 bits; narrow the "
                f"bounds or take a coarser resolution"
            )
    return int(low), int(high)


def _times(left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    corners = [x * y for x in left for y in right]
    return min(corners), max(corners)


def _atom_bounds(factor: Atom, schema: Schema) -> tuple[Fraction, Fraction]:
    if isinstance(factor, BitAtom):
        bound(factor.form, schema)
        return Fraction(0), Fraction(1)
    field = schema[factor.name]
    return Fraction(field.lower_units), Fraction(field.upper_units)


def _names(factor: Atom) -> set[str]:
    if isinstance(factor, FieldAtom):
        return {factor.name}
    return {name for monomial, _ in factor.form.terms for inner, _ in monomial for name in _names(inner)}


def evaluate_local(of: Polynomial, columns: Columns, records: int) -> np.ndarray:
    """An integer polynomial of one record, for every record: (records,) int64."""
    total = np.zeros(records, dtype=np.int64)
    for monomial, coefficient in of.terms:
        product = np.full(records, int(coefficient), dtype=np.int64)
        for factor, power in monomial:
            value = _evaluate_atom(factor, columns, records)
            for _ in range(power):
                product = product * value
        total += product
    return total


def _evaluate_atom(factor: Atom, columns: Columns, records: int) -> np.ndarray:
    if isinstance(factor, FieldAtom):
        return columns[factor.name]
    value = evaluate_local(factor.form, columns, records)
    return (value < 0 if factor.kind == "less" else value == 0).astype(np.int64)
