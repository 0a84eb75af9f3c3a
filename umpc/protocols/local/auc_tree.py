"""The walk down the tree of counts, and what its error is expected to be.

Paper: Bell et al. 2020, equation 10 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np


@dataclass(frozen=True)
class Step:
    """One level of the walk. parents: level of the nodes below, which are followed, discarded; leaves: at the end."""

    parents: int
    followed: np.ndarray
    discarded: np.ndarray
    leaves: np.ndarray


@dataclass(frozen=True)
class Tree:
    """Counts of two classes and the rule by which nodes are followed.

    negatives, positives: counts by level, (2^l,) float64 for l = 0 .. alpha. minus, plus: v- and v+, the variance of a
    count of each. constant: a. half: whether a discarded node's pairs count half, else nothing. ties: of equal leaves.
    """

    negatives: list[np.ndarray]
    positives: list[np.ndarray]
    minus: float
    plus: float
    constant: float
    half: bool
    ties: float

    def steps(self) -> Iterator[Step]:
        """From the root down, until nothing is followed."""
        active = np.zeros(1, dtype=np.int64)
        last = len(self.negatives) - 1
        for level in range(last):
            least = [sqrt(self.constant * variance) / 2 for variance in (self.minus, self.plus)]
            product = np.maximum(self.negatives[level][active], least[0])
            product = product * np.maximum(self.positives[level][active], least[1])
            follow = product >= self.constant * sqrt(self.minus * self.plus)
            children = (2 * active[follow][:, None] + np.arange(2)).reshape(-1)
            nothing = np.zeros(0, dtype=np.int64)
            yield Step(
                level, active[follow], active[~follow], children if level == last - 1 else nothing
            )
            active = children

    def value(self) -> float:
        """The estimated number of pairs in order, ties counted `ties`."""
        total = 0.0
        for step in self.steps():
            minus, plus = self.negatives[step.parents + 1], self.positives[step.parents + 1]
            total += float(plus[2 * step.followed + 1] @ minus[2 * step.followed])
            if self.half:
                one, two = 2 * step.discarded, 2 * step.discarded + 1
                total += float((plus[one] + plus[two]) @ (minus[one] + minus[two])) / 2
            total += self.ties * float(plus[step.leaves] @ minus[step.leaves])
        return total


def exact_levels(leaf: np.ndarray, levels: int) -> list[np.ndarray]:
    """Counts without noise, level 0 to alpha, of records with these leaves."""
    return [
        np.bincount(leaf >> (levels - level), minlength=1 << level).astype(float)
        for level in range(levels + 1)
    ]


@dataclass(frozen=True)
class Prediction:
    """The error of a tree of exact counts, once these are estimated.

    The walk is taken as it is on the exact counts. Then the estimate is bilinear in the two classes' counts, and

        MSE = bias^2 + [first order, each class] + [second order],

    with b_l(q) the derivative by the count of q at level l. A record's contribution at a level, its answer times b, has
    mean b_l(its node) and mean square (1/g^2) B_l, B_l = sum of b_l^2, as answers for different nodes are uncorrelated.
    With `users`, a record is asked about one of alpha levels, evenly: alpha sum_l (B_l/g^2 - mean b_l^2) n for its
    answers and alpha times the squares of b, centred by record and by level, for the choice of levels. Without, all
    levels. Second order: v+ v- times the squares of the coefficients of the products.
    """

    tree: Tree
    truth: float
    users: bool

    def mse(self, exact: float | None = None) -> float:
        """Of the AUC; squared. exact: what the bias is towards; None takes the AUC of the leaves."""
        tree = self.tree
        pairs = float(tree.negatives[0][0]) * float(tree.positives[0][0])
        second, by_minus, by_plus = self._derivatives()
        bias = self._bias() if exact is None else tree.value() - exact * pairs
        total = bias**2 + second * tree.minus * tree.plus
        total += self._first_order(by_minus, tree.negatives) + self._first_order(
            by_plus, tree.positives
        )
        return total / pairs**2

    def plug_in_variance(self) -> float:
        """Of the AUC, from a tree of estimated counts: without bias, and without what the noise leaves out.

        Squares of estimated counts are too large by their variance, so both classes' first orders hold the second order
        each; it is taken off once (Goodman 1960, of a product). It is the least that is left.
        """
        tree = self.tree
        second, by_minus, by_plus = self._derivatives()
        both = second * tree.minus * tree.plus
        first = sum(tree.plus * np.sum(b**2) for b in by_plus) + sum(
            tree.minus * np.sum(b**2) for b in by_minus
        )
        return (
            max(both, float(first) - both)
            / (float(tree.negatives[0][0]) * float(tree.positives[0][0])) ** 2
        )

    def _derivatives(self) -> tuple[float, list[np.ndarray], list[np.ndarray]]:
        """The sum of squared coefficients, and b by level of negatives and of positives."""
        tree, squares = self.tree, 0.0
        by_minus = [np.zeros_like(counts) for counts in tree.negatives]
        by_plus = [np.zeros_like(counts) for counts in tree.positives]
        for step in tree.steps():
            level = step.parents + 1
            minus, plus = tree.negatives[level], tree.positives[level]
            one, two = 2 * step.followed, 2 * step.followed + 1
            by_plus[level][two] += minus[one]
            by_minus[level][one] += plus[two]
            squares += len(one)
            if tree.half:
                one, two = 2 * step.discarded, 2 * step.discarded + 1
                for child in (one, two):
                    by_plus[level][child] += (minus[one] + minus[two]) / 2
                    by_minus[level][child] += (plus[one] + plus[two]) / 2
                squares += len(one)
            by_plus[level][step.leaves] += tree.ties * minus[step.leaves]
            by_minus[level][step.leaves] += tree.ties * plus[step.leaves]
            squares += tree.ties**2 * len(step.leaves)
        return squares, by_minus, by_plus

    def _first_order(self, by: list[np.ndarray], counts: list[np.ndarray]) -> float:
        """Variance of the part that is linear in one class's counts."""
        alpha, leaves = len(by) - 1, counts[-1]
        n = leaves.sum()
        own = np.stack(
            [np.repeat(by[level], len(leaves) >> level) for level in range(1, alpha + 1)]
        )
        noise = sum(n * np.sum(b**2) / self.truth**2 for b in by[1:]) - np.sum(own**2 @ leaves)
        if not self.users:
            return float(noise)
        centred = (
            own - own.mean(axis=0) - ((own @ leaves) / n - own.mean(axis=0) @ leaves / n)[:, None]
        )
        return float(alpha * (noise + np.sum(centred**2 @ leaves)))

    def _bias(self) -> float:
        """What the discarded nodes' pairs are taken for, minus what they are."""
        tree, last = self.tree, len(self.tree.negatives) - 1
        below = np.cumsum(tree.negatives[-1]) - tree.negatives[-1]
        exact = tree.positives[-1] @ (below + tree.ties * tree.negatives[-1]) if last else 0.0
        return tree.value() - float(exact)
