"""The normal form of a kernel: a polynomial in field values and comparison bits.

Every kernel is one: |d| = (1 − 2[d<0])·d, select(c, x, y) = y + c·(x − y), sign(d) = 1 − 2[d<0] − [d=0].
Fields stand in steps of their resolution, so atoms are integers and coefficients exact rationals; the
greatest common divisor of the coefficients is the kernel's unit. Two kernels with one normal form are
equal, which proves symmetry; shares are computed from the normal form too (`mpc/plan.py`).

A comparison is kept as [P < 0] or [P = 0] of a polynomial P with coprime integer coefficients and a positive
first one, so that x < y and y < x use the same two bits: [−P < 0] = 1 − [P < 0] − [P = 0]. Three identities of
bits are used: b·b = b, [P < 0]·[P = 0] = 0, and [P = 0]·P = 0.

Logic over at most two comparisons is written out as a polynomial. Logic over more is one atom, named by its own
normal form over GF(2) (`logic.py`): it is evaluated as bits, in a round of its own, which costs far less than products
of many bits in the ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from umpc.errors import KernelError, LocalProtocolError
from umpc.ustat import logic
from umpc.ustat.expression import Expression, Interpreter, interpret
from umpc.ustat.schema import Schema

MAX_WEIGHT = 10_000
"""Largest normal form, counted in atoms: a short text such as sign(sign(…)) could take exponential time and memory."""
WRITTEN_OUT = 2
"""Logic over so many comparisons at most is written out as a polynomial."""


@dataclass(frozen=True)
class FieldAtom:
    """A field of record `record` of the edge, in steps of its resolution."""

    record: int
    name: str

    @cached_property
    def order(self) -> tuple:
        return (0, self.record, self.name)

    @property
    def weight(self) -> int:
        return 1

    @property
    def records(self) -> frozenset[int]:
        return frozenset((self.record,))


@dataclass(frozen=True)
class BitAtom:
    """[form < 0] if kind is "less", [form = 0] if kind is "equal"."""

    kind: str
    form: Polynomial

    @cached_property
    def order(self) -> tuple:
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
    """A Boolean function of more than WRITTEN_OUT comparisons; without a constant term, see `logic_of`."""

    function: logic.Function

    @cached_property
    def order(self) -> tuple:
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
            r for conjunction in self.function for factor in conjunction for r in factor.records
        )


Atom = FieldAtom | BitAtom | LogicAtom
Monomial = tuple[tuple[Atom, int], ...]
"""Atoms with their powers, in canonical order; () is the constant monomial."""


@dataclass(frozen=True)
class Polynomial:
    """Σ coefficient · monomial, in canonical order, without zero coefficients."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @cached_property
    def order(self) -> tuple:
        return tuple(
            (_monomial_order(monomial), coefficient) for monomial, coefficient in self.terms
        )

    @cached_property
    def weight(self) -> int:
        """Its size: all atoms, those inside bits included."""
        return sum(1 + sum(atom.weight for atom, _ in monomial) for monomial, _ in self.terms)

    @cached_property
    def records(self) -> frozenset[int]:
        """The records of the edge that the value depends on."""
        return frozenset(
            r for monomial, _ in self.terms for atom, _ in monomial for r in atom.records
        )

    @property
    def constant_term(self) -> Fraction:
        return dict(self.terms).get((), Fraction(0))

    @property
    def is_constant(self) -> bool:
        return all(monomial == () for monomial, _ in self.terms)

    @cached_property
    def unit(self) -> Fraction:
        """The largest rational of which every value is an integer multiple (1 for the zero polynomial)."""
        if not self.terms:
            return Fraction(1)
        denominator = lcm(*(c.denominator for _, c in self.terms))
        return Fraction(gcd(*(int(c * denominator) for _, c in self.terms)), denominator)

    def scaled(self, factor: Fraction) -> Polynomial:
        return build({monomial: coefficient * factor for monomial, coefficient in self.terms})


def constant(value: Fraction | int) -> Polynomial:
    return build({(): Fraction(value)})


def atom(of: Atom) -> Polynomial:
    return build({((of, 1),): Fraction(1)})


def add(*parts: Polynomial) -> Polynomial:
    total: dict[Monomial, Fraction] = {}
    for part in parts:
        for monomial, coefficient in part.terms:
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return build(total)


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    total: dict[Monomial, Fraction] = {}
    _check_weight(len(left.terms) * len(right.terms) // 10)
    for first, x in left.terms:
        for second, y in right.terms:
            product = _join(first, second)
            for monomial, factor in _reduce(product) if product is not None else ():
                total[monomial] = total.get(monomial, Fraction(0)) + x * y * factor
    return build(total)


def less_than_zero(of: Polynomial) -> Polynomial:
    """The bit [of < 0]."""
    if of.is_constant:
        return constant(int(of.constant_term < 0))
    form, flipped = orient(of)
    below = atom(BitAtom("less", form))
    if not flipped:
        return below
    return add(
        constant(1), below.scaled(Fraction(-1)), atom(BitAtom("equal", form)).scaled(Fraction(-1))
    )


def equal_to_zero(of: Polynomial) -> Polynomial:
    """The bit [of = 0]."""
    if of.is_constant:
        return constant(int(of.constant_term == 0))
    return atom(BitAtom("equal", orient(of)[0]))


def logic_of(function: logic.Function) -> Polynomial:
    """A Boolean function as a polynomial of value 0 or 1; equal functions of equal bits give equal polynomials."""
    if len(logic.forms(function)) > WRITTEN_OUT:
        inverted = function >= logic.TRUE
        value = atom(LogicAtom(function ^ logic.TRUE if inverted else function))
        return add(constant(1), value.scaled(Fraction(-1))) if inverted else value
    total = constant(0)
    for conjunction in sorted(function, key=logic.conjunction_order):
        product = constant(1)
        for factor in conjunction:
            product = multiply(product, atom(factor))
        both = multiply(total, product)
        total = add(total, product, both.scaled(Fraction(-2)))
    return total


def function_of(bit: Polynomial) -> logic.Function:
    """The Boolean function that a polynomial of value 0 or 1 is: its coefficients modulo 2.

    Raises: LocalProtocolError where it is not one of bits with integer coefficients.
    """
    total = logic.FALSE
    for monomial, coefficient in bit.terms:
        if coefficient.denominator != 1 or any(
            isinstance(factor, FieldAtom) for factor, _ in monomial
        ):
            raise LocalProtocolError(
                "a condition's normal form was expected to be of bits; a fault of umpc's own"
            )
        product = logic.TRUE if coefficient % 2 else logic.FALSE
        for factor, _ in monomial:
            inner = factor.function if isinstance(factor, LogicAtom) else logic.single(factor)
            product = logic.conjunction(product, inner)
        total ^= product
        _check_weight(sum(map(len, total)))
    return total


def polynomial_of(expression: Expression, schema: Schema) -> Polynomial:
    """The normal form of a kernel, its fields in steps of their resolution."""
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

    def sign(self, of: Polynomial) -> Polynomial:
        doubled = less_than_zero(of).scaled(Fraction(-2))
        return add(constant(1), doubled, equal_to_zero(of).scaled(Fraction(-1)))

    def absolute(self, of: Polynomial) -> Polynomial:
        """(1 − 2[of < 0])·of: one bit fewer than sign(of)·of."""
        return multiply(add(constant(1), less_than_zero(of).scaled(Fraction(-2))), of)


def orient(of: Polynomial) -> tuple[Polynomial, bool]:
    """The primitive polynomial with positive leading coefficient, and whether the sign was flipped."""
    leading = next(coefficient for monomial, coefficient in of.terms if monomial != ())
    flipped = leading < 0
    return of.scaled((-1 if flipped else 1) / of.unit), flipped


def _join(first: Monomial, second: Monomial) -> Monomial | None:
    """The product of two monomials; None where it is zero: [P < 0]·[P = 0]. A bit's powers are itself."""
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
    """Use P = 0 beside the bit [P = 0] of a linear P: its first atom, if it is a field, is replaced by the others.

    Never a bit: what replaced it would be no bit, and its coefficients no integers, which `function_of` relies on.
    """
    powers = dict(monomial)
    for factor in powers:
        if not (isinstance(factor, BitAtom) and factor.kind == "equal" and _is_linear(factor.form)):
            continue
        (((first, _),), leading), *others = [t for t in factor.form.terms if t[0]] + [
            t for t in factor.form.terms if not t[0]
        ]
        if isinstance(first, FieldAtom) and first in powers:
            rest = tuple((a, p - (a == first)) for a, p in monomial if a != first or p > 1)
            replaced = Polynomial(tuple((m, -c / leading) for m, c in others))
            return list(multiply(Polynomial(((rest, Fraction(1)),)), replaced).terms)
    return [(monomial, Fraction(1))]


def _is_linear(form: Polynomial) -> bool:
    return all(sum(power for _, power in monomial) <= 1 for monomial, _ in form.terms)


def _monomial_order(monomial: Monomial) -> tuple:
    return tuple((factor.order, power) for factor, power in monomial)


def build(coefficients: Mapping[Monomial, Fraction]) -> Polynomial:
    kept: Iterable[tuple[Monomial, Fraction]] = ((m, c) for m, c in coefficients.items() if c != 0)
    built = Polynomial(tuple(sorted(kept, key=lambda item: _monomial_order(item[0]))))
    _check_weight(built.weight)
    return built


def _check_weight(weight: int) -> None:
    if weight > MAX_WEIGHT:
        raise KernelError(
            f"the kernel expands into more than {MAX_WEIGHT} parts; use fewer factors, or less nesting of comparisons"
        )
