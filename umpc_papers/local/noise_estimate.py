"""The variance of an estimate from randomised answers, estimated from the answers themselves.

The law of the answers is known, but the variance of their kernel depends on the records. So does
its estimate: it has noise, and it is often too small just where the estimate is too low. Three
rules keep the intervals of a report at 95 %:

- *No clipping.* The estimated shares of the cells may be negative. Shares that are clipped at 0 and
  scaled to 1 spread the records over rare cells. Their variance is up to two times too small.
- *No bias.* The square of a noisy number is too large by its variance, which is subtracted
  (Goodman 1960). The part of second order is the least variance that is reported.
- *One standard deviation more.* `reported` adds the standard deviation of the variance's own
  estimate, by the delta method. This is a few percent for many records. Where the noise hides the
  records, the standard deviation is 1.2 to 1.5 times as large as it had to be, or two times where
  all cells are equally frequent.

Notation of `bell_ldp`: told cells have the histogram h, g is the probability of the truth, and
c = (1-g)/t. The shares r = (h/n - c)/g are unbiased. Their covariance given the records is linear
in the true shares, so its unbiased estimate is

    V(r) = [ g (1-g) diag(r) + c I - g c (r 1' + 1 r') - c^2 1 1' ] / (n g^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.mpc.arrays import Floats


def reported(unbiased: float, least: float, std: float) -> float:
    """The variance that a report states.

    Args:
        unbiased: its unbiased estimate, which may be negative.
        least: the part of second order, below which the variance never is.
        std: the standard deviation of the estimate.
    """
    return max(unbiased, least, 0.0) + std


@dataclass(frozen=True, eq=False)
class CellShares:
    """The shares of all cells among n records, from the cells that were told.

    Args:
        told: h, (t,) float64, whole numbers.
        truth: g.
    """

    told: Floats
    truth: float

    @property
    def records(self) -> float:
        """n."""
        return float(self.told.sum())

    @property
    def lie(self) -> float:
        """c, the probability that a record tells a given cell by chance."""
        return (1 - self.truth) / len(self.told)

    @cached_property
    def shares(self) -> Floats:
        """r, unbiased: (t,) float64; single ones may be negative."""
        return (self.told / self.records - self.lie) / self.truth

    @cached_property
    def spread(self) -> Floats:
        """V(r), the unbiased estimate of the covariance of r: (t, t) float64."""
        g, c = self.truth, self.lie
        both = self.shares[:, None] + self.shares
        own = np.diag(g * (1 - g) * self.shares + c)
        spread: Floats = (own - g * c * both - c * c) / (self.records * g * g)
        return spread

    def variance(self, x: Floats) -> float:
        """The estimated variance of x'r: x' V(r) x. Args: x: (t,) float64."""
        return float(x @ self.spread @ x)

    def slope(self, x: Floats) -> Floats:
        """How x' V(r) x grows with r: (t,) float64. Args: x: (t,) float64."""
        g, c = self.truth, self.lie
        slope: Floats = (g * (1 - g) * x * x - 2 * g * c * x.sum() * x) / (self.records * g * g)
        return slope

    def std(self, x: Floats) -> float:
        """The estimated standard deviation of x'r."""
        return sqrt(max(0.0, self.variance(x)))


def variance_of_pairs(matrix: Floats, own: CellShares) -> float:
    """The reported variance of the mean of A over all pairs of n records.

    To first order the variance is 4 (A r)' V A r, and to second order 2 tr(A V A V).

    Args: matrix: A, (t, t) float64, symmetric.
    """
    x = matrix @ own.shares
    turned = matrix @ own.spread
    second = 2 * float(np.sum(turned * turned.T))
    # 4 x'Vx is too large by 4 tr(AVAV).
    unbiased = 4 * own.variance(x) - second
    std = own.std(8 * matrix @ (own.spread @ x) + 4 * own.slope(x))
    pairs = own.records / (own.records - 1)
    return pairs**2 * reported(unbiased, second, std)


def variance_of_classes(matrix: Floats, first: CellShares, second: CellShares) -> float:
    """The reported variance of the mean of A over all pairs of a record of either class.

    With shares r+ and r- it is (A r-)' V+ A r- + (A' r+)' V- A' r+ + tr(A' V+ A V-).

    Args: matrix: A, (t, t) float64; its rows belong to the first class.
    """
    x, y = matrix @ second.shares, matrix.T @ first.shares
    both = float(np.sum((matrix.T @ first.spread @ matrix) * second.spread))
    # Each of the first two terms is too large by the third one.
    unbiased = first.variance(x) + second.variance(y) - both
    by_first = 2 * matrix @ (second.spread @ y) + first.slope(x)
    by_second = 2 * matrix.T @ (first.spread @ x) + second.slope(y)
    std = sqrt(first.std(by_first) ** 2 + second.std(by_second) ** 2)
    return reported(unbiased, both, std)
