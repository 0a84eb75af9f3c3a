"""An upper bound on the variance that randomised rounding adds to an estimate.

A record becomes one of the corners of the box of points around it (`quantisation.Points`). Nobody
knows the probabilities of the corners without the data. But a number that lies in a range of the
length d has a variance of at most d^2/4. Two such bounds are added:

- *First order.* Let x_c be how a record at the point c changes the estimate, on average over the
  other records. A record at c has at most the largest range of x over a box with the corner c.
- *Second order.* The rest of the kernel over a pair of records has at most the largest range of the
  kernel over a pair of boxes.

Simple rounding draws nothing, so both are 0 without `Points`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.mpc.arrays import Floats
from umpc_papers.local.quantisation import Points, Quantiser


def of_pairs(cells: Quantiser, x: Floats, records: int, shares: Floats | None = None) -> float:
    """The bound for the mean over all pairs of n records.

    Args:
        x: A r, (t,) float64: the kernel's mean over all records, by the other record's cell.
        records: n, at least 2.
        shares: r, (t,) float64; None where they are unknown.
    """
    if not has_points(cells):
        return 0.0
    pairs = records * (records - 1)
    second = most_over_pairs(cells) ** 2 / (2 * pairs)
    # A record is in 2/n of the pairs, so its variance of x counts 4 times.
    return 4 * first_order(cells, x, shares) * records / (records - 1) ** 2 + second


def of_classes(
    cells: Quantiser, means: tuple[Floats, Floats], records: tuple[int, int], *shares: Floats
) -> float:
    """The bound for the mean over all pairs of a record of either class.

    Args:
        means: A r- and A' r+, (t,) float64 each.
        records, shares: of the first class and of the second.
    """
    if not has_points(cells):
        return 0.0
    second = most_over_pairs(cells) ** 2 / (4 * records[0] * records[1])
    parts = zip(means, shares, records, strict=True)
    return sum(first_order(cells, x, own) / n for x, own, n in parts) + second


def has_points(cells: Quantiser) -> bool:
    """Whether any field is rounded at random."""
    return any(isinstance(axis, Points) for axis in cells.axes)


def first_order(cells: Quantiser, x: Floats, shares: Floats | None) -> float:
    """The mean over all records of a bound of the variance of x at a record's rounded cell."""
    flags = _rounded(cells)
    ranges = _ranges(x.reshape([axis.size for axis in cells.axes]), flags)
    most = ranges
    for axis, is_rounded in enumerate(flags):
        if is_rounded:
            # A point is a corner of the boxes on both sides.
            widths = [(0, 0)] * most.ndim
            widths[axis] = (1, 1)
            padded = np.pad(most, widths)
            most = _neighbours(np.maximum, padded, axis)
    squares = most.reshape(-1) ** 2 / 4
    if shares is None:
        return float(squares.max())
    return min(float(squares.max()), max(0.0, float(shares @ squares)))


def most_over_pairs(cells: Quantiser) -> float:
    """The largest range of the kernel over a pair of boxes."""
    sizes = [axis.size for axis in cells.axes]
    return float(_ranges(cells.matrix.reshape(sizes * 2), _rounded(cells) * 2).max())


def _rounded(cells: Quantiser) -> list[bool]:
    return [isinstance(axis, Points) for axis in cells.axes]


def _ranges(values: Floats, rounded: Sequence[bool]) -> Floats:
    """The range of the values over the corners of each box."""
    high = low = values
    for axis, is_rounded in enumerate(rounded):
        if is_rounded:
            high = _neighbours(np.maximum, high, axis)
            low = _neighbours(np.minimum, low, axis)
    return high - low


def _neighbours(choose: np.ufunc, values: Floats, axis: int) -> Floats:
    """The larger or the smaller of each two neighbours along an axis."""
    size = values.shape[axis]
    before = np.take(values, range(size - 1), axis)
    after = np.take(values, range(1, size), axis)
    chosen: Floats = choose(before, after)
    return chosen
