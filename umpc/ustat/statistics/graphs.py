"""Statistics of a graph that is given by the adjacency lists of its vertices.

A record is a vertex: one column has its number, and each further column has the number of one
neighbour. A vertex with fewer neighbours fills the rest of its columns with a number that no vertex
has, such as 0. Two vertices are connected if each one lists the other, so one record alone makes no
edge. A list names each neighbour once; a vertex that is listed twice is not listed, because
an exclusive or keeps the kernel small, and in [0, 1] for every table.

*Privacy.* Replacing a record changes the triples that hold it and no others. Rewiring a vertex in
the graph changes its neighbours' lists too, and still changes no other triples: whether two other
vertices are connected depends on their own two numbers in their own two lists. Chaudhuri, Loh,
Pandey, Sarkar 2024, section 5, has these neighbouring graphs.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from operator import mul
from typing import Any

from umpc.ustat.statistics.statistic import KernelFunction, Statistic

FEW = 2
"""The most neighbours of which the normal form has fewer parts for a conjunction of the lists."""


def listed(vertex: str, neighbours: tuple[str, ...], a: Any, b: Any) -> Any:
    """The bit that the list of a has the vertex b, an odd number of times."""
    return _parity([b[vertex] == a[name] for name in neighbours])


def _parity(bits: list[Any]) -> Any:
    """The exclusive or, nested as little as possible."""
    if len(bits) == 1:
        return bits[0]
    half = len(bits) // 2
    return _parity(bits[:half]) ^ _parity(bits[half:])


def connected(vertex: str, neighbours: tuple[str, ...], a: Any, b: Any) -> Any:
    """1 if each of two vertices lists the other, else 0."""
    there, back = (listed(vertex, neighbours, *order) for order in ((a, b), (b, a)))
    return there & back if len(neighbours) <= FEW else there * back


def _triangle(vertex: str, *neighbours: str) -> KernelFunction:
    def kernel(a: Any, b: Any, c: Any) -> Any:
        sides = [connected(vertex, neighbours, *pair) for pair in combinations((a, b, c), 2)]
        return reduce(mul, sides)

    return kernel


TRIANGLES = Statistic(
    "triangle_density",
    "Share of triples of vertices of which all three pairs are connected",
    ("vertex", "x..."),
    "Chaudhuri, Loh, Pandey & Sarkar 2024, equation 18, of adjacency lists",
    _triangle,
    degree=3,
)
GRAPHS = (TRIANGLES,)
