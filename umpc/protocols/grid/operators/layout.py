"""The layout of a grid's table: its axes, and the features that a record adds at its place.

An axis is needed where records are compared. A factor of one record that no axis decides is a
*feature*: the record adds the feature's value, where otherwise it adds 1. A covariance so needs
four numbers (1, x, y and x·y) and no cell per value. The table has one block of cells for each
feature.

*Limits.* The limits of a grid's size, and what a study's author can coarsen.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, prod

import numpy as np

from umpc.errors import RangeError
from umpc.mpc.arrays import Integers, Words
from umpc.protocols.grid.operators.axis import ONE, Axis, field_axis
from umpc.ustat.blocks import CACHED, in_blocks
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.normal_form import Atom, Monomial, Polynomial, monomial_order
from umpc.ustat.polynomial import evaluate_local
from umpc.ustat.ranges import beyond_order
from umpc.ustat.schema import Schema


@dataclass(frozen=True)
class Placed:
    """A record's own factors: the feature, and for each axis the factors that it decides."""

    feature: int
    weights: tuple[Monomial, ...]


@dataclass(frozen=True)
class Layout:
    """The axes and features of a table of len(features) · Π sizes cells."""

    axes: tuple[Axis, ...]
    features: tuple[Monomial, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """(features, size of the first axis, …)"""
        return (len(self.features), *(axis.size for axis in self.axes))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    @property
    def counts(self) -> bool:
        """Whether a record adds 1 to one cell and nothing else: the table is a histogram."""
        return self.features == ((),)

    def place(self, local: Monomial) -> Placed:
        """The feature and the weights of a record's own factors."""
        feature, weights = divide(local, self.axes)
        return Placed(self.features.index(feature), weights)

    def weight(self, axis: int, factors: Monomial) -> Integers:
        """(size,) int64: the product of factors that an axis decides, at each of its places."""
        one = self.axes[axis]
        columns = {one.name: one.values}
        return evaluate_local(Polynomial(((factors, Fraction(1)),)), {0: columns}, one.size)

    def most(self, local: Monomial) -> int:
        """The largest absolute value of a record's own factors that axes decide."""
        weights = enumerate(self.place(local).weights)
        values = (self.weight(axis, factors) for axis, factors in weights if factors)
        return prod(max(abs(int(each.min())), abs(int(each.max()))) for each in values)

    def cell_of(self, columns: Columns) -> Integers:
        """(records,) int64: every record's cell, without the feature."""
        count = max((len(column) for column in columns.values()), default=0)
        cell = np.zeros(count, dtype=np.int64)

        def fill(start: int) -> None:
            block = slice(start, start + CACHED)
            part = cell[block]
            some = {name: column[block] for name, column in columns.items()}
            for axis in self.axes:
                # mixed radix: one digit for each axis
                part *= axis.size
                part += axis.inside(some, len(part))

        in_blocks(fill, range(0, count, CACHED))
        return cell

    def tabulate(self, columns: Columns) -> Words:
        """(cells,) uint64: the sum of all records' features, each at its record's cell."""
        cell = self.cell_of(columns)
        table = np.zeros((len(self.features), prod(self.shape[1:])), dtype=np.uint64)
        for row, feature in zip(table, self.features, strict=True):
            if feature == ():
                # a record adds 1 to its cell
                np.add.at(row, cell, np.uint64(1))
                continue
            value = Polynomial(((feature, Fraction(1)),))
            # a record adds its feature's value, mod 2^64
            np.add.at(row, cell, evaluate_local(value, {0: columns}, len(cell)).view(np.uint64))
        return table.reshape(-1)


def lay_out(
    locals_: Iterable[Monomial], axes: Sequence[Axis], schema: Schema, *, counts: bool = False
) -> Layout:
    """The table with the fewest cells for these factors of single records.

    A field gets an axis of its own where that takes no more cells than its features.

    Args: counts: whether it gets one in any case, so that the table is a histogram if it can be.
    """
    factors = sorted(set(locals_), key=monomial_order)
    best = _layout(factors, axes)
    improved = True
    while improved:
        improved = False
        known = {axis.name for axis in best.axes}
        for name in sorted({name for each in best.features for name in _names(each)} - known):
            # a field as an axis of its own, in place of features
            other = _layout(factors, [*_without_one(best.axes), field_axis(name, schema)])
            if counts or other.cells <= best.cells:
                best, improved = other, True
                break
    return best


def divide(local: Monomial, axes: Sequence[Axis]) -> tuple[Monomial, tuple[Monomial, ...]]:
    """A record's own factors, as those that no axis decides and those that each axis decides."""
    rest: list[tuple[Atom, int]] = []
    decided: list[list[tuple[Atom, int]]] = [[] for _ in axes]
    for factor, power in local:
        names = factor.fields
        owner = next((k for k, axis in enumerate(axes) if names <= {axis.name}), None)
        (rest if owner is None else decided[owner]).append((factor, power))
    return tuple(rest), tuple(map(tuple, decided))


def _layout(factors: Sequence[Monomial], axes: Sequence[Axis]) -> Layout:
    found = {divide(local, axes)[0] for local in factors}
    # the widest axis is the last: then most work is on neighbouring cells
    ordered = sorted(axes, key=lambda axis: axis.size)
    return Layout(tuple(ordered) or (ONE,), tuple(sorted(found, key=monomial_order)) or ((),))


def _without_one(axes: Sequence[Axis]) -> list[Axis]:
    return [axis for axis in axes if axis != ONE]


def _names(monomial: Monomial) -> Iterator[str]:
    for factor, _ in monomial:
        yield from factor.fields


# --- limits ---------------------------------------------------------------------------------------

MAX_CELLS = 1 << 26
"""The most cells of a table: 512 MiB in the 64-bit ring."""
SHOWN = 4
"""Axes that a refusal names."""
MANY = 10**12
"""From so many cells on a refusal tells a power of 2."""


def require_cells(
    layout: Layout,
    kernels: Sequence[Kernel],
    most: int,
    reason: str,
    binned: Container[str] = (),
) -> None:
    """Raises: RangeError where the table has more than `most` cells, with what to coarsen.

    Args:
        reason: the end of a sentence that begins with "the grid has so many cells".
        binned: the fields that have bins already.
    """
    if layout.cells <= most:
        return
    coarser = _coarser(layout, most)
    advice = " and ".join(
        f"{axis.text} to at most {kept} values{_ways(axis, kept, kernels, binned)}"
        for axis, kept in coarser
    )
    coarsen = f"; coarsen {advice}" if 0 < len(coarser) <= SHOWN else ""
    cells = layout.cells
    many = f"{cells}" if cells < MANY else f"over 2^{cells.bit_length() - 1}"
    raise RangeError(
        f"the grid has {many} cells ({_sizes(layout)}), and at most {most} are possible "
        f"{reason}{coarsen}"
    )


def _coarser(layout: Layout, most: int) -> list[tuple[Axis, int]]:
    """The axes to coarsen, each with the number of values that it may keep."""
    widest = max(layout.axes, key=lambda axis: axis.size)
    kept = most // (layout.cells // widest.size)
    if kept >= 2:
        return [(widest, kept)]
    sizes = [axis.size for axis in layout.axes]
    # halve the widest axis until the table fits
    while len(layout.features) * prod(sizes) > most and max(sizes) > 2:
        place = sizes.index(max(sizes))
        sizes[place] = (sizes[place] + 1) // 2
    return [(a, size) for a, size in zip(layout.axes, sizes, strict=True) if size < a.size]


def _ways(axis: Axis, kept: int, kernels: Sequence[Kernel], binned: Container[str]) -> str:
    """The ways in which a field's values become fewer."""
    if axis.field in binned:
        return f" ({kept} bins)"
    if not axis.field or kernels[0].schema[axis.field].categories:
        return ""
    field = kernels[0].schema[axis.field]
    steps = ceil((axis.size - 1) / (kept - 1))
    way = f"a resolution of {field.resolution * steps} or more"
    if any(field.name in beyond_order(kernel.expression) for kernel in kernels):
        return f" ({way})"
    return f" ({way}, or {kept} bins)"


def _sizes(layout: Layout) -> str:
    sizes = [f"{axis.text}: {axis.size} values" for axis in layout.axes if axis != ONE]
    if len(sizes) > SHOWN:
        sizes = [*sizes[:SHOWN], f"and {len(sizes) - SHOWN} more columns and sums of them"]
    features = [f"{len(layout.features)} features"] if len(layout.features) > 1 else []
    return ", ".join(sizes + features)
