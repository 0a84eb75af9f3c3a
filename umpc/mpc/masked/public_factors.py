"""The public factors of products of masks of bits, in a type of few bits.

A term c·Π b over opened bits, with b = m + (1 − 2m)s for the opened bit m and its mask s, is a sum
over subsets of the bits: c·Π m over the others · Π (1 − 2m) · Π s. `SharedPolynomial.of_bits` has
the sums of all terms, mask product by mask product. Here they are computed for all edges. A product
of fewer bits is a product, too, so each takes one more factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Ring
from umpc.mpc.arrays import BitArray
from umpc.mpc.masked.plan_items import SharedPolynomial, Term

Kind: TypeAlias = np.dtype[np.integer[Any]]
"""A type of integers."""
Bits: TypeAlias = tuple[int, ...]
"""The numbers of the bits of a product."""


_ONE, _TWO = np.int8(1), np.int8(2)


class PublicFactors:
    """Products of opened bits.

    bits: each opened bit under its mask, eight edges to a byte. It grows. count: edges.
    """

    def __init__(self, bits: Mapping[int, BitArray], count: int):
        self._bits = bits
        self._count = count
        self._opened: dict[Bits, NDArray[np.int8]] = {}
        self._signs: dict[Bits, NDArray[np.int8]] = {}

    def __repr__(self) -> str:
        return "PublicFactors(<redacted>)"

    def opened(self, bits: Bits) -> NDArray[np.int8]:
        """Π m over some bits, at least one: (count,) int8."""
        if bits not in self._opened:
            *fewer, bit = bits
            if fewer:
                found = self.opened(tuple(fewer)) & self.opened((bit,))
            else:
                loose = np.unpackbits(self._bits[bit], count=self._count, bitorder="little")
                found = loose.view(np.int8)
            self._opened[bits] = found
        return self._opened[bits]

    def signs(self, bits: Bits) -> NDArray[np.int8]:
        """Π (1 − 2m) over some bits, at least one: (count,) int8."""
        if bits not in self._signs:
            *fewer, bit = bits
            sign = self.signs(tuple(fewer)) * self.signs((bit,)) if fewer else self._sign(bit)
            self._signs[bits] = sign
        return self._signs[bits]

    def _sign(self, bit: int) -> NDArray[np.int8]:
        sign: NDArray[np.int8] = _ONE - _TWO * self.opened((bit,))
        return sign

    def of_bits(
        self, polynomial: SharedPolynomial, ring: Ring
    ) -> dict[Bits, NDArray[np.integer[Any]]]:
        """For each product of masks its public factor: (count,) of a narrow type, or of the ring.

        A signed factor becomes the ring element that stands for it.
        """
        kind = _narrowest(polynomial.terms, ring)
        return {
            masks: self._times_signs(masks, self._sum(sums, kind, ring))
            for masks, sums in polynomial.of_bits.items()
        }

    def _sum(self, sums: Mapping[Bits, int], kind: Kind, ring: Ring) -> NDArray[np.integer[Any]]:
        """Σ coefficient · Π m: (count,) of a type, or () for a constant."""
        total: NDArray[np.integer[Any]] | None = None
        constant = 0
        for bits, coefficient in sums.items():
            if not bits:
                constant = coefficient
                continue
            product = self.opened(bits).astype(kind, copy=False)
            if coefficient != 1:
                product = product * _number(coefficient, kind, ring)
            total = product if total is None else total + product
        number = _number(constant, kind, ring)
        if total is None:
            return np.array(number)
        return total + number if constant else total

    def _times_signs(
        self, masks: Bits, total: NDArray[np.integer[Any]]
    ) -> NDArray[np.integer[Any]]:
        if not masks:
            return total
        product: NDArray[np.integer[Any]]
        product = self.signs(masks).astype(total.dtype, copy=False) * total
        return product


@lru_cache(maxsize=1 << 10)
def _number(value: int, kind: Kind, ring: Ring) -> np.integer[Any]:
    """A coefficient in a type: signed in a narrow one, encoded in the ring."""
    number: np.integer[Any] = kind.type(ring.encode(value) if kind == ring.dtype else value)
    return number


def _narrowest(terms: Iterable[Term], ring: Ring) -> Kind:
    """A type of few bits that holds the public factors of terms without numbers, or the ring's."""
    most = sum(abs(term.coefficient) for term in terms if not term.factors)
    for kind in (np.dtype(np.int8), np.dtype(np.int16)):
        if most <= np.iinfo(kind).max:
            return kind
    return ring.dtype
