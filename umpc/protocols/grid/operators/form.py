"""One sum over pairs that a study releases, as a quadratic form of the table.

2·S = HᵀAH − ⟨diagonal, H⟩ modulo 2^64, where S is the sum of the kernel over all pairs in the
kernel's units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Word
from umpc.protocols.arrays import Words
from umpc.protocols.grid.operators.layout import Layout
from umpc.protocols.grid.operators.leg import to_words, word
from umpc.protocols.grid.operators.matrix import Matrix
from umpc.ustat.normal_form import Monomial


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
