"""A party's shares of the bits that a chunk opens: comparisons, lookups, coins and logic.

Paper: Sinh & Ramon 2025, protocol 3.1, step 2. Nothing here takes a round: `evaluation.py` masks
and opens the shares. Masked places and opened bits are public to the edge's owners.

*Openings.* The messages of one opening: a party's masked shares of a layer's bits and places.

Several chunks of the same plan are opened together, and each chunk has a message of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import packed_size
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import BitArray, PieceArray, WordArray
from umpc.mpc.masked.dcf import above_and_at, evaluate, moved, piece_of
from umpc.mpc.masked.edge_layout import EdgeLayout, bit_of, linear_value, modulus, narrow_value
from umpc.mpc.masked.material import ChunkInputs, DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    CoinBit,
    Compared,
    Conjunction,
    Linear,
    Local,
    Logic,
    LookupBit,
    LookupTable,
    TopBit,
)
from umpc.ustat.polynomial import evaluate_local


class BitShares:
    """One party's state of a chunk, or of several together, and its shares of bits."""

    def __init__(
        self,
        party: int,
        plan: Plan,
        inputs: ChunkInputs,
        dealt: DealtPart,
        seeded: SeededPart,
        tree_hash: FixedKeyHash,
    ):
        self.party = party
        self.plan = plan
        self.inputs = inputs
        self.count = inputs.count
        self.dealt = dealt
        self.seeded = seeded
        self.tree_hash = tree_hash
        self.material = shares_of_products(dealt, seeded)
        self.places = dict(inputs.places)
        """The masked value of each place that is known, (count,) uint64."""
        self.bits: dict[int, BitArray] = {}
        """The opened bits under their masks, eight edges to a byte."""
        self._differences: dict[tuple[Linear, int], PieceArray] = {}
        self._compared_pieces: dict[int, tuple[BitArray, BitArray]] = {}
        self._compared: dict[int, tuple[BitArray, BitArray]] = {}

    def share(self, number: int) -> BitArray:
        """This party's share of an opened bit, before it is masked: eight edges to a byte."""
        match self.plan.bits[number]:
            # the owner knows the bit, so its share is the bit itself
            case Local(_, polynomial):
                return _packed(evaluate_local(polynomial, self.inputs.records, self.count))
            # Boyle et al. 2021, section 3: shares of a two-owner comparison
            case Compared(gate, kind):
                return self._comparison(gate)[0 if kind == "less" else 1]
            # Rathee et al. 2021: shares read off a shared table
            case LookupBit() as lookup:
                return self._with_top(self._lookup_bit(lookup), lookup.top)
            # shares of a piece of a committee's coin
            case CoinBit(table, kind):
                return self._coin_bit(table, kind)
            # Beaver 1991, over GF(2) and for any number of factors
            case Logic() as function:
                return self._with_top(self._logic(function), function.top)

    def _with_top(self, share: BitArray, top: TopBit | None) -> BitArray:
        """The share of a bit ⊕ msb(d̂), which party 0 adds."""
        # a public bit is added by one party only
        if top is None or self.party > 0:
            return share
        return share ^ _packed(bit_of(self._difference(top), top.width - 1))

    def _comparison(self, number: int) -> tuple[BitArray, BitArray]:
        """The shares of [d < 0] and of [d = 0], but for msb(r): Eval< of the party's key."""
        if number not in self._compared:
            # Boyle et al. 2021, Eval<: d̂ is public to both holders
            gate = self.plan.comparisons[number]
            masked = linear_value(gate.difference, self.places) & modulus(gate.width)
            # b of Eval<: the holder's place, 0 or 1
            side = gate.holders.index(self.party)
            keys = self.dealt.keys[number]
            roots = self.seeded.roots[number]
            # spec/dcf.py, `evaluate`
            less, equal = evaluate(side, keys, masked, roots, self.tree_hash)
            self._compared[number] = _packed(less), _packed(equal)
        return self._compared[number]

    def _piece(self, number: int) -> PieceArray:
        """The bits of a masked difference that a table covers: (count,)."""
        table = self.plan.tables[number]
        return piece_of(table, self._difference(table))

    def _difference(self, read: LookupTable | TopBit) -> PieceArray:
        """A masked difference, of which its w low bits are read: (count,)."""
        key = read.difference, read.width
        if key not in self._differences:
            self._differences[key] = narrow_value(*key, self.places)
        return self._differences[key]

    def _lookup_bit(self, lookup: LookupBit) -> BitArray:
        """The share of [d̂_i < r_i] or [d̂_i = r_i]."""
        number = lookup.table
        if number not in self._compared_pieces:
            # place d̂_i is public, so no message is needed
            piece = self._piece(number)
            # spec/masked_pairs.py, `read_bits`
            less, equal = above_and_at(self.material.tables[number], piece)
            self._compared_pieces[number] = _packed(less), _packed(equal)
        return self._compared_pieces[number][0 if lookup.kind == "less" else 1]

    def _coin_bit(self, number: int, kind: str) -> BitArray:
        """The share of [u < c] or [u = c] for pieces of u = û ⊕ r and of the threshold c."""
        table = self.plan.tables[number]
        # û is public to the committee; r stays shared in the rows
        masked = self._piece(number)
        threshold = piece_of(table, self.inputs.coins_of_noise().thresholds)
        # [u < c] is the parity of the places below c, in the order of u: all of them above ~u.
        backwards = (1 << table.size) - 1
        rows = moved(self.material.tables[number], table.size, masked ^ np.uint64(backwards))
        # [u < c] and [u = c] of this piece, as XOR shares
        less, equal = above_and_at(rows, threshold ^ np.uint64(backwards))
        return _packed(less if kind == "less" else equal)

    def _logic(self, function: Logic) -> BitArray:
        """The share of a function of bits b = m ⊕ s, with m public and s shared."""
        size = (self.count + 7) // 8
        # each conjunction is expanded apart; XOR adds them
        shares = [self._conjunction(conjunction, size) for conjunction in function.conjunctions]
        total = reduce(np.bitwise_xor, shares)
        # the public constant is added by party 0 only
        return ~total if function.constant and self.party == 0 else total

    def _conjunction(self, conjunction: Conjunction, size: int) -> BitArray:
        """The share of Π (m_i ⊕ s_i).

        It begins with the shares of the products of every subset of the s_i. A step replaces one
        s_i by m_i ⊕ s_i in all products that have it, and drops those without it.
        """
        # spec/masked_pairs.py, `_conjunction`
        rows = self.plan.subset_rows[conjunction]
        if len(conjunction) == 1:
            # one literal: share of s, and m added by party 0
            share: BitArray = self.material.bits[rows[0]]
            ((bits, inverted),) = ((each.bits, each.inverted) for each in conjunction)
            return share if self.party else share ^ self._literal(bits, inverted)
        products = np.empty((len(rows) + 1, size), dtype=np.uint8)
        # the empty product is 1: party 0's share of it
        products[0] = 255 * (self.party == 0)
        self.material.bits.take(rows, axis=0, out=products[1:], mode="clip")
        for literal in reversed(conjunction):
            half = len(products) // 2
            with_it, without = products[half:], products[:half]
            # Π(m ⊕ s) = m·Π' ⊕ s·Π': m is public, s·Π' is shared
            with_it ^= without & self._literal(literal.bits, literal.inverted)
            products = with_it
        found: BitArray = products[0]
        return found

    def _literal(self, bits: tuple[int, ...], inverted: bool) -> BitArray:
        """A literal of masked bits. After the last edge it may have any bits."""
        if len(bits) == 1:
            value = self.bits[bits[0]]
        elif bits:
            value = reduce(np.bitwise_xor, [self.bits[bit] for bit in bits])
        else:
            value = np.zeros((self.count + 7) // 8, dtype=np.uint8)
        return ~value if inverted else value


def _packed(bits: NDArray[np.integer[Any]]) -> BitArray:
    """Bits (n,), 0 or 1 each, with eight edges to a byte."""
    return np.packbits(bits.astype(np.uint8, copy=False), bitorder="little")


def shares_of_products(dealt: DealtPart, seeded: SeededPart) -> Shares:
    """A party's shares of products of masks: dealt to the last party, expanded by the others."""
    if dealt.shares is not None:
        return dealt.shares
    if seeded.shares is None:
        raise LocalProtocolError("the last party's shares of a chunk must be dealt to it")
    return seeded.shares


# --- openings -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LayerShares:
    """A party's masked shares in one layer.

    bits: for each bit (⌈n/8⌉,) uint8, eight edges to a byte. places: for each place (n,) uint64.
    """

    bits: dict[int, BitArray]
    places: dict[int, WordArray]

    def __repr__(self) -> str:
        return "LayerShares(<redacted>)"


def open_messages(
    plan: Plan, layer: int, party: int, shares: LayerShares, layout: EdgeLayout
) -> list[Message]:
    """Each chunk's message of one round: bit after bit, then place after place."""
    # spec/masked_pairs.py, `chunk`: bits first, then places
    parts = [layout.cut_packed([*shares.bits.values()])]
    for number, values in shares.places.items():
        parts.append(layout.cut_words(values, plan.place_width(number)))
    width = plan.open_width(layer, party)
    return [
        Message("open", b"".join(pieces), count, width, layer + 1)
        for count, pieces in zip(layout.counts, zip(*parts, strict=True), strict=True)
    ]


def read_opens(
    plan: Plan, layer: int, party: int, messages: Sequence[Message], layout: EdgeLayout
) -> LayerShares:
    """Another party's shares in all chunks, from its message of each. Raises: EncodingError."""
    # all lengths follow from the public plan
    bits = plan.opened_bits(layer, party)
    widths = [len(bits), *map(plan.place_width, plan.opened_places(layer, party))]
    payloads = [message.payload for message in messages]
    stops = [0] * len(payloads)
    parts: list[list[bytes]] = []
    for width in widths:
        starts = stops
        stops = [
            start + packed_size(count, width)
            for start, count in zip(starts, layout.counts, strict=True)
        ]
        cuts = zip(payloads, starts, stops, strict=True)
        parts.append([payload[start:stop] for payload, start, stop in cuts])
    for message, due in zip(messages, stops, strict=True):
        # a message of another length names its sender
        if len(message.payload) != due:
            raise EncodingError(
                f"{message!r} must take {due} bytes, and it has {len(message.payload)}"
            )
    rows = layout.join_packed(parts[0], len(bits))
    places = plan.opened_places(layer, party)
    return LayerShares(
        dict(zip(bits, rows, strict=True)),
        {
            number: layout.join_words(part, width)
            for number, part, width in zip(places, parts[1:], widths[1:], strict=True)
        },
    )
