"""A kernel's polynomial as terms: each record's own factors, and the bits that compare records.

A term is coefficient · Π_r u_r(record r) · Π bits of two records. Two things are done to the normal
form first. Logic over many comparisons is written out, and so is a comparison inside a comparison,
such as abs(a.x − b.x) < 5, by the outcomes of the inner one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from umpc.ustat import polynomial as poly
from umpc.ustat.normal_form import (
    Atom,
    BitAtom,
    FieldAtom,
    Function,
    LogicAtom,
    Monomial,
    Polynomial,
    build,
    conjunction_order,
)
from umpc.ustat.polynomial import relabel


@dataclass(frozen=True)
class ProductTerm:
    """`coefficient · Π_r local[r](record r) · Π bits`, a product over the records r.

    Args:
        local: each record's own factors, written as factors of record 0.
        bits: comparisons of two records.
    """

    coefficient: int
    local: tuple[Monomial, ...]
    bits: frozenset[BitAtom]


def written_out(polynomial: Polynomial) -> Polynomial:
    """The polynomial in fields and bits alone, no compared number of which mixes records in a bit.

    Raises: KernelError where it is too large.
    """
    # products of exclusive outcomes are 0
    return poly.mapped(polynomial, _factor, _product)


def terms_of(polynomial: Polynomial, degree: int) -> tuple[ProductTerm, ...]:
    """The terms of a polynomial that `written_out` made, with integer coefficients."""
    return tuple(_term(monomial, int(c), degree) for monomial, c in polynomial.terms)


def own_factors(factors: Sequence[tuple[Atom, int]], record: int) -> Monomial:
    """Factors of one record, written as factors of record 0."""
    if all(isinstance(factor, FieldAtom) for factor, _ in factors):
        return tuple((FieldAtom(0, min(factor.fields)), power) for factor, power in factors)
    product = Polynomial(((tuple(factors), Fraction(1)),))
    ((monomial, _),) = relabel(product, {record: 0}).terms
    return monomial


def _term(monomial: Monomial, coefficient: int, degree: int) -> ProductTerm:
    own: list[list[tuple[Atom, int]]] = [[] for _ in range(degree)]
    bits: set[BitAtom] = set()
    for factor, power in monomial:
        if len(factor.records) == 1:
            own[min(factor.records)].append((factor, power))
        elif isinstance(factor, BitAtom):
            # a comparison across records
            bits.add(factor)
    local = tuple(own_factors(factors, record) for record, factors in enumerate(own))
    return ProductTerm(coefficient, local, frozenset(bits))


def _factor(factor: Atom) -> Polynomial:
    if isinstance(factor, FieldAtom) or len(factor.records) == 1:
        return poly.atom(factor)
    if isinstance(factor, LogicAtom):
        return _logic(factor.function)
    return _bit(factor)


def _logic(function: Function) -> Polynomial:
    """An exclusive or of conjunctions as a sum, by x ⊕ y = x + y − 2xy."""
    conjunctions = sorted(function, key=conjunction_order)
    return poly.exclusive(
        (reduce(_product, map(_factor, bits), poly.constant(1)) for bits in conjunctions), _product
    )


def _bit(bit: BitAtom) -> Polynomial:
    """A bit, by the outcomes of a comparison inside its number that mixes records."""
    form = bit.form
    if any(isinstance(f, LogicAtom) for monomial, _ in form.terms for f, _ in monomial):
        form = written_out(form)
    inner = _entangled(form)
    if inner is None:
        return poly.atom(bit)
    less, equal = BitAtom("less", inner), BitAtom("equal", inner)
    outcomes = ((less, {less: 1, equal: 0}), (equal, {less: 0, equal: 1}))
    compare = poly.less_than_zero if bit.kind == "less" else poly.equal_to_zero
    # above holds where neither of the two holds
    above = written_out(compare(_assigned(form, {less: 0, equal: 0})))
    total = above
    for outcome, values in outcomes:
        # the bit in this outcome of the inner comparison
        here = written_out(compare(_assigned(form, values)))
        change = poly.add(here, above.scaled(Fraction(-1)))
        total = poly.add(total, _product(_factor(outcome), change))
    return total


def _entangled(form: Polynomial) -> Polynomial | None:
    """Find a comparison in a product over two records, and return what it compares; or None."""
    for monomial, _ in form.terms:
        records = {record for factor, _ in monomial for record in factor.records}
        bits = [factor for factor, _ in monomial if isinstance(factor, BitAtom)]
        if len(records) > 1 and bits:
            return bits[0].form
    return None


def _assigned(form: Polynomial, values: Mapping[BitAtom, int]) -> Polynomial:
    """The polynomial with these bits' values."""
    total: dict[Monomial, Fraction] = {}
    for monomial, coefficient in form.terms:
        known = [values[f] for f, _ in monomial if isinstance(f, BitAtom) and f in values]
        rest = tuple(
            (f, power) for f, power in monomial if not (isinstance(f, BitAtom) and f in values)
        )
        if all(known):
            total[rest] = total.get(rest, Fraction(0)) + coefficient
    return build(total)


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product without products of [P = c] and [P = d], which never hold together."""
    polynomial = poly.multiply(left, right)
    kept = {m: c for m, c in polynomial.terms if not _excluded(m)}
    return polynomial if len(kept) == len(polynomial.terms) else build(kept)


def _excluded(monomial: Monomial) -> bool:
    seen: dict[tuple[object, ...], Fraction] = {}
    for factor, _ in monomial:
        if isinstance(factor, BitAtom) and factor.kind == "equal":
            moving = tuple(term for term in factor.form.terms if term[0] != ())
            constant = factor.form.constant_term
            if seen.setdefault(moving, constant) != constant:
                return True
    return False
