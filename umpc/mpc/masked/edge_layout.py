"""Edges of several chunks behind each other, and the bytes of each chunk apart.

Chunks with the same plan are computed as one array along the edges. Each chunk keeps its own seeds,
frames and messages, and in those a chunk's values stand row by row. So the same values have two
orders:

    together      (rows, edges of all chunks)
    chunk by chunk  the first chunk's rows, then the next chunk's rows, …

A single chunk has the same order in both, so nothing is moved for it.

*Masks.* Masked wires: the values that every node sends once per record, and the arithmetic on them.

A node's masks come from its mask seed, which only the node and the dealer know. Public arithmetic
on masked values and the same arithmetic on masks keep `value = masked − mask` true, so this module
does both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import pack, unpack
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray, IntArray, PieceArray, WordArray
from umpc.mpc.masked.plan import Program
from umpc.mpc.masked.plan_items import Linear
from umpc.ustat.clear import Columns
from umpc.ustat.polynomial import evaluate_local

Buffer = bytes | memoryview
Item = TypeVar("Item", bound=np.generic)
Cuttable = TypeVar("Cuttable", bytes, memoryview)


class EdgeLayout:
    """Where each chunk's edges stand among those of all chunks. Args: counts: edges of each."""

    def __init__(self, counts: Sequence[int]):
        self.counts = tuple(counts)
        self.total = sum(self.counts)
        self._indices: dict[int, IntArray] = {}
        self._used: dict[int, IntArray] = {}

        self.is_single = len(self.counts) == 1
        """Whether there is one chunk only."""

        self._fills_bytes = self.is_single and self.total % 8 == 0

    @cached_property
    def _sizes(self) -> IntArray:
        """`counts` as an array. A single chunk has no use for it."""
        return np.array(self.counts, dtype=np.int64)

    @cached_property
    def firsts(self) -> IntArray:
        """The number of edges before each chunk."""
        firsts: IntArray = np.cumsum(self._sizes) - self._sizes
        return firsts

    # --- rows of whole items --------------------------------------------------------------------

    def together(self, values: NDArray[Item], rows: int) -> NDArray[Item]:
        """Values chunk by chunk, (rows · total, …), as (rows, total, …)."""
        if rows == 1 or self.is_single:
            return values.reshape(rows, self.total, *values.shape[1:])
        return values[self._index(rows)]

    def by_chunk(self, values: NDArray[Item]) -> NDArray[Item]:
        """The inverse of `together`."""
        rows, total, *item = values.shape
        if rows == 1 or self.is_single:
            return values.reshape(rows * total, *item)
        moved = np.empty((rows * total, *item), dtype=values.dtype)
        moved[self._index(rows)] = values
        return moved

    def _index(self, rows: int) -> IntArray:
        """The place, chunk by chunk, of each value: (rows, total) int64."""
        if rows not in self._indices:
            row_length = np.repeat(self._sizes, self._sizes)
            start = np.arange(self.total) + np.repeat((rows - 1) * self.firsts, self._sizes)
            self._indices[rows] = start + row_length * np.arange(rows)[:, None]
        return self._indices[rows]

    def join(
        self, parts: Sequence[Buffer], rows: int, kind: Any, item: tuple[int, ...] = ()
    ) -> NDArray[Any]:
        """Little-endian items of each chunk as (rows, total, *item). Args: item: an item's shape.

        Where there is one chunk, the result is a view of its bytes.
        """
        little = _little(kind)
        values = np.frombuffer(_joined(parts), dtype=little)
        if self.is_single:
            return values.reshape(rows, self.total, *item)
        return self.together(values.reshape(rows * self.total, *item), rows)

    def cut(self, values: NDArray[Any]) -> list[memoryview]:
        """The inverse of `join`: the bytes of each chunk, not copied where there is one chunk.

        Args: values: (rows, total, …).
        """
        moved = np.ascontiguousarray(self.by_chunk(values), dtype=_little(values.dtype))
        raw = moved.reshape(-1).view(np.uint8).data
        each = len(raw) // self.total if self.total else 0
        return _pieces(raw, (each * count for count in self.counts))

    # --- packed bits ----------------------------------------------------------------------------

    def join_bits(self, parts: Sequence[Buffer], rows: int, *, padded: bool = True) -> BitArray:
        """Packed bits of each chunk as (rows, total) uint8.

        Args: padded: whether the bits after a chunk's last one are zero, as in a message. They are
            any bits in a key stream.
        Raises: EncodingError where they are not.
        """
        return self.together(self._loose(parts, rows, padded=padded), rows)

    def cut_bits(self, values: BitArray) -> list[bytes]:
        """The packed bits of each chunk. Args: values: (rows, total) uint8."""
        return self._packed(self.by_chunk(values), len(values))

    def join_packed(self, parts: Sequence[Buffer], rows: int, *, padded: bool = True) -> BitArray:
        """Packed bits of each chunk as (rows, ⌈total/8⌉) uint8, eight edges to a byte.

        Args: padded: as in `join_bits`.
        Raises: EncodingError on set padding bits, or where bits are missing.
        """
        if not self._fills_bytes:
            loose = self.join_bits(parts, rows, padded=padded)
            return np.packbits(loose, axis=1, bitorder="little")
        (part,) = parts
        return np.frombuffer(part, dtype=np.uint8).reshape(rows, self.total // 8)

    def join_rows(self, raw: Buffer, rows: int) -> BitArray:
        """The rows of `join_packed`, where each row of each chunk begins with a byte.

        Args: raw: the chunks' bytes, one behind the other. Bits after a row's last are any bits.
        """
        octets = np.frombuffer(raw, dtype=np.uint8)
        if self.is_single:
            return octets.reshape(rows, -1)
        loose = np.unpackbits(octets, bitorder="little")
        sizes = 8 * ((self._sizes + 7) // 8)
        before = np.cumsum(rows * sizes) - rows * sizes
        first = np.arange(self.total) + np.repeat(before - self.firsts, self._sizes)
        places = first + np.repeat(sizes, self._sizes) * np.arange(rows)[:, None]
        return np.packbits(loose[places], axis=1, bitorder="little")

    def cut_packed(self, rows: Sequence[BitArray]) -> list[bytes]:
        """The inverse of `join_packed`. Args: rows: (⌈total/8⌉,) uint8 each, contiguous."""
        if self._fills_bytes:
            return [b"".join(row.data for row in rows)]
        if not rows:
            return [b""] * len(self.counts)
        loose = np.unpackbits(np.stack(rows), axis=1, count=self.total, bitorder="little")
        return self.cut_bits(loose)

    def sizes_of(self, each: int) -> list[int]:
        """The bytes of each chunk. Args: each: bits of an edge."""
        return [(each * count + 7) // 8 for count in self.counts]

    def apart(self, raw: Buffer, each: int) -> list[memoryview]:
        """The bytes of each chunk, of those of all. Args: each: bits of an edge."""
        return _pieces(memoryview(raw), self.sizes_of(each))

    def join_words(self, parts: Sequence[Buffer], width: int) -> WordArray:
        """Packed words of each chunk as (total,) uint64. Raises: EncodingError."""
        if self.is_single or width % 8 == 0:
            return unpack(_joined(parts), self.total, width)
        loose = self._loose(parts, width, padded=True)
        return unpack(np.packbits(loose, bitorder="little").tobytes(), self.total, width)

    def cut_words(self, values: WordArray, width: int) -> list[bytes]:
        """The packed words of each chunk. Args: values: (total,) uint64 below 2^width."""
        raw = pack(values, width)
        if self.is_single or width % 8 == 0:
            return _pieces(raw, (count * width // 8 for count in self.counts[:-1]), rest=True)
        loose = np.unpackbits(np.frombuffer(raw, dtype=np.uint8), bitorder="little")
        return self._packed(loose[: self.total * width], width)

    def _loose(self, parts: Sequence[Buffer], each: int, *, padded: bool) -> BitArray:
        """The bits of all chunks without the padding after each. Args: each: bits of an edge."""
        bits = np.unpackbits(np.frombuffer(_joined(parts), dtype=np.uint8), bitorder="little")
        if self.is_single:
            used, rest = bits[: each * self.total], bits[each * self.total :]
            if padded and rest.any():
                raise EncodingError("the padding after packed bits is not zero")
            return used
        used = bits[self._bits_of(each)]
        if padded and np.count_nonzero(used) != np.count_nonzero(bits):
            raise EncodingError("the padding after packed bits is not zero")
        return used

    def _packed(self, loose: BitArray, each: int) -> list[bytes]:
        """The inverse of `_loose`."""
        sizes = self.sizes_of(each)
        bits = loose
        if not self.is_single:
            bits = np.zeros(8 * sum(sizes), dtype=np.uint8)
            bits[self._bits_of(each)] = loose
        return _pieces(np.packbits(bits, bitorder="little").tobytes(), sizes)

    def _bits_of(self, each: int) -> IntArray:
        """The places of the chunks' bits where each chunk begins with a byte."""
        if each not in self._used:
            bits = each * self._sizes
            padding = -bits % 8
            before = np.cumsum(padding) - padding
            self._used[each] = np.arange(each * self.total) + np.repeat(before, bits)
        return self._used[each]


@cache
def _little(kind: Any) -> np.dtype[Any]:
    """The little-endian type. Chunks ask for a few types over and over."""
    little: np.dtype[Any] = np.dtype(kind).newbyteorder("<")
    return little


def _joined(parts: Sequence[Buffer]) -> Buffer:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _pieces(raw: Cuttable, sizes: Iterable[int], *, rest: bool = False) -> list[Cuttable]:
    """Bytes cut into pieces of these sizes. Args: rest: all that is left is one more piece."""
    stops = [0]
    for size in sizes:
        stops.append(stops[-1] + size)
    if rest:
        stops.append(len(raw))
    return [raw[start:stop] for start, stop in pairwise(stops)]


# --- masks ----------------------------------------------------------------------------------------

NARROW = 32
"""The most bits of a number that is computed with in words of 32 bits."""

WireValues: TypeAlias = Sequence[WordArray]
"""For each wire of the program (n,) uint64, modulo 2^width of the wire."""
PlaceValues: TypeAlias = Mapping[int, WordArray]
"""For each known place of the plan (n,) uint64: its masked values, or its masks."""


def wire_masks(program: Program, mask_seed: bytes, records: int) -> list[WordArray]:
    """A node's masks: for each wire (records,) uint64 below 2^width."""
    return [
        # spec/masked_dealing.py, `record_masks`
        Stream(derive(mask_seed, "mask", number)).words(records) & modulus(wire.width)
        for number, wire in enumerate(program.wires)
    ]


def masked_wires(
    program: Program, columns: Columns, masks: WireValues, records: int
) -> list[WordArray]:
    """A node's wires under their masks: for each wire (records,) uint64 below 2^width."""
    masked = []
    for wire, mask in zip(program.wires, masks, strict=True):
        values = evaluate_local(wire.polynomial, {0: columns}, records).view(np.uint64)
        # one-time pad in Z_2^w: uniform without the mask
        masked.append((values + mask) & modulus(wire.width))
    return masked


def modulus(width: int) -> np.uint64:
    """The bit mask of w bits: reduction is by &, never by %."""
    # & drops whole multiples of 2^w, so it adds no bias
    return np.uint64((1 << width) - 1)


def linear_value(form: Linear, places: PlaceValues) -> WordArray:
    """constant + Σ coefficient · place, modulo 2^64, over the places that are known.

    The result has shape (n,), or () where no place of the form is known. It may be the array of a
    place itself, so nobody may write to it.
    """
    total: WordArray | None = None
    for number, coefficient in form.terms:
        value = places.get(number)
        # a mask that another owner holds
        if value is None:
            continue
        # coefficients are public, so masks scale alike
        if coefficient not in (1, -1):
            value = value * np.uint64(coefficient & (2**64 - 1))
        if total is None:
            total = np.negative(value) if coefficient == -1 else value
        else:
            total = total - value if coefficient == -1 else total + value
    constant = np.array(form.constant & (2**64 - 1), dtype=np.uint64)
    if total is None:
        return constant
    return total + constant if form.constant else total


def top_bit(form: Linear, width: int, places: PlaceValues) -> BitArray:
    """Bit w − 1 of a form of masked values, or of masks: (n,) or () uint8."""
    return bit_of(narrow_value(form, width, places), width - 1)


def bit_of(values: PieceArray, number: int) -> BitArray:
    """Bit `number` of each value, counted from 0: (n,) or () uint8."""
    return (values >> values.dtype.type(number)).astype(np.uint8) & np.uint8(1)


def narrow_value(form: Linear, width: int, places: PlaceValues) -> PieceArray:
    """`linear_value` where only the low w bits are read: uint32 if they fit, which is half as long.

    The bits above w are any bits.
    """
    value = linear_value(form, places)
    # carries go upwards only: low bits need low words
    return value.astype(np.uint32) if width <= NARROW else value


def joined(parts: Sequence[WordArray]) -> WordArray:
    """Values of several chunks behind each other; those of a single chunk as they are."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
