"""The compiler of the grid: from kernels to a table, and to each sum as a form of the table.

A kernel's normal form is a sum of products. A factor of one record is a weight. A bit that compares
two records links one axis of each. So every product is weights · Π over axes of an operator along
one axis, which takes linear time (`leg.py`). The table's axes are what the bits compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from umpc.errors import KernelError, LocalProtocolError
from umpc.protocols.arrays import Integers, Words
from umpc.protocols.grid.operators.axis import ONE, Axis, axis_of
from umpc.protocols.grid.operators.cuts import Cuts
from umpc.protocols.grid.operators.dense import MAX_DENSE_CELLS, DenseForm, dense_layout
from umpc.protocols.grid.operators.form import Form, OwnPart, PairForm
from umpc.protocols.grid.operators.intervals import DoesNotFactor, link_of
from umpc.protocols.grid.operators.layout import Layout, lay_out
from umpc.protocols.grid.operators.limits import MAX_CELLS, require_cells
from umpc.protocols.grid.operators.splitting import ProductTerm, terms_of, written_out
from umpc.protocols.grid.operators.substitution import best_axes_first, pivots, substituted
from umpc.protocols.grid.operators.symmetry import symmetric_matrix
from umpc.protocols.grid.operators.triples import TripleForm, TripleTerms, triple_form
from umpc.ustat import polynomial as poly
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.local import relabel
from umpc.ustat.normal_form import BitAtom, FieldAtom, Polynomial
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
    cuts: Mapping[str, Sequence[Fraction | int]] | None = None,
) -> Grid:
    """The grid of kernels over one schema.

    Args:
        label: the public field of two values whose classes the kernels' two records come from;
            empty where they come from all records. The first record has the lower value.
        cuts: the public cut points of some fields, in the fields' own numbers.

    Raises: RangeError where the table is too large, or cut points do not fit; KernelError where a
    kernel has a degree that has no grid, or uses more of a cut field than its order; UnknownField.
    """
    cut = Cuts(schema, cuts or {})
    if cut.points:
        kernels = [cut.kernel(kernel) for kernel in kernels]
    degree = kernels[0].degree
    if degree not in (2, 3):
        raise KernelError(f"the grid has sums over 2 or 3 records, this kernel takes {degree}")
    if degree == 3:
        return _of_triples(kernels, cut)
    try:
        parts, layout = _laid_out(kernels, label, cut)
        require_cells(layout, kernels, MAX_CELLS, "in bounded memory", cut.points)
        return Grid(layout, _forms(layout, kernels, parts), cut)
    except (DoesNotFactor, KernelError):
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


def _laid_out(kernels: Sequence[Kernel], label: str, cut: Cuts) -> tuple[_Factors, Layout]:
    """The terms of kernels of two records, and their table. Raises: DoesNotFactor."""
    polynomials = [_integral(kernel, label) for kernel in kernels]
    parts = _best(polynomials, cut.coarse)
    return parts, parts.layout(cut.coarse)


def _triples_laid_out(kernels: Sequence[Kernel], cut: Cuts) -> tuple[list[TripleTerms], Layout]:
    """The terms of kernels of three records, and their table. Raises: DoesNotFactor."""
    sums = [TripleTerms.of(_integral(kernel, "")) for kernel in kernels]
    bits = [bit for each in sums for bit in each.bits]
    locals_ = [local for each in sums for local in each.locals]
    return sums, lay_out(locals_, _compared(bits, cut.coarse), cut.coarse)


def _of_triples(kernels: Sequence[Kernel], cut: Cuts) -> Grid:
    """The grid of kernels of three records. Raises: KernelError, RangeError."""
    try:
        sums, layout = _triples_laid_out(kernels, cut)
        require_cells(layout, kernels, MAX_CELLS, "in bounded memory", cut.points)
        rows = zip(sums, kernels, strict=True)
        forms = [triple_form(layout, each, kernel.magnitude_units) for each, kernel in rows]
    except DoesNotFactor:
        raise KernelError(
            "the grid has kernels of three records that compare one of them with both others, and "
            "this one does more; take pairs"
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
        diagonals = [relabel(each, {0: 0, 1: 0}) for each in polynomials]
        terms = tuple(terms_of(polynomial, 2) for polynomial in polynomials)
        singles = tuple(terms_of(diagonal, 1) for diagonal in diagonals)
        return cls(tuple(polynomials), terms, singles)

    def compared(self, schema: Schema) -> list[Axis]:
        """The axes that comparisons of two records need."""
        return _compared((bit for each in self.terms for term in each for bit in term.bits), schema)

    def layout(self, schema: Schema) -> Layout:
        """The table for these terms."""
        both = (*self.terms, *self.singles)
        return lay_out(
            (local for each in both for term in each for local in term.local),
            self.compared(schema),
            schema,
        )


def _best(polynomials: Sequence[Polynomial], schema: Schema) -> _Factors:
    """The terms in the variables with the fewest cells."""
    parts = _Factors.of(polynomials)
    for axis in best_axes_first(parts.compared(schema)):
        for pivot in pivots(axis):
            changed = [substituted(each, axis, pivot) for each in parts.polynomials]
            other = _Factors.of(changed)
            if other.layout(schema).cells < parts.layout(schema).cells:
                parts = other
                break
    return parts


def _forms(layout: Layout, kernels: Sequence[Kernel], parts: _Factors) -> tuple[Form, ...]:
    """The sum of each kernel. Raises: DoesNotFactor."""
    rows = zip(kernels, parts.terms, parts.singles, strict=True)
    return tuple(_form(layout, *row) for row in rows)


def _form(
    layout: Layout, kernel: Kernel, terms: Sequence[ProductTerm], single: Sequence[ProductTerm]
) -> Form:
    own = OwnPart(layout, tuple((term.coefficient, term.local[0]) for term in single))
    return PairForm(symmetric_matrix(layout, terms), own, kernel.magnitude_units)


def _integral(kernel: Kernel, label: str) -> Polynomial:
    """The kernel in its units, over records of all classes."""
    polynomial = kernel.polynomial.scaled(1 / kernel.unit)
    if label:
        polynomial = _across(polynomial, label, kernel.schema)
    return written_out(polynomial)


def _across(polynomial: Polynomial, label: str, schema: Schema) -> Polynomial:
    """A kernel over two classes as a symmetric one: 0 within a class.

    The kernel's first record is of the class of the label's lower value.
    """
    upper = poly.constant(schema[label].upper_units)
    seconds = [
        poly.equal_to_zero(poly.add(poly.atom(FieldAtom(r, label)), upper.scaled(Fraction(-1))))
        for r in (0, 1)
    ]
    firsts = [poly.add(poly.constant(1), each.scaled(Fraction(-1))) for each in seconds]
    swapped = relabel(polynomial, {0: 1, 1: 0})
    return poly.add(
        poly.multiply(polynomial, poly.multiply(firsts[0], seconds[1])),
        poly.multiply(swapped, poly.multiply(firsts[1], seconds[0])),
    )


def _compared(bits: Iterable[BitAtom], schema: Schema) -> list[Axis]:
    """The axes that comparisons of two records need."""
    found: dict[Polynomial, None] = {}
    for bit in sorted(set(bits), key=lambda bit: bit.order):
        if len(bit.records) > 2:
            raise DoesNotFactor
        first, second = sorted(bit.records)
        link = link_of(bit, first, second)
        found.setdefault(link.first)
        found.setdefault(link.second)
    return [axis_of(form, schema) for form in found]
