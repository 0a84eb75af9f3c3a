"""A sum over all sets of records from the total of masked tables, and what the dealer deals for it.

H is the table of all records, a the sum of all masks, and Ĥ = H + a the total. Modulo 2^64,

    2·S = ĤᵀAĤ − ⟨a, 2·A·Ĥ⟩ + aᵀAa − ⟨diagonal, H⟩                        over pairs,
    6·S = value(Ĥ) − ⟨a, gradient(Ĥ)⟩ + ⟨Ĥ, g⟩ + s + ⟨diagonal, H⟩        over triples,

where g = ∇C(a) and s = −C(a) − Q(a) (`operators/triples.py`). Each addend is a public function of
Ĥ, or linear in something of which every node has a share: a, g, s or aᵀAa, and H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial
from typing import Any, Protocol

import numpy as np

from umpc.crypto.ring import Elements, Ring
from umpc.protocols.arrays import Words
from umpc.protocols.grid.masks import inner, widened
from umpc.protocols.grid.operators import DyadicGrid, Form, Grid, TripleForm
from umpc.protocols.grid.operators.form import PairForm

VECTORS_FROM = 3
"""The least degree for which the dealer deals shares of a vector besides those of a number."""


def factor_of(degree: int) -> int:
    """The number of times that a set is in a sum over ordered records: shares are of so many S."""
    return factorial(degree)


def working_kind(ring: Ring, degree: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The type of vectors on which operators work: the ring's own, or 64 bits over triples."""
    return np.dtype(np.uint64) if degree >= VECTORS_FROM else ring.dtype


class MaskedForm(Protocol):
    """One of a study's sums."""

    times: int
    """The multiple of ⟨mask, image⟩ that a share is less by."""

    def image(self, total: Elements) -> Elements:
        """The vector by which masks are multiplied. Args: total: (cells,) of `working_kind`."""
        ...

    def public(self, total: Elements, image: Elements) -> int:
        """The part of the sum that everybody knows. Args: image: of this total.

        Returns: congruent to the part.
        """
        ...

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        """The vector, if there is one, and the number of which the dealer deals shares.

        Args: mask: (cells,) of `working_kind`, the sum of all masks.
        """
        ...

    def own(self, table: Words) -> int:
        """A node's part that is linear in its own table. Args: table: (cells,) uint64."""
        ...


@dataclass(frozen=True)
class PairSum:
    """A sum over pairs, doubled."""

    form: Form
    times = 2

    def image(self, total: Elements) -> Elements:
        return self.form.apply(total)

    def public(self, total: Elements, image: Elements) -> int:
        return inner(total, image)

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        return None, inner(mask, self.form.apply(mask))

    def own(self, table: Words) -> int:
        if isinstance(self.form, PairForm) and not self.form.own.terms:
            return 0  # f(r, r) is 0, as for differences and signs of them
        return -inner(self.form.diagonal(), table)


@dataclass(frozen=True)
class TripleSum:
    """A sum over triples, six times."""

    form: TripleForm
    times = 1

    def image(self, total: Elements) -> Elements:
        return self.form.gradient(widened(total))

    def public(self, total: Elements, image: Elements) -> int:
        return self.form.value(widened(total))

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        return self.form.dealt(widened(mask))

    def own(self, table: Words) -> int:
        return inner(self.form.diagonal(), table)


def masked_forms(grid: Grid | DyadicGrid) -> Iterator[MaskedForm]:
    """The sums of a grid."""
    for form in grid.forms:
        if isinstance(form, TripleForm):
            yield TripleSum(form)
        else:
            yield PairSum(form)
