"""GOPA between nodes that all share noise with each other: how much of it, and one node's part.

Node i publishes y_i = x_i + Σ_{j≠i} ±Δ_ij + η_i, integers: Δ_ij a discrete Gaussian of parameter σ_Δ² that both draw
from one seed, added by the one and subtracted by the other; η_i of parameter σ_η², its own. The sum of all y has the
noise of N parameters σ_η² only.

Privacy. Whoever colludes knows the Δ of its own pairs; among h honest nodes the graph is complete again. As in
`dp.central.gopa`, if an honest x_r moves by v, the law of all honest messages is that of before with Δ shifted by any
integers s and η by t, as long as s and t together move the messages by v at r, so the release is ρ-zCDP with

    ρ = (Σ s_e²/σ_Δ² + Σ t_i²/σ_η²)/2.

On a complete graph the best flow is known: v·a over each of the h-1 edges at r, a = q/(1 + q h) with q = σ_Δ²/σ_η²,
and none elsewhere. Rounded to integers, for every |v| <= steps:

    |s_e| <= steps·a + 1/2,     |t_j| <= steps·a + 1/2 for j ≠ r,     |t_r| <= steps (1 - (h-1) a) + (h-1)/2,

which gives `rho`, an exact fraction. For large q and steps >> h² it is near steps²/(2 h σ_η²): what a trusted curator
who adds the honest nodes' noise would reach. Fewer colluders see less, so h = N - t holds for up to t of them.

Paper: Bellet 2021 (slides); Sabater, Bellet, Ramon 2022; Canonne, Kamath, Steinke 2020, theorem 4 (shifts of integers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from umpc.dp.checks import check_delta, check_epsilon, check_nodes, check_sensitivity, is_integer
from umpc.dp.gaussian import DiscreteGaussian
from umpc.dp.renyi import gaussian_curve, least_scale, renyi_epsilon, satisfies
from umpc.errors import StudyError

RATIO = 1 << 16
"""σ_Δ²/σ_η²: the honest nodes' sum has all but 1/RATIO of the use of their own noise, for eight more bits a message."""


@dataclass(frozen=True)
class PairwiseNoise:
    """The noise of all nodes. rho-zCDP for replacing one honest node's value, towards up to nodes - honest others.

    Args:
        steps: >= 1, most by which one record moves a node's value.
        nodes: N. honest: h of them at least are.
        own: σ_η² >= 1, an integer.
    """

    steps: int
    nodes: int
    honest: int
    own: int

    def __post_init__(self) -> None:
        check_nodes(self.nodes, self.honest)
        if check_sensitivity(self.steps) < 1 or not is_integer(self.own) or self.own < 1:
            raise StudyError(
                f"expected steps and a parameter of 1 or more, got {self.steps!r} and {self.own!r}"
            )

    @property
    def pairwise(self) -> int:
        """σ_Δ²."""
        return RATIO * self.own

    @property
    def rho(self) -> Fraction:
        """Exact, never too small."""
        return rho_for_own_one(self.steps, self.honest) / self.own

    def epsilon(self, delta: Fraction) -> Fraction:
        """With this delta, rounded up."""
        return renyi_epsilon(gaussian_curve(self.rho), check_delta(delta))

    @property
    def own_law(self) -> DiscreteGaussian:
        """Of η."""
        return DiscreteGaussian(Fraction(self.own))

    @property
    def pair_law(self) -> DiscreteGaussian:
        """Of each Δ."""
        return DiscreteGaussian(Fraction(self.pairwise))

    @property
    def std(self) -> float:
        """Of the sum of all messages."""
        return math.sqrt(self.nodes * self.own)

    def tail_bound(self, log2_probability: int = 64) -> int:
        """Of one node's noise: P(|Σ ±Δ + η| > T) <= 2^-log2_probability. Sums of sub-Gaussian parameters add."""
        total = self.own + (self.nodes - 1) * self.pairwise
        return DiscreteGaussian(Fraction(total)).tail_bound(log2_probability)


@lru_cache(maxsize=64)
def calibrate_pairwise(
    epsilon: Fraction, delta: Fraction, steps: int, nodes: int, honest: int
) -> PairwiseNoise:
    """Nearly the least noise for (epsilon, delta), rounded up.

    Raises: InvalidEpsilon where epsilon or delta is not exact or not in its range; StudyError.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_nodes(nodes, honest)
    one = rho_for_own_one(steps, honest)
    own = least_scale(
        lambda own: satisfies(gaussian_curve(one / own), epsilon, delta), Fraction(math.ceil(one))
    )
    return PairwiseNoise(steps, nodes, honest, math.ceil(own))


def rho_for_own_one(steps: int, honest: int) -> Fraction:
    """ρ for σ_η² = 1; it falls as 1/σ_η²."""
    others, half = honest - 1, Fraction(1, 2)
    flow = Fraction(RATIO, 1 + RATIO * honest)
    along = steps * flow + half
    left = steps * (1 - others * flow) + others * half
    return (others * along**2 / RATIO + others * along**2 + left**2) / 2
