"""Public cut points: a field's value becomes the number of cut points that it reaches.

Only the order of such a field's values between records counts then, and values between the same cut
points are ties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from umpc.errors import KernelError, RangeError
from umpc.mpc.arrays import Integers
from umpc.ustat.blocks import CACHED, in_blocks
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import beyond_order
from umpc.ustat.schema import FieldSchema, Schema


@dataclass(frozen=True)
class Cuts:
    """The cut points of some fields, in steps of the fields' resolutions.

    Raises: UnknownField, RangeError where they do not fit a field.
    """

    schema: Schema
    points: Mapping[str, Sequence[int]]

    def __post_init__(self) -> None:
        for name, points in self.points.items():
            field = self.schema[name]
            rising = all(low < high for low, high in pairwise(points))
            low, high = field.lower_units, field.upper_units
            inside = points and low < points[0] and points[-1] <= high
            if field.categories or not rising or not inside:
                raise RangeError(
                    f"field {name!r}: cut points are, in steps, rising numbers above {low} "
                    f"and up to {high} of a field without categories; got "
                    f"{', '.join(map(str, points[:5])) or 'none'}"
                )

    @cached_property
    def coarse(self) -> Schema:
        """The schema of the cut fields: numbers from 0 to the number of cut points."""
        return Schema(self._coarse(field) for field in self.schema)

    def kernel(self, kernel: Kernel) -> Kernel:
        """The kernel over the cut fields, in the same units.

        Raises: KernelError where it uses more of a cut field than its order among records.
        """
        for name in sorted(beyond_order(kernel.expression)):
            if name in self.points:
                raise KernelError(
                    f"field {name!r} has bins, so the kernel may only compare it between records, "
                    f"as in a.{name} < b.{name}; it does more; leave the bins of this field out, "
                    f"or give the field a coarser resolution"
                )
        return Kernel(kernel.expression, self.coarse, kernel.degree, kernel.symmetric)

    def apply(self, columns: Columns) -> Columns:
        """The columns with cut fields as numbers of cut points."""
        cut = {name: self._numbers(columns[name], name) for name in self.points if name in columns}
        return {**columns, **cut}

    def _coarse(self, field: FieldSchema) -> FieldSchema:
        if field.name not in self.points:
            return field
        last = Fraction(len(self.points[field.name]))
        return FieldSchema(field.name, Fraction(0), last, Fraction(1))

    def _numbers(self, column: Integers, name: str) -> Integers:
        steps = np.array(self.points[name], dtype=np.int64)
        found = np.empty(len(column), dtype=np.int64)

        def fill(start: int) -> None:
            part = column[start : start + CACHED]
            found[start : start + CACHED] = np.searchsorted(steps, part, side="right")

        in_blocks(fill, range(0, len(column), CACHED))
        return found
