"""Boolean functions of comparison bits in their normal form over GF(2), the algebraic normal form.

A function is written as an exclusive or of conjunctions. The bits of one comparison exclude each
other, [P < 0]·[P = 0] = 0, so a conjunction with both is dropped. With that, each function of the
comparisons' outcomes has exactly one normal form. Logic with one meaning therefore has one form,
however it was written.
"""

from __future__ import annotations

from collections.abc import Iterable

from umpc.errors import KernelError
from umpc.ustat.normal_form import BitAtom, Conjunction, Function, Polynomial

FALSE: Function = frozenset()
TRUE: Function = frozenset([frozenset()])
MAX_CONJUNCTIONS = 4096
MAX_PRODUCTS = 1 << 16
"""The most pairs of conjunctions that are multiplied.

Without it, a short text could take minutes and gigabytes before its result is known to be too
long."""


def single(bit: BitAtom) -> Function:
    """The function that is this bit."""
    return frozenset([frozenset([bit])])


def conjunction(left: Function, right: Function) -> Function:
    """The and of two functions. Raises: KernelError where it has too many conjunctions."""
    if len(left) * len(right) > MAX_PRODUCTS:
        raise _too_many()
    found: set[Conjunction] = set()
    for first in left:
        for second in right:
            joined = first | second
            if not _is_never(joined):
                found ^= {joined}
        if len(found) > MAX_CONJUNCTIONS:
            raise _too_many()
    return frozenset(found)


def _too_many() -> KernelError:
    return KernelError(
        f"the kernel's conditions expand into more than {MAX_CONJUNCTIONS} cases; "
        f"combine fewer comparisons"
    )


def _is_never(bits: Conjunction) -> bool:
    """Whether a conjunction asks a comparison to be both below and equal."""
    return len({bit.form for bit in bits}) < len(bits)


def forms(function: Iterable[Conjunction]) -> frozenset[Polynomial]:
    """The polynomials that the function compares with zero."""
    return frozenset(bit.form for bits in function for bit in bits)
