"""The normal form of a kernel: a polynomial in field values and comparison bits.

Every kernel has such a form: |d| = (1 − 2[d<0])·d, select(c, x, y) = y + c·(x − y), and
sign(d) = 1 − 2[d<0] − [d=0]. Fields are counted in steps of their resolution, so atoms are integers
and coefficients are exact rationals. The greatest common divisor of the coefficients is the
kernel's unit. Two kernels with one normal form are equal, which proves symmetry. Shares are
computed from the normal form too (`umpc/mpc/masked/plan.py`).

A comparison is kept as [P < 0] or [P = 0] of a polynomial P with coprime integer coefficients, of
which the first is positive. So x < y and y < x use the same two bits:
[−P < 0] = 1 − [P < 0] − [P = 0]. Three identities of bits are used: b·b = b,
[P < 0]·[P = 0] = 0, and [P = 0]·P = 0.

Logic over at most two comparisons is written out as a polynomial. Logic over more is one atom,
named by its own normal form over GF(2) (`normal_form.py`). It is evaluated as bits, in a round of
its own, which costs far less than products of many bits in the ring.

*Local.* Polynomials of one owner's records, which the owner evaluates alone and in the clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError, RangeError
from umpc.ustat import normal_form as logic
from umpc.ustat.clear import Columns
from umpc.ustat.expression import Expression, Interpreter, interpret
from umpc.ustat.normal_form import (
    Atom,
    BitAtom,
    FieldAtom,
    Function,
    LogicAtom,
    Monomial,
    Polynomial,
    build,
    check_weight,
    conjunction_order,
)
from umpc.ustat.schema import Schema

WRITTEN_OUT = 2
"""Logic over at most this many comparisons is written out as a polynomial."""


def constant(value: Fraction | int) -> Polynomial:
    """The constant polynomial."""
    return build({(): Fraction(value)})


def atom(single: Atom) -> Polynomial:
    """The polynomial that is one atom."""
    return build({((single, 1),): Fraction(1)})


def add(*parts: Polynomial) -> Polynomial:
    """The sum. Raises: KernelError where it is too large."""
    total: dict[Monomial, Fraction] = {}
    for part in parts:
        for monomial, coefficient in part.terms:
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return build(total)


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product, simplified by the identities of bits. Raises: KernelError if it is too large."""
    total: dict[Monomial, Fraction] = {}
    # refuse a product of very many terms before it is computed
    check_weight(len(left.terms) * len(right.terms) // 10)
    for first, x in left.terms:
        for second, y in right.terms:
            product = _join(first, second)
            if product is None:
                continue
            for monomial, factor in _reduce(product):
                total[monomial] = total.get(monomial, Fraction(0)) + x * y * factor
    return build(total)


def less_than_zero(polynomial: Polynomial) -> Polynomial:
    """The bit [polynomial < 0]."""
    if polynomial.is_constant:
        return constant(int(polynomial.constant_term < 0))
    form, flipped = orient(polynomial)
    below = atom(BitAtom("less", form))
    if not flipped:
        return below
    # [−P < 0] = 1 − [P < 0] − [P = 0]
    equal = atom(BitAtom("equal", form))
    return add(constant(1), below.scaled(Fraction(-1)), equal.scaled(Fraction(-1)))


def equal_to_zero(polynomial: Polynomial) -> Polynomial:
    """The bit [polynomial = 0]."""
    if polynomial.is_constant:
        return constant(int(polynomial.constant_term == 0))
    form, _ = orient(polynomial)
    return atom(BitAtom("equal", form))


def logic_of(function: Function) -> Polynomial:
    """A Boolean function as a polynomial of value 0 or 1.

    Equal functions of equal bits give equal polynomials.
    """
    if len(logic.forms(function)) > WRITTEN_OUT:
        if not function >= logic.TRUE:
            return atom(LogicAtom(function))
        # a function with a constant term is 1 minus its complement
        complement = atom(LogicAtom(function ^ logic.TRUE))
        return add(constant(1), complement.scaled(Fraction(-1)))
    conjunctions = sorted(function, key=conjunction_order)
    return exclusive(reduce(multiply, map(atom, bits), constant(1)) for bits in conjunctions)


def exclusive(
    products: Iterable[Polynomial], join: Callable[[Polynomial, Polynomial], Polynomial] = multiply
) -> Polynomial:
    """The exclusive or of bits as a sum. Args: join: multiplies two polynomials."""
    total = constant(0)
    for product in products:
        # x ⊕ y = x + y − 2xy
        total = add(total, product, join(total, product).scaled(Fraction(-2)))
    return total


def function_of(bit: Polynomial) -> Function:
    """The Boolean function that a polynomial of value 0 or 1 is, by its coefficients modulo 2.

    Raises: LocalProtocolError where it is no polynomial of bits with integer coefficients.
    """
    total = logic.FALSE
    for monomial, coefficient in bit.terms:
        if coefficient.denominator != 1:
            raise _no_condition()
        product = logic.TRUE if coefficient % 2 else logic.FALSE
        for factor, _ in monomial:
            if isinstance(factor, FieldAtom):
                raise _no_condition()
            inner = factor.function if isinstance(factor, LogicAtom) else logic.single(factor)
            product = logic.conjunction(product, inner)
        total ^= product
        check_weight(sum(map(len, total)))
    return total


def _no_condition() -> LocalProtocolError:
    return LocalProtocolError(
        "a condition's normal form was expected to consist of bits, and it does not: this is a "
        "fault of umpc; report it"
    )


def polynomial_of(expression: Expression, schema: Schema) -> Polynomial:
    """The normal form of a kernel, its fields in steps of their resolution.

    Raises: KernelError where it is too large.
    """
    return interpret(expression, _Normalise(schema))


class _Normalise(Interpreter[Polynomial]):
    def __init__(self, schema: Schema):
        self.schema = schema

    def field(self, record: int, name: str) -> Polynomial:
        return atom(FieldAtom(record, name)).scaled(self.schema[name].resolution)

    def constant(self, value: Fraction) -> Polynomial:
        return constant(value)

    def add(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return add(left, right)

    def multiply(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return multiply(left, right)

    def less(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return less_than_zero(self.subtract(left, right))

    def equal(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return equal_to_zero(self.subtract(left, right))

    def complement(self, bit: Polynomial) -> Polynomial:
        return add(constant(1), bit.scaled(Fraction(-1)))

    def both(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return logic_of(logic.conjunction(function_of(left), function_of(right)))

    def exclusive(self, left: Polynomial, right: Polynomial) -> Polynomial:
        return logic_of(function_of(left) ^ function_of(right))

    def sign(self, operand: Polynomial) -> Polynomial:
        """1 − 2[operand < 0] − [operand = 0]."""
        below = less_than_zero(operand).scaled(Fraction(-2))
        equal = equal_to_zero(operand).scaled(Fraction(-1))
        return add(constant(1), below, equal)

    def absolute(self, operand: Polynomial) -> Polynomial:
        """(1 − 2[operand < 0])·operand, which has one bit fewer than sign(operand)·operand."""
        below = less_than_zero(operand).scaled(Fraction(-2))
        return multiply(add(constant(1), below), operand)


def orient(polynomial: Polynomial) -> tuple[Polynomial, bool]:
    """The primitive polynomial with a positive first coefficient, and whether the sign changed.

    The first coefficient is that of the first monomial other than the constant one.
    """
    first = next(coefficient for monomial, coefficient in polynomial.terms if monomial != ())
    flipped = first < 0
    sign = -1 if flipped else 1
    return polynomial.scaled(sign / polynomial.unit), flipped


def _join(first: Monomial, second: Monomial) -> Monomial | None:
    """The product of two monomials; None where it is zero, by [P < 0]·[P = 0] = 0.

    The powers of a bit are the bit itself.
    """
    powers: dict[Atom, int] = dict(first)
    for factor, power in second:
        powers[factor] = powers.get(factor, 0) + power
    for factor in powers:
        if isinstance(factor, LogicAtom):
            powers[factor] = 1
        if isinstance(factor, BitAtom):
            powers[factor] = 1
            other = "equal" if factor.kind == "less" else "less"
            if BitAtom(other, factor.form) in powers:
                return None
    return tuple(sorted(powers.items(), key=lambda item: item[0].order))


def _reduce(monomial: Monomial) -> list[tuple[Monomial, Fraction]]:
    """A monomial simplified by [P = 0]·P = 0, as terms.

    Beside the bit [P = 0] of a linear P, the first atom of P is replaced by the others if it is a
    field. A bit is never replaced: its replacement would be no bit, and its coefficients would be
    no integers, on which `function_of` relies.
    """
    powers = dict(monomial)
    for factor in powers:
        if not (isinstance(factor, BitAtom) and factor.kind == "equal" and _is_linear(factor.form)):
            continue
        # the constant term is the last
        terms = sorted(factor.form.terms, key=lambda term: term[0] == ())
        (leading, coefficient), *others = terms
        ((first, _),) = leading
        if isinstance(first, FieldAtom) and first in powers:
            # P = 0 says that first = −(others) / coefficient
            solved = Polynomial(tuple((m, -c / coefficient) for m, c in others))
            rest = tuple((a, p - (a == first)) for a, p in monomial if a != first or p > 1)
            return list(multiply(Polynomial(((rest, Fraction(1)),)), solved).terms)
    return [(monomial, Fraction(1))]


def _is_linear(form: Polynomial) -> bool:
    return all(sum(power for _, power in monomial) <= 1 for monomial, _ in form.terms)


# --- local ----------------------------------------------------------------------------------------

_LIMIT = 1 << 62
Ends = tuple[int | Fraction, int | Fraction]
"""(low, high): whole numbers wherever they can be, because fractions take long."""
_ONE: Ends = (1, 1)
_BIT: Ends = (0, 1)


def relabel(polynomial: Polynomial, records: Mapping[int, int]) -> Polynomial:
    """The polynomial with record records[i] in the place of record i."""
    return mapped(polynomial, lambda factor: _relabelled(factor, records))


def mapped(
    polynomial: Polynomial,
    of: Callable[[Atom], Polynomial],
    join: Callable[[Polynomial, Polynomial], Polynomial] = multiply,
) -> Polynomial:
    """The polynomial with `of(atom)` in the place of each atom. Args: join: multiplies two."""
    total = constant(0)
    for monomial, coefficient in polynomial.terms:
        product = constant(coefficient)
        for factor, power in monomial:
            for _ in range(power):
                product = join(product, of(factor))
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
            fields = sorted({name for factor, _ in monomial for name in factor.fields})
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
