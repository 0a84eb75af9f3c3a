"""A kernel that is no sum of products over axes: its matrix, block by block, for small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Word
from umpc.protocols.arrays import Integers, Words
from umpc.protocols.grid.operators.axis import field_axis
from umpc.protocols.grid.operators.layout import Layout
from umpc.protocols.grid.operators.leg import to_words
from umpc.ustat.clear import Columns, evaluate_exact
from umpc.ustat.kernel import Kernel

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
        columns = self._columns(0, cells)
        start = 0
        while start < cells:
            stop = min(start + max(1, BLOCK // (cells - start)), cells)
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
        columns = self._columns(0, self.layout.cells)
        return to_words(self._entries(columns, columns, (self.layout.cells,)))

    def matrix(self) -> Integers:
        """(cells, cells) int64: the kernel at all pairs of cells, in units; for few cells."""
        cells = self.layout.cells
        columns = self._columns(0, cells)
        rows = {name: column[:, None] for name, column in columns.items()}
        return self._entries(rows, columns, (cells, cells))

    def _columns(self, start: int, stop: int) -> Columns:
        """The fields' values at these cells."""
        places = np.unravel_index(np.arange(start, stop), self.layout.shape[1:])
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
