"""Polynomials of one owner's records, which the owner evaluates alone and in the clear."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RangeError
from umpc.ustat import logic
from umpc.ustat.clear import Columns
from umpc.ustat.normal_form import Atom, BitAtom, FieldAtom, LogicAtom, Polynomial
from umpc.ustat.polynomial import (
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
Ends = tuple[int | Fraction, int | Fraction]
"""(low, high): whole numbers wherever they can be, because fractions take long."""
_ONE: Ends = (1, 1)
_BIT: Ends = (0, 1)


def relabel(polynomial: Polynomial, records: Mapping[int, int]) -> Polynomial:
    """The polynomial with record records[i] in the place of record i."""
    total = constant(0)
    for monomial, coefficient in polynomial.terms:
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


def bound(polynomial: Polynomial, schema: Schema) -> tuple[int, int]:
    """An interval [low, high] of an integer polynomial, each atom within its own bounds.

    Raises: RangeError where a partial sum, a monomial, or a number that a bit compares may not fit
    62 bits. Where it raises nothing, evaluation in 64 bits is right.
    """
    low: int | Fraction = 0
    high: int | Fraction = 0
    for monomial, coefficient in polynomial.terms:
        ends = _ONE
        for factor, power in monomial:
            for _ in range(power):
                ends = _times(ends, _atom_bounds(factor, schema))
        whole = coefficient.numerator if coefficient.denominator == 1 else coefficient
        ends = _times(ends, (whole, whole))
        low += ends[0]
        high += ends[1]
        if not (_fits(ends) and _fits((low, high))):
            fields = sorted({name for factor, _ in monomial for name in _names(factor)})
            raise RangeError(
                f"a value computed from {', '.join(fields) or 'constants'} may need more than "
                f"62 bits; narrow the bounds or take a coarser resolution"
            )
    return int(low), int(high)


def _fits(ends: Ends) -> bool:
    return ends[0] > -_LIMIT and ends[1] < _LIMIT


def _times(left: Ends, right: Ends) -> Ends:
    corners = [x * y for x in left for y in right]
    return min(corners), max(corners)


def _atom_bounds(factor: Atom, schema: Schema) -> Ends:
    if not isinstance(factor, FieldAtom):
        # a bit is 0 or 1, and what it compares must fit too
        for form in _forms(factor):
            bound(form, schema)
        return _BIT
    field = schema[factor.name]
    return field.lower_units, field.upper_units


def _forms(factor: BitAtom | LogicAtom) -> frozenset[Polynomial]:
    """The polynomials that a bit compares with zero."""
    if isinstance(factor, BitAtom):
        return frozenset([factor.form])
    return logic.forms(factor.function)


def _names(factor: Atom) -> set[str]:
    """The names of the fields on which an atom depends."""
    if isinstance(factor, FieldAtom):
        return {factor.name}
    return {
        name
        for form in _forms(factor)
        for monomial, _ in form.terms
        for inner, _ in monomial
        for name in _names(inner)
    }


def evaluate_local(
    polynomial: Polynomial, records: Mapping[int, Columns], count: int
) -> NDArray[np.int64]:
    """The value of an integer polynomial for every edge of a batch.

    Args:
        records: for each record that occurs in it, the columns: field → (count,) int64.
        count: the number of edges.

    Returns: (count,) int64; exact for a polynomial that `bound` accepts.
    """
    total = np.zeros(count, dtype=np.int64)
    for monomial, coefficient in polynomial.terms:
        product = np.full(count, int(coefficient), dtype=np.int64)
        for factor, power in monomial:
            value = _evaluate_atom(factor, records, count)
            for _ in range(power):
                product = product * value
        total += product
    return total


def _evaluate_atom(factor: Atom, records: Mapping[int, Columns], count: int) -> NDArray[np.int64]:
    if isinstance(factor, FieldAtom):
        return records[factor.record][factor.name]
    if isinstance(factor, BitAtom):
        value = evaluate_local(factor.form, records, count)
        holds = value < 0 if factor.kind == "less" else value == 0
        return holds.astype(np.int64)
    total = np.zeros(count, dtype=np.int64)
    for conjunction in factor.function:
        product = np.ones(count, dtype=np.int64)
        for bit in conjunction:
            product &= _evaluate_atom(bit, records, count)
        total ^= product
    return total
