"""The owners' computation for chunks of cells' edges.

Paper: Sinh & Ramon 2025, protocol 3.1, step 2. Round 1 (`cells.py`) gave each owner the others'
masked records, once per record. Then, for every chunk:

    open, layer by layer:  each sends its shares of the layer's bits and places under their masks
    no round:              all expand the kernels over masked values; sums stay shared

Several chunks with the same plan, in which this node is the same party, may be computed together:
their edges stand behind each other in every array. Each chunk keeps its own messages.

Reveals: masked numbers and masked bits, uniform to whoever lacks one of the masks that make them
up, and nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import reduce
from typing import TypeAlias, TypeVar

import numpy as np

from umpc.crypto.rounds import Finished, Message, Protocol, resume
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import RingArray, WordArray
from umpc.mpc.masked.bit_shares import BitShares, LayerShares, open_messages, read_opens
from umpc.mpc.masked.edge_layout import EdgeLayout, linear_value, modulus
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    CoinPlace,
    EdgePlace,
    Element,
    Linear,
    RecordPlace,
    SharedPolynomial,
    Term,
)
from umpc.ustat.polynomial import evaluate_local

NOTHING: Element = ((), ())
"""The product of no masks, which is public."""
Result = TypeVar("Result")
Names: TypeAlias = Sequence[str]
"""The owners' names of a chunk, in party order."""
Together: TypeAlias = Generator[list[Message], Sequence[Sequence[Message]], Result]
"""The rounds of several chunks: yields this party's message of each chunk, receives of each chunk
the other parties' messages in party order, and returns this party's result."""


def only(rounds: Together[list[Result]]) -> Protocol[Result]:
    """The rounds of a single chunk, which is a batch of one, and its result alone."""
    heard: list[Sequence[Message]] | None = None
    while not isinstance(said := resume(rounds, heard), Finished):
        (message,) = said
        heard = [(yield message)]
    (result,) = said.result
    return result


def evaluate_together(
    chunk: PartyChunk, names: Sequence[Names], layout: EdgeLayout
) -> Together[list[list[int]]]:
    """One owner's share of each kernel's sum over each of several chunks of edges.

    Args:
        chunk: this party's state, as if all chunks were one chunk with all edges.
        names: for each chunk.
        layout: of the chunks, of which none is empty beside others.

    Cost: one round per layer of the plan, for all chunks at once.
    """
    kind = chunk.plan.ring.dtype
    # Sinh & Ramon 2025, protocol 3.1, step 2
    shares = yield from evaluate_edges(chunk, names, layout)
    if chunk.inputs.coins is not None:  # a chunk of noise, which is alone
        shares = [values * chunk.inputs.coins.weights.astype(kind) for values in shares]
    if not layout.total:
        return [[0] * len(shares)]
    # per chunk: Σ over its edges, mod 2^w
    sums = [np.add.reduceat(values, layout.firsts, dtype=kind).tolist() for values in shares]
    return [list(sums_of_chunk) for sums_of_chunk in zip(*sums, strict=True)]


def evaluate_edges(
    chunk: PartyChunk, names: Sequence[Names], layout: EdgeLayout
) -> Together[list[RingArray]]:
    """One owner's share of each kernel in every edge of these chunks."""
    plan = chunk.plan
    for layer in range(len(plan.layers)):
        # step 2, mask: this party's shares of the layer
        mine = chunk.shares(layer)
        # step 2, open: one message to all owners
        theirs = yield open_messages(plan, layer, chunk.party, mine, layout)
        others = [party for party in plan.everybody if party != chunk.party]
        parts = [mine]
        for place, party in enumerate(others):
            messages = [heard[place] for heard in theirs]
            parts.append(_shares_of(plan, layer, party, messages, names, layout))
        # all shares added: masked values, public to the owners
        chunk.open(layer, parts)
    # step 2, no round: expand the kernels over masked values
    return [chunk.evaluate(output) for output in plan.outputs]


def _shares_of(
    plan: Plan,
    layer: int,
    party: int,
    messages: Sequence[Message],
    names: Sequence[Names],
    layout: EdgeLayout,
) -> LayerShares:
    """Another party's shares. Raises: RemoteProtocolError naming a malformed message's sender."""
    try:
        return read_opens(plan, layer, party, messages, layout)
    except EncodingError:
        for message, owners, count in zip(messages, names, layout.counts, strict=True):
            check_alone(plan, layer, party, message, owners[party], count)
        raise


def check_alone(
    plan: Plan, layer: int, party: int, message: Message, sender: str, count: int
) -> None:
    """Check one chunk's message. Raises: RemoteProtocolError naming its sender."""
    try:
        read_opens(plan, layer, party, [message], EdgeLayout([count]))
    except EncodingError as error:
        raise RemoteProtocolError(
            f"{sender}: {error.message}", culprit=sender, step=message.step
        ) from error


class PartyChunk(BitShares):
    """One party's state, from which it opens layer after layer and expands the kernels."""

    def shares(self, layer: int) -> LayerShares:
        """This party's masked shares, which it sends."""
        bits = {
            # own part of σ keeps each opened bit uniform
            number: self.share(number) ^ self.seeded.bit_masks[number]
            for number in self.plan.opened_bits(layer, self.party)
        }
        places = {
            # own part of the mask keeps each opened number uniform
            number: (self._place_share(number) + self.seeded.place_masks[number])
            & modulus(self.plan.place_width(number))
            for number in self.plan.opened_places(layer, self.party)
        }
        return LayerShares(bits, places)

    def open(self, layer: int, parts: Sequence[LayerShares]) -> None:
        """Add everybody's shares up."""
        for number in self.plan.layers[layer].bits:
            # bit ⊕ σ, σ being the XOR of the contributors' masks
            bits = [part.bits[number] for part in parts if number in part.bits]
            self.bits[number] = reduce(np.bitwise_xor, bits)
        for number in self.plan.layers[layer].places:
            # value + Σ masks mod 2^width
            words = [part.places[number] for part in parts if number in part.places]
            self.places[number] = reduce(np.add, words) & modulus(self.plan.place_width(number))

    def evaluate(self, polynomial: SharedPolynomial) -> RingArray:
        """This party's share of a polynomial in each edge: (count,) of the ring."""
        ring = self.plan.ring
        # terms of one owner's records: added in the clear
        own = evaluate_local(polynomial.local[self.party], self.inputs.records, self.count)
        total: RingArray = ring.array(own)
        if self.party == 0:
            # a public summand is counted once, by party 0
            total += ring.scalar(polynomial.constant)
        for public, share in self._expanded(polynomial):
            # public · share is a share of the product
            total += public if share is None else public * share
        return total

    def _place_share(self, number: int) -> WordArray:
        """This party's share of an opened place, before it is masked: (count,) uint64."""
        match self.plan.places[number]:
            # one owner knows the number: its share is the number
            case EdgePlace(_, polynomial):
                return evaluate_local(polynomial, self.inputs.records, self.count).view(np.uint64)
            # uniform words; their sum under masks is û
            case CoinPlace():
                return self.inputs.coins_of_noise().contributions
            case RecordPlace():
                raise LocalProtocolError(
                    f"place {number} belongs to a record, so it is never opened"
                )
            case word:
                # a product of several owners: additive shares of it
                return self.evaluate(word.polynomial).astype(np.uint64)

    def _expanded(
        self, polynomial: SharedPolynomial
    ) -> Iterator[tuple[RingArray, RingArray | None]]:
        """Pairs whose products add up to this party's share of the terms.

        A pair is (public, share), or (public, None) for a summand that is public itself. With b = m
        ⊕ s = m + (1 − 2m)s for every bit and X = X̂ − R for every linear form, a term is a sum over
        subsets of its bits and factors: public coefficient × product of masks. The products of
        masks are shared. For one and two factors this is Beaver 1991.
        """
        values: dict[Linear, RingArray] = {}
        for form in {form for term in polynomial.terms for form in term.factors}:
            # X̂ of each factor X = X̂ − R
            values[form] = linear_value(form, self.places).astype(self.plan.ring.dtype)
        bits = {bit: self._opened(bit) for term in polynomial.terms for bit in term.bits}
        # equal products of masks of several terms share one coefficient
        coefficients: dict[Element, RingArray] = {}
        for term in polynomial.terms:
            for element, public in self._publics(term, bits, values).items():
                known = coefficients.get(element)
                coefficients[element] = public if known is None else known + public
        for element, public in coefficients.items():
            if element != NOTHING:
                yield public, self._element_share(element)
            # the product of no masks is public, counted once
            elif self.party == 0:
                yield public, None

    def _opened(self, bit: int) -> RingArray:
        """An opened bit under its mask: (count,) of the ring."""
        # m of b = m ⊕ s, as a ring element
        loose = np.unpackbits(self.bits[bit], count=self.count, bitorder="little")
        return loose.astype(self.plan.ring.dtype)

    def _element_share(self, element: Element) -> RingArray:
        """This party's share of a product of masks: (count,) of the ring."""
        row = self.plan.element_rows.get(element)
        # dealt: spec/masked_pairs.py, `output_share`
        if row is not None:
            share: RingArray = self.material.elements[row]
            return share
        # A single linear form is not dealt: the share of its mask is the part known to this party.
        _, (form,) = element
        masks = {**self.inputs.masks, **self.seeded.place_masks}
        # R = Σ of own masks, which each owner knows for its part
        known = np.broadcast_to(linear_value(form, masks), (self.count,))
        return known.astype(self.plan.ring.dtype)

    def _publics(
        self, term: Term, bits: Mapping[int, RingArray], values: Mapping[Linear, RingArray]
    ) -> dict[Element, RingArray]:
        """The public factor of every product of masks in a term: (count,) each.

        Each bit and each factor doubles the products: its mask is in one half of them.
        """
        ring = self.plan.ring
        found: dict[Element, RingArray]
        # begin with coefficient · (product of no masks)
        found = {NOTHING: np.full(self.count, ring.encode(term.coefficient), dtype=ring.dtype)}
        for bit in term.bits:
            opened = bits[bit]
            # b = m + (1 − 2m)·s
            sign = 1 - opened - opened
            found = {each: public * opened for each, public in found.items()} | {
                ((*others, bit), forms): public * sign for (others, forms), public in found.items()
            }
        for form in term.factors:
            # X = X̂ − R
            found = {each: public * values[form] for each, public in found.items()} | {
                (others, (*forms, form.mask)): np.negative(public)
                for (others, forms), public in found.items()
            }
        return found
