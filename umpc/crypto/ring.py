"""Arithmetic in Z_{2^w} for the two widths that numpy wraps for free, and packing of narrow values.

The paper writes F_{2^ℓ}; sums of integers need the ring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.errors import EncodingError, RangeError


@dataclass(frozen=True)
class Ring:
    """Z_{2^bits}; elements are unsigned numpy integers of that width."""

    bits: int

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(f"u{self.bits // 8}")

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def encode(self, value: int) -> int:
        """A signed integer as an element."""
        return value & ((1 << self.bits) - 1)

    def decode(self, element: int) -> int:
        """An element as the signed integer nearest to zero."""
        element &= (1 << self.bits) - 1
        return element - (1 << self.bits) if element >> (self.bits - 1) else element

    def array(self, values: np.ndarray) -> np.ndarray:
        """Signed integers as elements."""
        return np.asarray(values).astype(np.int64).view(np.uint64).astype(self.dtype)

    def scalar(self, value: int) -> np.unsignedinteger:
        return self.dtype.type(self.encode(value))


RINGS = (Ring(32), Ring(64))


def smallest_ring(bound: int) -> Ring:
    """The narrowest ring in which integers of magnitude up to bound are told apart.

    Raises: RangeError.
    """
    for ring in RINGS:
        if bound < 1 << (ring.bits - 1):
            return ring
    raise RangeError(
        f"the sum and its noise may reach 2^{bound.bit_length()}, the ring holds 2^{RINGS[-1].bits - 1}; "
        f"narrow the fields' bounds, take a coarser resolution, fewer edges or a larger epsilon"
    )


def packed_size(count: int, width: int) -> int:
    """Bytes of `count` values of `width` bits."""
    return (count * width + 7) // 8


def pack(values: np.ndarray, width: int) -> bytes:
    """The low `width` bits of each value, one after the other, lowest bit first.

    Args: values (n,) of an unsigned type.
    """
    if width == values.dtype.itemsize * 8:
        return values.astype(values.dtype.newbyteorder("<")).tobytes()
    if width == 1 and values.dtype == np.uint8:
        return np.packbits(values, bitorder="little").tobytes()
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)
    bits = np.unpackbits(raw[:, : (width + 7) // 8], axis=1, count=width, bitorder="little")
    return np.packbits(bits, bitorder="little").tobytes()


def unpack(data: bytes, count: int, width: int, dtype: np.dtype | type = np.uint64) -> np.ndarray:
    """The inverse of pack: (count,) of dtype.

    Raises: EncodingError on a wrong length or on set padding bits.
    """
    if len(data) != packed_size(count, width):
        raise EncodingError(
            f"{count} values of {width} bits take {packed_size(count, width)} bytes, got {len(data)}"
        )
    kind = np.dtype(dtype)
    if width == kind.itemsize * 8:
        return np.frombuffer(data, dtype=kind.newbyteorder("<")).astype(kind, copy=False)
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    if bits[count * width :].any():
        raise EncodingError(f"the padding after {count} values of {width} bits is not zero")
    if width == 1 and kind == np.uint8:
        return bits[:count]
    rows = np.packbits(bits[: count * width].reshape(count, width), axis=1, bitorder="little")
    wide = np.zeros((count, kind.itemsize), dtype=np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view(kind.newbyteorder("<")).reshape(count).astype(kind, copy=False)
