"""Boolean functions of comparison bits in their normal form over GF(2): exclusive ors of conjunctions.

The bits of one comparison exclude each other, [P < 0]·[P = 0] = 0, so a conjunction with both is dropped. With that
a function has one normal form, and logic that means the same is the same, however it was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from umpc.errors import KernelError

if TYPE_CHECKING:
    from umpc.ustat.polynomial import BitAtom, Polynomial

Conjunction = frozenset["BitAtom"]
Function = frozenset[Conjunction]
"""The exclusive or of its conjunctions; the empty conjunction is 1. `^` of two functions is their exclusive or."""

FALSE: Function = frozenset()
TRUE: Function = frozenset([frozenset()])
MAX_CONJUNCTIONS = 4096
MAX_PRODUCTS = 1 << 16
"""A short text could take minutes and gigabytes before the result is known to be too long."""


def single(bit: BitAtom) -> Function:
    return frozenset([frozenset([bit])])


def conjunction(left: Function, right: Function) -> Function:
    """The and of two functions. Raises: KernelError where it has too many conjunctions."""
    if len(left) * len(right) > MAX_PRODUCTS:
        raise _too_many()
    found: set[Conjunction] = set()
    for first in left:
        for second in right:
            joined = first | second
            if not _excluded(joined):
                found ^= {joined}
        if len(found) > MAX_CONJUNCTIONS:
            raise _too_many()
    return frozenset(found)


def _too_many() -> KernelError:
    return KernelError(
        f"the kernel's conditions expand into more than {MAX_CONJUNCTIONS} cases; combine fewer comparisons"
    )


def _excluded(bits: Conjunction) -> bool:
    """Whether a comparison is both below and equal."""
    return len({bit.form for bit in bits}) < len(bits)


def forms(function: Iterable[Conjunction]) -> frozenset[Polynomial]:
    """What the function compares with zero."""
    return frozenset(bit.form for bits in function for bit in bits)


def conjunction_order(bits: Conjunction) -> tuple:
    return tuple(sorted(bit.order for bit in bits))


def order(function: Function) -> tuple:
    return tuple(sorted(conjunction_order(bits) for bits in function))
