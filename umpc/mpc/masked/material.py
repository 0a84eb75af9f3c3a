"""What the dealer deals for one chunk of a cell, and the part that each owner expands from its own seed.

| | every owner | all but the last | the last |
|---|---|---|---|
| from its seed | roots of its keys, masks of what it opens | its shares of elements, bit elements, tables | |
| dealt | its keys | | corrected shares of elements, bit elements, tables |

The mask σ under which a bit is opened is the exclusive or of its contributors' (for a less bit, and msb(r)), that of a
word the sum: the seeds fix them, so no mask needs to be sent. Every piece is bound to (attempt, cell, chunk)
through the labels that its seed is derived with, and used once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import pack, packed_size, unpack
from umpc.errors import EncodingError
from umpc.mpc.masked.dcf import ComparisonKeys, key_bytes
from umpc.mpc.masked.masks import modulus
from umpc.mpc.masked.plan import Plan


@dataclass(frozen=True)
class Shares:
    """A party's shares of what only sums to something: elements (elements, n) of the ring; bits (rows, n) uint8.

    The rows of `bits` are the plan's bit elements, then every table's one-hot row.
    """

    elements: np.ndarray
    bits: np.ndarray

    def __repr__(self) -> str:
        return "Shares(<redacted>)"

    @classmethod
    def expand(cls, plan: Plan, seed: bytes, count: int) -> Shares:
        elements = Stream(derive(seed, "elements")).words(
            len(plan.elements) * count, plan.ring.dtype
        )
        bits = Stream(derive(seed, "bits")).bits(plan.shared_bits * count)
        return cls(
            elements.reshape(len(plan.elements), count), bits.reshape(plan.shared_bits, count)
        )


@dataclass(frozen=True)
class SeededPart:
    """What a party expands from its chunk seed.

    roots: per comparison of which it holds a key (n, 2) uint64. bit_masks: per bit that it opens (n,) uint8.
    place_masks: per place that it opens (n,) uint64 below 2^width. shares: None for the last party.
    """

    roots: dict[int, np.ndarray]
    bit_masks: dict[int, np.ndarray]
    place_masks: dict[int, np.ndarray]
    shares: Shares | None

    def __repr__(self) -> str:
        return "SeededPart(<redacted>)"

    @classmethod
    def expand(cls, plan: Plan, seed: bytes, party: int, count: int) -> SeededPart:
        roots = Stream(derive(seed, "roots"))
        sigma = Stream(derive(seed, "sigma"))
        words = Stream(derive(seed, "places"))
        layers = range(len(plan.layers))
        bits = [bit for layer in layers for bit in plan.opened_bits(layer, party)]
        places = [place for layer in layers for place in plan.opened_places(layer, party)]
        return cls(
            roots={
                number: roots.words(2 * count).reshape(count, 2)
                for number in plan.holds_keys(party)
            },
            bit_masks=dict(
                zip(bits, sigma.bits(len(bits) * count).reshape(len(bits), count), strict=True)
            ),
            place_masks={
                place: words.words(count) & modulus(plan.place_width(place)) for place in places
            },
            shares=Shares.expand(plan, seed, count) if party < plan.parties - 1 else None,
        )


@dataclass(frozen=True)
class DealtPart:
    """What the dealer sends: a party's keys by comparison, and to the last party its shares."""

    keys: dict[int, ComparisonKeys]
    shares: Shares | None

    def __repr__(self) -> str:
        return "DealtPart(<redacted>)"

    def encode(self) -> bytes:
        parts = [keys.encode() for keys in self.keys.values()]
        if self.shares is not None:
            elements, bits = self.shares.elements, self.shares.bits
            parts += [
                elements.astype(elements.dtype.newbyteorder("<")).tobytes(),
                pack(bits.reshape(-1), 1),
            ]
        return b"".join(parts)

    @classmethod
    def decode(cls, plan: Plan, data: bytes, party: int, count: int) -> DealtPart:
        """Raises: EncodingError on a wrong length."""
        expected = dealt_bytes(plan, party, count)
        if len(data) != expected:
            raise EncodingError(
                f"material of {count} edges takes {expected} bytes, got {len(data)}"
            )
        view, start, keys = memoryview(data), 0, {}
        for number in plan.holds_keys(party):
            width = plan.comparisons[number].width
            size = key_bytes(width) * count
            keys[number] = ComparisonKeys.decode(view[start : start + size], width, count)
            start += size
        if party < plan.parties - 1:
            return cls(keys, None)
        stop = start + len(plan.elements) * plan.ring.bytes * count
        kind = plan.ring.dtype.newbyteorder("<")
        elements = np.frombuffer(view[start:stop], dtype=kind).reshape(len(plan.elements), count)
        bits = unpack(view[stop:], plan.shared_bits * count, 1, np.uint8).reshape(
            plan.shared_bits, count
        )
        return cls(keys, Shares(elements, bits))


def dealt_bytes(plan: Plan, party: int, count: int) -> int:
    """Bytes that the dealer sends to a party for a chunk of `count` edges."""
    return packed_size(plan.dealt_bits(party) * count, 1)
