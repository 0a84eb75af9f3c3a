"""Which axes of a table lie at which of two sites.

A row's cell is x·D2 + y, where x is its place among the D1 = Π sizes of the first site's axes, and
y that among the D2 of the second's. The study's own table has its axes in the order of its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from umpc.errors import StudyError
from umpc.mpc.arrays import Words
from umpc.mpc.chunks import require
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.operators import Grid
from umpc.protocols.grid.operators.layout import Layout
from umpc.protocols.people.settings import LinkedSettings
from umpc.study.document import Study
from umpc.ustat.clear import Columns
from umpc.ustat.schema import FieldSchema


@dataclass(frozen=True)
class Split:
    """The two parts of a study's table.

    grid: the study's. fields: of each site. axes: of each site, as places among the grid's axes.
    """

    grid: Grid
    fields: tuple[tuple[FieldSchema, ...], ...]
    axes: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> tuple[int, int]:
        """D1 and D2."""
        return self._part(0).cells, self._part(1).cells

    def _part(self, side: int) -> Layout:
        """A site's axes, as the layout of a histogram."""
        return Layout(tuple(self.grid.layout.axes[axis] for axis in self.axes[side]), ((),))

    def places(self, side: int, columns: Columns) -> Words:
        """Each row's place among a site's cells. Args: columns: field → (rows,) int64."""
        return self._part(side).cell_of(self.grid.cuts.apply(columns)).view(np.uint64)

    def in_order(self, shares: Words) -> Words:
        """A share in the order of the grid's axes. Args: shares: (cells,) or (2, cells)."""
        order = [*self.axes[0], *self.axes[1]]
        sizes = [self.grid.layout.axes[axis].size for axis in order]
        back = [0, *(1 + order.index(axis) for axis in range(len(order)))]
        parts = shares.reshape(-1, *sizes).transpose(back)
        return np.ascontiguousarray(parts).reshape(shares.shape)


@lru_cache(maxsize=16)
def split_of(study: Study) -> Split:
    """The parts of a study's table. Raises: StudyError where an axis needs both sites."""
    grid = require(grid_of(study), Grid)  # no levels, by the rules
    first = frozenset(study.settings_as(LinkedSettings).linked.first)
    named = [field.name for field in study.fields]
    if unknown := sorted(first - set(named)):
        raise StudyError(
            f"first under [linked] names {', '.join(unknown)}, and the study has the fields "
            f"{', '.join(named)}; correct first"
        )
    axes: tuple[list[int], list[int]] = [], []
    for place, axis in enumerate(grid.layout.axes):
        needed = axis.form.fields
        if needed & first and needed - first:
            raise StudyError(
                f"{axis.text} takes columns of both sites, and each site can make a number of its "
                "own columns only; take another kernel, or correct first under [linked]"
            )
        axes[bool(needed - first)].append(place)
    if not all(axes):
        raise StudyError(
            "all columns that this statistic takes lie at one site, so there is nothing to link; "
            "correct first under [linked], or take another protocol"
        )
    schemas = [field.schema() for field in study.fields]
    parts = tuple(tuple(s for s in schemas if (s.name in first) == side) for side in (True, False))
    return Split(grid, parts, (tuple(axes[0]), tuple(axes[1])))
