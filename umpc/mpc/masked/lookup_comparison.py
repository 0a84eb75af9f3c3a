"""Comparison of a number that three or more owners make, by shared one-hot tables of its mask.

All owners know d̂ = d + r mod 2^w. The low w−1 bits of r are cut into pieces of PIECE bits. The
dealer shares, among all owners, the one-hot row of every piece, and of msb(r). Shares of
[d̂_i < r_i] and [d̂_i = r_i] of a piece are then sums of the row's shares at public places, so they
need no message. The pieces' bits are opened under masks and combined:

    borrow = lt_1 ⊕ eq_1·lt_2 ⊕ eq_1·eq_2·lt_3 ⊕ …      [d < 0] = 1 ⊕ [top bits equal] ⊕ borrow
    [d = 0] = Π eq_i · [top bits equal]

A round combines FAN pieces, so the depth is logarithmic in w. Papers: lookup tables for pieces as
in SIRNN (Rathee et al. 2021), with a dealer in place of oblivious transfer; the sign from the
borrow as in `dcf.py`.

Reveals: every owner sees d̂, uniform to whoever lacks one owner's mask, and opened bits under masks
to which every owner contributes. Given all that any proper subset of the owners holds, r is
uniform. A comparison key would break that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from umpc.mpc.masked.plan_items import Linear, LookupTable

PIECE = 4
"""Bits of the mask in one table."""
FAN = 4
"""Pieces that one round combines into one."""

Conjunctions: TypeAlias = list[tuple[int, ...]]
"""Each conjunction is a tuple of numbers of bits; the function is their exclusive or."""


class LogicBuilder(Protocol):
    """A plan in the making, to which Boolean functions are added."""

    def add_logic(self, conjunctions: Conjunctions, *, constant: bool = False) -> int:
        """The number of the bit constant ⊕ the exclusive or of the conjunctions."""
        ...


class Builder(LogicBuilder, Protocol):
    """A plan in the making, to which bits of tables are added as well."""

    def lookup_bit(self, table: LookupTable, kind: str, layer: int) -> int:
        """The number of a bit of a table, which is opened in a layer."""
        ...


def compare(builder: Builder, difference: Linear, width: int, kind: str, layer: int) -> int:
    """The bit [difference < 0] or [difference = 0], of a difference of w bits.

    The difference is known masked before `layer`.
    """
    top = builder.lookup_bit(LookupTable(difference, width, width - 1, 1), "equal", layer)
    tables = [LookupTable(difference, width, low, size) for low, size in _pieces(width - 1)]
    if kind == "equal":
        equal = [builder.lookup_bit(table, "equal", layer) for table in tables]
        return builder.add_logic([(*_all_equal(builder, equal), top)])
    less = [builder.lookup_bit(table, "less", layer) for table in tables]
    # The equality of the lowest piece decides nothing about the borrow.
    equal = [builder.lookup_bit(table, "equal", layer) for table in tables[:-1]]
    return builder.add_logic([(top,), *combine(builder, less, equal)], constant=True)


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


def _all_equal(builder: LogicBuilder, equal: Sequence[int]) -> Sequence[int]:
    """The conjunction of bits, as a conjunction of at most FAN bits."""
    while len(equal) > FAN:
        groups = [tuple(equal[start : start + FAN]) for start in range(0, len(equal), FAN)]
        equal = [_combined(builder, [group]) for group in groups]
    return equal


def _pieces(bits: int) -> list[tuple[int, int]]:
    """(low, size) of every piece of the low bits, the highest first."""
    return [(low, min(PIECE, bits - low)) for low in range(0, bits, PIECE)][::-1]


def _borrow(less: Sequence[int], equal: Sequence[int]) -> Conjunctions:
    """Conjunctions whose exclusive or is the borrow of consecutive pieces."""
    return [(*equal[:number], bit) for number, bit in enumerate(less)]


def _combined(builder: LogicBuilder, conjunctions: Conjunctions) -> int:
    """The function's bit; a single bit stands for itself."""
    ((first, *more), *others) = conjunctions
    return builder.add_logic(conjunctions) if more or others else first
