"""Discrete Gaussian noise that nodes add on a vector of sums, under one joint L2 sensitivity.

Each of n nodes adds a discrete Gaussian of parameter v_i/h to sum i, so that the shares of any h
nodes have the parameter v_i together.

The guarantee. Neighbours (replace-one) change sum i by d_i, with sum of (d_i/S_i)^2 <= square for
known scales S_i. That is one L2 sensitivity of the whole vector, in units of the scales. The noise
of any h honest nodes has v_i = k S_i^2. One release is rho-zCDP with

    rho = square/(2 k) + (3/2) m tau,    tau = 10 (h-1) exp(-pi^2 v_min/h)

for m sums, and T releases are T rho-zCDP, also where a release is chosen by the results of the
earlier ones. k is the least, to one part in 2^16 above, for which some order proves (epsilon,
delta).

Why. Were the sum of h shares a discrete Gaussian of parameter v_i, the first term would be all
(Canonne, Kamath, Steinke 2020, theorem 4). It is nearly one: its probabilities lie within factors
e^-tau .. e^tau of it (Kairouz, Liu, Steinke 2021, section 4). A divergence of order alpha >= 2
between laws within such factors grows by at most tau (2 alpha - 1)/(alpha - 1) <= (3/2) alpha tau,
for each sum. Every share has a parameter of at least `LEAST_SHARE`, so tau is below 2^-200 for any
number of nodes.

Paper: Kairouz, Liu, Steinke 2021 (the distributed discrete Gaussian); Canonne, Kamath, Steinke 2020
(the law, zCDP, the step to epsilon and delta).

*Gaussian.* Discrete Gaussian noise, drawn exactly at one place.

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
from functools import lru_cache

from flint import arb, ctx

from umpc.dp.calibration import NORMAL_SHAPE
from umpc.dp.composition import gaussian_curve, least_scale, satisfies
from umpc.dp.events import (
    PRECISION,
    above,
    ball,
    check_delta,
    check_epsilon,
    check_nodes,
    check_tail,
)
from umpc.dp.geometric_poisson import discrete_laplaces
from umpc.dp.random_bits import LESS_OFTEN, OFTEN, RandomBits, first_accepted
from umpc.errors import LocalProtocolError, StudyError

LEAST_SHARE = 16
"""The least parameter of one node's share. exp(-pi^2 16) is below 2^-227."""
TAU_PER_NODE = Fraction(10, 1 << 227)
"""A bound of tau for each honest node but the first."""


@dataclass(frozen=True)
class GaussianShare:
    """The noise on one sum: n nodes add a share, and any h shares have `parameter` together.

    Args:
        parameter: v >= 0, exact, squared units of the sum. 0 is no noise.
        nodes: n, how many nodes add a share.
        honest: h, how many at least are assumed honest.

    Raises:
        StudyError: nodes or honest is not an integer in its range.
    """

    parameter: Fraction
    nodes: int
    honest: int

    def __post_init__(self) -> None:
        check_nodes(self.nodes, self.honest)

    @property
    def share(self) -> DiscreteGaussian:
        """The law of one node's share."""
        # Kairouz, Liu & Steinke 2021: h shares of v/h have nearly v together
        return DiscreteGaussian(self.parameter / self.honest)

    @property
    def variance(self) -> float:
        """A bound of the variance of the sum of all n shares; nearly equal to it."""
        return float(self.parameter * self.nodes / self.honest)

    @property
    def std(self) -> float:
        """The standard deviation of the sum of all n shares, in units of the sum."""
        return math.sqrt(self.variance)

    @property
    def shape(self) -> float:
        """That of a law near to the normal one: `NORMAL_SHAPE`."""
        return NORMAL_SHAPE

    def draw(self, bits: RandomBits) -> int:
        """One node's share of the noise. Secret; the work follows from the law."""
        return self.draws(1, bits)[0]

    def draws(self, count: int, bits: RandomBits) -> list[int]:
        """One node's independent shares of the noise of `count` sums, drawn together. Secret."""
        if not self.parameter:
            return [0] * count
        return discrete_gaussians(self.share.parameter, count, bits)

    def tail_bound(self, log2_probability: int = 64) -> int:
        """An integer T with P(|sum of all n shares| > T) <= 2^-log2_probability.

        Parameters of independent sub-Gaussian numbers add up.
        """
        whole = DiscreteGaussian(self.parameter * self.nodes / self.honest)
        return whole.tail_bound(log2_probability)


def joint_gaussian(
    epsilon: Fraction,
    delta: Fraction,
    scales: tuple[Fraction, ...],
    square: int,
    nodes: int,
    honest: int,
    releases: int = 1,
) -> tuple[GaussianShare, ...]:
    """The noise of each sum of a vector, for `releases` releases under one epsilon and delta.

    Args:
        scales: S_i >= 0, exact, in units of sum i. 0 says that the sum is public: no noise.
        square: a bound of sum of (change_i/S_i)^2 between neighbours, in one release.
        releases: T, fixed beforehand.

    Raises:
        InvalidEpsilon: epsilon or delta is not exact or not in its range.
        StudyError: another argument is out of range.
    """
    check_nodes(nodes, honest)
    if square < 1 or releases < 1 or not scales or min(scales) < 0:
        raise StudyError(
            "a vector takes scales of 0 or more, a squared sensitivity of 1 or more, and 1 or "
            f"more releases, but {len(scales)} scales, {square} and {releases} came"
        )
    k = parameter_per_square(
        check_epsilon(epsilon), check_delta(delta), len(scales), square, honest, releases
    )
    return tuple(GaussianShare(_parameter(k, scale, honest), nodes, honest) for scale in scales)


@lru_cache(maxsize=64)
def parameter_per_square(
    epsilon: Fraction, delta: Fraction, sums: int, square: int, honest: int, releases: int
) -> Fraction:
    """k, remembered: a study asks for it often. Args: as in `joint_gaussian`."""

    def holds(k: Fraction) -> bool:
        # Bun & Steinke 2016: T releases are T rho-zCDP, also adaptive ones
        return satisfies(gaussian_curve(rho_of(k, sums, square, honest, releases)), epsilon, delta)

    return least_scale(holds, Fraction(square * releases))


def rho_of(k: Fraction, sums: int, square: int, honest: int, releases: int) -> Fraction:
    """The zCDP parameter of all releases together."""
    # Kairouz, Liu & Steinke 2021, section 4: (3/2) m tau
    slack = Fraction(3, 2) * sums * TAU_PER_NODE * (honest - 1)
    # Canonne, Kamath & Steinke 2020, theorem 4: square/(2 k)
    return releases * (Fraction(square) / (2 * k) + slack)


def _parameter(k: Fraction, scale: Fraction, honest: int) -> Fraction:
    """k S², rounded up to a whole number, and large enough for every share."""
    if not scale:
        return Fraction(0)
    return Fraction(max(math.ceil(k * scale**2), LEAST_SHARE * honest))


# --- gaussian -------------------------------------------------------------------------------------

LARGE_SCALE = 8
"""Scales of the proposal from which one is accepted with `OFTEN`; smaller ones `LESS_OFTEN`."""

GUARD = 160
"""Bits of an acceptance probability: more than the uniform's 128."""


def discrete_gaussians(parameter: Fraction, count: int, bits: RandomBits) -> list[int]:
    """`count` exact draws, by trials of a discrete Laplace y of scale t = floor(sigma) + 1.

    y is accepted with odds exp(-(|y| - parameter/t)^2/(2 parameter)). exp(-|y|/t) times these odds
    is proportional to exp(-y^2/(2 parameter)). The number of trials
    follows from `count` alone, and each has the same steps (`first_accepted`).

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
            # exp(-(|y| - parameter/t)^2 / (2 parameter)), in whole numbers
            return (arb((abs(y) * t * d - n) ** 2) / negative).exp()

    often = OFTEN if t >= LARGE_SCALE else LESS_OFTEN
    return first_accepted(propose, odds, odds, often, count, bits)


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
        return discrete_gaussians(self.parameter, 1, bits)[0] if self.parameter else 0

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
        check_tail(log2_probability)
        if not self.parameter:
            return 0
        with ctx.workprec(PRECISION):
            square = 2 * ball(self.parameter) * (log2_probability + 1) * arb(2).log()
            return math.ceil(above(square.sqrt())) - 1
