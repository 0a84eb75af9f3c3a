"""The dealer's material for one chunk of a cell, and the part that owners expand from seeds.

| | every owner | all but the last | the last |
|---|---|---|---|
| from its seed | roots of its keys, masks of what it opens | shares of the products of masks | |
| dealt | its keys | | corrected shares of the products of masks |

The products of masks are the plan's elements, its bit elements and the rows of its tables. The mask
σ under which a bit is opened is the exclusive or of its contributors' masks, and of msb(r) if the
bit is the sign of a difference. The mask of a word is the sum of its contributors' masks. The seeds
fix these masks, so no mask is sent. Every piece is bound to (attempt, cell, chunk) through the
labels that its seed is derived with, and is used once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import packed_size, unpack
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray, RingArray, WordArray
from umpc.mpc.chunks import ChunkPlan
from umpc.mpc.masked.dcf import ComparisonKeys, key_bytes
from umpc.mpc.masked.masks import modulus
from umpc.mpc.masked.one_hot import Rows, row_type, row_words
from umpc.mpc.masked.plan import Plan


@dataclass(frozen=True)
class Shares:
    """A party's shares of products of masks.

    elements: (elements, n) of the ring. tables: for each table (words, n) words (`one_hot.py`).
    bits: (bit elements, ⌈n/8⌉) uint8, eight edges to a byte.
    """

    elements: RingArray
    tables: tuple[Rows, ...]
    bits: BitArray

    def __repr__(self) -> str:
        return "Shares(<redacted>)"

    @classmethod
    def expand(cls, plan: Plan, seed: bytes, count: int) -> Shares:
        """The shares of a party other than the last, from its chunk seed."""
        rows = len(plan.elements)
        elements = Stream(derive(seed, "elements")).words(rows * count, plan.ring.dtype)
        tables = Stream(derive(seed, "tables")).bytes(_table_bytes(plan, count))
        size = packed_size(count, 1)
        bits = Stream(derive(seed, "bits")).bytes(len(plan.bit_elements) * size)
        return cls(
            elements.reshape(rows, count),
            _read_tables(plan, memoryview(tables), count),
            np.frombuffer(bits, dtype=np.uint8).reshape(len(plan.bit_elements), size),
        )

    def encode(self, count: int) -> bytes:
        """The bytes on the wire: elements and tables little-endian, then bits packed."""
        elements = self.elements.astype(self.elements.dtype.newbyteorder("<"), copy=False)
        bits = self.bits
        if count % 8:  # the rows follow each other without padding
            bits = np.unpackbits(bits, axis=1, count=count, bitorder="little").reshape(-1)
            bits = np.packbits(bits, bitorder="little")
        return b"".join(array.tobytes() for array in (elements, *self.tables, bits))

    @classmethod
    def decode(cls, plan: Plan, data: memoryview, count: int) -> Shares:
        """The inverse of encode, of as many bytes as are due. Raises: EncodingError."""
        rows = len(plan.elements)
        kind = plan.ring.dtype.newbyteorder("<")
        tables = rows * plan.ring.bytes * count
        bits = tables + _table_bytes(plan, count)
        return cls(
            np.frombuffer(data[:tables], dtype=kind).reshape(rows, count),
            _read_tables(plan, data[tables:bits], count),
            _read_bits(data[bits:], len(plan.bit_elements), count),
        )


@dataclass(frozen=True)
class SeededPart:
    """Everything that a party expands from its chunk seed.

    roots: for each comparison of which it holds a key, (n, 2) uint64.
    bit_masks: for each bit that it opens, (n,) uint8.
    place_masks: for each place that it opens, (n,) uint64 below 2^width.
    shares: None for the last party, which gets its shares from the dealer.
    """

    roots: dict[int, WordArray]
    bit_masks: dict[int, BitArray]
    place_masks: dict[int, WordArray]
    shares: Shares | None

    def __repr__(self) -> str:
        return "SeededPart(<redacted>)"

    @classmethod
    def expand(cls, plan: Plan, seed: bytes, party: int, count: int) -> SeededPart:
        """The part of one party in a chunk of `count` edges."""
        roots = Stream(derive(seed, "roots"))
        sigma = Stream(derive(seed, "sigma"))
        words = Stream(derive(seed, "places"))
        layers = range(len(plan.layers))
        bits = [bit for layer in layers for bit in plan.opened_bits(layer, party)]
        places = [place for layer in layers for place in plan.opened_places(layer, party)]
        bit_masks = sigma.bits(len(bits) * count).reshape(len(bits), count)
        is_last = party == plan.parties - 1
        return cls(
            roots={
                number: roots.words(2 * count).reshape(count, 2)
                for number in plan.holds_keys(party)
            },
            bit_masks=dict(zip(bits, bit_masks, strict=True)),
            place_masks={
                place: words.words(count) & modulus(plan.place_width(place)) for place in places
            },
            shares=None if is_last else Shares.expand(plan, seed, count),
        )


@dataclass(frozen=True)
class DealtPart:
    """The dealer's message to a party: its keys by comparison, and to the last party its shares."""

    keys: dict[int, ComparisonKeys]
    shares: Shares | None

    def __repr__(self) -> str:
        return "DealtPart(<redacted>)"

    def encode(self) -> bytes:
        """The bytes on the wire: keys in order, then the shares."""
        parts = [keys.encode() for keys in self.keys.values()]
        if self.shares is not None:
            parts.append(self.shares.encode(self.shares.elements.shape[1]))
        return b"".join(parts)

    @classmethod
    def decode(cls, plan: Plan, data: bytes, party: int, count: int) -> DealtPart:
        """The inverse of encode. Raises: EncodingError on a wrong length."""
        expected = dealt_bytes(plan, party, count)
        if len(data) != expected:
            raise EncodingError(
                f"material of {count} edges takes {expected} bytes, and {len(data)} came"
            )
        view = memoryview(data)
        start = 0
        keys = {}
        for number in plan.holds_keys(party):
            width = plan.comparisons[number].width
            stop = start + key_bytes(width) * count
            keys[number] = ComparisonKeys.decode(view[start:stop], width, count)
            start = stop
        if party < plan.parties - 1:
            return cls(keys, None)
        return cls(keys, Shares.decode(plan, view[start:], count))


def _table_bytes(plan: Plan, count: int) -> int:
    """Bytes of all tables of a chunk."""
    return sum(table.bits for table in plan.tables) // 8 * count


def _read_tables(plan: Plan, data: memoryview, count: int) -> tuple[Rows, ...]:
    """The tables of a chunk, one after the other."""
    start = 0
    found = []
    for table in plan.tables:
        stop = start + table.bits // 8 * count
        words = np.frombuffer(data[start:stop], dtype=row_type(table))
        found.append(words.reshape(row_words(table), count))
        start = stop
    return tuple(found)


def _read_bits(data: memoryview, rows: int, count: int) -> BitArray:
    """Rows of bits, eight edges to a byte. Raises: EncodingError on set padding bits."""
    if count % 8 == 0:
        return np.frombuffer(data, dtype=np.uint8).reshape(rows, count // 8)
    bits = unpack(data, rows * count, 1, np.uint8).reshape(rows, count)
    return np.packbits(bits, axis=1, bitorder="little")


def dealt_bytes(plan: ChunkPlan, party: int, count: int) -> int:
    """Bytes that the dealer sends to a party for a chunk of `count` edges."""
    return packed_size(plan.dealt_bits(party) * count, 1)
