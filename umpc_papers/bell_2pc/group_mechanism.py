"""Noise on the sum of every small group of pairs: between `pair_laplace` and one sum of all pairs.

Paper: Bell et al. 2020, remark 3: "More interesting trade-offs may be achieved by securely
aggregating small subsets of pairs." The pairs of two nodes (or of one) are divided into groups of
g, in the order of E. A group's sum leaves the two nodes as two shares, with discrete Laplace noise
of each node.

*Privacy.* A record is in at most k pairs, each of which changes its group's sum by at most Δ, in
units. So the vector of all groups' sums changes by at most k·Δ in the L1 norm, and noise of scale
k·Δ/ε on each group costs ε. Every owner of a group adds all of that noise itself, so a record
depends on its own node's noise alone, whoever else colludes. The noise is exact, so δ = 0.

*Error.* Pairs of two nodes have 2 noises for g pairs, where `pair_laplace` has one of that scale
for each pair. So the variance is 2/g of it, at most, and the circuits draw no noise. With g = 1 the
circuits' noise is better; with g of all pairs it is one sum.

The number of groups depends on how many pairs each two nodes have, which follows from E. Before E
is known it is at most |E|/g and one more for each pair of nodes (`most_groups`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

from umpc.dp.calibration import DistributedLaplace
from umpc.dp.random_bits import RandomBits

OWNERS = 2
"""The most nodes that own a pair."""


@dataclass(frozen=True)
class GroupLaplace:
    """Discrete Laplace noise of every owner on each group's sum.

    Args:
        epsilon: of all pairs of one record, exact.
        width: Δ, the length of a pair's range in units; 0 says that the value is public.
        edges: |E|.
        degree: k, the largest number of pairs that hold one record.
        group: g.
        cells: the number of pairs of nodes, and of nodes with themselves, that may own edges.
    """

    epsilon: Fraction
    width: int
    edges: int
    degree: int
    group: int
    cells: int
    delta = Fraction(0)

    @cached_property
    def noise(self) -> DistributedLaplace:
        """The noise of a group of two owners, of whom one at least is honest."""
        return DistributedLaplace(self.epsilon, self.width * self.degree, OWNERS, 1)

    @property
    def most_groups(self) -> int:
        """The most groups that E can have."""
        return min(self.edges, self.edges // self.group + self.cells)

    @property
    def std(self) -> float:
        """Upper bound on the standard deviation of the sum's noise, in units."""
        return sqrt(self.most_groups) * self.noise.std

    @property
    def shape(self) -> float:
        """The most discrete Laplace laws that the sum's noise is made of."""
        return self.most_groups * self.noise.shape

    def draw(self, bits: RandomBits) -> int:
        """One owner's noise of one group, in units. Secret."""
        return self.noise.draw(bits)

    def tail_bound(self) -> int:
        """An integer that the sum's noise exceeds with a probability of at most 2^-64."""
        return self.most_groups * self.pair_tail_bound()

    def pair_tail_bound(self) -> int:
        """An integer that no group's noise exceeds, but for 2^-64 over all groups."""
        return self.noise.tail_bound(64 + self.most_groups.bit_length())

    def unbiased(self, total: int) -> Fraction:
        """The sum that a noisy total estimates."""
        return Fraction(total)


def groups_of(pairs: int, group: int) -> int:
    """The number of groups of so many pairs of one cell; the last one may be smaller."""
    return -(-pairs // group)
