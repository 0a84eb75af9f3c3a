"""The items that a plan lists: wires, places, bits, terms, and what is dealt for them.

Every value is under a mask. The dealer knows the mask; no set of owners knows it unless all
owners concerned are in the set. A *place* holds a number: all owners know value + mask. A *bit* is
known to all owners as value ⊕ mask. Places of records are sent once per record. Everything else is
opened chunk by chunk, layer by layer:

| item | whose share is opened | mask |
|---|---|---|
| EdgePlace: polynomial of one owner's records | that owner's, in the clear | that owner's |
| WordPlace: polynomial of masked values | all owners', additive | Σ of all owners' |
| Local: bit of one owner's records | that owner's, in the clear | that owner's |
| Compared: bit of a number that two owners make | the two owners', from keys | both ⊕ msb(r) |
| LookupBit: bit of a piece of a number | all owners', from tables | ⊕ of all, and msb(r) |
| Logic: function of opened bits | all owners', from products of masks | ⊕ of all, and msb(r) |
| CoinPlace, CoinBit: noise (`material.py`) | all members' randomness | Σ or ⊕ of all |

A sum over edges is a polynomial of places and bits: Σ coefficient · Π bits · Π linear forms. With
shares of the products of masks (`Element`) the owners expand it without a message. Beaver's product
and the lookup of a few bits are special cases.

*Lookup comparison.* Comparison of a number that two or more owners make, by shared one-hot tables
of its mask.

All owners know d̂ = d + r mod 2^w, and |d| < 2^(w−1). The low w−1 bits of r are cut into pieces.
The dealer shares, among all owners, the one-hot row of every piece. Shares of [d̂_i < r_i] and
[d̂_i = r_i] of a piece are sums of the row's shares at public places, so they need no message
(`dcf.py`). With msb(d̂), which is public, and msb(r), which goes into the opened bit's mask:

    borrow = lt_1 ⊕ eq_1·lt_2 ⊕ eq_1·eq_2·lt_3 ⊕ …      [d < 0] = msb(d̂) ⊕ msb(r) ⊕ borrow
    [d = 0] = Π eq_i

No msb is needed for [d = 0], because d = −2^(w−1) does not occur. Up to ONE_PIECE bits are one
piece: both bits are opened at once. More bits are several pieces, whose bits are opened under masks
and combined in one more round. Papers: lookup tables for pieces as in SIRNN (Rathee et al. 2021),
with a dealer in place of oblivious transfer; the sign from the borrow as in `dcf.py`.

Reveals: every owner sees d̂, uniform to whoever lacks one owner's mask, and opened bits under masks
to which every owner contributes. Given all that any proper subset of the owners holds, r is
uniform. So a table may serve any number of owners. A comparison key serves two only.

*Plan builder.* A plan in the making: its places, bits, comparisons and tables, each numbered once.

Places and bits come with the layer that opens them. Layer 0 holds the places of records, which
round 1 sends once per record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import TypeAlias, TypeVar

from umpc.ustat.normal_form import Polynomial

Item = TypeVar("Item")

BitKind: TypeAlias = str
"""Which bit of a comparison: "less" is [… < …], "equal" is [… = …]."""


@dataclass(frozen=True)
class Wire:
    """A value of one record, which is sent masked.

    polynomial: of record 0. width: bits; the ring's where the wire enters products.
    """

    polynomial: Polynomial
    width: int


@dataclass(frozen=True)
class RecordPlace:
    """Wire `wire` of the edge's record `slot`."""

    slot: int
    wire: int


@dataclass(frozen=True)
class EdgePlace:
    """A value of several records of one party: a polynomial of the edge's records."""

    party: int
    polynomial: Polynomial
    width: int


@dataclass(frozen=True, order=True)
class Linear:
    """constant + Σ coefficient·place; terms are (place, coefficient)."""

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
    """constant + Σ of each party's local polynomial, in the clear + Σ terms."""

    terms: tuple[Term, ...]
    local: tuple[Polynomial, ...]
    constant: int


@dataclass(frozen=True)
class WordPlace:
    """A polynomial of masked values, opened under a new mask."""

    polynomial: SharedPolynomial
    width: int


@dataclass(frozen=True)
class CoinPlace:
    """A number to which every party contributes uniform bits.

    Nobody knows the number that counts: it is (the masked number) ⊕ mask.
    """

    width: int


OpenedPlace: TypeAlias = EdgePlace | WordPlace | CoinPlace
"""A place that is opened chunk by chunk."""
InputPlace: TypeAlias = RecordPlace | OpenedPlace
"""A number that the owners of an edge compute with."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of a number that two parties' records make; each holder gets a key."""

    difference: Linear
    width: int
    holders: tuple[int, int]


@dataclass(frozen=True)
class LookupTable:
    """One-hot shares, among all parties, of bits [low, low + size) of the difference's mask.

    `dcf.py` has the rows, as machine words.
    """

    difference: Linear
    width: int
    low: int
    size: int

    @property
    def bits(self) -> int:
        """Bits of an edge's row. A short row is padded to a byte with shares of zeros."""
        return max(8, 1 << self.size)


@dataclass(frozen=True)
class TopBit:
    """The highest bit of a masked difference: public, under the highest bit of its mask."""

    difference: Linear
    width: int


@dataclass(frozen=True)
class Local:
    """A bit of one party's records."""

    party: int
    polynomial: Polynomial


@dataclass(frozen=True)
class Compared:
    """A bit of a comparison. less: [difference < 0]. equal: [difference = 0]."""

    comparison: int
    kind: BitKind


@dataclass(frozen=True)
class LookupBit:
    """A bit of a table. less: [piece of the masked difference < piece of the mask].

    equal: [piece of the masked difference = piece of the mask]. top: a bit that is added (⊕): the
    public part to the bit, msb(r) to the mask under which it is opened.
    """

    table: int
    kind: BitKind
    top: TopBit | None = None


@dataclass(frozen=True)
class CoinBit:
    """A bit of a coin. less: [piece of the coin's number < piece of the coin's threshold].

    equal: [piece of the coin's number = piece of the coin's threshold].
    """

    table: int
    kind: BitKind


@dataclass(frozen=True)
class Literal:
    """The exclusive or of opened bits, or its complement."""

    bits: tuple[int, ...]
    inverted: bool = False


Conjunction: TypeAlias = tuple[Literal, ...]
"""The conjunction of literals."""


@dataclass(frozen=True)
class Logic:
    """constant ⊕ the exclusive or of conjunctions of literals ⊕ a top bit, as in `LookupBit`."""

    conjunctions: tuple[Conjunction, ...]
    constant: bool
    top: TopBit | None = None


Bit: TypeAlias = Local | Compared | LookupBit | CoinBit | Logic
"""A bit that is opened under a mask."""

Element: TypeAlias = tuple[tuple[int, ...], tuple[Linear, ...]]
"""Π of the masks of these bits · Π of the masks of these linear forms: dealt as additive shares."""
BitElement: TypeAlias = tuple[tuple[int, ...], ...]
"""The conjunction of the masks of these literals, each given by its bits: dealt as XOR shares."""


@dataclass(frozen=True)
class Layer:
    """The bits and places that one round opens."""

    bits: tuple[int, ...]
    places: tuple[int, ...]


def expansions(term: Term) -> Iterator[Element]:
    """Every subset of a term's bits with every subset of its factors' masks, but the empty pair."""
    # every product of masks that the expansion of a term needs
    for bits in subsets(term.bits):
        for factors in subsets(term.factors):
            if bits or factors:
                yield bits, tuple(form.mask for form in factors)


def subsets(items: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """All subsets of the items, the smallest first."""
    items = tuple(items)
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


# --- lookup comparison ----------------------------------------------------------------------------

ONE_PIECE = 8
"""The most bits that are one piece, of 32 bytes, and take no further round."""
PIECE = 6
"""The bits of one of several pieces: a row is a word of 64 bits."""
MOST_PIECES = 8
"""The most pieces: k pieces are combined by about 2^(k+1) products of masks, each of one bit."""
FAN = 4
"""Pieces of coins that one round combines into one."""

Conjunctions: TypeAlias = list[tuple[int, ...]]
"""Each conjunction is a tuple of numbers of bits; the function is their exclusive or."""


def compare(builder: PlanBuilder, difference: Linear, width: int, kind: str, layer: int) -> int:
    """The bit [difference < 0] or [difference = 0], of a difference of w bits above −2^(w−1).

    The difference is known masked before `layer`.
    """
    # msb(r) enters the sign only: [d = 0] needs none
    top = TopBit(difference, width) if kind == "less" else None
    # Rathee et al. 2021: pieces of the mask, the highest first
    tables = [LookupTable(difference, width, low, size) for low, size in pieces(width - 1)]
    if len(tables) == 1:
        # one piece: opened at once, no round to combine
        return builder.lookup_bit(tables[0], kind, layer, top)
    # The equality of the lowest piece decides nothing about the borrow.
    needed = tables if kind == "equal" else tables[:-1]
    # [d̂_i = r_i] of the pieces that decide
    equal = [builder.lookup_bit(table, "equal", layer) for table in needed]
    if kind == "equal":
        # [d = 0] = Π eq_i
        return builder.add_logic([tuple(equal)])
    # [d̂_i < r_i] of every piece
    less = [builder.lookup_bit(table, "less", layer) for table in tables]
    # borrow = lt_1 ⊕ eq_1·lt_2 ⊕ …
    return builder.add_logic(_borrow(less, equal), top)


def pieces(bits: int) -> list[tuple[int, int]]:
    """(low, size) of every piece of the low bits, the highest first; sizes differ by 1 at most."""
    # spec/masked_plan.py, `pieces`
    count = 1 if bits <= ONE_PIECE else min(MOST_PIECES, -(-bits // PIECE))
    ends = [bits * number // count for number in range(count + 1)]
    return [(low, high - low) for low, high in pairwise(ends)][::-1]


def combine(builder: PlanBuilder, less: Sequence[int], equal: Sequence[int]) -> Conjunctions:
    """The borrow of consecutive pieces, the highest first, as conjunctions of at most FAN bits.

    equal: of all pieces but the lowest, which decides nothing.
    """
    while len(less) > FAN:
        groups = [slice(start, start + FAN) for start in range(0, len(less), FAN)]
        # a group of FAN pieces is one piece of the next level
        borrows = [_combined(builder, _borrow(less[group], equal[group])) for group in groups]
        equal = [_combined(builder, [tuple(equal[group])]) for group in groups[:-1]]
        less = borrows
    return _borrow(less, equal)


def _borrow(less: Sequence[int], equal: Sequence[int]) -> Conjunctions:
    """Conjunctions whose exclusive or is the borrow of consecutive pieces."""
    # eq_1 · … · eq_(i−1) · lt_i: at most one is 1
    return [(*equal[:number], bit) for number, bit in enumerate(less)]


def _combined(builder: PlanBuilder, conjunctions: Conjunctions) -> int:
    """The function's bit; a single bit stands for itself."""
    ((first, *more), *others) = conjunctions
    return builder.add_logic(conjunctions) if more or others else first


# --- plan builder ---------------------------------------------------------------------------------


class PlanBuilder:
    """The items of one plan, numbered in the order in which they were first added."""

    def __init__(self) -> None:
        self.places: dict[InputPlace, int] = {}
        self.bits: dict[Bit, int] = {}
        self.comparisons: dict[Comparison, int] = {}
        self.tables: dict[LookupTable, int] = {}
        self.place_layers: list[int] = []
        self.bit_layers: list[int] = []

    def add_place(self, place: InputPlace, layer: int) -> int:
        """The number of a place, which is opened in a layer."""
        if place not in self.places:
            self.place_layers.append(layer)
        return _number(place, self.places)

    def add_bit(self, bit: Bit, layer: int) -> int:
        """The number of a bit, which is opened in a layer."""
        if bit not in self.bits:
            self.bit_layers.append(layer)
        return _number(bit, self.bits)

    def add_comparison(self, gate: Comparison) -> int:
        """The number of a comparison."""
        return _number(gate, self.comparisons)

    def add_table(self, table: LookupTable) -> int:
        """The number of a table."""
        return _number(table, self.tables)

    def lookup_bit(
        self, table: LookupTable, kind: str, layer: int, top: TopBit | None = None
    ) -> int:
        """The number of a bit of a table, with a top bit added to it."""
        return self.add_bit(LookupBit(self.add_table(table), kind, top), layer)

    def add_logic(self, conjunctions: Sequence[tuple[int, ...]], top: TopBit | None = None) -> int:
        """The number of the exclusive or of conjunctions of bits, and of a top bit."""
        literals = tuple(tuple(Literal((bit,)) for bit in bits) for bits in conjunctions)
        return self.add_function(Logic(literals, constant=False, top=top))

    def add_function(self, function: Logic) -> int:
        """The number of a function's bit, opened one layer after the last bit that it reads."""
        # spec/masked_plan.py, `layers`: bits that it reads are open before
        needed = (
            self.bit_layers[bit]
            for conjunction in function.conjunctions
            for literal in conjunction
            for bit in literal.bits
        )
        return self.add_bit(function, 1 + max(needed))

    def layers(self) -> tuple[Layer, ...]:
        """The items that each round opens, from layer 1 to the last."""
        last = max([*self.place_layers, *self.bit_layers], default=0)
        return tuple(
            Layer(_opened_in(layer, self.bit_layers), _opened_in(layer, self.place_layers))
            for layer in range(1, last + 1)
        )


def _number(item: Item, known: dict[Item, int]) -> int:
    return known.setdefault(item, len(known))


def _opened_in(layer: int, layers: Iterable[int]) -> tuple[int, ...]:
    return tuple(number for number, each in enumerate(layers) if each == layer)
