"""Skellam noise that nodes add on several sums, (epsilon, delta)-DP for any h honest nodes.

    Skellam(mu) = Poisson(mu/2) - Poisson(mu/2),   variance mu

Poisson means add. So if each node adds Poisson(mu/2h) - Poisson(mu/2h), any h nodes' shares sum to
Skellam(mu), and all n to Skellam(mu n/h). The law is near a Gaussian in privacy and error, closed
under sums (the discrete Gaussian is not), and drawn exactly (`poisson`).

The guarantee. Neighbours (replace-one) differ in sum i by at most s_i, in all sums at once. Noise
on sum i is Skellam(mu_i) with mu_i = k s_i^2, so each sum gets noise in proportion to its
sensitivity, and the vector has the Rényi divergence of `renyi.skellam_curve`. k is the least, to
one part in 2^16 above, for which some order proves (epsilon, delta). Whatever the other n - h nodes
learn, subtract or leave out is independent of the sums. For m sums the noise grows with sqrt(m); a
pure epsilon split m ways would let it grow with m.

How tight. On one sum the standard deviation is above the least that the exact delta allows, because
the step from Rényi to delta loses a little. `tests/dp/test_skellam.py` prints how much, and bounds
it. Where the noise is less than two units (epsilon = 4 at s = 1) the theorem is loose and asks for
several times the least: prefer finer units there, so that s is a larger number.

Paper: Agarwal, Kairouz, Liu 2021 (the mechanism); Canonne, Kamath, Steinke 2020 (from Rényi to
epsilon and delta); Valovich, Aldà 2017 (Skellam shares).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb, ctx

from umpc.dp.calibration import NORMAL_SHAPE
from umpc.dp.composition import least_scale, satisfies, skellam_curve
from umpc.dp.events import (
    PRECISION,
    above,
    ball,
    check_delta,
    check_epsilon,
    check_nodes,
    check_sensitivity,
    check_tail,
)
from umpc.dp.geometric_poisson import MOST_MEAN, sample_poisson
from umpc.dp.random_bits import RandomBits
from umpc.errors import InvalidEpsilon, LocalProtocolError, StudyError


def sample_skellam(variance: Fraction, bits: RandomBits) -> int:
    """One exact draw of Skellam(variance): the difference of two Poisson draws, in that order."""
    # Agarwal, Kairouz & Liu 2021: Poisson(mu/2) - Poisson(mu/2)
    up = sample_poisson(variance / 2, bits)
    down = sample_poisson(variance / 2, bits)
    return up - down


@dataclass(frozen=True)
class SkellamShare:
    """The noise on one sum: n nodes add a share, and any h shares sum to Skellam(honest_variance).

    Args:
        honest_variance: mu >= 0, squared units of the sum; exact. 0 is no noise.
        nodes: n, how many nodes add a share.
        honest: h, how many at least are assumed honest.

    Raises:
        StudyError: nodes or honest is not an integer in its range.
        LocalProtocolError: the variance is out of range.
    """

    honest_variance: Fraction
    nodes: int
    honest: int

    def __post_init__(self) -> None:
        check_nodes(self.nodes, self.honest)
        if not 0 <= self.honest_variance <= MOST_MEAN:
            raise LocalProtocolError(
                f"expected a variance of 0 .. 2^128, got {self.honest_variance}"
            )

    @property
    def shape(self) -> float:
        """That of the limit law: see `NORMAL_SHAPE`."""
        return NORMAL_SHAPE

    @property
    def share_variance(self) -> Fraction:
        """Variance of one node's share, exact."""
        # Valovich & Aldà 2017: means add, so h shares have mu together
        return Fraction(self.honest_variance) / self.honest

    @property
    def variance(self) -> float:
        """Variance of the sum of all n shares, in squared units of the sum."""
        return float(self.nodes * self.share_variance)

    @property
    def std(self) -> float:
        """Standard deviation of the sum of all n shares, in units of the sum."""
        return math.sqrt(self.variance)

    def draw(self, bits: RandomBits) -> int:
        """One node's share of the noise, in units of the sum. Secret.

        The work follows from the variance, not from the value (see `poisson`).

        Args:
            bits: the node's source of randomness.
        """
        return sample_skellam(self.share_variance, bits)

    def tail_bound(self, log2_probability: int = 64) -> int:
        """An integer T with P(|sum of all n shares| > T) <= 2^-log2_probability.

        A study uses T to check that a sum fits its ring.

        Derivation. S is Skellam(v), v = mu n/h, so E exp(theta S) = exp(v (cosh theta - 1)). By
        symmetry and Markov's inequality, for every theta > 0 (cosh theta - 1 is computed as
        2 sinh^2(theta/2), without cancellation),

            P(|S| > T) <= 2 exp(v (cosh theta - 1) - theta (T+1)) <= 2^-b
            if   T+1 >= ((b+1) ln2 + v (cosh theta - 1)) / theta.

        The least over a few theta is taken, around sqrt(2 (b+1) ln2 / v), which is the best theta
        for large v. Each theta is an exact number; the bound is computed in balls and rounded up.
        For b = 64 it is at most 5 % above the least such T from v = 1 on.

        T bounds shares drawn as the protocol says. A node that deviates can add any number.

        Raises:
            LocalProtocolError: log2_probability is below 1.
        """
        check_tail(log2_probability)
        if not self.honest_variance:
            return 0
        with ctx.workprec(PRECISION):
            v = ball(self.nodes * self.share_variance)
            # T + 1 >= ((b + 1) ln 2 + v (cosh theta - 1)) / theta
            needed = (log2_probability + 1) * arb(2).log()
            around = (2 * needed / v).sqrt()
            # each theta proves a bound, so the least of them is one
            thetas = [(around * sixteenths / 16).mid() for sixteenths in range(1, 18)]
            least = min(
                above((needed + 2 * v * (theta / 2).sinh() ** 2) / theta) for theta in thetas
            )
            return math.ceil(least) - 1


@dataclass(frozen=True)
class DistributedSkellam:
    """Noise that n nodes add to several sums, (epsilon, delta)-DP together if any h are honest.

    Args:
        epsilon: > 0, exact; the budget of the whole vector.
        delta: 0 < delta < 1, exact.
        sensitivities: s_i >= 0 in units of sum i; most by which replacing one record changes it,
            while it may change all the others as much as theirs allow. 0 says that the sum is
            public: no noise.
        nodes: n, how many nodes add shares.
        honest: h, how many of them at least are assumed honest, 1 <= h <= n.

    Raises:
        InvalidEpsilon: epsilon or delta is not exact or not in its range, or the noise would not
            fit.
        StudyError: a sensitivity, nodes or honest is not an integer in its range.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivities: tuple[int, ...]
    nodes: int
    honest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        checked = tuple(check_sensitivity(s) for s in self.sensitivities)
        object.__setattr__(self, "sensitivities", checked)
        if not self.sensitivities:
            raise StudyError("noise for no sum at all was asked for; name at least one sensitivity")
        check_nodes(self.nodes, self.honest)
        if max(self.honest_variances) > MOST_MEAN:
            raise InvalidEpsilon(
                f"noise for epsilon = {self.epsilon} and delta = {self.delta} has a standard "
                "deviation above 2^64; ask for a larger epsilon, or measure in larger units"
            )

    @cached_property
    def honest_variances(self) -> tuple[Fraction, ...]:
        """mu_i, exact: the variance that any h shares add to sum i, in its squared units."""
        squares = tuple(s * s for s in self.sensitivities)

        def holds(k: Fraction) -> bool:
            # mu_i = k s_i^2: noise in proportion to each sum's sensitivity
            curve = skellam_curve(tuple(k * square for square in squares), self.sensitivities)
            return satisfies(curve, self.epsilon, self.delta)

        if not any(squares):
            return tuple(Fraction(0) for _ in squares)
        k = least_scale(holds, Fraction(1))
        return tuple(k * square for square in squares)

    @cached_property
    def sums(self) -> tuple[SkellamShare, ...]:
        """The noise on each sum, in the order of the sensitivities."""
        return tuple(SkellamShare(mu, self.nodes, self.honest) for mu in self.honest_variances)
