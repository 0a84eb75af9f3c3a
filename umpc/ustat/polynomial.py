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
named by its own normal form over GF(2) (`logic.py`). It is evaluated as bits, in a round of its
own, which costs far less than products of many bits in the ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import TypeAlias

from umpc.errors import KernelError, LocalProtocolError
from umpc.ustat import logic
from umpc.ustat.expression import Expression, Interpreter, interpret
from umpc.ustat.logic import Order
from umpc.ustat.schema import Schema

MAX_WEIGHT = 10_000
"""The largest normal form, in terms and atoms.

A short text such as sign(sign(…)) could take exponential time and memory."""
WRITTEN_OUT = 2
"""Logic over at most this many comparisons is written out as a polynomial."""


@dataclass(frozen=True)
class FieldAtom:
    """A field of one record of the edge, in steps of its resolution. record: from 0."""

    record: int
    name: str

    @cached_property
    def order(self) -> Order:
        return (0, self.record, self.name)

    @property
    def weight(self) -> int:
        return 1

    @property
    def records(self) -> frozenset[int]:
        return frozenset((self.record,))


@dataclass(frozen=True)
class BitAtom:
    """The bit [form < 0] if kind is "less", [form = 0] if kind is "equal"."""

    kind: str
    form: Polynomial

    @cached_property
    def order(self) -> Order:
        return (1, self.kind, self.form.order)

    @property
    def weight(self) -> int:
        return 1 + self.form.weight

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.form))

    def __hash__(self) -> int:
        return self._hash

    @property
    def records(self) -> frozenset[int]:
        return self.form.records


@dataclass(frozen=True)
class LogicAtom:
    """A Boolean function of more than WRITTEN_OUT comparisons, without a constant term.

    `logic_of` writes a function with a constant term as 1 minus its complement.
    """

    function: logic.Function

    @cached_property
    def order(self) -> Order:
        return (2, logic.order(self.function))

    @cached_property
    def weight(self) -> int:
        return 1 + len(self.function)

    @cached_property
    def _hash(self) -> int:
        return hash(self.function)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def records(self) -> frozenset[int]:
        return frozenset(
            record
            for conjunction in self.function
            for factor in conjunction
            for record in factor.records
        )


Atom: TypeAlias = FieldAtom | BitAtom | LogicAtom
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]
"""Atoms with their powers, in canonical order. () is the constant monomial."""


@dataclass(frozen=True)
class Polynomial:
    """Σ coefficient · monomial, in canonical order, without zero coefficients."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @cached_property
    def order(self) -> Order:
        return tuple(
            (_monomial_order(monomial), coefficient) for monomial, coefficient in self.terms
        )

    @cached_property
    def weight(self) -> int:
        """Its size: terms and atoms, including those inside bits."""
        atoms = sum(atom.weight for monomial, _ in self.terms for atom, _ in monomial)
        return len(self.terms) + atoms

    @cached_property
    def records(self) -> frozenset[int]:
        """The records of the edge on which the value depends."""
        return frozenset(
            record for monomial, _ in self.terms for atom, _ in monomial for record in atom.records
        )

    @property
    def constant_term(self) -> Fraction:
        """The coefficient of the constant monomial."""
        return dict(self.terms).get((), Fraction(0))

    @property
    def is_constant(self) -> bool:
        """Whether it has no term but the constant one."""
        return all(monomial == () for monomial, _ in self.terms)

    @cached_property
    def unit(self) -> Fraction:
        """The greatest common divisor of the coefficients; 1 for the zero polynomial.

        Every value is an integer multiple of it.
        """
        if not self.terms:
            return Fraction(1)
        denominator = lcm(*(c.denominator for _, c in self.terms))
        numerators = (int(c * denominator) for _, c in self.terms)
        return Fraction(gcd(*numerators), denominator)

    def scaled(self, factor: Fraction) -> Polynomial:
        """The polynomial times a number."""
        return build({monomial: coefficient * factor for monomial, coefficient in self.terms})


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
    _check_weight(len(left.terms) * len(right.terms) // 10)
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


def logic_of(function: logic.Function) -> Polynomial:
    """A Boolean function as a polynomial of value 0 or 1.

    Equal functions of equal bits give equal polynomials.
    """
    if len(logic.forms(function)) > WRITTEN_OUT:
        if not function >= logic.TRUE:
            return atom(LogicAtom(function))
        # a function with a constant term is 1 minus its complement
        complement = atom(LogicAtom(function ^ logic.TRUE))
        return add(constant(1), complement.scaled(Fraction(-1)))
    total = constant(0)
    for conjunction in sorted(function, key=logic.conjunction_order):
        product = constant(1)
        for factor in conjunction:
            product = multiply(product, atom(factor))
        # x ⊕ y = x + y − 2xy
        both = multiply(total, product)
        total = add(total, product, both.scaled(Fraction(-2)))
    return total


def function_of(bit: Polynomial) -> logic.Function:
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
        _check_weight(sum(map(len, total)))
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
        (leading, coefficient), *others = _constant_last(factor.form)
        ((first, _),) = leading
        if isinstance(first, FieldAtom) and first in powers:
            # P = 0 says that first = −(others) / coefficient
            solved = Polynomial(tuple((m, -c / coefficient) for m, c in others))
            rest = tuple((a, p - (a == first)) for a, p in monomial if a != first or p > 1)
            return list(multiply(Polynomial(((rest, Fraction(1)),)), solved).terms)
    return [(monomial, Fraction(1))]


def _constant_last(form: Polynomial) -> list[tuple[Monomial, Fraction]]:
    """The terms, of which the constant one is the last."""
    return sorted(form.terms, key=lambda term: term[0] == ())


def _is_linear(form: Polynomial) -> bool:
    return all(sum(power for _, power in monomial) <= 1 for monomial, _ in form.terms)


def _monomial_order(monomial: Monomial) -> Order:
    return tuple((factor.order, power) for factor, power in monomial)


def build(coefficients: Mapping[Monomial, Fraction]) -> Polynomial:
    """The polynomial with these coefficients. Raises: KernelError where it is too large."""
    kept: Iterable[tuple[Monomial, Fraction]] = ((m, c) for m, c in coefficients.items() if c != 0)
    built = Polynomial(tuple(sorted(kept, key=lambda item: _monomial_order(item[0]))))
    _check_weight(built.weight)
    return built


def _check_weight(weight: int) -> None:
    if weight > MAX_WEIGHT:
        raise KernelError(
            f"the kernel expands into more than {MAX_WEIGHT} parts; "
            f"use fewer factors, or less nesting of comparisons"
        )
