"""Statistics of distances between records: two samples, independence, scatter within clusters.

Four records can be split into halves in three ways: ab|cd, ac|bd and ad|bc. The statistics of four
records here compare the three splits. `_Splits` has what they share.

*Graphs.* Statistics of a graph that is given by the adjacency lists of its vertices.

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

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import add, mul
from typing import Any, TypeAlias

from umpc.ustat.statistics.dependence import separates
from umpc.ustat.statistics.statistic import (
    TWO_CLASSES,
    FieldRule,
    KernelFunction,
    Parameter,
    Statistic,
)
from umpc.ustat.tracing import select

Split: TypeAlias = tuple[Any, Any, Any, Any]
"""Four records, of which the first two are one half."""


def _splits(a: Any, b: Any, c: Any, d: Any) -> tuple[Split, Split, Split]:
    return (a, b, c, d), (a, c, b, d), (a, d, b, c)


def _clustering_scatter(label: str, *x: str, weights: tuple[Fraction, ...]) -> KernelFunction:
    def kernel(a: Any, b: Any) -> Any:
        squares = [
            (a[name] - b[name]) ** 2 if weight == 1 else weight * (a[name] - b[name]) ** 2
            for name, weight in zip(x, weights, strict=True)
        ]
        return select(a[label] == b[label], reduce(add, squares), 0)

    return kernel


def _cramer_von_mises(x: str, label: str) -> KernelFunction:
    """Two sums: a half of tau* of the column and the label, and sets with two records of a class.

    If two of four records are of class 1, the label separates one split. The first sum is 1/3 if
    the values separate the same split, −1/6 if they separate another one, and 0 if ties leave none
    separated. Without ties its mean is ∫(F − G)² d(F + G)/2, times the mean of the second
    sum: by Lehmann the values separate the label's split with probability 1/3 + 2·∫.
    """

    def kernel(a: Any, b: Any, c: Any, d: Any) -> Any:
        by_x = [separates(x, *split) for split in _splits(a, b, c, d)]
        values = [same / 3 - others / 6 for same, others in _against_others(by_x)]
        return _at_labels(label, (a, b, c, d), values), _at_labels(label, (a, b, c, d), (1, 1, 1))

    return kernel


def _energy_distance(x: str, label: str) -> KernelFunction:
    """Two sums: the energy kernel of sets with two records of either class, and such sets.

    With the classes' halves xx'|yy' the kernel is half the sum of the four distances across the
    halves, minus the two distances inside them.
    """

    def kernel(a: Any, b: Any, c: Any, d: Any) -> Any:
        inside = [_inside(_distance(x), split) for split in _splits(a, b, c, d)]
        values = [others / 2 - same for same, others in _against_others(inside)]
        return _at_labels(label, (a, b, c, d), values), _at_labels(label, (a, b, c, d), (1, 1, 1))

    return kernel


def _at_labels(label: str, records: Sequence[Any], values: Sequence[Any]) -> Any:
    """The value of the split that the classes make; 0 unless two of four records are of class 1.

    Each condition is of two records, so that the normal form writes it out and is symmetric.
    """
    p, q, r, s = (record[label] == 1 for record in records)
    together, crossed, opposite = values
    equal_halves = select(p ^ r, select(r ^ s, 0, together), 0)
    return select(p ^ q, select(r ^ s, select(p ^ r, opposite, crossed), 0), equal_halves)


def _against_others(sums: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each of three numbers, and the sum of the other two."""
    p, q, r = sums
    return [(p, q + r), (q, p + r), (r, p + q)]


def _distance(x: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: abs(a[x] - b[x])


def _equality(x: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: a[x] == b[x]


def _inside(of: Callable[[Any, Any], Any], split: Split) -> Any:
    """The sum over both halves of a function of two records."""
    a, b, c, d = split
    return of(a, b) + of(c, d)


def _covariance_of(
    first: Callable[[Any, Any], Any], second: Callable[[Any, Any], Any]
) -> KernelFunction:
    """E f·g − 2 E f(1,2)·g(1,3) + E f·E g for functions f, g of two records, without bias.

    With S and T, the sums of f and g inside the halves of a split, it is the mean over pairs of
    splits i, j of (S_i − S_j)(T_i − T_j)/4.
    """

    def kernel(a: Any, b: Any, c: Any, d: Any) -> Any:
        sums = [(_inside(first, split), _inside(second, split)) for split in _splits(a, b, c, d)]
        products = [(s - u) * (t - v) for (s, t), (u, v) in combinations(sums, 2)]
        return reduce(add, products) / 12

    return kernel


def _distance_covariance(x: str, y: str) -> KernelFunction:
    return _covariance_of(_distance(x), _distance(y))


def _usp_independence(x: str, y: str) -> KernelFunction:
    return _covariance_of(_equality(x), _equality(y))


DISTANCES = (
    Statistic(
        "clustering_scatter",
        "Scatter within clusters: squared distances of pairs of one cluster, others counted 0",
        ("label", "x..."),
        "Clémençon 2014; Hastie, Tibshirani & Friedman 2009, 14.5.3, per pair of all records",
        _clustering_scatter,
        parameters=(Parameter("weights", default=1, per_column=True, positive=True),),
    ),
    Statistic(
        "cramer_von_mises",
        "Cramér and von Mises' distance ∫(F − G)² d(F + G)/2 of two classes by private labels",
        ("x", "label"),
        "Lehmann 1951; Bergsma & Dassios 2014 for ties",
        _cramer_von_mises,
        degree=4,
        estimator="ratio",
        rules=(FieldRule("label", TWO_CLASSES, "{high} against {low}"),),
    ),
    Statistic(
        "energy_distance",
        "Energy distance 2·E|X − Y| − E|X − X'| − E|Y − Y'| of two classes by private labels",
        ("x", "label"),
        "Székely & Rizzo 2013",
        _energy_distance,
        degree=4,
        estimator="ratio",
        rules=(FieldRule("label", TWO_CLASSES, "{high} against {low}"),),
    ),
    Statistic(
        "distance_covariance",
        "Distance covariance, squared and unbiased: zero only if independent",
        ("x", "y"),
        "Székely, Rizzo & Bakirov 2007; Székely & Rizzo 2014; Bergsma & Dassios 2014, for splits",
        _distance_covariance,
        degree=4,
    ),
    Statistic(
        "usp_independence",
        "Squared distance of a contingency table to independence: zero only if independent",
        ("x", "y"),
        "Berrett & Samworth 2021, without weights",
        _usp_independence,
        degree=4,
    ),
)


# --- graphs ---------------------------------------------------------------------------------------

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
