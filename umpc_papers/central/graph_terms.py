"""The triangle density over sets of vertices, from a matrix of the pairs that are connected.

A set then takes three look-ups, and not every entry of six lists. The values are the kernel's own.
Cost: n² evaluations of the kernel "two vertices are connected", and n² bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from umpc.protocols.arrays import Integers
from umpc.ustat.clear import Columns, evaluate_clear
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics.graphs import edge_of_triangle

MOST_VERTICES = 1 << 12
"""Above this number of vertices sets are evaluated by the kernel; a matrix takes 16 MiB."""


def triangle_values(kernel: Kernel, columns: Columns) -> Callable[[Integers], Integers] | None:
    """The kernel on sets of vertices: (3, sets) int64 numbers of records -> (sets,) int64.

    Args: columns: field -> (n,) int64, within the fields' bounds.
    Returns: None where the kernel is not that of the triangle density, or n is too large.
    """
    edge = edge_of_triangle(kernel.expression) if kernel.degree == 3 else None
    if edge is None:
        return None
    count = len(columns[kernel.fields[0]])
    if count > MOST_VERTICES:
        return None
    connected = np.empty((count, count), dtype=bool)
    for vertex in range(count):
        own = {name: np.broadcast_to(each[vertex], count) for name, each in columns.items()}
        connected[vertex] = evaluate_clear(edge, kernel.schema, [own, columns], Fraction(1))

    def evaluate(sets: Integers) -> Integers:
        i, j, k = sets
        closed = connected[i, j] & connected[i, k] & connected[j, k]
        found: Integers = closed.astype(np.int64)
        return found

    return evaluate
