"""The triangle density over sets of vertices, from a matrix of the pairs that are connected.

A set then takes three look-ups, and not every entry of six lists. The values are the kernel's own.
Cost: n² evaluations of the kernel "two vertices are connected", and n² bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from umpc.mpc.arrays import Integers
from umpc.ustat.clear import Columns, evaluate_clear
from umpc.ustat.expression import Expression, Rebuild, interpret
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics.distances import TRIANGLES, connected
from umpc.ustat.text import to_text
from umpc.ustat.tracing import trace

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
    linked = np.empty((count, count), dtype=bool)
    for vertex in range(count):
        own = {name: np.broadcast_to(each[vertex], count) for name, each in columns.items()}
        linked[vertex] = evaluate_clear(edge, kernel.schema, [own, columns], Fraction(1))

    def evaluate(sets: Integers) -> Integers:
        i, j, k = sets
        closed = linked[i, j] & linked[i, k] & linked[j, k]
        found: Integers = closed.astype(np.int64)
        return found

    return evaluate


@lru_cache(maxsize=64)
def edge_of_triangle(expression: Expression) -> Expression | None:
    """The kernel "two vertices are connected" beside that of the triangle density.

    Returns: None where the kernel is not that of `triangle_density` over some columns.
    """
    order = _FirstUse()
    interpret(expression, order)
    columns = tuple(order.found)
    if len(columns) < len(TRIANGLES.arguments):
        return None
    if to_text(TRIANGLES.expression(columns)) != to_text(expression):
        return None
    vertex, *neighbours = columns
    return trace(lambda a, b: connected(vertex, tuple(neighbours), a, b))


class _FirstUse(Rebuild):
    """The fields' names in the order of their first use, which is that of the statistic."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def field(self, record: int, name: str) -> Expression:
        self.found.setdefault(name)
        return super().field(record, name)
