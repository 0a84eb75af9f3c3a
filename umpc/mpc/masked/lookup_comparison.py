"""Comparing a number that three or more owners make: no key, but shared one-hot tables of its mask.

All owners know d̂ = d + r mod 2^w. The low w−1 bits of r are cut into pieces of PIECE bits; the dealer shares, among
all owners, the one-hot row of every piece, and of msb(r). Shares of [d̂_i < r_i] and [d̂_i = r_i] of a piece are then
sums of the row's shares at public places: no message. The pieces' bits are opened under masks and combined,

    borrow = lt_1 ⊕ eq_1·lt_2 ⊕ eq_1·eq_2·lt_3 ⊕ …      [d < 0] = 1 ⊕ [top bits equal] ⊕ borrow
    [d = 0] = Π eq_i · [top bits equal]

FAN pieces a round, so the depth is logarithmic in w. (Look-up tables for pieces: as in SIRNN, Rathee et al. 2021, with
a dealer in place of oblivious transfer; the sign from the borrow: as in `comparison.py`.)

Sees: every owner d̂, uniform to whoever lacks one owner's mask, and opened bits under masks to which every owner
contributes. From what any proper subset of the owners holds, r is uniform: that is what a comparison key would break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from umpc.mpc.masked.plan import Linear, Table

PIECE = 4
"""Bits of the mask in one table."""
FAN = 4
"""Pieces that one round combines into one."""


class Builder(Protocol):
    """What the compiler offers: both give the number of a bit."""

    look: Callable[[Table, str, int], int]
    add_logic: Callable[..., int]


def compare(builder: Builder, difference: Linear, width: int, kind: str, layer: int) -> int:
    """The bit [difference < 0] or [difference = 0] of a w-bit difference that is known masked before `layer`."""
    top = builder.look(Table(difference, width, width - 1, 1), "equal", layer)
    tables = [Table(difference, width, low, size) for low, size in _pieces(width - 1)]
    less = [builder.look(table, "less", layer) for table in tables] if kind == "less" else []
    used = (
        tables[:-1] if kind == "less" else tables
    )  # the lowest piece's equality decides nothing about the borrow
    equal = [builder.look(table, "equal", layer) for table in used]
    if kind == "less":
        return builder.add_logic([(top,), *combine(builder, less, equal)], constant=True)
    return builder.add_logic([(*_all_equal(builder, equal), top)])


def combine(builder: Builder, less: Sequence[int], equal: Sequence[int]) -> list[tuple[int, ...]]:
    """The borrow of consecutive pieces, the highest first, as conjunctions of at most FAN bits.

    equal: of all pieces but the lowest, which decides nothing.
    """
    while len(less) > FAN:
        groups = [slice(start, start + FAN) for start in range(0, len(less), FAN)]
        less, equal = (
            [_combined(builder, _borrow(less[group], equal[group])) for group in groups],
            [_combined(builder, [tuple(equal[group])]) for group in groups[:-1]],
        )
    return _borrow(less, equal)


def _all_equal(builder: Builder, equal: Sequence[int]) -> Sequence[int]:
    """The conjunction of bits as one of at most FAN bits."""
    while len(equal) > FAN:
        equal = [
            _combined(builder, [tuple(equal[start : start + FAN])])
            for start in range(0, len(equal), FAN)
        ]
    return equal


def _pieces(bits: int) -> list[tuple[int, int]]:
    """(low, size) of every piece of the low bits, the highest first."""
    return [(low, min(PIECE, bits - low)) for low in range(0, bits, PIECE)][::-1]


def _borrow(less: Sequence[int], equal: Sequence[int]) -> list[tuple[int, ...]]:
    """Conjunctions whose exclusive or is the borrow of consecutive pieces."""
    return [(*equal[:number], bit) for number, bit in enumerate(less)]


def _combined(builder: Builder, conjunctions: list[tuple[int, ...]]) -> int:
    """The function's bit; a single bit stands for itself."""
    ((first, *more), *others) = conjunctions
    return builder.add_logic(conjunctions) if more or others else first
