"""F as a ring of shares: the integers modulo p = 2^64 − 2^32 + 1, in words of 64 bits.

A grid whose nodes may lie adds its tables up in F, because a proof over a field needs few and
short challenges. An operator of integers is applied to words modulo 2^64: to pieces of each element
that are so short that no row of its matrix reaches 2^63.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.crypto import field
from umpc.crypto.prg import SEED_BYTES, Stream
from umpc.crypto.ring import Elements, Entropy, Ring
from umpc.errors import EncodingError, RangeError

WORD_BITS = 64


@dataclass(frozen=True)
class PrimeField(Ring):
    """Z_p. Its elements are uint64 below p."""

    bits: int = WORD_BITS
    largest = field.P // 2
    """The largest integer that an element stands for."""

    def encode(self, value: int) -> int:
        return value % field.P

    def decode(self, element: int) -> int:
        """The signed integer, in −(p − 1)/2 .. (p − 1)/2, that an element stands for."""
        element %= field.P
        return element - field.P if element > field.P // 2 else element

    def array(self, values: NDArray[np.integer[Any]]) -> Elements:
        return field.encode(np.asarray(values).astype(np.int64))

    def drawn(self, stream: Stream, count: int) -> Elements:
        return field.field_elements(stream, count)

    def uniform(self, entropy: Entropy, count: int) -> Elements:
        return field.field_elements(Stream(entropy(SEED_BYTES)), count)

    def checked(self, elements: Elements) -> Elements:
        # one encoding for each element
        if (elements >= np.uint64(field.P)).any():
            raise EncodingError("words from p on came, and elements of the field are below it")
        return elements

    def plus(self, left: Elements, right: Elements) -> Elements:
        return field.add(left, right)

    def minus(self, left: Elements, right: Elements) -> Elements:
        return field.subtract(left, right)

    def times(self, left: Elements, right: Elements) -> Elements:
        return field.multiply(left, right)

    def total(self, elements: Elements) -> int:
        return int(field.total(self.checked(elements)))

    def inner(self, left: Elements, right: Elements) -> int:
        return int(field.inner(left, right))

    def linear(
        self, operator: Callable[[Elements], Elements], vector: Elements, growth: int
    ) -> Elements:
        """A matrix of integers times a vector, by pieces of the elements.

        Raises: RangeError where the matrix is too large for pieces of one bit.
        """
        # growth · 2^bits < 2^63: each product is an integer that a word holds
        bits = min(32, WORD_BITS - 1 - growth.bit_length())
        if bits < 1:
            raise RangeError(f"a row of the operator may reach {growth}; take fewer cells")
        found = np.zeros_like(vector)
        scale, shift = 1, 0
        while shift < WORD_BITS:
            piece = (vector >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
            image = self.array(operator(piece).view(np.int64))
            found = field.add(found, field.multiply(image, field.constant(scale)))
            shift += bits
            scale = pow(2, shift, field.P)
        return found


PRIME = PrimeField()
"""The field of tables, lists and shares where nodes may lie."""
