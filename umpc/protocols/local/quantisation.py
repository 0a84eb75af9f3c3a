"""Quantisation: every record becomes one of t cells, and the kernel a t × t matrix.

A cell is a combination of one bin for each field of the kernel: 8 bins of age and 8 of balance are t = 64 cells. Where
the bins lie is public and must not be read off the data.

- `Bins`: *simple rounding*. A value belongs to the bin it lies in, which stands for its middle.
- `Points`: *randomised rounding*. A value becomes one of the two points around it, with odds that make it right on
  average; it goes before the randomiser, so it changes the error and not the privacy.

Paper: Bell et al. 2020, sections 3 and A.2. The matrix is the kernel at the bins' middles, for a kernel that depends on
orders the same as their midpoint and average kernels (14, 15) but for cells that share a bin of a field: there a
comparison is a tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np

from umpc.dp.exact_sampling import ShakeStream
from umpc.errors import KernelError, OutOfBounds, StudyError
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema

MOST_CELLS = 2048
"""The matrix then has 32 MiB, and products of such matrices take a second."""


@dataclass(frozen=True)
class Bins:
    """Simple rounding of one field.

    cuts: ascending, in steps of the resolution; a value lies in the bin whose number is how many cuts are at most it.
    """

    field: FieldSchema
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        _require_ascending((self.field.lower_units, *self.cuts), self.field)
        if self.cuts and self.cuts[-1] > self.field.upper_units:
            raise StudyError(f"field {self.field.name!r}: the last cut lies above the upper bound")

    @classmethod
    def equal(cls, field: FieldSchema, bins: int) -> Bins:
        """Bins of equal width, up to rounding."""
        span = field.upper_units - field.lower_units + 1
        if not 1 <= bins <= span:
            raise StudyError(f"field {field.name!r} has {span} values and cannot have {bins} bins")
        return cls(
            field, tuple(field.lower_units + number * span // bins for number in range(1, bins))
        )

    @property
    def size(self) -> int:
        return len(self.cuts) + 1

    @cached_property
    def values(self) -> np.ndarray:
        """(size,) int64: what each bin stands for, its middle rounded down."""
        edges = np.array(
            [self.field.lower_units, *self.cuts, self.field.upper_units + 1], dtype=np.int64
        )
        return (edges[:-1] + edges[1:] - 1) // 2

    def law(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per value: its bin, 0, and 1: it never becomes the next one."""
        number = np.searchsorted(np.array(self.cuts, dtype=np.int64), column, side="right")
        return number, np.zeros_like(column), np.ones_like(column)


@dataclass(frozen=True)
class Points:
    """Randomised rounding of one field. points: ascending, from the lower bound to the upper one."""

    field: FieldSchema
    points: tuple[int, ...]

    def __post_init__(self) -> None:
        _require_ascending(self.points, self.field)
        if len(self.points) < 2 or (self.points[0], self.points[-1]) != (
            self.field.lower_units,
            self.field.upper_units,
        ):
            raise StudyError(
                f"field {self.field.name!r}: the points must go from the lower to the upper bound"
            )
        if self.field.categories:
            raise StudyError(f"field {self.field.name!r} has categories, which cannot be rounded")

    @classmethod
    def equal(cls, field: FieldSchema, points: int) -> Points:
        """Points of equal distance, up to rounding."""
        span = field.upper_units - field.lower_units
        if not 2 <= points <= span + 1:
            raise StudyError(
                f"field {field.name!r} has {span + 1} values and cannot have {points} points"
            )
        return cls(
            field,
            tuple(field.lower_units + number * span // (points - 1) for number in range(points)),
        )

    @property
    def size(self) -> int:
        return len(self.points)

    @cached_property
    def values(self) -> np.ndarray:
        return np.array(self.points, dtype=np.int64)

    def law(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per value: the point below, and the odds, above : all, of becoming the next one."""
        number = np.minimum(np.searchsorted(self.values, column, side="right") - 1, self.size - 2)
        return number, column - self.values[number], self.values[number + 1] - self.values[number]


@dataclass(frozen=True)
class Quantiser:
    """A pair kernel on a quantised domain.

    kernel: of degree 2, symmetric. axes: one for each field that it uses, in any order.

    Raises: KernelError for another kernel; StudyError for missing axes or more than `MOST_CELLS` cells.
    """

    kernel: Kernel
    axes: tuple[Bins | Points, ...]

    def __post_init__(self) -> None:
        if self.kernel.degree != 2 or not self.kernel.symmetric:
            raise KernelError(
                "the local protocols compute symmetric kernels of two records; use the main protocol"
            )
        names = tuple(sorted(axis.field.name for axis in self.axes))
        if names != self.kernel.fields:
            raise StudyError(
                f"the kernel uses the fields {', '.join(self.kernel.fields)}; bins came for {names}"
            )
        if not 2 <= self.size <= MOST_CELLS:
            raise StudyError(
                f"{self.size} cells came, 2 to {MOST_CELLS} are possible; change the numbers of bins"
            )

    @property
    def size(self) -> int:
        """t."""
        return prod(axis.size for axis in self.axes)

    @cached_property
    def matrix(self) -> np.ndarray:
        """(t, t) float64, symmetric: the kernel between what cells stand for."""
        grid = np.indices([axis.size for axis in self.axes]).reshape(len(self.axes), self.size)
        values = {
            axis.field.name: axis.values[number]
            for axis, number in zip(self.axes, grid, strict=True)
        }
        first = {name: np.repeat(column, self.size) for name, column in values.items()}
        second = {name: np.tile(column, self.size) for name, column in values.items()}
        units = self.kernel.evaluate([first, second]).reshape(self.size, self.size)
        return units * float(self.kernel.unit)

    def draw(self, columns: Columns, stream: ShakeStream) -> np.ndarray:
        """Each record's cell: (records,) int64 in 0 .. t-1. Odds of randomised rounding are exact."""
        cell = np.zeros(record_count(columns, self.axes), dtype=np.int64)
        for axis in self.axes:
            number, above, whole = axis.law(_checked(columns, axis))
            if isinstance(axis, Points):
                number = number + (
                    stream.below(whole.astype(np.uint64), len(cell)) < above.astype(np.uint64)
                )
            cell = cell * axis.size + number
        return cell

    def laws(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """What theory needs to know of records: the law of a record's cell, and how many records have it.

        Returns: (m, t) float64 of rows that sum to 1, and (m,) int64.
        """
        names = [axis.field.name for axis in self.axes]
        record_count(columns, self.axes)
        if not any(isinstance(axis, Points) for axis in self.axes):
            cell = self.draw(columns, ShakeStream(bytes(32), "unused"))
            return np.eye(self.size), np.bincount(cell, minlength=self.size)
        distinct, weights = np.unique(
            np.stack([columns[name] for name in names], axis=1), axis=0, return_counts=True
        )
        rows = np.ones((len(distinct), 1))
        for axis, column in zip(self.axes, distinct.T, strict=True):
            number, above, whole = axis.law(column)
            own = np.zeros((len(distinct), axis.size + 1))
            every = np.arange(len(distinct))
            own[every, number] = 1 - above / whole
            own[every, number + 1] = above / whole
            rows = (rows[:, :, None] * own[:, None, : axis.size]).reshape(len(distinct), -1)
        return rows, weights

    def quantised(self, columns: Columns) -> float:
        """The U-statistic of the quantised records, averaged over their rounding: what protocols are unbiased for."""
        rows, weights = self.laws(columns)
        total, n = weights @ rows, int(weights.sum())
        own = np.einsum("i,ij,ij->", weights, rows @ self.matrix, rows)
        return float((total @ self.matrix @ total - own) / (n * (n - 1)))


def record_count(columns: Columns, axes: Sequence[Bins | Points]) -> int:
    """How many records the columns have. Raises: StudyError where they differ in length or one is missing."""
    names = [axis.field.name for axis in axes]
    lengths = {len(columns[name]) for name in names if name in columns}
    if len(lengths) != 1 or not all(name in columns for name in names):
        raise StudyError(f"expected columns of one length for the fields {', '.join(names)}")
    return lengths.pop()


def _checked(columns: Columns, axis: Bins | Points) -> np.ndarray:
    column, field = columns[axis.field.name], axis.field
    if len(column) and (column.min() < field.lower_units or column.max() > field.upper_units):
        raise OutOfBounds(
            f"a value of the field {field.name!r} lies outside its bounds; widen them or clip the data"
        )
    return column


def _require_ascending(numbers: tuple[int, ...], field: FieldSchema) -> None:
    if any(first >= second for first, second in pairwise(numbers)):
        raise StudyError(
            f"field {field.name!r}: cuts and points must ascend, above the lower bound"
        )
