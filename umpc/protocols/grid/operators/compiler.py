"""The compiler of the grid: from kernels to a table, and to each sum as a form of the table.

A kernel's normal form is a sum of products. A factor of one record is a weight. A bit that compares
two records links one axis of each. So every product is weights · Π over axes of an operator along
one axis, which takes linear time (`leg.py`). The table's axes are what the bits compare.

*Substitution.* A change of variables: fields in terms of the axes' numbers.

A loss over s = x + 2·y is compared by s alone, and its values are written with x and y. In terms of
s, x cancels, and the table needs no more than the axis of s.

*Symmetry.* A pair kernel's matrix, symmetric as a matrix.

A kernel is symmetric as a function of two records. Its matrix must be symmetric too where no record
can be, because a mask is any vector: at numbers that an axis skips, and over features that depend
on each other. ⟨v, A·w⟩ = ⟨w, A·v⟩ is tested for products v and w of one fixed vector for each axis,
which takes the sum of the axes' sizes and not their product. The two sides are polynomials in the
vectors' entries modulo 2^64, so different ones agree at a few points with negligible probability.
Where the test fails, the mean of the matrix and its transpose is taken, if it has integer entries.

*Dense.* A kernel that is no sum of products over axes: its matrix, block by block, for small
tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Word
from umpc.errors import KernelError, LocalProtocolError
from umpc.mpc.arrays import Integers, Words
from umpc.protocols.grid.operators.axis import (
    ONE,
    Axis,
    DoesNotFactor,
    axis_of,
    bilinear_of,
    field_axis,
)
from umpc.protocols.grid.operators.cuts import Cuts
from umpc.protocols.grid.operators.layout import MAX_CELLS, Layout, lay_out, require_cells
from umpc.protocols.grid.operators.leg import to_words
from umpc.protocols.grid.operators.matrix import Form, Matrix, OwnPart, PairForm, TableEntry
from umpc.protocols.grid.operators.splitting import ProductTerm, terms_of, written_out
from umpc.protocols.grid.operators.triples import TripleForm, TripleTerms, triple_form
from umpc.ustat import polynomial as poly
from umpc.ustat.clear import Columns, evaluate_exact
from umpc.ustat.kernel import Kernel
from umpc.ustat.normal_form import Atom, BitAtom, FieldAtom, Monomial, Polynomial
from umpc.ustat.polynomial import relabel
from umpc.ustat.schema import Schema


@dataclass(frozen=True)
class Grid:
    """A table of all records' cells, and the sums that are forms of it."""

    layout: Layout
    forms: tuple[Form, ...] | tuple[TripleForm, ...]
    cuts: Cuts

    @property
    def cells(self) -> int:
        """The number of entries of the table."""
        return self.layout.cells

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The numbers of one record that make its cell."""
        return tuple(axis for axis in self.layout.axes if axis != ONE)

    @property
    def text(self) -> str:
        """The axes in words, for people."""
        return " × ".join(f"{axis.size:,} ({axis.text})" for axis in self.axes)

    @property
    def counts(self) -> bool:
        """Whether the table is a histogram, so that `cell_of` says everything about a record."""
        return self.layout.counts

    def cell_of(self, columns: Columns) -> Integers:
        """(records,) int64 in [0, cells): every record's cell, where the table is a histogram."""
        if not self.counts:
            raise LocalProtocolError("the table is no histogram: take tabulate()")
        return self.layout.cell_of(self.cuts.apply(columns))

    def tabulate(self, columns: Columns) -> Words:
        """(cells,) uint64: the table of these records, whose values are within the bounds."""
        return self.layout.tabulate(self.cuts.apply(columns))


def compile_grid(
    kernels: Sequence[Kernel],
    schema: Schema,
    *,
    label: str = "",
    cuts: Mapping[str, Sequence[int]] | None = None,
    counts: bool = False,
) -> Grid:
    """The grid of kernels over one schema.

    Args:
        label: the public field of two values whose classes the kernels' two records come from;
            empty where they come from all records. The first record has the lower value.
        cuts: the public cut points of some fields, in steps of their resolutions.
        counts: whether the table is a histogram where it can be, however many cells that takes.

    Raises: RangeError where the table is too large, or cut points do not fit; KernelError where a
    kernel has a degree that has no grid, or uses more of a cut field than its order; UnknownField.
    """
    cut = Cuts(schema, cuts or {})
    if cut.points:
        kernels = [cut.kernel(kernel) for kernel in kernels]
    # forms are quadratic or cubic in the table
    degree = kernels[0].degree
    if degree not in (2, 3):
        raise KernelError(f"the grid has sums over 2 or 3 records, this kernel takes {degree}")
    if degree == 3:
        return _of_triples(kernels, cut, counts)
    try:
        # f = Σ of products over axes: linear time
        parts, layout = _laid_out(kernels, label, cut, counts)
        require_cells(layout, kernels, MAX_CELLS, "in bounded memory", cut.points)
        return Grid(layout, _forms(layout, kernels, parts), cut)
    except (DoesNotFactor, KernelError):
        # else the matrix, entry by entry
        layout = dense_layout(kernels, label)
        reason = "for a kernel that is no sum of products over axes"
        require_cells(layout, kernels, MAX_DENSE_CELLS, reason, cut.points)
        return Grid(layout, tuple(DenseForm(layout, kernel, label) for kernel in kernels), cut)


def least_cells(kernels: Sequence[Kernel], schema: Schema, *, label: str = "") -> int:
    """The fewest cells that the grid of these kernels can have, found without its operators.

    Wide axes take their operators seconds, and one who compares two ways need not wait for them.

    Args: as of `compile_grid`, without cuts. Returns: 0 where no number of cells is known.
    """
    degree = kernels[0].degree
    if degree not in (2, 3):
        return 0
    try:
        if degree == 3:
            return _triples_laid_out(kernels, Cuts(schema, {}))[1].cells
        _, layout = _laid_out(kernels, label, Cuts(schema, {}))
    except (DoesNotFactor, KernelError):
        return 0
    # a table over axes that has no operators becomes a dense one
    return min(layout.cells, dense_layout(kernels, label).cells)


def _laid_out(
    kernels: Sequence[Kernel], label: str, cut: Cuts, counts: bool = False
) -> tuple[_Factors, Layout]:
    """The terms of kernels of two records, and their table. Raises: DoesNotFactor."""
    polynomials = [_integral(kernel, label) for kernel in kernels]
    parts = _best(polynomials, cut.coarse)
    return parts, parts.layout(cut.coarse, counts)


def _triples_laid_out(
    kernels: Sequence[Kernel], cut: Cuts, counts: bool = False
) -> tuple[list[TripleTerms], Layout]:
    """The terms of kernels of three records, and their table. Raises: DoesNotFactor."""
    sums = [TripleTerms.of(_integral(kernel, "")) for kernel in kernels]
    bits = [bit for each in sums for bit in each.bits]
    locals_ = [local for each in sums for local in each.locals]
    return sums, lay_out(locals_, _compared(bits, cut.coarse), cut.coarse, counts=counts)


def _of_triples(kernels: Sequence[Kernel], cut: Cuts, counts: bool) -> Grid:
    """The grid of kernels of three records. Raises: KernelError, RangeError."""
    try:
        sums, layout = _triples_laid_out(kernels, cut, counts)
        require_cells(layout, kernels, MAX_CELLS, "in bounded memory", cut.points)
        rows = zip(sums, kernels, strict=True)
        forms = [triple_form(layout, each, kernel.magnitude_units) for each, kernel in rows]
    except DoesNotFactor:
        raise KernelError(
            "the grid has kernels of three records that compare one of them with both others, and "
            "this one does more"
        ) from None
    return Grid(layout, tuple(forms), cut)


@dataclass(frozen=True)
class _Factors:
    """The kernels' terms over an edge's records, and over one record that takes all places."""

    polynomials: tuple[Polynomial, ...]
    terms: tuple[tuple[ProductTerm, ...], ...]
    singles: tuple[tuple[ProductTerm, ...], ...]

    @classmethod
    def of(cls, polynomials: Sequence[Polynomial]) -> Self:
        # f(r, r), which is taken out of HᵀAH
        diagonals = [relabel(each, {0: 0, 1: 0}) for each in polynomials]
        terms = tuple(terms_of(polynomial, 2) for polynomial in polynomials)
        singles = tuple(terms_of(diagonal, 1) for diagonal in diagonals)
        return cls(tuple(polynomials), terms, singles)

    def compared(self, schema: Schema) -> list[Axis]:
        """The axes that comparisons of two records need."""
        return _compared((bit for each in self.terms for term in each for bit in term.bits), schema)

    def layout(self, schema: Schema, counts: bool = False) -> Layout:
        """The table for these terms."""
        both = (*self.terms, *self.singles)
        return lay_out(
            (local for each in both for term in each for local in term.local),
            self.compared(schema),
            schema,
            counts=counts,
        )


def _best(polynomials: Sequence[Polynomial], schema: Schema) -> _Factors:
    """The terms in the variables with the fewest cells."""
    parts = _Factors.of(polynomials)
    for axis in sorted(parts.compared(schema), key=lambda axis: -axis.size):
        for pivot in pivots(axis):
            # x = ±(u − y): fewer features with u as an axis
            changed = [substituted(each, axis, pivot) for each in parts.polynomials]
            other = _Factors.of(changed)
            if other.layout(schema).cells < parts.layout(schema).cells:
                # kept where the table becomes smaller
                parts = other
                break
    return parts


def _forms(layout: Layout, kernels: Sequence[Kernel], parts: _Factors) -> tuple[Form, ...]:
    """The sum of each kernel. Raises: DoesNotFactor."""
    found = []
    for kernel, terms, single in zip(kernels, parts.terms, parts.singles, strict=True):
        own = OwnPart(layout, tuple((term.coefficient, term.local[0]) for term in single))
        found.append(PairForm(symmetric_matrix(layout, terms), own, kernel.magnitude_units))
    return tuple(found)


def _integral(kernel: Kernel, label: str) -> Polynomial:
    """The kernel in its units, over records of all classes."""
    # in units: all entries are integers
    polynomial = kernel.polynomial.scaled(1 / kernel.unit)
    if label:
        polynomial = _across(polynomial, label, kernel.schema)
    return written_out(polynomial)


def _across(polynomial: Polynomial, label: str, schema: Schema) -> Polynomial:
    """A kernel over two classes as a symmetric one: 0 within a class.

    The kernel's first record is of the class of the label's lower value.
    """
    upper = poly.constant(schema[label].upper_units)
    # the class as a bit of the record
    seconds = [
        poly.equal_to_zero(poly.add(poly.atom(FieldAtom(r, label)), upper.scaled(Fraction(-1))))
        for r in (0, 1)
    ]
    firsts = [poly.add(poly.constant(1), each.scaled(Fraction(-1))) for each in seconds]
    swapped = relabel(polynomial, {0: 1, 1: 0})
    return poly.add(
        # f where record 0 is of the first class
        poly.multiply(polynomial, poly.multiply(firsts[0], seconds[1])),
        # and exchanged where record 1 is
        poly.multiply(swapped, poly.multiply(firsts[1], seconds[0])),
    )


def _compared(bits: Iterable[BitAtom], schema: Schema) -> list[Axis]:
    """The axes that comparisons of two records need."""
    found: dict[Polynomial, None] = {}
    for bit in sorted(set(bits), key=lambda bit: bit.order):
        if len(bit.records) > 2:
            raise DoesNotFactor
        first, second = sorted(bit.records)
        link = bilinear_of(bit, first, second)
        found.setdefault(link.first)
        found.setdefault(link.second)
    return [axis_of(form, schema) for form in found]


# --- substitution ---------------------------------------------------------------------------------


def pivots(axis: Axis) -> Iterator[str]:
    """The fields that are integer combinations of a linear axis's number and its other fields."""
    for monomial, _ in axis.form.terms:
        ((factor, power), *others) = monomial
        if others or power > 1 or not isinstance(factor, FieldAtom):
            return
    if len(axis.form.terms) > 1:
        for ((factor, _),), coefficient in axis.form.terms:
            if abs(coefficient) == 1 and isinstance(factor, FieldAtom):
                yield factor.name


def substituted(polynomial: Polynomial, axis: Axis, pivot: str) -> Polynomial:
    """The polynomial with a field replaced, where it stands outside of comparisons.

    Raises: KernelError where it grows too large.
    """

    def replaced(factor: Atom) -> Polynomial:
        if isinstance(factor, FieldAtom) and factor.name == pivot:
            return _solved(axis, pivot, factor.record)
        return poly.atom(factor)

    return poly.mapped(polynomial, replaced)


def _solved(axis: Axis, pivot: str, record: int) -> Polynomial:
    """The field by the axis's number: ±(number − the other fields)."""
    parts = [poly.atom(FieldAtom(record, axis.name))]
    sign = Fraction(1)
    for ((factor, _),), coefficient in axis.form.terms:
        if isinstance(factor, FieldAtom) and factor.name == pivot:
            sign = coefficient
        elif isinstance(factor, FieldAtom):
            parts.append(poly.atom(FieldAtom(record, factor.name)).scaled(-coefficient))
    return poly.add(*parts).scaled(sign)


# --- symmetry -------------------------------------------------------------------------------------

TESTS = 2
"""Pairs of vectors that are tried."""


def symmetric_matrix(layout: Layout, terms: Sequence[ProductTerm]) -> Matrix:
    """A symmetric matrix with the terms' value on all pairs of records.

    Raises: DoesNotFactor where none with integer entries is found.
    """
    matrix = Matrix(
        layout, [TableEntry(t.coefficient, t.local[0], t.local[1], t.bits) for t in terms]
    )
    if is_symmetric(matrix):
        return matrix
    # (A + Aᵀ)/2 has the same value on unordered pairs
    matrix = Matrix(layout, _mean_with_transpose(terms))
    if not is_symmetric(matrix):
        raise DoesNotFactor
    return matrix


def is_symmetric(matrix: Matrix) -> bool:
    """Whether the matrix equals its transpose, tested as above."""
    sizes = matrix.layout.shape
    for test in range(TESTS):
        left, right = (
            [_mixed(size, 1 + 64 * (2 * test + side) + k) for k, size in enumerate(sizes)]
            for side in (0, 1)
        )
        # ⟨v, A·w⟩ = ⟨w, A·v⟩ for fixed vectors of products
        if matrix.inner(left, right) != matrix.inner(right, left):
            return False
    return True


def _mixed(count: int, number: int) -> Words:
    """(count,) uint64: fixed numbers without structure.

    *Paper* Steele, Lea & Flood 2014, SplitMix64. These are no secrets.
    """
    start = np.uint64(number << 40)
    z = (np.arange(count, dtype=np.uint64) + start) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _mean_with_transpose(terms: Iterable[ProductTerm]) -> list[TableEntry]:
    """The entries of (A + Aᵀ)/2. Raises: DoesNotFactor where one is no integer."""
    doubled: dict[tuple[Monomial, Monomial, frozenset[BitAtom]], int] = {}
    for term in terms:
        first, second = term.local
        swapped = ((c, (second, first, bits)) for c, bits in _swapped(term.bits))
        for coefficient, place in ((1, (first, second, term.bits)), *swapped):
            doubled[place] = doubled.get(place, 0) + term.coefficient * coefficient
    # half of an odd entry is no ring element
    if any(coefficient % 2 for coefficient in doubled.values()):
        raise DoesNotFactor
    return [TableEntry(c // 2, *place) for place, c in doubled.items() if c]


def _swapped(bits: Iterable[BitAtom]) -> list[tuple[int, frozenset[BitAtom]]]:
    """A product of bits with its two records exchanged, as a sum of products of bits."""
    swapped = (relabel(poly.atom(bit), {0: 1, 1: 0}) for bit in bits)
    product = reduce(poly.multiply, swapped, poly.constant(1))
    return [
        (int(coefficient), frozenset(f for f, _ in monomial if isinstance(f, BitAtom)))
        for monomial, coefficient in product.terms
    ]


# --- dense ----------------------------------------------------------------------------------------

MAX_DENSE_CELLS = 1 << 15
"""The most cells of a table whose matrix is computed entry by entry."""
BLOCK = 1 << 17
"""Entries of the matrix that are computed at once. Their 1 MiB stays in a processor's cache."""


@dataclass(frozen=True)
class DenseForm:
    """A sum over pairs, its matrix the kernel at all pairs of cells.

    Args: layout: a histogram over fields. label: the field of two classes, or empty.
    """

    layout: Layout
    kernel: Kernel
    label: str

    @property
    def magnitude(self) -> int:
        return self.kernel.magnitude_units

    @property
    def cost(self) -> int:
        return self.layout.cells**2

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        cells = self.layout.cells
        target = np.zeros(cells, dtype=vector.dtype)
        columns = self._columns()
        start = 0
        while start < cells:
            stop = min(start + max(1, BLOCK // (cells - start)), cells)
            # rows of a block against all cells from it on
            here = {name: column[start:stop, None] for name, column in columns.items()}
            rest = {name: column[start:] for name, column in columns.items()}
            values = to_words(self._entries(here, rest, (stop - start, cells - start)))
            entries = values.astype(vector.dtype, copy=False)
            target[start:stop] += entries @ vector[start:]
            # A is symmetric: the entries to the right of the block are those below it
            target[stop:] += vector[start:stop] @ entries[:, stop - start :]
            start = stop
        return target

    def diagonal(self) -> Words:
        columns = self._columns()
        return to_words(self._entries(columns, columns, (self.layout.cells,)))

    def matrix(self) -> Integers:
        """(cells, cells) int64: the kernel at all pairs of cells, in units; for few cells."""
        cells = self.layout.cells
        columns = self._columns()
        rows = {name: column[:, None] for name, column in columns.items()}
        return self._entries(rows, columns, (cells, cells))

    def _columns(self) -> Columns:
        """The fields' values at all cells."""
        places = np.unravel_index(np.arange(self.layout.cells), self.layout.shape[1:])
        return {
            axis.name: axis.low + place.astype(np.int64)
            for axis, place in zip(self.layout.axes, places, strict=True)
        }

    def _entries(self, first: Columns, second: Columns, shape: tuple[int, ...]) -> Integers:
        """The kernel at these pairs of cells, in units; 0 within a class."""
        forward = self._values(first, second, shape)
        if not self.label:
            return forward
        upper = self.kernel.schema[self.label].upper_units
        in_second = [columns[self.label] == upper for columns in (first, second)]
        backward = self._values(second, first, shape)
        across = np.where(in_second[1], forward, backward)
        return np.where(in_second[0] != in_second[1], across, 0)

    def _values(self, first: Columns, second: Columns, shape: tuple[int, ...]) -> Integers:
        kernel = self.kernel
        value = evaluate_exact(kernel.expression, kernel.schema, (first, second))
        units = np.asarray(value.rescaled(kernel.unit)).astype(np.int64, copy=False)
        return np.ascontiguousarray(np.broadcast_to(units, shape))


def dense_layout(kernels: Sequence[Kernel], label: str) -> Layout:
    """The histogram over every field that a kernel uses. Raises: UnknownField."""
    names = {name for kernel in kernels for name in kernel.fields} | ({label} - {""})
    axes = [field_axis(name, kernels[0].schema) for name in sorted(names)]
    return Layout(tuple(sorted(axes, key=lambda axis: axis.size)), ((),))
