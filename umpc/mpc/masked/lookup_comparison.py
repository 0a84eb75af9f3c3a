"""Comparison of a number that two or more owners make, by shared one-hot tables of its mask.

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

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Protocol, TypeAlias, TypeVar

from umpc.mpc.masked.plan_items import (
    Bit,
    Comparison,
    InputPlace,
    Layer,
    Linear,
    Literal,
    Logic,
    LookupBit,
    LookupTable,
    TopBit,
)

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


class LogicBuilder(Protocol):
    """A plan in the making, to which Boolean functions are added."""

    def add_logic(self, conjunctions: Conjunctions, top: TopBit | None = None) -> int:
        """The number of the exclusive or of the conjunctions, and of a top bit."""
        ...


class Builder(LogicBuilder, Protocol):
    """A plan in the making, to which bits of tables are added as well."""

    def lookup_bit(
        self, table: LookupTable, kind: str, layer: int, top: TopBit | None = None
    ) -> int:
        """The number of a bit of a table, which is opened in a layer."""
        ...


def compare(builder: Builder, difference: Linear, width: int, kind: str, layer: int) -> int:
    """The bit [difference < 0] or [difference = 0], of a difference of w bits above −2^(w−1).

    The difference is known masked before `layer`.
    """
    top = TopBit(difference, width) if kind == "less" else None
    tables = [LookupTable(difference, width, low, size) for low, size in pieces(width - 1)]
    if len(tables) == 1:
        return builder.lookup_bit(tables[0], kind, layer, top)
    # The equality of the lowest piece decides nothing about the borrow.
    needed = tables if kind == "equal" else tables[:-1]
    equal = [builder.lookup_bit(table, "equal", layer) for table in needed]
    if kind == "equal":
        return builder.add_logic([tuple(equal)])
    less = [builder.lookup_bit(table, "less", layer) for table in tables]
    return builder.add_logic(_borrow(less, equal), top)


def pieces(bits: int) -> list[tuple[int, int]]:
    """(low, size) of every piece of the low bits, the highest first; sizes differ by 1 at most."""
    count = 1 if bits <= ONE_PIECE else min(MOST_PIECES, -(-bits // PIECE))
    ends = [bits * number // count for number in range(count + 1)]
    return [(low, high - low) for low, high in pairwise(ends)][::-1]


def combine(builder: LogicBuilder, less: Sequence[int], equal: Sequence[int]) -> Conjunctions:
    """The borrow of consecutive pieces, the highest first, as conjunctions of at most FAN bits.

    equal: of all pieces but the lowest, which decides nothing.
    """
    while len(less) > FAN:
        groups = [slice(start, start + FAN) for start in range(0, len(less), FAN)]
        borrows = [_combined(builder, _borrow(less[group], equal[group])) for group in groups]
        equal = [_combined(builder, [tuple(equal[group])]) for group in groups[:-1]]
        less = borrows
    return _borrow(less, equal)


def _borrow(less: Sequence[int], equal: Sequence[int]) -> Conjunctions:
    """Conjunctions whose exclusive or is the borrow of consecutive pieces."""
    return [(*equal[:number], bit) for number, bit in enumerate(less)]


def _combined(builder: LogicBuilder, conjunctions: Conjunctions) -> int:
    """The function's bit; a single bit stands for itself."""
    ((first, *more), *others) = conjunctions
    return builder.add_logic(conjunctions) if more or others else first


# --- plan builder ---------------------------------------------------------------------------------

Item = TypeVar("Item")


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
