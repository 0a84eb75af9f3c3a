"""What the owners of an edge do with it: masked places, opened bits, shared sums (made by `compiler.py`).

Everything is a value under a mask that the dealer knows and that no set of owners lacking one of those concerned knows.
A *place* holds a number, `places` are known to all owners as value + mask; a *bit* is known to all as value ⊕ mask.
Places of records are sent once per record; the rest is opened chunk by chunk, layer by layer:

| what | whose share before it is opened | mask |
|---|---|---|
| EdgePlace: polynomial of several records of one owner | that owner's, in the clear | the owner's |
| WordPlace: polynomial of masked values | all owners', additive | Σ of all owners' |
| Local: bit of one owner's records | that owner's, in the clear | the owner's |
| Compared: bit of a number that two owners make | the two owners', by comparison keys | both owners' ⊕ msb(r) |
| LookupBit: bit of a piece of a number that more owners make | all owners', by shared tables | ⊕ of all owners' |
| Logic: Boolean function of opened bits | all owners', by shares of products of masks | ⊕ of all owners' |
| CoinPlace, CoinBit: noise, see `noise.py` | all members' own randomness | Σ of all members' |

A sum over edges is a polynomial of places and bits: Σ coefficient · Π bits · Π linear forms. With shares of
the products of masks (`elements`) its owners expand it without a message: Beaver's product and the lookup
of a few bits are special cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, combinations

from umpc.crypto.ring import Ring, packed_size
from umpc.crypto.rounds import Message
from umpc.mpc.masked import dcf as comparison
from umpc.ustat.polynomial import Polynomial

MATERIAL_BYTES = 1_000_000
"""A chunk's material fits one frame."""
MAX_CHUNK = 1 << 15
"""Edges in a chunk, at most."""

Pattern = tuple[int, ...]
"""The party that owns each record of an edge; parties are numbered in the order of their nodes."""


@dataclass(frozen=True)
class Wire:
    """A value of one record, sent masked: `of` over record 0, `width` bits (the ring's if it enters products)."""

    of: Polynomial
    width: int


@dataclass(frozen=True)
class RecordPlace:
    """Wire `wire` of the edge's record `slot`."""

    slot: int
    wire: int


@dataclass(frozen=True)
class EdgePlace:
    """A value of several records of one party: `of` over the edge's records."""

    party: int
    of: Polynomial
    width: int


@dataclass(frozen=True, order=True)
class Linear:
    """constant + Σ coefficient·place, terms as (place, coefficient)."""

    terms: tuple[tuple[int, int], ...] = ()
    constant: int = 0

    @property
    def mask(self) -> Linear:
        """The form whose value on the masks is this form's mask."""
        return Linear(self.terms)


@dataclass(frozen=True)
class Term:
    """coefficient · Π bits · Π factors."""

    coefficient: int
    bits: tuple[int, ...]
    factors: tuple[Linear, ...] = ()


@dataclass(frozen=True)
class SharedPolynomial:
    """constant + Σ local of each party, in the clear + Σ terms."""

    terms: tuple[Term, ...]
    local: tuple[Polynomial, ...]
    constant: int


@dataclass(frozen=True)
class WordPlace:
    """A polynomial of masked values, opened under a new mask."""

    of: SharedPolynomial
    width: int


@dataclass(frozen=True)
class CoinPlace:
    """A number that every party contributes uniform bits to; the one that nobody knows is (its masked value) ⊕ mask."""

    width: int


Place = RecordPlace | EdgePlace | WordPlace | CoinPlace


@dataclass(frozen=True)
class Comparison:
    """Of a number that two parties' records make; `holders` get a key each."""

    difference: Linear
    width: int
    holders: tuple[int, int]


@dataclass(frozen=True)
class Table:
    """One-hot shares, among all parties, of bits [low, low + size) of the difference's mask."""

    difference: Linear
    width: int
    low: int
    size: int


@dataclass(frozen=True)
class Local:
    """A bit of one party's records."""

    party: int
    of: Polynomial


@dataclass(frozen=True)
class Compared:
    comparison: int
    kind: str
    """less: [difference < 0]. equal: [difference = 0]."""


@dataclass(frozen=True)
class LookupBit:
    table: int
    kind: str
    """less: [piece of the masked difference < piece of the mask]. equal: [… = …]."""


@dataclass(frozen=True)
class CoinBit:
    table: int
    kind: str
    """less: [piece of the drawn number < piece of the edge's threshold]. equal: [… = …]."""


@dataclass(frozen=True)
class Literal:
    """The exclusive or of opened bits, or its complement."""

    bits: tuple[int, ...]
    inverted: bool = False


@dataclass(frozen=True)
class Logic:
    """constant ⊕ the exclusive or of conjunctions of literals."""

    conjunctions: tuple[tuple[Literal, ...], ...]
    constant: bool


Bit = Local | Compared | LookupBit | CoinBit | Logic

Element = tuple[tuple[int, ...], tuple[Linear, ...]]
"""Π of the masks of these bits · Π of the masks of these linear forms: dealt as additive shares."""
BitElement = tuple[tuple[int, ...], ...]
"""The conjunction of the masks of these literals, each by its bits: dealt as XOR shares."""


@dataclass(frozen=True)
class Layer:
    """What one round opens."""

    bits: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What the owners of a cell of one pattern compute for each of its edges."""

    pattern: Pattern
    ring: Ring
    places: tuple[Place, ...]
    comparisons: tuple[Comparison, ...]
    tables: tuple[Table, ...]
    bits: tuple[Bit, ...]
    layers: tuple[Layer, ...]
    outputs: tuple[SharedPolynomial, ...]

    @property
    def parties(self) -> int:
        return max(self.pattern) + 1

    @cached_property
    def everybody(self) -> tuple[int, ...]:
        return tuple(range(self.parties))

    def contributors(self, bit: int) -> tuple[int, ...]:
        """The parties whose shares make a bit."""
        match self.bits[bit]:
            case Local(party):
                return (party,)
            case Compared(number):
                return self.comparisons[number].holders
            case _:
                return self.everybody

    def opened_bits(self, layer: int, party: int) -> tuple[int, ...]:
        """The bits of a layer of which a party sends a share."""
        return tuple(bit for bit in self.layers[layer].bits if party in self.contributors(bit))

    def opened_places(self, layer: int, party: int) -> tuple[int, ...]:
        """The places of a layer of which a party sends a share."""
        places = ((number, self.places[number]) for number in self.layers[layer].places)
        return tuple(
            number
            for number, place in places
            if not isinstance(place, EdgePlace) or place.party == party
        )

    def place_width(self, number: int) -> int:
        """Bits of an opened place."""
        return self.places[number].width

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The dealt products, in the order of the material; sums of masks that single owners know are not dealt."""
        words = (place.of for place in self.places if isinstance(place, WordPlace))
        found = {
            e for of in chain(self.outputs, words) for term in of.terms for e in expansions(term)
        }
        return tuple(sorted(e for e in found if e[0] or len(e[1]) > 1))

    @cached_property
    def element_rows(self) -> dict[Element, int]:
        return {element: row for row, element in enumerate(self.elements)}

    @cached_property
    def bit_element_rows(self) -> dict[BitElement, int]:
        return {element: row for row, element in enumerate(self.bit_elements)}

    @cached_property
    def table_rows(self) -> tuple[int, ...]:
        """Where each table's rows begin among the shared bits."""
        return tuple(accumulate((1 << t.size for t in self.tables), initial=len(self.bit_elements)))

    @cached_property
    def bit_elements(self) -> tuple[BitElement, ...]:
        functions = (bit for bit in self.bits if isinstance(bit, Logic))
        found = {
            tuple(sorted(literal.bits for literal in part))
            for function in functions
            for conjunction in function.conjunctions
            for part in subsets(conjunction)
            if part
        }
        return tuple(sorted(found))

    def own_slots(self, party: int) -> frozenset[int]:
        """The records of an edge that a party reads in the clear."""
        read = [bit.of for bit in self.bits if isinstance(bit, Local) and bit.party == party]
        read += [
            place.of
            for place in self.places
            if isinstance(place, EdgePlace) and place.party == party
        ]
        words = (place.of for place in self.places if isinstance(place, WordPlace))
        read += [of.local[party] for of in chain(self.outputs, words)]
        return frozenset(slot for of in read for slot in of.records)

    def holds_keys(self, party: int) -> tuple[int, ...]:
        """The comparisons of which a party gets a key."""
        return tuple(
            number for number, gate in enumerate(self.comparisons) if party in gate.holders
        )

    @cached_property
    def shared_bits(self) -> int:
        """Dealt XOR shares an edge: bit elements and the rows of tables."""
        return len(self.bit_elements) + sum(1 << table.size for table in self.tables)

    def dealt_bits(self, party: int) -> int:
        """Bits an edge that the dealer sends to a party; all but the last party expand their shares from a seed."""
        keys = sum(
            8 * comparison.key_bytes(self.comparisons[number].width)
            for number in self.holds_keys(party)
        )
        if party < self.parties - 1:
            return keys
        return keys + 8 * self.ring.bytes * len(self.elements) + self.shared_bits

    @property
    def chunk_edges(self) -> int:
        """Edges of a chunk: as many as fit a frame, a multiple of 8 so that bits fill bytes."""
        most = max(max(self.dealt_bits(party) for party in self.everybody), self.open_bits)
        fitting = 8 * MATERIAL_BYTES // most if most else MAX_CHUNK
        return max(8, min(fitting, MAX_CHUNK) // 8 * 8)

    @property
    def open_bits(self) -> int:
        """The most bits an edge that a party sends in one round."""
        rounds = range(len(self.layers))
        return max(
            (self.open_width(layer, party) for layer in rounds for party in self.everybody),
            default=0,
        )

    def open_width(self, layer: int, party: int) -> int:
        """Bits an edge that a party sends in a layer."""
        places = self.opened_places(layer, party)
        return len(self.opened_bits(layer, party)) + sum(
            self.place_width(number) for number in places
        )

    @property
    def rounds(self) -> int:
        return len(self.layers)

    def shape(self, round: int, party: int, count: int) -> Message:
        """What a party's message of a round, from 1, looks like, but for its content."""
        layer = round - 1
        size = packed_size(len(self.opened_bits(layer, party)) * count, 1)
        size += sum(
            packed_size(count, self.place_width(number))
            for number in self.opened_places(layer, party)
        )
        return Message("open", bytes(size), count, self.open_width(layer, party), round)

    @property
    def needs_dealer(self) -> bool:
        return any(self.dealt_bits(party) for party in self.everybody)


@dataclass(frozen=True)
class Program:
    """The plans of all patterns that occur in E, over common wires."""

    ring: Ring
    wires: tuple[Wire, ...]
    plans: dict[Pattern, Plan]
    chunks_in_flight = 64
    """Chunks that wait for a peer's message, at most."""
    window = None
    """Links are always read: owners who answer each other are never far apart, and holding back could lock both."""

    @property
    def needs_dealer(self) -> bool:
        return any(plan.needs_dealer for plan in self.plans.values())

    @property
    def rounds(self) -> int:
        """The rounds before the reveal: masked fields, and the layers of the deepest plan."""
        deepest = max((len(plan.layers) for plan in self.plans.values()), default=0)
        return deepest + (1 if self.plans and self.wires else 0)

    @property
    def word_bits(self) -> int:
        """The widest number that is computed under shares and opened under a mask: the ring must hold it."""
        places = (place for plan in self.plans.values() for place in plan.places)
        return max((place.width for place in places if isinstance(place, WordPlace)), default=0)

    @property
    def wire_bits(self) -> int:
        """Bits of a record's wires."""
        return sum(wire.width for wire in self.wires)


def pattern_of(owners: tuple[int, ...]) -> Pattern:
    """The pattern of a cell from the nodes that own its records."""
    parties = sorted(set(owners))
    return tuple(parties.index(owner) for owner in owners)


def expansions(term: Term) -> Iterator[Element]:
    """Every subset of a term's bits with every subset of its factors' masks, the empty pair left out."""
    for bits in subsets(term.bits):
        for factors in subsets(term.factors):
            if bits or factors:
                yield bits, tuple(form.mask for form in factors)


def subsets(items: Iterable) -> Iterator[tuple]:
    items = tuple(items)
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))
