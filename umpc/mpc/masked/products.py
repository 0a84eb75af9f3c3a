"""The products of masks of a plan: their number, and the order in which they are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from umpc.mpc.arrays import IndexArray
from umpc.mpc.masked.plan_items import (
    Bit,
    BitElement,
    Conjunction,
    InputPlace,
    Logic,
    LookupBit,
    SharedPolynomial,
    WordPlace,
)


def expanded(
    outputs: Iterable[SharedPolynomial], places: Iterable[InputPlace], bits: Sequence[Bit]
) -> int:
    """The number of products of masks that all terms and functions expand into.

    Those that combine a comparison's pieces are left out: they are few bits for each comparison.
    """
    words = (place.polynomial for place in places if isinstance(place, WordPlace))
    ring = sum(
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
    parts: list[BitElement] = [()]
    for literal in conjunction:
        parts += [(*part, literal.bits) for part in parts]
    return np.array([rows[tuple(sorted(set(part)))] for part in parts[1:]])
