"""Sign products of two wide columns at a resolution: tables of prefixes in place of values.

Two values of w bits first differ after a common prefix of i bits, and two values of the other
column after j bits. A pair with i + j ≤ L is decided: its value depends on the two columns' signs,
as always. Other pairs count as ties. L is the *resolution*; a study calls it its `levels`.

Table number p = 1, …, L + 1 has p bits of x and L + 2 − p bits of y. Its pairs of rows that differ
in the last bit alone have i = p − 1, and its columns order y for every j ≤ L − i. So each decided
pair counts in exactly one table, and every record has one cell in each.

*Paper* Griebel, Schneider & Zenger 1992 for the sparse grid; the application to pairs is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Word
from umpc.errors import KernelError, LocalProtocolError, RangeError
from umpc.mpc.arrays import Integers, Words
from umpc.protocols.grid.operators.axis import Axis, field_axis
from umpc.protocols.grid.operators.layout import MAX_CELLS
from umpc.protocols.grid.operators.leg import Leg, Piece, word
from umpc.protocols.grid.operators.splitting import terms_of, written_out
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.normal_form import BitAtom, Polynomial
from umpc.ustat.ranges import beyond_order


def ties_of_uniform_columns(resolution: int) -> Fraction:
    """The share of pairs that count as ties, for independent uniform columns: (L + 3) / 2^(L + 2).

    It is no bound for other columns.
    """
    return Fraction(resolution + 3, 1 << (resolution + 2))


@dataclass(frozen=True)
class Signs:
    """A kernel of two columns' signs alone, by its values in units.

    Args: alike, unlike: both columns differ, with one sign or with two. first, second: only that
    column differs. none: neither differs.
    """

    alike: int
    unlike: int
    first: int
    second: int
    none: int

    @property
    def undecided(self) -> int:
        """The value of a pair that is undecided, though each column alone has a sign."""
        return self.first + self.second - self.none

    @property
    def concordant(self) -> int:
        """The interaction for pairs of one sign: beyond what each column adds alone."""
        return self.alike - self.undecided

    @property
    def discordant(self) -> int:
        """The interaction for pairs of two signs."""
        return self.unlike - self.undecided


@dataclass(frozen=True)
class _LevelTable:
    """Prefixes of `rows` bits of the first column and `columns` bits of the second."""

    rows: int
    columns: int
    start: int

    @property
    def shape(self) -> tuple[int, int]:
        return 1 << self.rows, 1 << self.columns

    @property
    def part(self) -> slice:
        """Its cells in the whole vector."""
        return slice(self.start, self.stop)

    @property
    def stop(self) -> int:
        """The first cell after it."""
        return self.start + (1 << self.rows + self.columns)


@dataclass(frozen=True)
class DyadicGrid:
    """The tables of two columns at a resolution, and the sums that are forms of them.

    Args: axes: the two columns. resolution: L.
    """

    axes: tuple[Axis, Axis]
    resolution: int
    forms: tuple[DyadicForm, ...]
    counts = False

    @property
    def cells(self) -> int:
        """The number of entries of all tables."""
        return self.forms[0].cells

    @property
    def text(self) -> str:
        """The tables in words, for people."""
        names = " and ".join(axis.text for axis in self.axes)
        return f"{len(self.forms[0].tables)} tables of leading bits of {names}"

    def cell_of(self, columns: Columns) -> Integers:
        raise LocalProtocolError("a record has a cell in each table: take tabulate()")

    def tabulate(self, columns: Columns) -> Words:
        """(cells,) uint64: the tables of these records, whose values are within the bounds."""
        count = max((len(column) for column in columns.values()), default=0)
        first, second = (axis.inside(columns, count) for axis in self.axes)
        whole = np.zeros(self.cells, dtype=np.uint64)
        for table in self.forms[0].tables:
            # leading bits of both columns name the cell
            row = first >> (_bits(self.axes[0]) - table.rows)
            place = (row << table.columns) + (second >> (_bits(self.axes[1]) - table.columns))
            part = whole[table.part]
            part[:] = np.bincount(place, minlength=len(part)).view(np.uint64)
        return whole


@dataclass(frozen=True)
class DyadicForm:
    """A sum over pairs at a resolution: 2·S = HᵀAH − ⟨diagonal, H⟩.

    Args: magnitude: max |kernel| in units.
    """

    tables: tuple[_LevelTable, ...]
    signs: Signs
    magnitude: int

    @property
    def cells(self) -> int:
        """The number of entries of all tables."""
        return self.tables[-1].stop

    @property
    def cost(self) -> int:
        return 6 * self.cells

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        image = np.zeros_like(vector)
        for table in self.tables:
            # pairs that part in the last bit of this prefix
            source = vector[table.part].reshape(table.shape)
            target = image[table.part].reshape(table.shape)
            self._interaction(source, target)
        signs = self.signs
        # what a difference of the first column adds by itself
        self._alone(vector, image, self.tables[-1], 1, signs.first - signs.none)
        # what a difference of the second column adds by itself
        self._alone(vector, image, self.tables[0], 0, signs.second - signs.none)
        if signs.none:
            part = self.tables[0].part
            # the value without a difference, which every pair has
            image[part] += np.add.reduce(vector[part], dtype=vector.dtype) * _factor(
                signs.none, vector
            )
        return image

    def diagonal(self) -> Words:
        diagonal = np.zeros(self.cells, dtype=np.uint64)
        diagonal[self.tables[0].part] = word(self.signs.none)
        return diagonal

    def _interaction(self, source: NDArray[Word], target: NDArray[Word]) -> None:
        """Rows that differ in the last bit alone, by the order of the second column."""
        above, below = self._orders(source.shape[1])
        # a record in an odd row is above those in the even row before it
        for own, other, leg in ((1, 0, above), (0, 1, below)):
            leg.apply(source[other::2, :, None], target[own::2, :, None])

    def _orders(self, size: int) -> tuple[Leg, Leg]:
        """The operators of a row on the row below it, and on the row above it."""
        place = np.arange(size, dtype=np.int64)
        smaller = (np.zeros_like(place), place)
        larger = (place + 1, np.full_like(place, size))
        alike, unlike = self.signs.concordant, self.signs.discordant
        orders = ((alike, unlike), (unlike, alike))
        above, below = (
            Leg([Piece(f, smaller, None, None), Piece(g, larger, None, None)], size, size)
            for f, g in orders
        )
        return above, below

    def _alone(
        self,
        vector: NDArray[Word],
        image: NDArray[Word],
        table: _LevelTable,
        axis: int,
        factor: int,
    ) -> None:
        """Pairs of which one column differs, in all its bits that the table has.

        Args: axis: the other column's, over which all is added up.
        """
        if not factor:
            return
        source = vector[table.part].reshape(table.shape)
        # all records of the same prefix in this column
        sums = np.add.reduce(source, axis=axis, dtype=vector.dtype, keepdims=True)
        others = np.add.reduce(sums, dtype=vector.dtype, axis=None) - sums
        image[table.part].reshape(table.shape)[...] += others * _factor(factor, vector)


def compile_dyadic(kernels: Sequence[Kernel], resolution: int) -> DyadicGrid:
    """The grid of sign products of two columns at a resolution.

    Raises: KernelError where a kernel uses more than two columns' signs; RangeError where the
    tables are too large.
    """
    names = sorted({name for kernel in kernels for name in kernel.fields})
    if len(names) != 2:
        raise KernelError(
            f"levels are of two columns, and the kernels use {len(names)}: {', '.join(names)}"
        )
    schema = kernels[0].schema
    first, second = (field_axis(name, schema) for name in names)
    tables = _tables(_bits(first), _bits(second), resolution)
    if tables[-1].stop > MAX_CELLS:
        most = next(
            lower
            for lower in reversed(range(min(resolution, MAX_CELLS)))
            if _tables(_bits(first), _bits(second), lower)[-1].stop <= MAX_CELLS
        )
        raise RangeError(
            f"at {resolution} levels the tables have {tables[-1].stop} cells, and at most "
            f"{MAX_CELLS} are possible; take at most {most} levels"
        )
    forms = (
        DyadicForm(tables, signs_of(kernel, *names), kernel.magnitude_units) for kernel in kernels
    )
    return DyadicGrid((first, second), resolution, tuple(forms))


def _factor(number: int, vector: NDArray[Word]) -> NDArray[Word]:
    """() an integer in the vector's ring."""
    return word(number).astype(vector.dtype)


def _bits(axis: Axis) -> int:
    """The bits of a column's values; at least 1."""
    return max(1, (axis.size - 1).bit_length())


def _tables(first: int, second: int, resolution: int) -> tuple[_LevelTable, ...]:
    """The tables of columns of so many bits."""
    if resolution < 0:
        raise RangeError(f"levels are a number from 0 on, got {resolution}")
    tables: list[_LevelTable] = []
    start = 0
    for rows in range(1, min(first, resolution + 1) + 1):
        tables.append(_LevelTable(rows, min(second, resolution + 2 - rows), start))
        start = tables[-1].stop
    return tuple(tables)


@lru_cache(maxsize=16)
def signs_of(kernel: Kernel, first: str, second: str) -> Signs:
    """The kernel by signs. Raises: KernelError where it is none, or would leave its range."""
    for name in (first, second):
        if name in beyond_order(kernel.expression):
            raise KernelError(
                f"levels are for kernels that compare {first} and {second} between records, as "
                f"sign(a.{name} - b.{name}) does; this one does more"
            )
    values = ((1, 1), (1, -1), (1, 0), (0, 1), (0, 0))
    polynomial = written_out(kernel.polynomial.scaled(1 / kernel.unit))
    signs = Signs(*(_value(polynomial, {first: x, second: y}) for x, y in values))
    listed = (signs.alike, signs.unlike, signs.first, signs.second, signs.none)
    # the sensitivity counts on the kernel's range
    if not min(listed) <= signs.undecided <= max(listed):
        raise KernelError("at levels, this kernel would take values outside its range")
    return signs


def _value(polynomial: Polynomial, signs: dict[str, int]) -> int:
    """The kernel's polynomial where each column of record 0 minus that of record 1 has this sign.

    Args: polynomial: written out, in units.
    """
    return sum(
        term.coefficient
        for term in terms_of(polynomial, 2)
        if all(_holds(bit, signs) for bit in term.bits)
    )


def _holds(bit: BitAtom, signs: dict[str, int]) -> bool:
    (((factor, _),), coefficient) = bit.form.terms[0]
    sign = signs[min(bit.fields)] * (1 if coefficient > 0 else -1)
    if min(factor.records) == 1:
        sign = -sign
    return sign < 0 if bit.kind == "less" else sign == 0
