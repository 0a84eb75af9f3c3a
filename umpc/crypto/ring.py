"""Arithmetic in Z_{2^w} for the two widths that numpy wraps by itself; packing of narrow values.

Sinh & Ramon 2025 write F_{2^ℓ}. Sums of integers need the ring, whose addition carries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import Stream
from umpc.errors import EncodingError, RangeError

Elements: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Ring elements: uint32 in Z_{2^32}, uint64 in Z_{2^64}."""
Word = TypeVar("Word", bound=np.unsignedinteger[Any])
Entropy: TypeAlias = Callable[[int], bytes]
"""Number of bytes → uniform bytes."""


@dataclass(frozen=True)
class Ring:
    """Z_{2^bits}. Its elements are unsigned numpy integers of that width, 32 or 64."""

    bits: int

    @cached_property
    def dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The numpy type of an element."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.bits // 8

    def encode(self, value: int) -> int:
        """The element that stands for a signed integer."""
        # & keeps residues uniform; % of a stream would not
        return value & ((1 << self.bits) - 1)

    def decode(self, element: int) -> int:
        """The signed integer, in −2^(bits−1) .. 2^(bits−1) − 1, that an element stands for."""
        element &= (1 << self.bits) - 1
        # two's complement
        is_negative = element >> (self.bits - 1)
        return element - (1 << self.bits) if is_negative else element

    def array(self, values: NDArray[np.integer[Any]]) -> Elements:
        """The elements that stand for an array of signed integers; the shape stays."""
        return np.asarray(values).astype(np.int64).view(np.uint64).astype(self.dtype)

    def scalar(self, value: int) -> np.unsignedinteger[Any]:
        """The element that stands for a signed integer, as a numpy scalar."""
        element: np.unsignedinteger[Any] = self.dtype.type(self.encode(value))
        return element

    # ---- vectors of elements, as a grid adds them up; `PrimeField` has its own -----------------

    def drawn(self, stream: Stream, count: int) -> Elements:
        """The next uniform elements of a key stream: (count,)."""
        return stream.words(count, self.dtype)

    def uniform(self, entropy: Entropy, count: int) -> Elements:
        """Fresh uniform elements: (count,)."""
        return np.frombuffer(entropy(self.bytes * count), dtype=self.dtype)

    def checked(self, elements: Elements) -> Elements:
        """Elements that somebody sent. Raises: EncodingError where a word is none."""
        return elements

    def plus(self, left: Elements, right: Elements) -> Elements:
        """left + right, element by element."""
        return left + right

    def minus(self, left: Elements, right: Elements) -> Elements:
        """left − right, element by element."""
        return left - right

    def times(self, left: Elements, right: Elements) -> Elements:
        """left · right, element by element. Shapes broadcast."""
        return left * right

    def total(self, elements: Elements) -> int:
        """The sum of all elements: congruent to it, and not negative."""
        return int(elements.sum(dtype=self.dtype))

    def inner(self, left: Elements, right: Elements) -> int:
        """⟨left, right⟩, in one pass without an array of products.

        Args: both (n,) of one type, which is at least as wide as the ring.
        Returns: congruent to it, and not negative.
        """
        # products wrap mod 2^w, which is what is wanted
        return int(np.einsum("i,i->", left, right))

    def linear(
        self, operator: Callable[[Elements], Elements], vector: Elements, growth: int
    ) -> Elements:
        """A matrix of integers times a vector.

        Args: operator: the product modulo 2^w of any vector of words. growth: no sum of absolute
            values in a row of the matrix is larger.
        """
        return operator(vector)


RINGS = (Ring(32), Ring(64))


def ring_that_holds(bound: int) -> Ring | None:
    """The narrowest ring that tells all integers of magnitude up to `bound` apart, if one does."""
    # sums with their noise never wrap around
    return next((ring for ring in RINGS if bound < 1 << (ring.bits - 1)), None)


def smallest_ring(bound: int) -> Ring:
    """The narrowest ring that tells all integers of magnitude up to `bound` apart.

    Raises: RangeError where no ring does.
    """
    if ring := ring_that_holds(bound):
        return ring
    raise RangeError(
        f"the sum with its noise may reach 2^{bound.bit_length()}, but "
        f"the ring holds 2^{RINGS[-1].bits - 1} at most; narrow the fields' bounds, take a "
        f"coarser resolution or fewer edges, or allow a larger epsilon"
    )


def packed_size(count: int, width: int) -> int:
    """Bytes of `count` values of `width` bits."""
    return (count * width + 7) // 8


def pack(values: NDArray[np.integer[Any] | np.bool_], width: int) -> bytes:
    """The low `width` bits of each value, one after the other, lowest bit first.

    Args: values: (n,) of a type that has at least `width` bits.
    """
    # two common cases need no bits to be moved one by one
    if width == values.dtype.itemsize * 8:
        return values.astype(values.dtype.newbyteorder("<")).tobytes()
    if width == 1 and values.dtype == np.uint8:
        return np.packbits(values, bitorder="little").tobytes()
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    bits = np.unpackbits(raw[:, : (width + 7) // 8], axis=1, count=width, bitorder="little")
    return np.packbits(bits, bitorder="little").tobytes()


@overload
def unpack(data: bytes | memoryview, count: int, width: int) -> NDArray[np.uint64]: ...


@overload
def unpack(
    data: bytes | memoryview, count: int, width: int, dtype: type[Word] | np.dtype[Word]
) -> NDArray[Word]: ...


def unpack(
    data: bytes | memoryview, count: int, width: int, dtype: Any = np.uint64
) -> NDArray[Any]:
    """The inverse of `pack`.

    Returns: (count,) of `dtype`.
    Raises: EncodingError on a wrong length or on set padding bits.
    """
    expected = packed_size(count, width)
    if len(data) != expected:
        raise EncodingError(
            f"{count} values of {width} bits take {expected} bytes, got {len(data)}"
        )
    kind: np.dtype[np.unsignedinteger[Any]] = np.dtype(dtype)
    if width == kind.itemsize * 8:
        return np.frombuffer(data, dtype=kind.newbyteorder("<")).astype(kind, copy=False)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    padding = -count * width % 8
    # one encoding for each value
    if padding and data[-1] >> (8 - padding):
        raise EncodingError(f"the padding after {count} values of {width} bits is not zero")
    if width == 1 and kind == np.uint8:
        return bits[:count]
    rows = np.packbits(bits[: count * width].reshape(count, width), axis=1, bitorder="little")
    wide = np.zeros((count, kind.itemsize), dtype=np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view(kind.newbyteorder("<")).reshape(count).astype(kind, copy=False)
