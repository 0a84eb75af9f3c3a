"""Discrete Gaussian noise, drawn exactly at one place.

    P(x) proportional to exp(-x^2 / (2 parameter)),   x any integer

Its variance is at most the parameter (and equal to 1e-10 from 3 on). Sums of it do not have the
same law, so shares of several nodes are Skellam noise instead (`skellam`). This law is for a
trusted place, for messages, and for comparison.

The guarantee. If neighbours (replace-one) differ in integer i by at most s_i and its noise has
parameter v_i, the vector is rho-zCDP with rho = sum of s_i^2/(2 v_i), for any correlation of the
changes.

Paper: Canonne, Kamath, Steinke 2020: algorithm 3 (the draw), theorem 4 (rho), section 2 (from rho
to epsilon and delta), and that the law is sub-Gaussian (the tail).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from umpc.dp.checks import PRECISION, above, ball
from umpc.dp.geometric import discrete_laplaces
from umpc.dp.random_bits import RandomBits
from umpc.dp.trials import MORE_TRIALS, TRIALS, first_accepted
from umpc.errors import LocalProtocolError

LARGE_SCALE = 8
"""Scales of the proposal from which `TRIALS` suffice; smaller ones take `MORE_TRIALS`."""

GUARD = 160
"""Bits of an acceptance probability: more than the uniform's 128."""


def sample_discrete_gaussian(parameter: Fraction, bits: RandomBits) -> int:
    """One exact draw, by trials of a discrete Laplace y of scale t = floor(sigma) + 1.

    y is accepted with odds exp(-(|y| - parameter/t)^2/(2 parameter)). exp(-|y|/t) times these odds
    is proportional to exp(-y^2/(2 parameter)). All trials are made in every draw (`trials`), each
    in the same steps.

    Args:
        parameter: sigma^2 > 0, exact, squared units of the result.
        bits: the only source of randomness.

    Raises:
        LocalProtocolError: the parameter is not above 0, or the source of randomness is broken.
    """
    if parameter <= 0:
        raise LocalProtocolError(
            f"expected a discrete Gaussian of parameter above 0, got {parameter}"
        )
    n, d = Fraction(parameter).as_integer_ratio()
    t = math.isqrt(n // d) + 1
    negative = -2 * n * d * t * t

    # Algorithm 3: propose a discrete Laplace, then toss the coin of acceptance.
    def propose(count: int, bits: RandomBits) -> list[int]:
        return discrete_laplaces(Fraction(1, t), count, bits)

    def odds(y: int, precision: int = GUARD) -> arb:
        with ctx.workprec(precision):
            return (arb((abs(y) * t * d - n) ** 2) / negative).exp()

    trials = TRIALS if t >= LARGE_SCALE else MORE_TRIALS
    return first_accepted(propose, odds, odds, trials, bits)


@dataclass(frozen=True)
class DiscreteGaussian:
    """The law, as noise on one integer.

    Args:
        parameter: sigma^2 >= 0, exact. 0 is no noise.

    Raises:
        LocalProtocolError: the parameter is negative.
    """

    parameter: Fraction

    def __post_init__(self) -> None:
        if self.parameter < 0:
            raise LocalProtocolError(
                f"expected a discrete Gaussian of parameter 0 or more, got {self.parameter}"
            )

    def draw(self, bits: RandomBits) -> int:
        """One exact draw. Secret; the running time depends on the value."""
        return sample_discrete_gaussian(self.parameter, bits) if self.parameter else 0

    @property
    def variance(self) -> float:
        """sigma^2, a bound: the variance is at most that, and nearly that from 3 on."""
        return float(self.parameter)

    @property
    def std(self) -> float:
        """sigma, a bound in the same way."""
        return math.sqrt(self.variance)

    def tail_bound(self, log2_probability: int = 64) -> int:
        """An integer T with P(|X| > T) <= 2^-log2_probability.

        The law is sub-Gaussian, E exp(theta X) <= exp(theta^2 sigma^2 / 2), so P(|X| > T) is at
        most 2 exp(-(T+1)^2/(2 sigma^2)), which is 2^-b for (T+1)^2 = 2 sigma^2 (b+1) ln2. T is
        rounded up.

        Raises:
            LocalProtocolError: log2_probability is below 1.
        """
        if log2_probability < 1:
            raise LocalProtocolError(
                f"expected a tail of at most 2^-1, got 2^-({log2_probability})"
            )
        if not self.parameter:
            return 0
        with ctx.workprec(PRECISION):
            square = 2 * ball(self.parameter) * (log2_probability + 1) * arb(2).log()
            return math.ceil(above(square.sqrt())) - 1
