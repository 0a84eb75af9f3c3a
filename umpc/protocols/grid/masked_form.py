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
from umpc.errors import LocalProtocolError
from umpc.protocols.arrays import Words
from umpc.protocols.grid.masks import inner, widened
from umpc.protocols.grid.operators import DyadicGrid, Form, Grid, TripleForm

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

    def of_total(self, total: Elements) -> tuple[int, Elements]:
        """The part of the sum that everybody knows, and the vector by which masks are multiplied.

        Args: total: (cells,) of `working_kind`. Returns: congruent to the part; (cells,).
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

    def of_total(self, total: Elements) -> tuple[int, Elements]:
        image = self.form.apply(total)
        public = inner(total, image)
        image += image
        return public, image

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        return None, inner(mask, self.form.apply(mask))

    def own(self, table: Words) -> int:
        return -inner(self.form.diagonal(), table)


@dataclass(frozen=True)
class TripleSum:
    """A sum over triples, six times."""

    form: TripleForm

    def of_total(self, total: Elements) -> tuple[int, Elements]:
        return self.form.value(widened(total)), self.form.gradient(widened(total))

    def dealt(self, mask: Elements) -> tuple[Elements | None, int]:
        return self.form.dealt(widened(mask))

    def own(self, table: Words) -> int:
        return inner(self.form.diagonal(), table)


def masked_forms(grid: Grid | DyadicGrid) -> Iterator[MaskedForm]:
    """The sums of a grid. Raises: LocalProtocolError for a sum over single records."""
    for form in grid.forms:
        if isinstance(form, TripleForm):
            yield TripleSum(form)
        elif form.degree == 2:
            yield PairSum(form)
        else:
            raise LocalProtocolError(f"a grid masks no sum over {form.degree} record(s)")
