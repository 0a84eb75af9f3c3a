"""Points whose convex hull holds all values that several kernels have together on the same records.

The variance of a combination of kernels is largest for a table whose values are such points. So an
interval for a ratio of sums is narrower if these points are few and true: where the numerator of an
AUC is 1, its denominator is 1 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.clear import Columns
from umpc.ustat.enumeration import MAX_POINTS, domains_of, points_of
from umpc.ustat.expression import Add, Constant, Select
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import interval_of

MOST_VALUES = 9
"""More points than these are replaced by the corners of the kernels' intervals."""


def joint_values(kernels: Sequence[Kernel]) -> NDArray[np.float64]:
    """(points, kernels) float64, in the kernels' own unit.

    They are the kernels' values on all records, where these are few; those of a mean inside a
    stratum; else the corners of the box that the kernels' intervals make.
    """
    if len(kernels) > 1:
        found = _enumerated(kernels)
        if found is None:
            found = _inside(kernels)
        if found is not None:
            return found
    ends = [(float(kernel.interval.low), float(kernel.interval.high)) for kernel in kernels]
    return np.array(sorted(set(product(*ends))))


def _enumerated(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The kernels' values together; None where their records or their values are too many."""
    schema = kernels[0].schema
    together = reduce(Add, (kernel.expression for kernel in kernels))
    domains = domains_of(together, schema)
    if prod(len(domain) for domain in domains.values()) > MAX_POINTS:
        return None
    seen: set[tuple[float, ...]] = set()
    for records in points_of(domains):
        columns = [
            np.broadcast_to(kernel.evaluate(records), (_count(records),)) for kernel in kernels
        ]
        seen.update(map(tuple, np.unique(np.stack(columns), axis=1).T.tolist()))
        if len(seen) > MOST_VALUES:
            return None
    units = np.array([float(kernel.unit) for kernel in kernels])
    values: NDArray[np.float64] = np.array(sorted(seen)) * units
    return values


def _inside(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The ends of select(c, f, 0) and c together: (0, 0), (low, 1) and (high, 1).

    None for kernels of another form.
    """
    first, share = kernels[0].expression, kernels[1].expression
    if len(kernels) > 2 or not isinstance(first, Select) or first.condition != share:
        return None
    if first.otherwise != Constant(Fraction(0)):
        return None
    then, all_values = interval_of(first.then, kernels[0].schema), kernels[0].interval
    low, high = max(then.low, all_values.low), min(then.high, all_values.high)
    return np.array(sorted({(0.0, 0.0), (float(low), 1.0), (float(high), 1.0)}))


def _count(records: Sequence[Columns]) -> int:
    return max((len(column) for columns in records for column in columns.values()), default=1)
