"""Quantisation: every record becomes one of t cells, and the kernel becomes a t × t matrix.

A cell is a combination of one bin for each field of the kernel: 8 bins of age and 8 bins of
balance make t = 64 cells. The places of the bins are public and must not depend on the data.

- `Bins` is *simple rounding*. A value belongs to the bin it lies in, and the bin stands for its
  middle.
- `Points` is *randomised rounding*. A value becomes one of the two points around it, with
  probabilities that make it right on average. The rounding precedes the randomiser, so it changes
  the error and not the privacy.

Paper: Bell et al. 2020, sections 3 and A.2. The matrix is the paper's average kernel (15), its
midpoint kernel (14), or the kernel at the bins' middles (`cell_kernels.py`). They differ where the
kernel is not linear between two bins. For smooth densities the average has the least bias
(theorem 2): [|x − y| < c] at the middles of k bins is off by up to 1/k on uniform records, and the
average is not off at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from umpc.errors import KernelError, OutOfBounds, StudyError
from umpc.mpc.arrays import Floats, Integers
from umpc.protocols.base import bins
from umpc.protocols.base.bins import limits_of_bins, require_ascending
from umpc.study.making_report import Limits
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema
from umpc_papers.exact_sampling import ShakeStream
from umpc_papers.local.cell_kernels import Starts, Weights, average, extremes, has_extremes

MOST_CELLS = 2048
"""The matrix then has 32 MiB, and products of such matrices take a second."""

MIDDLE = "middle"
CELL_KERNELS = ("average", "midpoint", MIDDLE)
"""The kernel between two cells: A^Avg, A^Mid, or the kernel at the bins' middles."""

RoundingLaw = tuple[Integers, Integers, Integers]
"""(number, above, whole), each (records,) int64.

A value becomes bin `number + 1` with probability above/whole, and else bin `number`.
"""


@dataclass(frozen=True)
class Bins(bins.Bins):
    """Simple rounding of one field to its bins."""

    @property
    def starts(self) -> Integers:
        """The place of each bin's first value, and the number of values: (size + 1,) int64."""
        low = self.field.lower_units
        ends = [low, *self.cuts, self.field.upper_units + 1]
        return np.array(ends, dtype=np.int64) - low

    @cached_property
    def values(self) -> Integers:
        """The middle of each bin, rounded down: (size,) int64, in steps of the resolution."""
        ends = [self.field.lower_units, *self.cuts, self.field.upper_units + 1]
        edges = np.array(ends, dtype=np.int64)
        return (edges[:-1] + edges[1:] - 1) // 2

    def law(self, column: Integers) -> RoundingLaw:
        """Each value's bin, with probability 0/1 of the next bin."""
        number = np.searchsorted(np.array(self.cuts, dtype=np.int64), column, side="right")
        return number, np.zeros_like(column), np.ones_like(column)


@dataclass(frozen=True)
class Points:
    """Randomised rounding of one field.

    Args:
        field: the field; it must have no categories.
        points: ascending, in steps of the resolution, from the lower bound to the upper one.

    Raises:
        StudyError: the points are no such sequence, or the field has categories.
    """

    field: FieldSchema
    points: tuple[int, ...]

    def __post_init__(self) -> None:
        require_ascending(self.points, self.field)
        ends = (self.field.lower_units, self.field.upper_units)
        if len(self.points) < 2 or (self.points[0], self.points[-1]) != ends:
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
        places = (field.lower_units + number * span // (points - 1) for number in range(points))
        return cls(field, tuple(places))

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.points)

    @cached_property
    def values(self) -> Integers:
        """The points: (size,) int64, in steps of the resolution."""
        return np.array(self.points, dtype=np.int64)

    def law(self, column: Integers) -> RoundingLaw:
        """The point below each value, and the probability above/whole of the next point."""
        below = np.searchsorted(self.values, column, side="right") - 1
        number = np.minimum(below, self.size - 2)
        return number, column - self.values[number], self.values[number + 1] - self.values[number]


@dataclass(frozen=True)
class Quantiser:
    """A pair kernel on a quantised domain.

    Args:
        kernel: of degree 2, symmetric unless the two records are of two classes.
        axes: one for each field that the kernel uses, in any order.
        cell_kernel: one of `CELL_KERNELS`; points have the kernel at the points.
        two_sample: whether the first record is of one public class and the second of the other.
        weights: λ of the average kernel, if values do not count alike.

    Raises:
        KernelError: the kernel is not a kernel of two records, or not symmetric.
        StudyError: axes are missing, or there are more than `MOST_CELLS` cells.
    """

    kernel: Kernel
    axes: tuple[Bins | Points, ...]
    cell_kernel: str = MIDDLE
    two_sample: bool = False
    weights: Weights | None = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kernel.degree != 2 or not (self.kernel.symmetric or self.two_sample):
            raise KernelError(
                "the local protocols compute symmetric kernels of two records; "
                "use the main protocol"
            )
        names = tuple(sorted(axis.field.name for axis in self.axes))
        if names != self.kernel.fields:
            raise StudyError(
                f"the kernel uses the fields {', '.join(self.kernel.fields)}; bins came for {names}"
            )
        if not 2 <= self.size <= MOST_CELLS:
            raise StudyError(
                f"{self.size} cells came, 2 to {MOST_CELLS} are possible; "
                "change the numbers of bins"
            )

    @property
    def size(self) -> int:
        """t, the number of cells."""
        return prod(axis.size for axis in self.axes)

    @cached_property
    def starts(self) -> Starts:
        """The places where the bins start, by field. Raises: StudyError where there are points."""
        found = {axis.field.name: axis.starts for axis in self.axes if isinstance(axis, Bins)}
        if len(found) < len(self.axes):
            raise StudyError(
                "a kernel is averaged over bins, and randomised rounding has points; take "
                'cell_kernel = "middle"'
            )
        return found

    @cached_property
    def matrix(self) -> Floats:
        """The kernel between cells: (t, t) float64, symmetric if the kernel is."""
        if self.cell_kernel == "average":
            return average(self.kernel, self.starts, self.weights)
        if self.cell_kernel == "midpoint":
            least, most = extremes(self.kernel, self.starts)
            return (least + most) / 2
        return self._at_middles()

    @cached_property
    def spread(self) -> Floats:
        """The largest squared distance of the kernel from `matrix` between two cells.

        With the midpoint kernel it is Δ of remark 4.

        Returns: (t, t) float64. Raises: StudyError where there are too many pairs of values.
        """
        least, most = extremes(self.kernel, self.starts)
        return np.maximum(most - self.matrix, self.matrix - least) ** 2

    @property
    def has_spread(self) -> bool:
        """Whether bins of several values have a `spread` that can be computed."""
        is_bins = all(isinstance(axis, Bins) for axis in self.axes)
        return is_bins and self.limits() is not None and has_extremes(self.starts)

    def _at_middles(self) -> Floats:
        """The kernel between the values that cells stand for."""
        grid = np.indices([axis.size for axis in self.axes]).reshape(len(self.axes), self.size)
        values = {
            axis.field.name: axis.values[number]
            for axis, number in zip(self.axes, grid, strict=True)
        }
        first = {name: np.repeat(column, self.size) for name, column in values.items()}
        second = {name: np.tile(column, self.size) for name, column in values.items()}
        units = self.kernel.evaluate([first, second]).reshape(self.size, self.size)
        return units.astype(np.float64) * float(self.kernel.unit)

    def draw(self, columns: Columns, stream: ShakeStream) -> Integers:
        """Each record's cell: (records,) int64 in 0 .. t-1.

        The probabilities of randomised rounding are exact. Without `Points` the stream is not read.
        """
        cell = np.zeros(record_count(columns, self.axes), dtype=np.int64)
        for axis in self.axes:
            number, above, whole = axis.law(_checked(columns, axis))
            if isinstance(axis, Points):
                drawn = stream.below(whole.astype(np.uint64), len(cell))
                number = number + (drawn < above.astype(np.uint64))
            cell = cell * axis.size + number
        return cell

    def laws(self, columns: Columns) -> tuple[Floats, Integers]:
        """The laws of the records' cells, and the number of records with each law.

        Returns: (m, t) float64 with rows that sum to 1, and (m,) int64.
        """
        names = [axis.field.name for axis in self.axes]
        record_count(columns, self.axes)
        if not any(isinstance(axis, Points) for axis in self.axes):
            cell = self.draw(columns, ShakeStream(bytes(32), "unused"))
            return np.eye(self.size), np.bincount(cell, minlength=self.size)
        distinct, weights = np.unique(
            np.stack([columns[name] for name in names], axis=1), axis=0, return_counts=True
        )
        every = np.arange(len(distinct))
        rows = np.ones((len(distinct), 1))
        for axis, column in zip(self.axes, distinct.T, strict=True):
            number, above, whole = axis.law(column)
            own = np.zeros((len(distinct), axis.size + 1))
            own[every, number] = 1 - above / whole
            own[every, number + 1] = above / whole
            rows = (rows[:, :, None] * own[:, None, : axis.size]).reshape(len(distinct), -1)
        return rows, weights

    def limits(self) -> Limits | None:
        """The value that an interval covers; None if each value of each field has its own bin.

        Randomised rounding is right on average for one value, but not for a comparison of two.
        """
        return limits_of_bins((axis.field, axis.size) for axis in self.axes)

    def quantised_classes(self, first: Columns, second: Columns) -> float:
        """The mean of the kernel over all pairs of a record of either class, as `quantised`."""
        sums = []
        for columns in (first, second):
            rows, weights = self.laws(columns)
            sums.append(weights @ rows / weights.sum())
        return float(sums[0] @ self.matrix @ sums[1])

    def quantised(self, columns: Columns) -> float:
        """The U-statistic of the quantised records, averaged over their rounding.

        The local protocols are unbiased for this number.
        """
        rows, weights = self.laws(columns)
        total = weights @ rows
        n = int(weights.sum())
        own = np.einsum("i,ij,ij->", weights, rows @ self.matrix, rows)
        return float((total @ self.matrix @ total - own) / (n * (n - 1)))


def record_count(columns: Columns, axes: Sequence[Bins | Points]) -> int:
    """The number of records in the columns that the axes read.

    Raises:
        StudyError: a column is missing, or the columns differ in length.
    """
    names = [axis.field.name for axis in axes]
    lengths = {len(columns[name]) for name in names if name in columns}
    if len(lengths) != 1 or not all(name in columns for name in names):
        raise StudyError(f"expected columns of one length for the fields {', '.join(names)}")
    return lengths.pop()


def _checked(columns: Columns, axis: Bins | Points) -> Integers:
    """The axis's column. Raises: OutOfBounds where a value lies outside the field's bounds."""
    field = axis.field
    column: Integers = columns[field.name]
    if len(column) and (column.min() < field.lower_units or column.max() > field.upper_units):
        raise OutOfBounds(
            f"a value of the field {field.name!r} lies outside its bounds; "
            "widen the bounds or clip the data"
        )
    return column
