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
| CoinPlace, CoinBit: noise (`committee_coins.py`) | all members' randomness | Σ or ⊕ of all |

A sum over edges is a polynomial of places and bits: Σ coefficient · Π bits · Π linear forms. With
shares of the products of masks (`Element`) the owners expand it without a message. Beaver's product
and the lookup of a few bits are special cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
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
    for bits in subsets(term.bits):
        for factors in subsets(term.factors):
            if bits or factors:
                yield bits, tuple(form.mask for form in factors)


def subsets(items: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """All subsets of the items, the smallest first."""
    items = tuple(items)
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))
