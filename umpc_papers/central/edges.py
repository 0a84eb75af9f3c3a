"""ξ of the triangle density from a private share of edges: Algorithm 5 of paper 002.

1. The share of edges, p, gets discrete Laplace noise for the share of epsilon. A vertex is in n - 1
   of the C(n, 2) pairs (`global_sensitivity`). A reach that the noise exceeds with a chance of
   `FAILURE` makes it an upper estimate.
2. A triangle at vertex i takes two edges at i, so its chance given X_i, and hence its variance, is
   at most p² where edges are independent given X_i and equally likely, as in the geometric graph on
   a sphere. ξ follows by Bernstein's bound.

ξ is a function of the release. So it costs the share of epsilon, and the local Hájek estimator
costs the rest (basic composition, adaptive), for any graph. The model matters for accuracy only.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 5, Algorithm 5, Theorem 6. Departure: ξ has
Bernstein's constants, and a record is a vertex with its list
(`umpc/ustat/statistics/distances.py`).
"""

from __future__ import annotations

import math
from fractions import Fraction

from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.graph_terms import edge_of_triangle
from umpc_papers.central.hajek import bernstein_concentration
from umpc_papers.central.private_spread import FAILURE


def edge_kernel(kernel: Kernel) -> Kernel:
    """The kernel "two vertices are connected" of a kernel "three vertices are".

    Raises: StudyError where the kernel is not that of `triangle_density`.
    """
    edge = edge_of_triangle(kernel.expression)
    if edge is None:
        raise StudyError(
            'concentration = "edges" goes with statistic = "triangle_density", a graph by its '
            f"adjacency lists; got the kernel {kernel.text[:63]!r}. Remove concentration, or take "
            "that statistic"
        )
    return Kernel(edge, kernel.schema)


def concentration_from_edges(
    kernel: Kernel, epsilon: Fraction, columns: Columns, records: int, bits: RandomBits
) -> Fraction:
    """ξ, in values, for estimates over `records` vertices. It takes all of epsilon.

    Args:
        kernel: that of the triangle density.
        epsilon: > 0, exact.
        columns: all n vertices; field -> (n,) int64.

    Reveals: this number.
    """
    vertices = len(columns[kernel.fields[0]])
    noisy = GlobalSensitivity(edge_kernel(kernel), epsilon).estimate(columns, bits)
    # P(noise < -reach) <= exp(-reach ε n/2)
    reach = Fraction(math.log(1 / float(FAILURE))) * 2 / (vertices * epsilon)
    share = min(Fraction(1), max(Fraction(0), noisy + reach))
    variance = (share**2).limit_denominator(1 << 40)
    return bernstein_concentration(records, kernel.degree, Fraction(1), variance, FAILURE)
