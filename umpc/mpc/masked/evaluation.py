"""What the owners of a cell compute for one chunk of its edges (Sinh & Ramon 2025, protocol 3.1, step 2).

Round 1 (`fields.py`, once per record, not per chunk) gave each owner the others' masked records. Then, per chunk:

    open, layer by layer:  each sends its shares of the layer's bits and places under their masks
    no round:              all expand the kernels over masked values; sums over the edges stay shared

Sees: masked numbers and masked bits, uniform to whoever lacks one of the masks that make them up. Learns nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import pack, packed_size, unpack
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.masked.dcf import evaluate
from umpc.mpc.masked.masks import Places, linear_value, modulus
from umpc.mpc.masked.material import DealtPart, SeededPart
from umpc.mpc.masked.plan import (
    CoinBit,
    CoinPlace,
    Compared,
    EdgePlace,
    Local,
    Logic,
    LookupBit,
    Plan,
    SharedPolynomial,
    Term,
    expansions,
    subsets,
)
from umpc.ustat.clear import Columns
from umpc.ustat.local import evaluate_local


@dataclass(frozen=True)
class Coins:
    """drawn: this party's random contributions. thresholds: of the coins. weights: what each counts for in the sum.

    (count,) uint64 each.
    """

    drawn: np.ndarray
    thresholds: np.ndarray
    weights: np.ndarray

    def __repr__(self) -> str:
        return "Coins(<redacted>)"


@dataclass(frozen=True)
class ChunkInputs:
    """What a party knows of a chunk before its first round.

    places: the masked value of each place of a record; masks: the masks of its own; per place (count,) uint64.
    records: the columns of its own records, per record of the edge that it reads in the clear. names: the owners'.
    coins: only for noise, where an "edge" is a coin.
    """

    places: Places
    masks: Places
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
    shares = yield from evaluate_edges(party, plan, inputs, dealt, seeded, tree_hash)
    if inputs.coins is not None:
        shares = [values * inputs.coins.weights.astype(plan.ring.dtype) for values in shares]
    return [int(values.sum(dtype=plan.ring.dtype)) for values in shares]


def evaluate_edges(
    party: int,
    plan: Plan,
    inputs: ChunkInputs,
    dealt: DealtPart,
    seeded: SeededPart,
    tree_hash: FixedKeyHash,
) -> Protocol[list[np.ndarray]]:
    """The same for every edge: per kernel (count,) of the ring."""
    chunk = _Chunk(party, plan, inputs, dealt, seeded, tree_hash)
    for layer in range(len(plan.layers)):
        mine = chunk.shares(layer)
        theirs = yield open_message(plan, layer, party, mine, inputs.count)
        chunk.open(layer, mine, theirs)
    return [chunk.evaluate(of) for of in plan.outputs]


@dataclass(frozen=True)
class LayerShares:
    """A party's masked shares in one layer: per bit (n,) uint8, per place (n,) uint64."""

    bits: dict[int, np.ndarray]
    places: dict[int, np.ndarray]

    def __repr__(self) -> str:
        return "LayerShares(<redacted>)"


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
        self.party, self.plan, self.inputs, self.count = party, plan, inputs, inputs.count
        self.dealt, self.seeded, self.tree_hash = dealt, seeded, tree_hash
        self.material = seeded.shares if dealt.shares is None else dealt.shares
        self.places = dict(inputs.places)
        self.masks = {**inputs.masks, **seeded.place_masks}
        self.bits: dict[int, np.ndarray] = {}
        self._packed: dict[int, np.ndarray] = {}
        self._compared: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def shares(self, layer: int) -> LayerShares:
        """What this party sends."""
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
        """Add everybody's shares up. Raises: RemoteProtocolError naming who sent a malformed message."""
        parts = [mine]
        others = (party for party in self.plan.everybody if party != self.party)
        for party, message in zip(others, theirs, strict=True):
            try:
                parts.append(read_open(self.plan, layer, party, message, self.count))
            except EncodingError as error:
                culprit = self.inputs.names[party]
                raise RemoteProtocolError(
                    f"{culprit}: {error.message}", culprit=culprit, step="evaluate"
                ) from error
        for number in self.plan.layers[layer].bits:
            self.bits[number] = np.bitwise_xor.reduce(
                [part.bits[number] for part in parts if number in part.bits]
            )
        for number in self.plan.layers[layer].places:
            shares = [part.places[number] for part in parts if number in part.places]
            self.places[number] = np.add.reduce(shares) & modulus(self.plan.place_width(number))

    def evaluate(self, of: SharedPolynomial) -> np.ndarray:
        """This party's share of a polynomial in each edge: (count,) of the ring."""
        ring = self.plan.ring
        total = ring.array(evaluate_local(of.local[self.party], self.inputs.records, self.count))
        if self.party == 0:
            total += ring.scalar(of.constant)
        for public, share in self._expanded(of):
            total += public if share is None else public * share
        return total

    def _place_share(self, number: int) -> np.ndarray:
        place = self.plan.places[number]
        if isinstance(place, EdgePlace):
            return evaluate_local(place.of, self.inputs.records, self.count).view(np.uint64)
        if isinstance(place, CoinPlace):
            return self.inputs.coins.drawn
        return self.evaluate(place.of).astype(np.uint64)

    def _bit_share(self, number: int) -> np.ndarray:
        match self.plan.bits[number]:
            case Local(_, of):
                return evaluate_local(of, self.inputs.records, self.count).astype(np.uint8)
            case Compared(gate, kind):
                return self._comparison(gate)[0 if kind == "less" else 1]
            case LookupBit(table, kind):
                return self._looked_up(table, kind)
            case CoinBit(table, kind):
                return self._drawn(table, kind)
            case Logic() as function:
                return self._logic(function)

    def _comparison(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        if number not in self._compared:
            gate = self.plan.comparisons[number]
            masked = linear_value(gate.difference, self.places) & modulus(gate.width)
            side = gate.holders.index(self.party)
            keys, roots = self.dealt.keys[number], self.seeded.roots[number]
            self._compared[number] = evaluate(side, keys, masked, roots, self.tree_hash)
        return self._compared[number]

    def _looked_up(self, number: int, kind: str) -> np.ndarray:
        """The share of [d̂_i < r_i] or [d̂_i = r_i]: rows of the table at, or above, the public place."""
        table, start = self.plan.tables[number], self.plan.table_rows[number]
        rows = self.material.bits[start : start + (1 << table.size)]
        masked = linear_value(table.difference, self.places) & modulus(table.width)
        piece = ((masked >> np.uint64(table.low)) & modulus(table.size)).astype(np.int64)
        if kind == "less":
            above = np.zeros_like(rows)
            np.bitwise_xor.accumulate(rows[:0:-1], axis=0, out=above[-2::-1])
            rows = above
        return rows[piece, np.arange(self.count)]

    def _drawn(self, number: int, kind: str) -> np.ndarray:
        """The share of [u < c] or [u = c] for u = û ⊕ r, pieces of a drawn number and its threshold."""
        table, start = self.plan.tables[number], self.plan.table_rows[number]
        rows, coins = self.material.bits[start : start + (1 << table.size)], np.arange(self.count)
        ((place, _),) = table.difference.terms
        masked, threshold = (
            ((values >> np.uint64(table.low)) & modulus(table.size)).astype(np.int64)
            for values in (self.places[place], self.inputs.coins.thresholds)
        )
        if kind == "equal":
            return rows[masked ^ threshold, coins]
        total = np.zeros(self.count, dtype=np.uint8)
        for below in range((1 << table.size) - 1):
            total ^= rows[masked ^ below, coins] & (below < threshold)
        return total

    def _logic(self, function: Logic) -> np.ndarray:
        """The share of a function: with b = m ⊕ s, a conjunction is a sum over subsets of its literals' masks."""
        full = (self.count + 7) // 8
        total = np.full(full, 255 * (function.constant and self.party == 0), dtype=np.uint8)
        coefficients: dict[tuple, np.ndarray] = {}
        for conjunction in function.conjunctions:
            for masked in subsets(range(len(conjunction))):
                public = np.full(full, 255, dtype=np.uint8)
                for place, literal in enumerate(conjunction):
                    if place not in masked:
                        public = public & self._literal(literal.bits, literal.inverted)
                element = tuple(sorted(conjunction[place].bits for place in masked))
                known = coefficients.get(element)
                coefficients[element] = public if known is None else known ^ public
        for element, public in coefficients.items():
            if element:
                row = self.plan.bit_element_rows[element]
                total ^= public & np.packbits(self.material.bits[row], bitorder="little")
            elif self.party == 0:
                total ^= public
        return np.unpackbits(total, count=self.count, bitorder="little")

    def _literal(self, bits: tuple[int, ...], inverted: bool) -> np.ndarray:
        """A literal of masked bits, eight edges to a byte."""
        for bit in bits:
            if bit not in self._packed:
                self._packed[bit] = np.packbits(self.bits[bit], bitorder="little")
        value = np.bitwise_xor.reduce([self._packed[bit] for bit in bits])
        return ~value if inverted else value

    def _expanded(self, of: SharedPolynomial) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Pairs whose products add up to this party's share of the terms: (public, share), or (public, None).

        With b = m ⊕ s = m + (1 − 2m)s for every bit and X = X̂ − R for every linear form, a term is a sum over subsets
        of its bits and factors: public coefficient × product of masks. Products of masks are shared.
        """
        kind = self.plan.ring.dtype
        values: dict = {}
        coefficients: dict = {}
        for term in of.terms:
            for form in term.factors:
                values.setdefault(form, linear_value(form, self.places).astype(kind))
            if self.party == 0:
                yield self._public(term, (), (), values), None
            for bits, factors in expansions(term):
                public = self._public(term, bits, factors, values)
                known = coefficients.get((bits, factors))
                coefficients[bits, factors] = public if known is None else known + public
        for (bits, factors), public in coefficients.items():
            row = self.plan.element_rows.get((bits, factors))
            if (
                row is None
            ):  # a single linear form: this party's share of its mask is what it knows of it
                yield (
                    public,
                    np.broadcast_to(linear_value(factors[0], self.masks), (self.count,)).astype(
                        kind
                    ),
                )
            else:
                yield public, self.material.elements[row]

    def _public(
        self, term: Term, bits: tuple[int, ...], factors: tuple, values: dict
    ) -> np.ndarray:
        """The known factor of one product of masks in a term: (n,) of the ring."""
        kind = self.plan.ring.dtype
        sign = -1 if len(factors) % 2 else 1
        product = np.full(self.count, self.plan.ring.scalar(sign * term.coefficient))
        for bit in term.bits:
            opened = self.bits[bit]
            product *= (
                (1 - 2 * opened.astype(np.int8)).astype(kind)
                if bit in bits
                else opened.astype(kind)
            )
        for form in term.factors:
            if form.mask not in factors:
                product *= values[form]
        return product


def open_message(plan: Plan, layer: int, party: int, shares: LayerShares, count: int) -> Message:
    """The message of one round: bit after bit, then place after place."""
    bits = np.concatenate([*shares.bits.values(), np.empty(0, np.uint8)])
    places = (pack(values, plan.place_width(number)) for number, values in shares.places.items())
    return Message(
        "open", pack(bits, 1) + b"".join(places), count, plan.open_width(layer, party), layer + 1
    )


def read_open(plan: Plan, layer: int, party: int, message: Message, count: int) -> LayerShares:
    """Another party's shares. Raises: EncodingError."""
    bits, places = plan.opened_bits(layer, party), plan.opened_places(layer, party)
    start = packed_size(len(bits) * count, 1)
    rows = unpack(message.payload[:start], len(bits) * count, 1, np.uint8).reshape(len(bits), count)
    values = {}
    for number in places:
        width = plan.place_width(number)
        size = packed_size(count, width)
        values[number] = unpack(message.payload[start : start + size], count, width)
        start += size
    if start != len(message.payload):
        raise EncodingError(f"{message!r} takes {start} bytes, got {len(message.payload)}")
    return LayerShares(dict(zip(bits, rows, strict=True)), values)
