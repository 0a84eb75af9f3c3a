"""Share of triangles in a graph in which a node is a record: a sparse statistic of degree 3.

Records are the nodes: replacing one replaces all its edges (node privacy, replace-one), as when
edges follow from hidden positions and only the graph is known. f(i, j, l) = 1 where all three edges
exist.

1. A private share of edges. A node is in n - 1 of the C(n, 2) possible edges, so their number gets
   discrete Laplace noise of sensitivity n - 1; epsilon/2. p = that number, plus a reach that the
   noise exceeds with chance `failure`, is an upper estimate.
2. ξ by Bernstein with that p. A triangle at i needs two independent edges at i, so its chance and
   hence its variance are at most p² for edges that are independent given X_i and equally likely
   (the geometric graph on a sphere).
3. The local Hájek estimator with this ξ and the other epsilon/2. ξ is a function of the release, so
   both together are epsilon-DP (basic composition, adaptive), for any graph. The model matters for
   accuracy only.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 5, Algorithm 5, Theorem 6. Departure: ξ has
Bernstein's constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from umpc.dp.events import PureEvent, check_epsilon, is_exact
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError, TooFewRecords
from umpc_papers.central.hajek import bernstein_concentration, private_mean, tuning_of
from umpc_papers.central.heavy_tail import GRID
from umpc_papers.central.laplace import discrete_laplace
from umpc_papers.central.terms import CompleteFamily, Terms


@dataclass(frozen=True)
class TriangleDensity:
    """epsilon-DP for replacing a node with all its edges.

    Args:
        epsilon: > 0, exact.
        failure: chance that the reach of step 1 does not hold, and chance for Bernstein's bounds.
        grid: granularity of the release.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: failure or grid is not exact or out of range.
    """

    epsilon: Fraction
    failure: Fraction = Fraction(1, 20)
    grid: Fraction = GRID

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not (
            is_exact(self.failure)
            and 0 < self.failure < 1
            and is_exact(self.grid)
            and self.grid > 0
        ):
            raise StudyError(
                "failure is an exact number between 0 and 1, the grid an exact number above 0"
            )

    def estimate(self, adjacency: NDArray[np.bool_], bits: RandomBits) -> Fraction:
        """The noisy share of triangles. Reveals: this number and the noisy number of edges.

        Args:
            adjacency: (n, n) bool, symmetric, no loops.
            bits: the source of randomness.
        """
        terms = triangle_terms(adjacency)
        edges = int(np.count_nonzero(adjacency)) // 2
        noisy = discrete_laplace(edges, terms.records - 1, self.epsilon / 2, bits)
        concentration = self.concentration(noisy, terms.records)
        family = CompleteFamily(terms.records, 3)
        return private_mean(terms, family, concentration, self.epsilon / 2, bits, self.grid)

    def concentration(self, noisy_edges: int, records: int) -> Fraction:
        """ξ of step 2."""
        reach = Fraction(math.log(1 / (2 * float(self.failure)))).limit_denominator(1 << 20)
        edges = noisy_edges + max(Fraction(0), 2 * (records - 1) / self.epsilon * reach)
        likely = min(Fraction(1), max(Fraction(0), edges / math.comb(records, 2)))
        return bernstein_concentration(records, 3, Fraction(1), likely**2, self.failure)

    def noise_variance(self, edges: int, records: int) -> float:
        """Variance of the noise at L = 0, for this noisy number of edges; squared shares."""
        terms = Terms(records, 3, 0, 1, Fraction(1), _nothing)
        tuning = tuning_of(
            terms, CompleteFamily(records, 3), self.concentration(edges, records), self.epsilon / 2
        )
        return float(tuning.scale(0, records)) ** 2 + float(self.grid) ** 2 / 12

    @property
    def event(self) -> PureEvent:
        """The cost of both releases together."""
        return PureEvent(self.epsilon)


def triangle_terms(adjacency: NDArray[np.bool_]) -> Terms:
    """1 for each three nodes that are all connected.

    Raises:
        StudyError: the matrix is not that of a graph.
        TooFewRecords: there are fewer than 4 nodes.
    """
    square = (
        adjacency.ndim == 2 and adjacency.shape[0] == adjacency.shape[1] and adjacency.dtype == bool
    )
    if not square or not np.array_equal(adjacency, adjacency.T) or adjacency.diagonal().any():
        raise StudyError("expected a graph as a square, symmetric matrix of bool without loops")
    if len(adjacency) < 4:
        raise TooFewRecords(f"expected at least 4 nodes, {len(adjacency)} came")

    def evaluate(sets: NDArray[np.int64]) -> NDArray[np.int64]:
        i, j, k = sets
        closed: NDArray[np.bool_] = adjacency[i, j] & adjacency[i, k] & adjacency[j, k]
        return closed.astype(np.int64)

    return Terms(len(adjacency), 3, 0, 1, Fraction(1), evaluate)


def _nothing(sets: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.zeros(sets.shape[1], dtype=np.int64)
