"""The owners' computation for one chunk of a cell's edges.

Paper: Sinh & Ramon 2025, protocol 3.1, step 2. Round 1 (`fields.py`) gave each owner the others'
masked records, once per record. Then, for every chunk:

    open, layer by layer:  each sends its shares of the layer's bits and places under their masks
    no round:              all expand the kernels over masked values; sums stay shared

Reveals: masked numbers and masked bits, uniform to whoever lacks one of the masks that make them
up, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, IntArray, RingArray, WordArray
from umpc.mpc.masked.dcf import evaluate
from umpc.mpc.masked.masks import PlaceValues, linear_value, modulus
from umpc.mpc.masked.material import DealtPart, SeededPart, Shares
from umpc.mpc.masked.openings import LayerShares, open_message, read_open
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    BitElement,
    CoinBit,
    CoinPlace,
    Compared,
    EdgePlace,
    Element,
    Linear,
    Local,
    Logic,
    LookupBit,
    RecordPlace,
    SharedPolynomial,
    Term,
    expansions,
    subsets,
)
from umpc.ustat.clear import Columns
from umpc.ustat.local import evaluate_local


@dataclass(frozen=True)
class Coins:
    """A party's inputs to a chunk of noise, (count,) uint64 each.

    contributions: this party's random numbers. thresholds: of the coins. weights: the units that
    each coin counts for in the sum.
    """

    contributions: WordArray
    thresholds: WordArray
    weights: WordArray

    def __repr__(self) -> str:
        return "Coins(<redacted>)"


@dataclass(frozen=True)
class ChunkInputs:
    """Everything that a party knows about a chunk before the chunk's first round.

    places: the masked values of each place of a record, (count,) uint64.
    masks: the masks of each place of its own records, (count,) uint64.
    records: the columns of its own records, for each record of the edge that it reads in the clear.
    names: the owners' names, in party order.
    coins: only for noise, where an "edge" is a coin.
    """

    places: PlaceValues
    masks: PlaceValues
    records: Mapping[int, Columns]
    count: int
    names: Sequence[str]
    coins: Coins | None = None

    def __repr__(self) -> str:
        return f"ChunkInputs({self.count} edges, <redacted>)"


def evaluate_chunk(
    party: int,
    plan: Plan,
    inputs: ChunkInputs,
    dealt: DealtPart,
    seeded: SeededPart,
    tree_hash: FixedKeyHash,
) -> Protocol[list[int]]:
    """One owner's additive share of each kernel's sum over the chunk's edges, as ring elements.

    Cost: one round per layer of the plan, none without layers.
    """
    kind = plan.ring.dtype
    shares = yield from evaluate_edges(party, plan, inputs, dealt, seeded, tree_hash)
    if inputs.coins is not None:
        shares = [values * inputs.coins.weights.astype(kind) for values in shares]
    return [int(values.sum(dtype=kind)) for values in shares]


def evaluate_edges(
    party: int,
    plan: Plan,
    inputs: ChunkInputs,
    dealt: DealtPart,
    seeded: SeededPart,
    tree_hash: FixedKeyHash,
) -> Protocol[list[RingArray]]:
    """One owner's additive share of each kernel in every edge: per kernel (count,) of the ring."""
    chunk = _Chunk(party, plan, inputs, dealt, seeded, tree_hash)
    for layer in range(len(plan.layers)):
        mine = chunk.shares(layer)
        theirs = yield open_message(plan, layer, party, mine, inputs.count)
        chunk.open(layer, mine, theirs)
    return [chunk.evaluate(output) for output in plan.outputs]


class _Chunk:
    """One party's state of one chunk."""

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
        self.material = _material(dealt, seeded)
        self.places = dict(inputs.places)
        self.masks = {**inputs.masks, **seeded.place_masks}
        self.bits: dict[int, BitArray] = {}
        self._packed: dict[int, BitArray] = {}
        self._compared: dict[int, tuple[BitArray, BitArray]] = {}

    def shares(self, layer: int) -> LayerShares:
        """This party's masked shares, which it sends."""
        bits = {
            number: self._bit_share(number) ^ self.seeded.bit_masks[number]
            for number in self.plan.opened_bits(layer, self.party)
        }
        places = {
            number: (self._place_share(number) + self.seeded.place_masks[number])
            & modulus(self.plan.place_width(number))
            for number in self.plan.opened_places(layer, self.party)
        }
        return LayerShares(bits, places)

    def open(self, layer: int, mine: LayerShares, theirs: Sequence[Message]) -> None:
        """Add everybody's shares up.

        Raises: RemoteProtocolError naming the sender of a malformed message.
        """
        parts = [mine]
        others = (party for party in self.plan.everybody if party != self.party)
        for party, message in zip(others, theirs, strict=True):
            try:
                parts.append(read_open(self.plan, layer, party, message, self.count))
            except EncodingError as error:
                culprit = self.inputs.names[party]
                raise RemoteProtocolError(
                    f"{culprit}: {error.message}", culprit=culprit, step=message.step
                ) from error
        for number in self.plan.layers[layer].bits:
            bits = [part.bits[number] for part in parts if number in part.bits]
            self.bits[number] = np.bitwise_xor.reduce(bits)
        for number in self.plan.layers[layer].places:
            words = [part.places[number] for part in parts if number in part.places]
            self.places[number] = np.add.reduce(words) & modulus(self.plan.place_width(number))

    def evaluate(self, polynomial: SharedPolynomial) -> RingArray:
        """This party's share of a polynomial in each edge: (count,) of the ring."""
        ring = self.plan.ring
        own = evaluate_local(polynomial.local[self.party], self.inputs.records, self.count)
        total: RingArray = ring.array(own)
        if self.party == 0:
            total += ring.scalar(polynomial.constant)
        for public, share in self._expanded(polynomial):
            total += public if share is None else public * share
        return total

    @property
    def _coins(self) -> Coins:
        """The inputs of a chunk of noise. Raises: LocalProtocolError for a chunk of edges."""
        if self.inputs.coins is None:
            raise LocalProtocolError("a plan for noise needs coins, and this chunk has edges")
        return self.inputs.coins

    def _place_share(self, number: int) -> WordArray:
        """This party's share of an opened place, before it is masked: (count,) uint64."""
        match self.plan.places[number]:
            case EdgePlace(_, polynomial):
                return evaluate_local(polynomial, self.inputs.records, self.count).view(np.uint64)
            case CoinPlace():
                return self._coins.contributions
            case RecordPlace():
                raise LocalProtocolError(
                    f"place {number} belongs to a record, so it is never opened"
                )
            case word:
                return self.evaluate(word.polynomial).astype(np.uint64)

    def _bit_share(self, number: int) -> BitArray:
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
        return self.material.bits[start : start + (1 << self.plan.tables[number].size)]

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
        threshold = self._piece(number, self._coins.thresholds)
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
                total ^= public & np.packbits(self.material.bits[row], bitorder="little")
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

    def _expanded(
        self, polynomial: SharedPolynomial
    ) -> Iterator[tuple[RingArray, RingArray | None]]:
        """Pairs whose products add up to this party's share of the terms.

        A pair is (public, share), or (public, None) for a summand that is public itself. With
        b = m ⊕ s = m + (1 − 2m)s for every bit and X = X̂ − R for every linear form, a term is a sum
        over subsets of its bits and factors: public coefficient × product of masks. The products of
        masks are shared. For one and two factors this is Beaver 1991.
        """
        values: dict[Linear, RingArray] = {}
        coefficients: dict[Element, RingArray] = {}
        for term in polynomial.terms:
            for form in term.factors:
                if form not in values:
                    values[form] = linear_value(form, self.places).astype(self.plan.ring.dtype)
            if self.party == 0:
                yield self._public(term, ((), ()), values), None
            for element in expansions(term):
                public = self._public(term, element, values)
                known = coefficients.get(element)
                coefficients[element] = public if known is None else known + public
        for element, public in coefficients.items():
            yield public, self._element_share(element)

    def _element_share(self, element: Element) -> RingArray:
        """This party's share of a product of masks: (count,) of the ring."""
        row = self.plan.element_rows.get(element)
        if row is not None:
            share: RingArray = self.material.elements[row]
            return share
        # A single linear form is not dealt: the share of its mask is the part known to this party.
        _, (form,) = element
        known = np.broadcast_to(linear_value(form, self.masks), (self.count,))
        return known.astype(self.plan.ring.dtype)

    def _public(
        self, term: Term, element: Element, values: Mapping[Linear, RingArray]
    ) -> RingArray:
        """The public factor of one product of masks in a term: (count,) of the ring."""
        bits, factors = element
        kind = self.plan.ring.dtype
        sign = -1 if len(factors) % 2 else 1
        coefficient = self.plan.ring.scalar(sign * term.coefficient)
        product: RingArray = np.full(self.count, coefficient)
        for bit in term.bits:
            opened = self.bits[bit]
            if bit in bits:
                product *= (1 - 2 * opened.astype(np.int8)).astype(kind)
            else:
                product *= opened.astype(kind)
        for form in term.factors:
            if form.mask not in factors:
                product *= values[form]
        return product


def _material(dealt: DealtPart, seeded: SeededPart) -> Shares:
    """A party's shares of products of masks: dealt to the last party, expanded by the others."""
    if dealt.shares is not None:
        return dealt.shares
    if seeded.shares is None:
        raise LocalProtocolError("the last party's shares of a chunk must be dealt to it")
    return seeded.shares
