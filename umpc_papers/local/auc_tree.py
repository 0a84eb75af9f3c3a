"""The walk down the tree of counts that estimates the AUC, and its predicted error.

Paper: Bell et al. 2020, equation 10 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from umpc.mpc.arrays import Flags, Floats, Integers
from umpc_papers.local.noise_estimate import reported


@dataclass(frozen=True)
class WalkLevel:
    """The nodes that the walk meets on one level of the tree.

    Args:
        parents: the level of the nodes in `followed` and `discarded`.
        followed: (f,) int64, numbers of the nodes that the paper calls recursed.
        discarded: (d,) int64, numbers of the discarded nodes.
        leaves: int64, the children of followed nodes on the last level; empty before it.
    """

    parents: int
    followed: Integers
    discarded: Integers
    leaves: Integers


@dataclass(frozen=True)
class Tree:
    """Counts of two classes, and the rule that says which nodes the walk follows.

    Args:
        negatives, positives: counts by level, (2^l,) float64 for l = 0 .. alpha.
        minus, plus: v- and v+, the variance of a count of each class.
        constant: a.
        half: whether a discarded node's pairs count half; otherwise they count nothing.
        ties: the value of a pair of equal leaves.
    """

    negatives: list[Floats]
    positives: list[Floats]
    minus: float
    plus: float
    constant: float
    half: bool
    ties: float

    def steps(self) -> Iterator[WalkLevel]:
        """Walk from the root down, level by level, until the walk follows no node."""
        active = np.zeros(1, dtype=np.int64)
        last = len(self.negatives) - 1
        for level in range(last):
            follow = self._follows(level, active)
            children = (2 * active[follow][:, None] + np.arange(2)).reshape(-1)
            leaves = children if level == last - 1 else np.zeros(0, dtype=np.int64)
            yield WalkLevel(level, active[follow], active[~follow], leaves)
            active = children

    def _follows(self, level: int, nodes: Integers) -> Flags:
        """Whether the walk follows each of these nodes: (nodes,) bool."""
        # Section 4: h~± = max(h^±, sqrt(a v±)/2).
        least_minus = sqrt(self.constant * self.minus) / 2
        least_plus = sqrt(self.constant * self.plus) / 2
        product = np.maximum(self.negatives[level][nodes], least_minus)
        product = product * np.maximum(self.positives[level][nodes], least_plus)
        # Section 4: recurse where h~+ h~- >= tau = a sqrt(v+ v-).
        threshold = self.constant * sqrt(self.minus * self.plus)
        return product >= threshold

    def value(self) -> float:
        """The estimated number of pairs in order, where a tie counts `ties` (equation 10)."""
        total = 0.0
        for step in self.steps():
            minus = self.negatives[step.parents + 1]
            plus = self.positives[step.parents + 1]
            # Equation 10, a recursed node: h^+_{p1} h^-_{p0}.
            total += float(plus[2 * step.followed + 1] @ minus[2 * step.followed])
            if self.half:
                # Section 4, a discarded node: half the product of its children's sums.
                one = 2 * step.discarded
                two = one + 1
                total += float((plus[one] + plus[two]) @ (minus[one] + minus[two])) / 2
            # Departure: a leaf counts its ties, where equation 10 has 0.
            total += self.ties * float(plus[step.leaves] @ minus[step.leaves])
        return total


def exact_levels(leaf: Integers, levels: int) -> list[Floats]:
    """Noiseless counts by level, 0 to alpha, from each record's leaf.

    Args:
        leaf: (records,) int64 in 0 .. 2^levels - 1.
    """
    return [
        np.bincount(leaf >> (levels - level), minlength=1 << level).astype(np.float64)
        for level in range(levels + 1)
    ]


@dataclass(frozen=True)
class Prediction:
    """The predicted error of the estimate, from a tree of exact counts.

    The prediction assumes that the walk follows the nodes that it follows on the exact counts.
    Then the estimate is bilinear in the two classes' counts, and

        MSE = bias^2 + [first order, each class] + [second order].

    Let b_l(q) be the derivative by the count of q at level l. A record's contribution at a level
    is its answer times b. It has mean b_l(its node) and mean square (1/g^2) B_l, where B_l is the
    sum of b_l^2, because answers for different nodes are uncorrelated.

    With the `users` split, a record is asked about one of alpha levels, each equally likely. Its
    answers contribute alpha sum_l (B_l/g^2 - mean b_l^2) n. The choice of levels contributes alpha
    times the squares of b, centred by record and by level. With the `budget` split, every record
    answers for all levels. The second order is v+ v- times the squares of the coefficients of the
    products.

    Args:
        tree: exact counts, or estimated ones for `plug_in_variance`.
        truth: g, the gain of a record's bit.
        users: whether the split is `users`.
    """

    tree: Tree
    truth: float
    users: bool

    def mse(self, exact: float | None = None) -> float:
        """Mean squared error of the AUC.

        Args:
            exact: the AUC from which the bias is measured; None takes the AUC of the leaves.
        """
        tree = self.tree
        pairs = float(tree.negatives[0][0]) * float(tree.positives[0][0])
        second, by_minus, by_plus = self._derivatives()
        bias = self._bias() if exact is None else tree.value() - exact * pairs
        total = bias**2 + second * tree.minus * tree.plus
        first = self._first_order(by_minus, tree.negatives)
        total += first + self._first_order(by_plus, tree.positives)
        return total / pairs**2

    def plug_in_variance(self) -> float:
        """Variance of the AUC from a tree of estimated counts, without the bias.

        Squares of estimated counts are too large by their variance. Both classes' first orders
        therefore hold the second order once each, and this function subtracts it once (Goodman
        1960, variance of a product). The second order is the least value that it returns. The
        standard deviation of the estimate itself is added (`noise_estimate.reported`): the
        variance is estimated too low just where the AUC is.
        """
        tree = self.tree
        second, by_minus, by_plus = self._derivatives()
        both = second * tree.minus * tree.plus
        first_plus = sum(tree.plus * np.sum(b**2) for b in by_plus)
        first_minus = sum(tree.minus * np.sum(b**2) for b in by_minus)
        pairs = float(tree.negatives[0][0]) * float(tree.positives[0][0])
        unbiased = float(first_plus + first_minus) - both
        return reported(unbiased, both, self._std_of_variance(by_minus, by_plus)) / pairs**2

    def _std_of_variance(self, by_minus: list[Floats], by_plus: list[Floats]) -> float:
        """The standard deviation of the estimated variance, by the delta method.

        The derivatives by one class are linear in the other class's counts, b- = M h+ and
        b+ = M' h-. So the slopes of v- |b-|^2 by h+ are 2 v- M' b-, and a count has the variance
        v+ at most.
        """
        tree = self.tree
        _, minus_of_plus, plus_of_minus = self._bilinear(by_minus, by_plus)
        slopes = tree.plus * sum(np.sum(each**2) for each in minus_of_plus)
        slopes += tree.minus * sum(np.sum(each**2) for each in plus_of_minus)
        return 2 * sqrt(tree.minus * tree.plus * float(slopes))

    def _derivatives(self) -> tuple[float, list[Floats], list[Floats]]:
        """The sum of squared coefficients, and b by level of negatives and of positives."""
        return self._bilinear(self.tree.negatives, self.tree.positives)

    def _bilinear(
        self, negatives: list[Floats], positives: list[Floats]
    ) -> tuple[float, list[Floats], list[Floats]]:
        """The result of `_derivatives` for other numbers than the counts, on the same walk."""
        tree = self.tree
        squares = 0.0
        by_minus = [np.zeros_like(counts) for counts in negatives]
        by_plus = [np.zeros_like(counts) for counts in positives]
        for step in tree.steps():
            level = step.parents + 1
            minus = negatives[level]
            plus = positives[level]
            # Followed nodes: one product each.
            one = 2 * step.followed
            two = one + 1
            by_plus[level][two] += minus[one]
            by_minus[level][one] += plus[two]
            squares += len(one)
            if tree.half:
                # Discarded nodes: four products of weight 1/2 each.
                one = 2 * step.discarded
                two = one + 1
                for child in (one, two):
                    by_plus[level][child] += (minus[one] + minus[two]) / 2
                    by_minus[level][child] += (plus[one] + plus[two]) / 2
                squares += len(one)
            # Leaves: the ties.
            by_plus[level][step.leaves] += tree.ties * minus[step.leaves]
            by_minus[level][step.leaves] += tree.ties * plus[step.leaves]
            squares += tree.ties**2 * len(step.leaves)
        return squares, by_minus, by_plus

    def _first_order(self, derivatives: list[Floats], counts: list[Floats]) -> float:
        """Variance of the part that is linear in one class's counts."""
        alpha = len(derivatives) - 1
        leaves = counts[-1]
        n = leaves.sum()
        # (alpha, leaves): b of the node above each leaf.
        own = np.stack(
            [np.repeat(derivatives[level], len(leaves) >> level) for level in range(1, alpha + 1)]
        )
        squares = sum(n * np.sum(b**2) / self.truth**2 for b in derivatives[1:])
        noise = squares - np.sum(own**2 @ leaves)
        if not self.users:
            return float(noise)
        by_record = own.mean(axis=0)
        by_level = (own @ leaves) / n - by_record @ leaves / n
        centred = own - by_record - by_level[:, None]
        return float(alpha * (noise + np.sum(centred**2 @ leaves)))

    def _bias(self) -> float:
        """The value that discarded nodes' pairs are given, minus their true value."""
        tree = self.tree
        last = len(tree.negatives) - 1
        below = np.cumsum(tree.negatives[-1]) - tree.negatives[-1]
        in_order = below + tree.ties * tree.negatives[-1]
        exact = float(tree.positives[-1] @ in_order) if last else 0.0
        return tree.value() - exact
