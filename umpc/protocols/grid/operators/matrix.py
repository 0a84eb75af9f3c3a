"""A·v for the matrix A of terms over two records, as sums of products of legs; A is not written.

*Factoring.* Sums of products over axes, with as few products as grouping by proportional parts
finds.

sign(x − x′)·sign(y − y′) has nine products of bits. Grouped, it is one product: the sign along one
axis times the sign along the other. Coefficients stay integers, so all is exact modulo 2^64.

*Form.* One sum over pairs that a study releases, as a quadratic form of the table.

2·S = HᵀAH − ⟨diagonal, H⟩ modulo 2^64, where S is the sum of the kernel over all pairs in the
kernel's units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Word
from umpc.mpc.arrays import Words
from umpc.protocols.grid.operators.axis import (
    Axis,
    BilinearBit,
    DoesNotFactor,
    bilinear_of,
    intersection,
)
from umpc.protocols.grid.operators.layout import Layout, Placed
from umpc.protocols.grid.operators.leg import Leg, Piece, to_words, word
from umpc.ustat.normal_form import BitAtom, Monomial


class TableEntry(NamedTuple):
    """coefficient · own(output's record) · own(input's record) · Π bits."""

    coefficient: int
    output: Monomial
    input: Monomial
    bits: frozenset[BitAtom]


class _Key(NamedTuple):
    """An operator from one axis to another: its comparisons, and the weights on both sides."""

    links: frozenset[BilinearBit]
    outer: Monomial
    inner: Monomial


@dataclass(frozen=True)
class _Chain:
    """A product of legs between two blocks. order[k]: the input axis of output axis k."""

    output: int
    input: int
    order: tuple[int, ...]
    legs: tuple[Leg, ...]


class Matrix:
    """The matrix Σ entries over the cells of a layout, between two of an edge's records.

    Args: output, input: the numbers of the records in the entries' bits.
    Raises: DoesNotFactor.
    """

    def __init__(
        self, layout: Layout, entries: Iterable[TableEntry], output: int = 0, input: int = 1
    ):
        self.layout = layout
        self._entries = tuple(entries)
        blocks: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, tuple[int, ...]]]] = {}
        keys: dict[_Key, int] = {}
        for entry in self._entries:
            left, right = layout.place(entry.output), layout.place(entry.input)
            # each comparison links one axis of either record
            links = [bilinear_of(bit, output, input) for bit in entry.bits]
            # a product over axes: one operator for each
            order, parts = _along_axes(layout.axes, links, left, right)
            numbers = tuple(keys.setdefault(part, len(keys)) for part in parts)
            block = (left.feature, right.feature, order)
            blocks.setdefault(block, []).append((entry.coefficient, numbers))
        self._known = list(keys)
        self.chains = tuple(
            _Chain(*block, self._legs(block[2], product))
            for block, terms in blocks.items()
            for product in grouped(terms, len(layout.axes))
        )

    @property
    def cost(self) -> int:
        """The ring operations of one product A·v, about."""
        block = prod(self.layout.shape[1:])
        return block * sum(1 + sum(leg.cost for leg in chain.legs) for chain in self.chains)

    @cached_property
    def growth(self) -> int:
        """No sum of absolute values in a row of A is larger."""
        most = self.layout.most
        return self.layout.cells * sum(
            abs(each.coefficient) * most(each.output) * most(each.input) for each in self._entries
        )

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        """(cells,) → (cells,) in the vector's ring: A·v. The vector is not changed."""
        source = vector.reshape(self.layout.shape)
        blocks: list[NDArray[Word] | None] = [None] * self.layout.shape[0]
        for chain in self.chains:
            made = self._chained(chain, source[chain.input])
            known = blocks[chain.output]
            if known is None:
                blocks[chain.output] = made
            else:
                known += made
        if len(blocks) == 1 and blocks[0] is not None:
            return blocks[0].reshape(-1)
        target = np.zeros(self.layout.shape, dtype=vector.dtype)
        for row, block in zip(target, blocks, strict=True):
            if block is not None:
                row[...] = block
        return target.reshape(-1)

    def inner(self, left: Sequence[Words], right: Sequence[Words]) -> int:
        """⟨v, A·w⟩ modulo 2^64 for products of vectors, in time linear in the axes' sizes.

        Args: left, right: the factors of v and w: (features,), then (size,) for each axis.
        """
        total = 0
        for chain in self.chains:
            product = int(left[0][chain.output]) * int(right[0][chain.input])
            for place, leg in enumerate(chain.legs):
                image = np.empty((1, leg.outputs, 1), dtype=np.uint64)
                leg.apply(right[1 + chain.order[place]].reshape(1, -1, 1), image)
                # ⟨v, A·w⟩ factors over the axes
                product *= int(np.dot(left[1 + place], image.reshape(-1)))
            total += product
        return total % (1 << 64)

    def _legs(self, order: Sequence[int], product: Sequence[Combination]) -> tuple[Leg, ...]:
        axes = self.layout.axes
        legs = []
        for place, combination in enumerate(product):
            outer, inner = axes[place], axes[order[place]]
            pieces = [
                self._piece(self._known[key], place, order[place], coefficient)
                for key, coefficient in combination
            ]
            legs.append(Leg(pieces, inner.size, outer.size))
        return tuple(legs)

    def _piece(self, key: _Key, outer: int, inner: int, coefficient: int) -> Piece:
        axes = self.layout.axes
        return Piece(
            coefficient,
            intersection(key.links, axes[outer], axes[inner]),
            self._weight(outer, key.outer),
            self._weight(inner, key.inner),
        )

    def _weight(self, axis: int, factors: Monomial) -> Words | None:
        return to_words(self.layout.weight(axis, factors)) if factors else None

    def _chained(self, chain: _Chain, block: NDArray[Word]) -> NDArray[Word]:
        """One product of legs applied to one block, (sizes…) → (sizes…)."""
        current = block
        for place, leg in enumerate(chain.legs):
            axis = chain.order[place]
            shape = current.shape
            target_shape = (*shape[:axis], leg.outputs, *shape[axis + 1 :])
            if current is block or target_shape != shape:
                target = np.empty(target_shape, dtype=block.dtype)
            else:
                target = current
            outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
            # one axis after the other: Π of legs
            leg.apply(
                current.reshape(outer, leg.inputs, inner), target.reshape(outer, leg.outputs, inner)
            )
            current = target
        if chain.order != tuple(range(len(chain.order))):
            current = np.ascontiguousarray(current.transpose(chain.order))
        return current


def _along_axes(
    axes: Sequence[Axis], links: Iterable[BilinearBit], left: Placed, right: Placed
) -> tuple[tuple[int, ...], tuple[_Key, ...]]:
    """The input axis of each output axis, and the operator between them.

    Raises: DoesNotFactor where one axis is compared with two.
    """
    numbers = {axis.form: place for place, axis in enumerate(axes)}
    pairs: dict[int, int] = {}
    along: dict[int, list[BilinearBit]] = {}
    for link in links:
        outer, inner = numbers[link.first], numbers[link.second]
        # one axis against two: no product over axes
        if pairs.setdefault(outer, inner) != inner:
            raise DoesNotFactor
        along.setdefault(outer, []).append(link)
    if len(set(pairs.values())) < len(pairs):
        raise DoesNotFactor
    free = [place for place in range(len(axes)) if place not in pairs.values()]
    # an axis that is not compared keeps its place where it can
    for outer in range(len(axes)):
        if outer not in pairs and outer in free:
            pairs[outer] = outer
            free.remove(outer)
    for outer in range(len(axes)):
        if outer not in pairs:
            pairs[outer] = free.pop()
    order = tuple(pairs[outer] for outer in range(len(axes)))
    keys = tuple(
        _Key(frozenset(along.get(outer, ())), left.weights[outer], right.weights[inner])
        for outer, inner in enumerate(order)
    )
    return order, keys


# --- factoring ------------------------------------------------------------------------------------

Combination: TypeAlias = tuple[tuple[int, int], ...]
"""(key, coefficient) of the operators along one axis, by ascending key."""
Product: TypeAlias = tuple[Combination, ...]
"""One combination for each axis."""


def grouped(terms: Iterable[tuple[int, tuple[int, ...]]], axes: int) -> list[Product]:
    """Σ coefficient · Π keys as a sum of products of combinations.

    Args: terms: (coefficient, one key per axis). axes: the number of axes, at least 1.
    """
    products: list[Product] = []
    for coefficient, keys in terms:
        first, *others = keys
        products.append((((first, coefficient),), *(((key, 1),) for key in others)))
    while True:
        before = len(products)
        for axis in range(axes):
            # a·c + b·c = (a + b)·c, axis by axis
            products = _merged(products, axis)
        if len(products) == before:
            return products


def _merged(products: Sequence[Product], axis: int) -> list[Product]:
    """The products, with those that differ along one axis only as one."""
    sums: dict[tuple[Combination, ...], dict[int, int]] = {}
    for product in products:
        scale = 1
        rest = []
        for place, combination in enumerate(product):
            if place != axis:
                # up to a factor, so that more products merge
                factor, primitive = _primitive(combination)
                scale *= factor
                rest.append(primitive)
        total = sums.setdefault(tuple(rest), {})
        for key, coefficient in product[axis]:
            total[key] = total.get(key, 0) + scale * coefficient
    found = []
    for rest_of, total in sums.items():
        kept = tuple(sorted((key, c) for key, c in total.items() if c))
        if kept:
            found.append((*rest_of[:axis], kept, *rest_of[axis:]))
    return found


def _primitive(combination: Combination) -> tuple[int, Combination]:
    """A factor, and the combination divided by it, of which the first coefficient is positive."""
    factor = gcd(*(coefficient for _, coefficient in combination))
    if combination[0][1] < 0:
        factor = -factor
    return factor, tuple((key, coefficient // factor) for key, coefficient in combination)


# --- form -----------------------------------------------------------------------------------------


class Form(Protocol):
    """A sum over all pairs of records as a polynomial of the table H, modulo 2^64."""

    @property
    def magnitude(self) -> int:
        """max |kernel| in units, or a bound of it; no entry of A at two records is larger.

        |2·S| ≤ 2 · edges · magnitude must stay below half of the ring's modulus.
        """
        ...

    @property
    def cost(self) -> int:
        """The ring operations of one `apply`, about."""
        ...

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        """(cells,) → (cells,) in the vector's ring: A·vector, for any vector; A is symmetric."""
        ...

    def diagonal(self) -> Words:
        """(cells,) uint64: the factors of the table's entries in the sum of f(r, r)."""
        ...


@dataclass(frozen=True)
class OwnPart:
    """A sum over single records, Σ coefficient · own factors, as factors of a layout's cells."""

    layout: Layout
    terms: tuple[tuple[int, Monomial], ...]

    def vector(self) -> Words:
        """(cells,) uint64. A sum without terms takes no memory until it is read."""
        vector = np.zeros(self.layout.shape, dtype=np.uint64)
        for feature, weight in self.weights():
            vector[feature] += weight
        return vector.reshape(-1)

    @property
    def magnitude(self) -> int:
        """No factor is larger, as an absolute value."""
        return sum(abs(coefficient) * self.layout.most(local) for coefficient, local in self.terms)

    def weights(self) -> list[tuple[int, Words]]:
        """Each term's feature, and its factor at each place: uint64 that broadcasts to (sizes…)."""
        found = []
        for coefficient, local in self.terms:
            placed = self.layout.place(local)
            product = word(coefficient)
            for axis, factors in enumerate(placed.weights):
                shape = [1] * len(self.layout.axes)
                shape[axis] = -1
                if factors:
                    weight = to_words(self.layout.weight(axis, factors))
                    # own factors at each place, as an outer product
                    product = product * weight.reshape(shape)
            found.append((placed.feature, product))
        return found


@dataclass(frozen=True)
class PairForm:
    """A sum over pairs: 2·S = HᵀAH − ⟨diagonal, H⟩."""

    matrix: Matrix
    own: OwnPart
    magnitude: int

    @property
    def cost(self) -> int:
        return self.matrix.cost

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        return self.matrix.apply(vector)

    def diagonal(self) -> Words:
        return self.own.vector()
