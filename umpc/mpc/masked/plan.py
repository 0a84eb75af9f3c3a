"""A plan: what the owners of an edge compute for it, layer by layer (made by `compiler.py`).

`plan_items.py` says what places, bits, terms and tables are, and under which masks they are opened.

*Products.* The products of masks of a plan: their number, and the order in which they are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from umpc.crypto.ring import Ring, packed_size
from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import IndexArray
from umpc.mpc.chunks import ChunkPlan
from umpc.mpc.chunks import Pattern as Pattern  # other folders import it from here
from umpc.mpc.masked.dcf import key_bytes
from umpc.mpc.masked.plan_items import (
    Bit,
    BitElement,
    Compared,
    Comparison,
    Conjunction,
    EdgePlace,
    Element,
    InputPlace,
    Layer,
    Local,
    Logic,
    LookupBit,
    LookupTable,
    RecordPlace,
    SharedPolynomial,
    TopBit,
    Wire,
    WordPlace,
    expansions,
    subsets,
)

MATERIAL_BYTES = 1_000_000
"""The most bytes of a chunk's material, so that it fits one frame."""
MAX_CHUNK = 1 << 15
"""The most edges in a chunk."""

SMALL_CELL = 512
"""The most edges of a cell that is computed together with others. Larger ones gain too little."""


@dataclass(frozen=True)
class Plan(ChunkPlan):
    """The computation of the owners of a cell of one pattern, for each of its edges."""

    pattern: Pattern
    ring: Ring
    places: tuple[InputPlace, ...]
    comparisons: tuple[Comparison, ...]
    tables: tuple[LookupTable, ...]
    bits: tuple[Bit, ...]
    layers: tuple[Layer, ...]
    outputs: tuple[SharedPolynomial, ...]

    @property
    def parties(self) -> int:
        """The number of parties."""
        return max(self.pattern) + 1

    def contributors(self, bit: int) -> tuple[int, ...]:
        """The parties whose shares make a bit."""
        match self.bits[bit]:
            # one owner's bit: it alone opens it
            case Local(party):
                return (party,)
            # keys have two holders
            case Compared(number):
                return self.comparisons[number].holders
            case _:
                return self.everybody

    def opened_bits(self, layer: int, party: int) -> tuple[int, ...]:
        """The bits of a layer of which a party sends a share."""
        # public: who sends what in which round
        bits = self.layers[layer].bits
        return tuple(bit for bit in bits if party in self.contributors(bit))

    def opened_places(self, layer: int, party: int) -> tuple[int, ...]:
        """The places of a layer of which a party sends a share."""
        places = self.layers[layer].places
        return tuple(number for number in places if self._sends(party, number))

    def _sends(self, party: int, place: int) -> bool:
        """Whether a party sends a share of an opened place."""
        item = self.places[place]
        return not isinstance(item, EdgePlace) or item.party == party

    def place_width(self, number: int) -> int:
        """The bits of an opened place.

        Raises: LocalProtocolError for a place of a record, which is never opened.
        """
        place = self.places[number]
        if isinstance(place, RecordPlace):
            raise LocalProtocolError(f"place {number} belongs to a record, so it is never opened")
        return place.width

    @property
    def _shared_polynomials(self) -> Iterator[SharedPolynomial]:
        """The outputs, then the polynomials of the words that are opened."""
        words = (place.polynomial for place in self.places if isinstance(place, WordPlace))
        return chain(self.outputs, words)

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The dealt products of masks, in the order of the material.

        A sum of masks alone is not dealt: each owner knows its own part of it.
        """
        found = {
            element
            for polynomial in self._shared_polynomials
            for term in polynomial.terms
            for element in expansions(term)
        }
        # canonical order: dealer and owners must agree
        return tuple(sorted((bits, forms) for bits, forms in found if bits or len(forms) > 1))

    @cached_property
    def element_rows(self) -> dict[Element, int]:
        """The row of each element in the material."""
        return {element: row for row, element in enumerate(self.elements)}

    @cached_property
    def bit_element_rows(self) -> dict[BitElement, int]:
        """The row of each bit element in the material."""
        return {element: row for row, element in enumerate(self.bit_elements)}

    @cached_property
    def subset_rows(self) -> dict[Conjunction, IndexArray]:
        """For each conjunction the rows of its subsets' bit elements."""
        return subset_rows(self.bits, self.bit_element_rows)

    @cached_property
    def bit_elements(self) -> tuple[BitElement, ...]:
        """The dealt conjunctions of masks of bits, in the order of the material."""
        functions = (bit for bit in self.bits if isinstance(bit, Logic))
        found = {
            tuple(sorted({literal.bits for literal in part}))
            for function in functions
            for conjunction in function.conjunctions
            for part in subsets(conjunction)
            if part
        }
        return tuple(sorted(found))

    def top_bit(self, number: int) -> TopBit | None:
        """The top bit of a difference that is part of a bit: of signs only."""
        match self.bits[number]:
            case Compared(gate, "less"):
                return TopBit(self.comparisons[gate].difference, self.comparisons[gate].width)
            case LookupBit(top=top) | Logic(top=top):
                return top
            case _:
                return None

    def own_slots(self, party: int) -> frozenset[int]:
        """The records of an edge that a party reads in the clear."""
        read = [
            item.polynomial
            for item in chain(self.bits, self.places)
            if isinstance(item, (Local, EdgePlace)) and item.party == party
        ]
        read += [shared.local[party] for shared in self._shared_polynomials]
        return frozenset(slot for polynomial in read for slot in polynomial.records)

    def holds_keys(self, party: int) -> tuple[int, ...]:
        """The comparisons of which a party gets a key."""
        gates = enumerate(self.comparisons)
        return tuple(number for number, gate in gates if party in gate.holders)

    @cached_property
    def shared_bits(self) -> int:
        """Dealt XOR shares an edge: the rows of tables, and bit elements."""
        return len(self.bit_elements) + sum(table.bits for table in self.tables)

    def dealt_bits(self, party: int) -> int:
        """Bits an edge that the dealer sends to a party.

        All parties but the last expand their shares from a seed, so they get keys only.
        """
        return self._dealt_bits[party]

    @cached_property
    def _dealt_bits(self) -> tuple[int, ...]:
        """`dealt_bits` of each party. Every chunk of a study asks for it: N nodes have N² cells."""
        # keys of a comparison, the same bytes for both holders
        keys = [
            sum(8 * key_bytes(self.comparisons[number].width) for number in self.holds_keys(party))
            for party in self.everybody
        ]
        # only the last party's shares are sent
        keys[-1] += 8 * self.ring.bytes * len(self.elements) + self.shared_bits
        return tuple(keys)

    @cached_property
    def reads_masks(self) -> bool:
        """Whether an owner reads the masks of its records: where numbers are factors of a term."""
        return any(term.factors for each in self._shared_polynomials for term in each.terms)

    @cached_property
    def chunk_edges(self) -> int:
        """Edges of a chunk: as many as fit a frame, a multiple of 8 so that bits fill bytes."""
        most_dealt = max(self.dealt_bits(party) for party in self.everybody)
        most = max(most_dealt, self.open_bits)
        # neither material nor opening may exceed a frame
        fitting = 8 * MATERIAL_BYTES // most if most else MAX_CHUNK
        return max(8, min(fitting, MAX_CHUNK) // 8 * 8)

    @cached_property
    def open_bits(self) -> int:
        """The most bits an edge that a party sends in one round."""
        layers = range(len(self.layers))
        widths = (self.open_width(layer, party) for layer in layers for party in self.everybody)
        return max(widths, default=0)

    def open_width(self, layer: int, party: int) -> int:
        """Bits an edge that a party sends in a layer."""
        words = map(self.place_width, self.opened_places(layer, party))
        return len(self.opened_bits(layer, party)) + sum(words)

    @property
    def rounds(self) -> int:
        """The number of rounds: one for each layer."""
        return len(self.layers)

    def shape(self, round: int, party: int, count: int) -> Message:
        """A party's message of a round, from 1, with zero bytes in place of its content."""
        layer = round - 1
        # predicted bytes: tests hold them equal to the traffic
        bits = packed_size(len(self.opened_bits(layer, party)) * count, 1)
        words = sum(
            packed_size(count, self.place_width(number))
            for number in self.opened_places(layer, party)
        )
        return Message("open", bytes(bits + words), count, self.open_width(layer, party), round)

    @property
    def needs_dealer(self) -> bool:
        """Whether a dealer must send material."""
        return any(self.dealt_bits(party) for party in self.everybody)


@dataclass(frozen=True)
class Program:
    """The plans of all patterns that occur in E, over common wires."""

    ring: Ring
    wires: tuple[Wire, ...]
    plans: dict[Pattern, Plan]
    chunks_in_flight = 64
    """The most chunks that may wait for a peer's message, but for those of waves."""
    small_cell = SMALL_CELL
    window = None
    """Links are always read. Owners who answer each other are never far apart, and holding back
    could lock both."""

    @property
    def needs_dealer(self) -> bool:
        """Whether a dealer must send material."""
        return any(plan.needs_dealer for plan in self.plans.values())

    @property
    def rounds(self) -> int:
        """The rounds before the reveal: masked fields, and the layers of the deepest plan."""
        # a round for each layer; round 1 for the records
        deepest = max((len(plan.layers) for plan in self.plans.values()), default=0)
        return deepest + (1 if self.plans and self.wires else 0)

    @property
    def word_bits(self) -> int:
        """The width of the widest number that is computed under shares and opened under a mask.

        The ring must hold it.
        """
        places = (place for plan in self.plans.values() for place in plan.places)
        return max((place.width for place in places if isinstance(place, WordPlace)), default=0)

    @cached_property
    def wire_bits(self) -> int:
        """Bits of a record's wires."""
        return sum(wire.width for wire in self.wires)


# --- products -------------------------------------------------------------------------------------


def expanded(
    outputs: Iterable[SharedPolynomial], places: Iterable[InputPlace], bits: Sequence[Bit]
) -> int:
    """The number of products of masks that all terms and functions expand into.

    Those that combine a comparison's pieces are left out: they are few bits for each comparison.
    """
    words = (place.polynomial for place in places if isinstance(place, WordPlace))
    ring = sum(
        # each factor doubles the products of masks
        1 << len(term.bits) + len(term.factors)
        for polynomial in (*outputs, *words)
        for term in polynomial.terms
    )
    pieces = {number for number, bit in enumerate(bits) if isinstance(bit, LookupBit)}
    functions = (bit for bit in bits if isinstance(bit, Logic) and not _read_by(bit) <= pieces)
    return ring + sum(
        1 << len(conjunction) for function in functions for conjunction in function.conjunctions
    )


def _read_by(function: Logic) -> set[int]:
    """The numbers of the bits that a function reads."""
    literals = (literal for conjunction in function.conjunctions for literal in conjunction)
    return {bit for literal in literals for bit in literal.bits}


def subset_rows(
    bits: Iterable[Bit], rows: Mapping[BitElement, int]
) -> dict[Conjunction, IndexArray]:
    """For each conjunction of k literals the rows of its subsets' bit elements: (2^k − 1,).

    Subset s holds literal i where bit i of s is set; s counts from 1.
    """
    functions = (bit for bit in bits if isinstance(bit, Logic))
    conjunctions = {part for function in functions for part in function.conjunctions}
    return {part: _rows_of_subsets(part, rows) for part in conjunctions}


def _rows_of_subsets(conjunction: Conjunction, rows: Mapping[BitElement, int]) -> IndexArray:
    # doubling: subset s + 2^i adds literal i
    parts: list[BitElement] = [()]
    for literal in conjunction:
        parts += [(*part, literal.bits) for part in parts]
    return np.array([rows[tuple(sorted(set(part)))] for part in parts[1:]])
