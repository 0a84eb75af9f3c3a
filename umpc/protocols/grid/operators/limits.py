"""The limits of a grid's size, and what a study's author can coarsen."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import ceil, prod

from umpc.errors import RangeError
from umpc.protocols.grid.operators.axis import ONE, Axis
from umpc.protocols.grid.operators.cuts import uses_more_than_order
from umpc.protocols.grid.operators.layout import Layout
from umpc.ustat.kernel import Kernel

MAX_CELLS = 1 << 26
"""The most cells of a table: 512 MiB in the 64-bit ring."""


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
    advice = " and ".join(
        f"{axis.text} to at most {kept} values{_ways(axis, kept, kernels, binned)}"
        for axis, kept in _coarser(layout, most)
    )
    instead = f"; coarsen {advice}, or take pairs" if advice else "; take pairs"
    raise RangeError(
        f"the grid has {layout.cells} cells ({_sizes(layout)}), and at most {most} are possible "
        f"{reason}{instead}"
    )


def _coarser(layout: Layout, most: int) -> list[tuple[Axis, int]]:
    """The axes to coarsen, each with the number of values that it may keep."""
    widest = max(layout.axes, key=lambda axis: axis.size)
    kept = most // (layout.cells // widest.size)
    if kept >= 2:
        return [(widest, kept)]
    sizes = [axis.size for axis in layout.axes]
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
    if any(uses_more_than_order(kernel.polynomial, field.name) for kernel in kernels):
        return f" ({way})"
    return f" ({way}, or {kept} bins)"


def _sizes(layout: Layout) -> str:
    sizes = [f"{axis.text}: {axis.size} values" for axis in layout.axes if axis != ONE]
    features = [f"{len(layout.features)} features"] if len(layout.features) > 1 else []
    return ", ".join(sizes + features)
