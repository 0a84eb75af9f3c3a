"""A party's shares of the bits that a chunk opens: comparisons, lookups, coins and logic.

Paper: Sinh & Ramon 2025, protocol 3.1, step 2. Nothing here takes a round: `evaluation.py` masks
and opens the shares. Masked places and opened bits are public to the edge's owners.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.arrays import BitArray, IntArray, WordArray
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.dcf import evaluate
from umpc.mpc.masked.masks import PlaceValues, linear_value, modulus
from umpc.mpc.masked.material import DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    BitElement,
    CoinBit,
    Compared,
    Local,
    Logic,
    LookupBit,
    subsets,
)
from umpc.ustat.local import evaluate_local


class BitShares:
    """One party's shares of bits, from its material and from all that is opened so far.

    Args:
        material: the party's shares of products of masks.
        places: the masked value of each place that is known, (count,) uint64. It grows.
        bits: each opened bit under its mask, (count,) uint8. It grows.
    """

    def __init__(
        self,
        party: int,
        plan: Plan,
        inputs: ChunkInputs,
        dealt: DealtPart,
        seeded: SeededPart,
        material: Shares,
        tree_hash: FixedKeyHash,
        places: PlaceValues,
        bits: Mapping[int, BitArray],
    ):
        self.party = party
        self.plan = plan
        self.inputs = inputs
        self.count = inputs.count
        self.dealt = dealt
        self.seeded = seeded
        self.tree_hash = tree_hash
        self.places = places
        self.bits = bits
        self._material = material
        self._packed: dict[int, BitArray] = {}
        self._compared: dict[int, tuple[BitArray, BitArray]] = {}

    def share(self, number: int) -> BitArray:
        """This party's share of an opened bit, before it is masked: (count,) uint8."""
        match self.plan.bits[number]:
            case Local(_, polynomial):
                return evaluate_local(polynomial, self.inputs.records, self.count).astype(np.uint8)
            case Compared(gate, kind):
                return self._comparison(gate)[0 if kind == "less" else 1]
            case LookupBit(table, kind):
                return self._lookup_bit(table, kind)
            case CoinBit(table, kind):
                return self._coin_bit(table, kind)
            case Logic() as function:
                return self._logic(function)

    def _comparison(self, number: int) -> tuple[BitArray, BitArray]:
        """The shares of [d < 0] and of [d = 0], but for msb(r): Eval< of the party's key."""
        if number not in self._compared:
            gate = self.plan.comparisons[number]
            masked = linear_value(gate.difference, self.places) & modulus(gate.width)
            side = gate.holders.index(self.party)
            keys = self.dealt.keys[number]
            roots = self.seeded.roots[number]
            self._compared[number] = evaluate(side, keys, masked, roots, self.tree_hash)
        return self._compared[number]

    def _table(self, number: int) -> BitArray:
        """This party's shares of a table's one-hot rows: (2^size, count) uint8."""
        start = self.plan.table_rows[number]
        return self._material.bits[start : start + (1 << self.plan.tables[number].size)]

    def _piece(self, number: int, values: WordArray) -> IntArray:
        """The bits of these numbers that a table covers: (count,) int64."""
        table = self.plan.tables[number]
        return ((values >> np.uint64(table.low)) & modulus(table.size)).astype(np.int64)

    def _lookup_bit(self, number: int, kind: str) -> BitArray:
        """The share of [d̂_i < r_i] or [d̂_i = r_i].

        It is the sum of the table's rows above the public place, or the row at the public place.
        """
        table = self.plan.tables[number]
        rows = self._table(number)
        masked = linear_value(table.difference, self.places) & modulus(table.width)
        if kind == "less":
            above = np.zeros_like(rows)
            np.bitwise_xor.accumulate(rows[:0:-1], axis=0, out=above[-2::-1])
            rows = above
        bits: BitArray = rows[self._piece(number, masked), np.arange(self.count)]
        return bits

    def _coin_bit(self, number: int, kind: str) -> BitArray:
        """The share of [u < c] or [u = c] for pieces of u = û ⊕ r and of the threshold c."""
        rows = self._table(number)
        coins = np.arange(self.count)
        ((place, _),) = self.plan.tables[number].difference.terms
        masked = self._piece(number, self.places[place])
        threshold = self._piece(number, self.inputs.coins_of_noise().thresholds)
        if kind == "equal":
            equal: BitArray = rows[masked ^ threshold, coins]
            return equal
        total = np.zeros(self.count, dtype=np.uint8)
        for below in range(len(rows) - 1):
            total ^= rows[masked ^ below, coins] & (below < threshold)
        return total

    def _logic(self, function: Logic) -> BitArray:
        """The share of a function of bits b = m ⊕ s, with m public and s shared.

        A conjunction is a sum over the subsets of its literals: the masks of the subset's literals,
        times the public bits of the other literals.
        """
        size = (self.count + 7) // 8
        total = np.full(size, 255 * (function.constant and self.party == 0), dtype=np.uint8)
        for element, public in self._bit_coefficients(function, size).items():
            if element:
                row = self.plan.bit_element_rows[element]
                total ^= public & np.packbits(self._material.bits[row], bitorder="little")
            elif self.party == 0:
                total ^= public
        return np.unpackbits(total, count=self.count, bitorder="little")

    def _bit_coefficients(self, function: Logic, size: int) -> dict[BitElement, BitArray]:
        """The public factor of each product of masks: (size,) uint8, eight edges to a byte."""
        coefficients: dict[BitElement, BitArray] = {}
        for conjunction in function.conjunctions:
            for masked in subsets(range(len(conjunction))):
                public = np.full(size, 255, dtype=np.uint8)
                for place, literal in enumerate(conjunction):
                    if place not in masked:
                        public = public & self._literal(literal.bits, literal.inverted)
                element = tuple(sorted(conjunction[place].bits for place in masked))
                known = coefficients.get(element)
                coefficients[element] = public if known is None else known ^ public
        return coefficients

    def _literal(self, bits: tuple[int, ...], inverted: bool) -> BitArray:
        """A literal of masked bits, eight edges to a byte."""
        for bit in bits:
            if bit not in self._packed:
                self._packed[bit] = np.packbits(self.bits[bit], bitorder="little")
        value: BitArray = np.bitwise_xor.reduce([self._packed[bit] for bit in bits])
        return ~value if inverted else value
