"""A pair kernel's matrix, symmetric as a matrix.

A kernel is symmetric as a function of two records. Its matrix must be symmetric too where no record
can be, because a mask is any vector: at numbers that an axis skips, and over features that depend
on each other. ⟨v, A·w⟩ = ⟨w, A·v⟩ is tested for products v and w of one fixed vector for each axis,
which takes the sum of the axes' sizes and not their product. The two sides are polynomials in the
vectors' entries modulo 2^64, so different ones agree at a few points with negligible probability.
Where the test fails, the mean of the matrix and its transpose is taken, if it has integer entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from umpc.protocols.arrays import Words
from umpc.protocols.grid.operators.intervals import DoesNotFactor
from umpc.protocols.grid.operators.layout import Layout
from umpc.protocols.grid.operators.matrix import Entry, Matrix
from umpc.protocols.grid.operators.splitting import Term
from umpc.ustat import polynomial as poly
from umpc.ustat.local import relabel
from umpc.ustat.normal_form import BitAtom, Monomial

TESTS = 2
"""Pairs of vectors that are tried."""


def symmetric_matrix(layout: Layout, terms: Sequence[Term]) -> Matrix:
    """A symmetric matrix with the terms' value on all pairs of records.

    Raises: DoesNotFactor where none with integer entries is found.
    """
    matrix = Matrix(layout, [_entry(term) for term in terms])
    if is_symmetric(matrix):
        return matrix
    matrix = Matrix(layout, _mean_with_transpose(terms))
    if not is_symmetric(matrix):
        raise DoesNotFactor
    return matrix


def is_symmetric(matrix: Matrix) -> bool:
    """Whether the matrix equals its transpose, tested as above."""
    for test in range(TESTS):
        left, right = (
            [_mixed(size, 1 + 64 * (2 * test + side) + k) for k, size in enumerate(_sizes(matrix))]
            for side in (0, 1)
        )
        if matrix.inner(left, right) != matrix.inner(right, left):
            return False
    return True


def _entry(term: Term) -> Entry:
    first, second = term.local
    return Entry(term.coefficient, first, second, term.bits)


def _sizes(matrix: Matrix) -> tuple[int, ...]:
    return matrix.layout.shape


def _mixed(count: int, number: int) -> Words:
    """(count,) uint64: fixed numbers without structure.

    *Paper* Steele, Lea & Flood 2014, SplitMix64. These are no secrets.
    """
    start = np.uint64(number << 40)
    z = (np.arange(count, dtype=np.uint64) + start) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _mean_with_transpose(terms: Iterable[Term]) -> list[Entry]:
    """The entries of (A + Aᵀ)/2. Raises: DoesNotFactor where one is no integer."""
    doubled: dict[tuple[Monomial, Monomial, frozenset[BitAtom]], int] = {}
    for term in terms:
        first, second = term.local
        swapped = ((c, (second, first, bits)) for c, bits in _swapped(term.bits))
        for coefficient, place in ((1, (first, second, term.bits)), *swapped):
            doubled[place] = doubled.get(place, 0) + term.coefficient * coefficient
    if any(coefficient % 2 for coefficient in doubled.values()):
        raise DoesNotFactor
    return [Entry(c // 2, *place) for place, c in doubled.items() if c]


def _swapped(bits: Iterable[BitAtom]) -> list[tuple[int, frozenset[BitAtom]]]:
    """A product of bits with its two records exchanged, as a sum of products of bits."""
    product = poly.constant(1)
    for bit in bits:
        product = poly.multiply(product, relabel(poly.atom(bit), {0: 1, 1: 0}))
    return [
        (int(coefficient), frozenset(f for f, _ in monomial if isinstance(f, BitAtom)))
        for monomial, coefficient in product.terms
    ]
