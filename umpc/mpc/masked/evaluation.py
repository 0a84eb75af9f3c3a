"""The owners' computation for one chunk of a cell's edges.

Paper: Sinh & Ramon 2025, protocol 3.1, step 2. Round 1 (`fields.py`) gave each owner the others'
masked records, once per record. Then, for every chunk:

    open, layer by layer:  each sends its shares of the layer's bits and places under their masks
    no round:              all expand the kernels over masked values; sums stay shared

Reveals: masked numbers and masked bits, uniform to whoever lacks one of the masks that make them
up, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, RingArray, WordArray
from umpc.mpc.masked.bit_shares import BitShares
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.masks import linear_value, modulus
from umpc.mpc.masked.material import DealtPart, SeededPart, Shares
from umpc.mpc.masked.openings import LayerShares, open_message, read_open
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    CoinPlace,
    EdgePlace,
    Element,
    Linear,
    RecordPlace,
    SharedPolynomial,
    Term,
    expansions,
)
from umpc.ustat.local import evaluate_local

Kind: TypeAlias = np.dtype[np.integer[Any]]
"""A type of integers."""


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
    chunk = PartyChunk(party, plan, inputs, dealt, seeded, tree_hash)
    for layer in range(len(plan.layers)):
        mine = chunk.shares(layer)
        theirs = yield open_message(plan, layer, party, mine, inputs.count)
        chunk.open(layer, mine, theirs)
    return [chunk.evaluate(output) for output in plan.outputs]


class PartyChunk:
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
        self.seeded = seeded
        self.material = shares_of_products(dealt, seeded)
        self.places = dict(inputs.places)
        self.masks = {**inputs.masks, **seeded.place_masks}
        self.bits: dict[int, BitArray] = {}
        self._factors: dict[tuple[int, bool], NDArray[np.int8]] = {}
        self._bit_shares = BitShares(
            party,
            plan,
            inputs,
            dealt,
            seeded,
            self.material,
            tree_hash,
            self.places,
            self.bits,
        )

    def shares(self, layer: int) -> LayerShares:
        """This party's masked shares, which it sends."""
        bits = {
            number: self._bit_shares.share(number) ^ self.seeded.bit_masks[number]
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
        for factor, share in self._expanded(polynomial):
            # A signed factor becomes the ring element that stands for it.
            public = factor.astype(ring.dtype, copy=False)
            total += public if share is None else public * share
        return total

    def _place_share(self, number: int) -> WordArray:
        """This party's share of an opened place, before it is masked: (count,) uint64."""
        match self.plan.places[number]:
            case EdgePlace(_, polynomial):
                return evaluate_local(polynomial, self.inputs.records, self.count).view(np.uint64)
            case CoinPlace():
                return self.inputs.coins_of_noise().contributions
            case RecordPlace():
                raise LocalProtocolError(
                    f"place {number} belongs to a record, so it is never opened"
                )
            case word:
                return self.evaluate(word.polynomial).astype(np.uint64)

    def _expanded(
        self, polynomial: SharedPolynomial
    ) -> Iterator[tuple[NDArray[np.integer[Any]], RingArray | None]]:
        """Pairs whose products add up to this party's share of the terms.

        A pair is (public, share), or (public, None) for a summand that is public itself. With
        b = m ⊕ s = m + (1 − 2m)s for every bit and X = X̂ − R for every linear form, a term is a sum
        over subsets of its bits and factors: public coefficient × product of masks. The products of
        masks are shared. For one and two factors this is Beaver 1991. A public factor that only
        bits make is small, and is computed in a narrow type.
        """
        values: dict[Linear, RingArray] = {}
        for form in {form for term in polynomial.terms for form in term.factors}:
            values[form] = linear_value(form, self.places).astype(self.plan.ring.dtype)
        coefficients: dict[tuple[Element, Kind], NDArray[np.integer[Any]]] = {}
        narrow = _narrowest(polynomial.terms, self.plan.ring)
        for term in polynomial.terms:
            kind = self.plan.ring.dtype if term.factors else narrow
            if self.party == 0:
                yield self._public(term, ((), ()), values, kind), None
            for element in expansions(term):
                public = self._public(term, element, values, kind)
                known = coefficients.get((element, kind))
                coefficients[element, kind] = public if known is None else known + public
        for (element, _), public in coefficients.items():
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
        self, term: Term, element: Element, values: Mapping[Linear, RingArray], kind: Kind
    ) -> NDArray[np.integer[Any]]:
        """The public factor of one product of masks in a term: (count,) of a kind."""
        bits, factors = element
        sign = -1 if len(factors) % 2 else 1
        ring = self.plan.ring
        coefficient = sign * term.coefficient
        if kind == ring.dtype:
            coefficient = ring.encode(coefficient)
        product: NDArray[np.integer[Any]] = np.full(self.count, coefficient, dtype=kind)
        for bit in term.bits:
            product *= self._factor(bit, signed=bit in bits).astype(kind, copy=False)
        for form in term.factors:
            if form.mask not in factors:
                product *= values[form]
        return product

    def _factor(self, bit: int, *, signed: bool) -> NDArray[np.int8]:
        """An opened bit m, or 1 − 2m: (count,) int8."""
        if (bit, signed) not in self._factors:
            opened = self.bits[bit].view(np.int8)
            self._factors[bit, signed] = 1 - 2 * opened if signed else opened
        return self._factors[bit, signed]


def _narrowest(terms: Iterable[Term], ring: Ring) -> Kind:
    """A type of few bits that holds the public factors of terms without numbers, or the ring's."""
    most = sum(abs(term.coefficient) for term in terms if not term.factors)
    for kind in (np.dtype(np.int8), np.dtype(np.int16)):
        if most <= np.iinfo(kind).max:
            return kind
    return ring.dtype


def shares_of_products(dealt: DealtPart, seeded: SeededPart) -> Shares:
    """A party's shares of products of masks: dealt to the last party, expanded by the others."""
    if dealt.shares is not None:
        return dealt.shares
    if seeded.shares is None:
        raise LocalProtocolError("the last party's shares of a chunk must be dealt to it")
    return seeded.shares
