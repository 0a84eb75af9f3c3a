"""GOPA between nodes that share noise, all or along a graph: how much noise makes it private.

Node i publishes y_i = x_i + Σ_{j≠i} ±Δ_ij + η_i, all integers. Δ_ij is a discrete Gaussian of
parameter σ_Δ² that both nodes draw from one seed; one node adds it and the other subtracts it. η_i
has parameter σ_η² and is the node's own. In the sum of all y the Δ cancel, and the noise of N
parameters σ_η² remains.

*Privacy.* Colluding nodes know the Δ of their own pairs. Among the h honest nodes the graph is
complete again. Suppose that an honest x_r moves by v. The law of all honest messages is then the
former law with Δ shifted by any integers s and η by t, as long as s and t together move the
messages by v at r and by nothing elsewhere (as in `reproduction.baselines.gopa`). The release is
therefore ρ-zCDP with

    ρ = (Σ s_e²/σ_Δ² + Σ t_i²/σ_η²)/2.

On a complete graph the best flow is known. It is v·a over each of the h-1 edges at r, where
a = q/(1 + q h) and q = σ_Δ²/σ_η², and nothing over the other edges. Rounded to integers it
satisfies, for every |v| <= steps,

    |s_e| <= steps·a + 1/2,     |t_j| <= steps·a + 1/2 for j ≠ r,
    |t_r| <= steps (1 - (h-1) a) + (h-1)/2.

These bounds give `rho` as an exact fraction. For large q and steps >> h² it is near
steps²/(2 h σ_η²), the value for a trusted curator who adds the honest nodes' noise. Fewer colluding
nodes see less, so h = N - t holds for up to t colluding nodes.

*Other graphs* (`graph.py`). No t nodes can cut the graph, so the h honest nodes are connected. Let
v flow from r along a spanning tree, so that v/h stays at each node. An arc to a part of z nodes
carries v·z/h. Rounded to integers, |s_e| <= steps·z_e/h + 1/2, and |t_i| <= steps/h + d_i/2 for a
node of d_i arcs. The i-th largest z of any tree is at most h - i: the smallest of i such parts
holds neither the root nor the tops of the others. So Σ s² is largest on a path, with z = 1..h-1.
Σ d_i is 2(h - 1), and Σ d_i² is largest on a star, h(h - 1). These bounds hold for every tree, and
ρ depends on h alone. For q = 2^16 and 64 honest nodes it is 2 % above that of all pairs.

Paper: Bellet 2021 (slides); Sabater, Bellet, Ramon 2022; Canonne, Kamath, Steinke 2020, theorem 4
(shifts of integers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from umpc.dp.composition import gaussian_curve, least_scale, renyi_epsilon, satisfies
from umpc.dp.distributed_gaussian import DiscreteGaussian
from umpc.dp.events import check_delta, check_epsilon, check_nodes, check_sensitivity, is_integer
from umpc.errors import StudyError

RATIO = 1 << 16
"""q = σ_Δ²/σ_η². The honest nodes' own noise protects their sum up to a part of 1/RATIO.

The pairwise noise costs eight more bits for each message.
"""


@dataclass(frozen=True)
class PairwiseNoise:
    """The noise of all nodes: rho-zCDP for the value of one honest node.

    The guarantee holds against up to nodes - honest colluding nodes.

    Args:
        steps: >= 1, the largest amount by which one record moves a node's value.
        nodes: N.
        honest: h, the least number of honest nodes.
        own: σ_η² >= 1, an integer.
        complete: whether all nodes share noise; else along a graph that the others cannot cut.

    Raises:
        StudyError: a parameter is out of its range.
    """

    steps: int
    nodes: int
    honest: int
    own: int
    complete: bool = True

    def __post_init__(self) -> None:
        check_nodes(self.nodes, self.honest)
        if check_sensitivity(self.steps) < 1 or not is_integer(self.own) or self.own < 1:
            raise StudyError(
                "steps and the own noise's parameter must be 1 or more, "
                f"but {self.steps!r} and {self.own!r} came"
            )

    @property
    def pairwise(self) -> int:
        """σ_Δ², the parameter of each pair's noise."""
        return RATIO * self.own

    @property
    def rho(self) -> Fraction:
        """ρ, an exact fraction that is never too small."""
        return _rho_for_own_one(self.steps, self.honest, self.complete) / self.own

    def epsilon(self, delta: Fraction) -> Fraction:
        """The epsilon that holds with this delta, rounded up."""
        return renyi_epsilon(gaussian_curve(self.rho), check_delta(delta))

    @property
    def own_law(self) -> DiscreteGaussian:
        """The law of η."""
        return DiscreteGaussian(Fraction(self.own))

    @property
    def pair_law(self) -> DiscreteGaussian:
        """The law of each Δ."""
        return DiscreteGaussian(Fraction(self.pairwise))

    @property
    def std(self) -> float:
        """Standard deviation of the noise in the sum of all messages."""
        return math.sqrt(self.nodes * self.own)

    def tail_bound(self, log2_probability: int = 64) -> int:
        """T with P(|Σ ±Δ + η| > T) <= 2^-log2_probability for one node's noise.

        Sub-Gaussian parameters of independent summands add up.
        """
        total = self.own + (self.nodes - 1) * self.pairwise
        return DiscreteGaussian(Fraction(total)).tail_bound(log2_probability)


@lru_cache(maxsize=64)
def calibrate_pairwise(
    epsilon: Fraction,
    delta: Fraction,
    steps: int,
    nodes: int,
    honest: int,
    complete: bool = True,
) -> PairwiseNoise:
    """Nearly the least noise for (epsilon, delta), rounded up.

    Args:
        epsilon, delta: exact; delta > 0.
        steps, nodes, honest, complete: the arguments of `PairwiseNoise`.

    Raises:
        InvalidEpsilon: epsilon or delta is not exact or not in its range.
        StudyError: another parameter is out of its range.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    check_nodes(nodes, honest)
    one = _rho_for_own_one(steps, honest, complete)
    own = least_scale(
        lambda own: satisfies(gaussian_curve(one / own), epsilon, delta), Fraction(math.ceil(one))
    )
    return PairwiseNoise(steps, nodes, honest, math.ceil(own), complete)


def _rho_for_own_one(steps: int, honest: int, complete: bool) -> Fraction:
    return rho_for_own_one(steps, honest) if complete else rho_of_tree(steps, honest)


def rho_of_tree(steps: int, honest: int) -> Fraction:
    """ρ for σ_η² = 1 along any spanning tree of the honest nodes."""
    h = honest
    half = Fraction(1, 2)
    # Σ (steps·z/h + 1/2)² over z = 1..h-1
    along = sum(((Fraction(steps * z, h) + half) ** 2 for z in range(1, h)), Fraction(0))
    # Σ (steps/h + d/2)², with Σ d = 2(h - 1) and Σ d² <= h(h - 1)
    left = Fraction(steps**2, h) + Fraction(2 * steps * (h - 1), h) + Fraction(h * (h - 1), 4)
    return (along / RATIO + left) / 2


def rho_for_own_one(steps: int, honest: int) -> Fraction:
    """ρ for σ_η² = 1. It is proportional to 1/σ_η²."""
    others = honest - 1
    half = Fraction(1, 2)
    # a = q/(1 + q h)
    flow = Fraction(RATIO, 1 + RATIO * honest)
    # The bounds on |s_e| and |t_j|, and on |t_r|.
    along = steps * flow + half
    left = steps * (1 - others * flow) + others * half
    return (others * along**2 / RATIO + others * along**2 + left**2) / 2
