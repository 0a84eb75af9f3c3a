"""A kernel of three records as terms in which one record is compared with both others.

Comparisons of one number among all three records form a triangle. Order is transitive, so each
triangle is a sum of paths: where two records are equal, one stands for both, and a < b < c says
a < c. The sum over all triples does not change when a term's records exchange their names, so the
record in the middle is always called 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from umpc.protocols.grid.operators.intervals import DoesNotFactor
from umpc.protocols.grid.operators.splitting import Term, terms_of
from umpc.ustat import polynomial as poly
from umpc.ustat.local import relabel
from umpc.ustat.normal_form import (
    BitAtom,
    FieldAtom,
    Monomial,
    Order,
    Polynomial,
    conjunction_order,
)

Pair = tuple[int, int]
PAIRS: tuple[Pair, ...] = ((0, 1), (0, 2), (1, 2))


class Arm(NamedTuple):
    """One of the outer records of a path: its own factors, and the bits it shares with record 0.

    In the bits, the outer record is record 1.
    """

    local: Monomial
    bits: frozenset[BitAtom]

    @property
    def order(self) -> Order:
        """A sort key."""
        factors = tuple((factor.order, power) for factor, power in self.local)
        return (conjunction_order(self.bits), factors)


class Path(NamedTuple):
    """coefficient · own factors of the middle record · two arms."""

    coefficient: int
    middle: Monomial
    first: Arm
    second: Arm


def paths_of(polynomial: Polynomial) -> list[Path]:
    """The paths of a polynomial in three records that `written_out` made.

    Raises: DoesNotFactor.
    """
    sums: dict[tuple[Monomial, Arm, Arm], int] = {}
    waiting = list(terms_of(polynomial, 3))
    while waiting:
        term = waiting.pop()
        changed = _towards_a_path(term)
        if changed is not None:
            waiting += terms_of(changed.scaled(Fraction(term.coefficient)), 3)
            continue
        arms = sorted((_arm(term, 1), _arm(term, 2)), key=lambda arm: arm.order)
        key = (term.local[0], arms[0], arms[1])
        sums[key] = sums.get(key, 0) + term.coefficient
    return [Path(coefficient, *key) for key, coefficient in sums.items() if coefficient]


def _arm(term: Term, outer: int) -> Arm:
    bits = (bit for bit in term.bits if outer in bit.records)
    return Arm(term.local[outer], frozenset(_renamed(bit, {0: 0, outer: 1}) for bit in bits))


def _renamed(bit: BitAtom, records: dict[int, int]) -> BitAtom:
    """A bit between other records, in the same order."""
    ((monomial, _),) = relabel(poly.atom(bit), records).terms
    ((renamed, _),) = monomial
    if not isinstance(renamed, BitAtom):
        raise DoesNotFactor
    return renamed


def _towards_a_path(term: Term) -> Polynomial | None:
    """The term without its triangle or with its middle record as record 0; None if it is a path."""
    pairs = {_pair(bit) for bit in term.bits}
    if len(pairs) == 3:
        return _without_triangle(term)
    if (1, 2) not in pairs:
        return None
    # the record that all pairs share takes number 0
    middle = min(set.intersection(*(set(pair) for pair in pairs)))
    return relabel(_unscaled(term), {0: middle, middle: 0, 3 - middle: 3 - middle})


def _pair(bit: BitAtom) -> Pair:
    if len(bit.records) != 2:
        raise DoesNotFactor
    low, high = sorted(bit.records)
    return low, high


def _unscaled(term: Term) -> Polynomial:
    """The term with coefficient 1 as a polynomial."""
    product = poly.constant(1)
    for record, local in enumerate(term.local):
        own = Polynomial(((local, Fraction(1)),))
        product = poly.multiply(product, relabel(own, {0: record}))
    return _times_bits(product, term.bits)


def _times_bits(product: Polynomial, bits: Iterable[BitAtom]) -> Polynomial:
    for bit in bits:
        product = poly.multiply(product, poly.atom(bit))
    return product


def _without_triangle(term: Term) -> Polynomial:
    """A term with one of its triangles opened. Raises: DoesNotFactor where that takes no path."""
    numbers: dict[Polynomial, dict[Pair, BitAtom]] = {}
    for bit in term.bits:
        number = _difference_of(bit)
        if number is not None:
            numbers.setdefault(number, {})[_pair(bit)] = bit
    sides = next((found for found in numbers.values() if len(found) == 3), None)
    if sides is None:
        raise DoesNotFactor
    equal = next((pair for pair in PAIRS if sides[pair].kind == "equal"), None)
    if equal is None:
        # record 0 < record 1 < record 2 says record 0 < record 2
        opened = Term(1, term.local, term.bits - {sides[0, 2]})
        return _unscaled(opened)
    # records `kept` and `gone` are equal, so that the third may be compared with either
    kept, gone = equal
    third = 3 - kept - gone
    away = sides[min(gone, third), max(gone, third)]
    rest = Term(1, term.local, term.bits - {away})
    moved = relabel(poly.atom(away), {gone: kept, third: third})
    return poly.multiply(_unscaled(rest), moved)


def _difference_of(bit: BitAtom) -> Polynomial | None:
    """The number of which a bit compares two records' values; None where it compares others."""
    low, high = _pair(bit)
    own: dict[int, dict[Monomial, Fraction]] = {low: {}, high: {}}
    for monomial, coefficient in bit.form.terms:
        records = {record for factor, _ in monomial for record in factor.records}
        if len(records) != 1 or not all(isinstance(f, FieldAtom) for f, _ in monomial):
            return None
        own[min(records)][monomial] = coefficient
    first, second = (
        relabel(Polynomial(tuple(own[record].items())), {record: 0}) for record in (low, high)
    )
    return first if first == second.scaled(Fraction(-1)) else None
