"""A sum over triples whose kernel compares one record with both others, as a form of the table.

With f the kernel, 6·S = C(H) − Q(H) + ⟨diagonal, H⟩, in Z_{2^64} or in F. C is the sum of f over
all ordered triples of records, repeated ones included, and Q removes those with two equal records.
A path's part of C is Σ_cells middle · H · (B₁H) · (B₂H), so C and its gradient take a few
products of matrices and vectors. For a masked table Ĥ = H + a,

    C(H) − Q(H) = value(Ĥ) − ⟨a, gradient(Ĥ)⟩ + ⟨Ĥ, ∇C(a)⟩ − C(a) − Q(a),

so the dealer deals shares of the vector ∇C(a) and of the scalar −C(a) − Q(a).

*Paths.* A kernel of three records as terms in which one record is compared with both others.

Comparisons of one number among all three records form a triangle. Order is transitive, so each
triangle is a sum of paths: where two records are equal, one stands for both, and a < b < c says
a < c. The sum over all triples does not change when a term's records exchange their names, so the
record in the middle is always called 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import NamedTuple, Self

import numpy as np

from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.arrays import Words
from umpc.protocols.grid.operators.axis import DoesNotFactor
from umpc.protocols.grid.operators.layout import Layout
from umpc.protocols.grid.operators.leg import word
from umpc.protocols.grid.operators.matrix import Combination, Matrix, OwnPart, TableEntry, grouped
from umpc.protocols.grid.operators.splitting import ProductTerm, terms_of, written_out
from umpc.ustat import polynomial as poly
from umpc.ustat.normal_form import (
    BitAtom,
    FieldAtom,
    Monomial,
    Order,
    Polynomial,
    conjunction_order,
    monomial_order,
)
from umpc.ustat.polynomial import relabel


@dataclass(frozen=True)
class _Arms:
    """B, from the table to what the middle record compares with, and its transpose."""

    forward: Matrix
    back: Matrix


@dataclass(frozen=True)
class _Product:
    """Σ_cells middle · u · (B₁v) · (B₂w) for tables u, v, w.

    Args: middle: the weights of the middle record.
    """

    middle: OwnPart
    first: _Arms
    second: _Arms

    @cached_property
    def weights(self) -> dict[int, Words]:
        """The weights of the middle record at each cell's place, for each feature that it has."""
        found: dict[int, Words] = {}
        for feature, weight in self.middle.weights():
            found[feature] = found.get(feature, word(0)) + weight
        return found


@dataclass(frozen=True)
class TripleForm:
    """A sum over triples: 6·S = C(H) − Q(H) + ⟨diagonal, H⟩.

    Args:
        twice: f(r, r, s), with record 0 as r. own: the diagonal.
        ring: of tables, in words of 64 bits.
    """

    layout: Layout
    products: tuple[_Product, ...]
    twice: _Arms
    own: OwnPart
    magnitude: int
    ring: Ring = RINGS[-1]

    def over(self, ring: Ring) -> TripleForm:
        """The form of tables in a ring; in words of 64 bits where the ring is narrower."""
        return replace(self, ring=ring) if ring.bits == self.ring.bits else self

    @property
    def _all_arms(self) -> list[_Arms]:
        arms = [arm for product in self.products for arm in (product.first, product.second)]
        return [*arms, self.twice]

    @property
    def cost(self) -> int:
        """The ring operations of one `gradient`, about."""
        return sum(arm.forward.cost + arm.back.cost for arm in self._all_arms)

    @property
    def growth(self) -> int:
        """No weight of a record, and no absolute values of an arm's row added up, is larger."""
        arms = [each.growth for arm in self._all_arms for each in (arm.forward, arm.back)]
        middles = [product.middle.magnitude for product in self.products]
        return max(*arms, *middles, self.own.magnitude)

    def value(self, vector: Words) -> int:
        """C(v) − Q(v) in the ring. Args: vector: (cells,) uint64."""
        return self.ring.encode(self._cubic(vector) - self._quadratic(vector))

    def gradient(self, vector: Words) -> Words:
        """(cells,) uint64: the gradient of `value` at v."""
        ring = self.ring
        # Q is quadratic: its gradient takes the transpose, too
        forward, back = (self._image(m, vector) for m in (self.twice.forward, self.twice.back))
        thrice = ring.times(ring.plus(forward, back), word(3))
        return ring.minus(self.cubic_gradient(vector), thrice)

    def cubic_gradient(self, vector: Words) -> Words:
        """(cells,) uint64: ∇C(v)."""
        ring = self.ring
        total = np.zeros(self.layout.shape, dtype=np.uint64)
        table = vector.reshape(self.layout.shape)
        for product in self.products:
            # both arms of the middle record
            first, second = self._arms(product, vector)
            weighted = np.zeros_like(first)
            for feature, weight in self._weights(product):
                # derivative by the middle record
                middle = ring.times(ring.times(weight, first), second)
                total[feature] = ring.plus(total[feature], middle)
                weighted = ring.plus(weighted, ring.times(weight, table[feature]))
            # derivative by each outer record: the transpose of its arm
            for arm, other in ((product.first, second), (product.second, first)):
                outer = self._image(arm.back, self._single(ring.times(weighted, other)))
                total = ring.plus(total, outer.reshape(total.shape))
        return total.reshape(-1)

    def dealt(self, mask: Words) -> tuple[Words, int]:
        """The vector ∇C(a) and the scalar −C(a) − Q(a) of which the dealer deals shares."""
        # C(Ĥ − a) expanded: what depends on a alone
        scalar = -self._cubic(mask) - self._quadratic(mask)
        return self.cubic_gradient(mask), self.ring.encode(scalar)

    def diagonal(self) -> Words:
        return self.ring.array(self.own.vector().view(np.int64))

    def _weights(self, product: _Product) -> Iterator[tuple[int, Words]]:
        """The middle record's weights, as elements of the ring."""
        for feature, weight in product.weights.items():
            yield feature, self.ring.array(weight.view(np.int64))

    def _image(self, matrix: Matrix, vector: Words) -> Words:
        return self.ring.linear(matrix.apply, vector, matrix.growth)

    def _cubic(self, vector: Words) -> int:
        ring, table = self.ring, vector.reshape(self.layout.shape)
        total = 0
        for product in self.products:
            first, second = self._arms(product, vector)
            for feature, weight in self._weights(product):
                # Σ over middle records of (B₁H)·(B₂H)
                at_cells = ring.times(ring.times(weight, table[feature]), first)
                total += ring.inner(at_cells.reshape(-1), second.reshape(-1))
        return total

    def _quadratic(self, vector: Words) -> int:
        return 3 * self.ring.inner(vector, self._image(self.twice.forward, vector))

    def _arms(self, product: _Product, vector: Words) -> tuple[Words, Words]:
        """(sizes…) uint64 each: what the middle record compares with, at each place."""
        shape = self.layout.shape
        first, second = (
            self._image(arm.forward, vector).reshape(shape)[self._plain]
            for arm in (product.first, product.second)
        )
        return first, second

    def _single(self, block: Words) -> Words:
        """(cells,) uint64: a table with this block for the feature 1 and zeros elsewhere."""
        table = np.zeros(self.layout.shape, dtype=np.uint64)
        table[self._plain] = block
        return table.reshape(-1)

    @cached_property
    def _plain(self) -> int:
        return self.layout.features.index(())


@dataclass(frozen=True)
class TripleTerms:
    """A kernel f of three records as paths, with f(r, r, s) and f(r, r, r) as terms."""

    paths: tuple[Path, ...]
    twice: tuple[ProductTerm, ...]
    single: tuple[ProductTerm, ...]

    @classmethod
    def of(cls, polynomial: Polynomial) -> Self:
        """The terms of a polynomial that `written_out` made. Raises: DoesNotFactor, KernelError."""
        # f(r, r, s): triples with one record twice
        twice = written_out(relabel(polynomial, {0: 0, 1: 0, 2: 1}))
        # f(r, r, r)
        single = relabel(polynomial, {0: 0, 1: 0, 2: 0})
        return cls(tuple(paths_of(polynomial)), terms_of(twice, 2), terms_of(single, 1))

    @property
    def bits(self) -> Iterator[BitAtom]:
        """All comparisons, each between records 0 and 1."""
        for path in self.paths:
            yield from (*path.first.bits, *path.second.bits)
        for term in self.twice:
            yield from term.bits

    @property
    def locals(self) -> Iterator[Monomial]:
        """All factors of single records, the feature 1 among them."""
        yield ()
        for path in self.paths:
            yield from (path.middle, path.first.local, path.second.local)
        for term in (*self.twice, *self.single):
            yield from term.local


def triple_form(layout: Layout, terms: TripleTerms, magnitude: int) -> TripleForm:
    """The form of a kernel's terms over a table that has the feature 1. Raises: DoesNotFactor."""
    middles: dict[Monomial, int] = {}
    arms: dict[Arm, int] = {}
    numbered = []
    for path in terms.paths:
        middle = middles.setdefault(path.middle, len(middles))
        first, second = (arms.setdefault(arm, len(arms)) for arm in (path.first, path.second))
        numbered.append((path.coefficient, (middle, first, second)))
    products = tuple(
        _Product(
            OwnPart(layout, tuple((c, list(middles)[key]) for key, c in middle)),
            _arms_of(layout, list(arms), first),
            _arms_of(layout, list(arms), second),
        )
        # equal factors are joined: fewer products
        for middle, first, second in grouped(numbered, 3)
    )
    entries = [TableEntry(t.coefficient, t.local[0], t.local[1], t.bits) for t in terms.twice]
    own = OwnPart(layout, tuple((2 * term.coefficient, term.local[0]) for term in terms.single))
    return TripleForm(layout, products, _both_ways(layout, entries), own, magnitude)


def _arms_of(layout: Layout, known: Sequence[Arm], combination: Combination) -> _Arms:
    return _both_ways(
        layout, [TableEntry(c, (), known[key].local, known[key].bits) for key, c in combination]
    )


def _both_ways(layout: Layout, entries: Sequence[TableEntry]) -> _Arms:
    """A matrix from record 1 to record 0, and its transpose."""
    turned = [TableEntry(e.coefficient, e.input, e.output, e.bits) for e in entries]
    return _Arms(Matrix(layout, entries), Matrix(layout, turned, output=1, input=0))


# --- paths ----------------------------------------------------------------------------------------

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
        return (conjunction_order(self.bits), monomial_order(self.local))


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
        # open triangles until only paths are left
        changed = _towards_a_path(term)
        if changed is not None:
            waiting += terms_of(changed.scaled(Fraction(term.coefficient)), 3)
            continue
        arms = sorted((_arm(term, 1), _arm(term, 2)), key=lambda arm: arm.order)
        key = (term.local[0], arms[0], arms[1])
        sums[key] = sums.get(key, 0) + term.coefficient
    return [Path(coefficient, *key) for key, coefficient in sums.items() if coefficient]


def _arm(term: ProductTerm, outer: int) -> Arm:
    bits = (bit for bit in term.bits if outer in bit.records)
    return Arm(term.local[outer], frozenset(_renamed(bit, {0: 0, outer: 1}) for bit in bits))


def _renamed(bit: BitAtom, records: dict[int, int]) -> BitAtom:
    """A bit between other records, in the same order."""
    ((monomial, _),) = relabel(poly.atom(bit), records).terms
    ((renamed, _),) = monomial
    if not isinstance(renamed, BitAtom):
        raise DoesNotFactor
    return renamed


def _towards_a_path(term: ProductTerm) -> Polynomial | None:
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


def _unscaled(term: ProductTerm) -> Polynomial:
    """The term with coefficient 1 as a polynomial."""
    product = poly.constant(1)
    for record, local in enumerate(term.local):
        own = Polynomial(((local, Fraction(1)),))
        product = poly.multiply(product, relabel(own, {0: record}))
    return reduce(poly.multiply, map(poly.atom, term.bits), product)


def _without_triangle(term: ProductTerm) -> Polynomial:
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
        # a transitive side says nothing new
        opened = ProductTerm(1, term.local, term.bits - {sides[0, 2]})
        return _unscaled(opened)
    # records `kept` and `gone` are equal, so that the third may be compared with either
    kept, gone = equal
    third = 3 - kept - gone
    away = sides[min(gone, third), max(gone, third)]
    rest = ProductTerm(1, term.local, term.bits - {away})
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
