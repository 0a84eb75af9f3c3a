"""Polynomials of the records of one owner: what it evaluates alone, in the clear."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from umpc.errors import RangeError
from umpc.ustat import logic
from umpc.ustat.clear import Columns
from umpc.ustat.polynomial import (
    Atom,
    BitAtom,
    FieldAtom,
    LogicAtom,
    Polynomial,
    add,
    atom,
    constant,
    equal_to_zero,
    function_of,
    less_than_zero,
    logic_of,
    multiply,
)
from umpc.ustat.schema import Schema

_LIMIT = 1 << 62


def relabel(of: Polynomial, records: Mapping[int, int]) -> Polynomial:
    """The same polynomial of other records: record i becomes records[i]."""
    total = constant(0)
    for monomial, coefficient in of.terms:
        product = constant(coefficient)
        for factor, power in monomial:
            for _ in range(power):
                product = multiply(product, _relabelled(factor, records))
        total = add(total, product)
    return total


def _relabelled(factor: Atom, records: Mapping[int, int]) -> Polynomial:
    if isinstance(factor, FieldAtom):
        return atom(FieldAtom(records[factor.record], factor.name))
    if isinstance(factor, BitAtom):
        form = relabel(factor.form, records)
        return less_than_zero(form) if factor.kind == "less" else equal_to_zero(form)
    total = logic.FALSE
    for conjunction in factor.function:
        product = logic.TRUE
        for bit in conjunction:
            product = logic.conjunction(product, function_of(_relabelled(bit, records)))
        total ^= product
    return logic_of(total)


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


def _times(
    left: tuple[Fraction, Fraction], right: tuple[Fraction, Fraction]
) -> tuple[Fraction, Fraction]:
    corners = [x * y for x in left for y in right]
    return min(corners), max(corners)


def _atom_bounds(factor: Atom, schema: Schema) -> tuple[Fraction, Fraction]:
    if not isinstance(factor, FieldAtom):
        for form in _forms(factor):
            bound(form, schema)
        return Fraction(0), Fraction(1)
    field = schema[factor.name]
    return Fraction(field.lower_units), Fraction(field.upper_units)


def _forms(factor: BitAtom | LogicAtom) -> frozenset[Polynomial]:
    """What a bit compares with zero."""
    return frozenset([factor.form]) if isinstance(factor, BitAtom) else logic.forms(factor.function)


def _names(factor: Atom) -> set[str]:
    if isinstance(factor, FieldAtom):
        return {factor.name}
    return {
        name
        for form in _forms(factor)
        for monomial, _ in form.terms
        for inner, _ in monomial
        for name in _names(inner)
    }


def evaluate_local(of: Polynomial, records: Mapping[int, Columns], count: int) -> np.ndarray:
    """An integer polynomial for every edge: (count,) int64.

    Args:
        records: per record that occurs in it, its columns: field → (count,) int64.
    """
    total = np.zeros(count, dtype=np.int64)
    for monomial, coefficient in of.terms:
        product = np.full(count, int(coefficient), dtype=np.int64)
        for factor, power in monomial:
            value = _evaluate_atom(factor, records, count)
            for _ in range(power):
                product = product * value
        total += product
    return total


def _evaluate_atom(factor: Atom, records: Mapping[int, Columns], count: int) -> np.ndarray:
    if isinstance(factor, FieldAtom):
        return records[factor.record][factor.name]
    if isinstance(factor, BitAtom):
        value = evaluate_local(factor.form, records, count)
        return (value < 0 if factor.kind == "less" else value == 0).astype(np.int64)
    total = np.zeros(count, dtype=np.int64)
    for conjunction in factor.function:
        product = np.ones(count, dtype=np.int64)
        for bit in conjunction:
            product &= _evaluate_atom(bit, records, count)
        total ^= product
    return total
