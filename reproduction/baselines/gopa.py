"""GOPA: a federated mean, protected by noise that cancels between neighbours of a graph.

Party i publishes y_i = x_i + Σ_{j~i} ±Δ_ij + η_i. Δ_ij is discrete Gaussian of parameter σ_Δ²,
added by one of the two parties and subtracted by the other. η_i has parameter σ_η². The sum of all
y has noise of variance n σ_η² only. Values are integers on a public grid, so all noise is exact.

Privacy. The colluding parties know the Δ of edges at a colluder, so only the graph among honest
parties G^H counts. Let B be its incidence matrix. The honest messages are y = x + BΔ + η. If x_r
moves by v, then for any integers (s, t) with Bs + t = v e_r, y has the law of the old one with Δ
shifted by s and η by t. So by independence and post-processing the Rényi divergence of order a is
at most a ρ (Canonne, Kamath, Steinke 2020, theorem 4),

    ρ = (Σ s_e²/σ_Δ² + Σ t_i²/σ_η²)/2,
    at the least v²/2 x [(σ_Δ² L_H + σ_η² I)^{-1}]_rr,   L_H = BBᵀ,

an electrical flow: v enters at r and leaves everywhere. This holds for continuous noise with
equality at the least, and for any graph. On a connected G^H with h parties ρ is about v²/(2h σ_η²),
as with a trusted curator, if σ_Δ² λ_2 >> h σ_η². Disconnected, h is the size of r's component. A
party r without honest neighbours is protected by σ_η² alone.

The proof for integers needs integers (s, t). Take s = the rounded flow; t = v e_r - Bs is an
integer by itself. For a flow (s¹, t¹) of 1, |s_e| <= |v s¹_e| + 1/2 and
|t_i| <= |v t¹_i| + deg_i/2, so ρ with these, at the greatest |v|, holds for every change. `rho` is
the maximum over r, exact in fractions, from any flow that the floating-point solver suggests.

Paper: Bellet 2021 (slides), Algorithm 1 and the two theorems after it; Sabater, Bellet, Ramon 2022
(the same flows, in the reals). Departure: integers, and ρ of the graph at hand in place of
asymptotic rules for k-out graphs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from umpc.dp.composition import gaussian_curve, least_scale, renyi_epsilon, satisfies
from umpc.dp.distributed_gaussian import discrete_gaussians
from umpc.dp.events import check_delta, check_epsilon, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc_papers.central.laplace import grid_sensitivity, on_grid

Edges = tuple[tuple[int, int], ...]

FLOW = 1 << 40
"""Flows of 1 are fractions with this denominator."""


@dataclass(frozen=True)
class Gopa:
    """rho-zCDP for replacing the value of one honest party, towards all other parties together.

    So it is (epsilon, delta)-DP too.

    Args:
        low: lower end of the public range of a value; exact. Values below are clipped.
        high: upper end; exact. Values above are clipped.
        grid: granularity of values and noise, exact, in values.
        parties: n.
        edges: the pairs of parties that share noise, each pair once.
        own: σ_η² > 0, exact, in squared steps of the grid.
        pairwise: σ_Δ² > 0, exact, in squared steps of the grid.
        colluding: the parties that may pool their knowledge.

    Raises:
        StudyError: a parameter is not exact or out of range.
    """

    low: Fraction
    high: Fraction
    grid: Fraction
    parties: int
    edges: Edges
    own: Fraction
    pairwise: Fraction
    colluding: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not all(map(is_exact, (self.low, self.high, self.grid, self.own, self.pairwise))):
            raise StudyError("GOPA needs exact numbers")
        if not (self.low < self.high and self.grid > 0 and self.own > 0 and self.pairwise > 0):
            raise StudyError("GOPA needs low < high, and a grid and variances above 0")
        check_edges(self.parties, self.edges)
        if not self.colluding < set(range(self.parties)):
            raise StudyError("colluding must be some of the parties, and not all")

    def messages(self, values: Sequence[Fraction], bits: RandomBits) -> list[int]:
        """The message of each party, in steps of the grid. Reveals: all messages, to everybody."""
        if len(values) != self.parties:
            raise StudyError(f"expected {self.parties} values, {len(values)} came")
        clipped = [min(max(Fraction(value), self.low), self.high) for value in values]
        sent = [
            on_grid(value, self.grid) + discrete_gaussians(self.own, 1, bits)[0]
            for value in clipped
        ]
        for i, j in self.edges:
            noise = discrete_gaussians(self.pairwise, 1, bits)[0]
            sent[i], sent[j] = sent[i] + noise, sent[j] - noise
        return sent

    def estimate(self, values: Sequence[Fraction], bits: RandomBits) -> Fraction:
        """The mean of all messages, in values."""
        return sum(self.messages(values, bits)) * self.grid / self.parties

    @property
    def noise_variance(self) -> float:
        """Noise variance of the mean, squared values: n σ_η²/n². Rounding adds at most grid²/4."""
        return float(self.own * self.grid**2) / self.parties

    @cached_property
    def honest(self) -> tuple[int, ...]:
        """The parties that do not collude."""
        return tuple(i for i in range(self.parties) if i not in self.colluding)

    @cached_property
    def honest_edges(self) -> Edges:
        """The edges of G^H, whose noise no colluder knows."""
        return tuple((i, j) for i, j in self.edges if not {i, j} & self.colluding)

    @property
    def rho(self) -> Fraction:
        """ρ, the worst over honest parties. Exact, never too small."""
        steps = grid_sensitivity(self.high - self.low, self.grid)
        ratio = self.pairwise / self.own
        return _rho_for_own_one(self.honest, self.honest_edges, ratio, steps) / self.own

    def epsilon(self, delta: Fraction) -> Fraction:
        """The epsilon for this delta, rounded up."""
        return renyi_epsilon(gaussian_curve(self.rho), check_delta(delta))

    @property
    def central_rho(self) -> Fraction:
        """ρ of a trusted curator who adds as much noise to the sum as the honest parties do.

        GOPA cannot be better.
        """
        return Fraction(grid_sensitivity(self.high - self.low, self.grid)) ** 2 / (
            2 * len(self.honest) * self.own
        )


def check_edges(parties: int, edges: Edges) -> None:
    """Check that these are the edges of a graph on the parties, each once.

    Raises:
        StudyError: they are not.
    """
    if not is_integer(parties) or parties < 1:
        raise StudyError(f"the number of parties must be an integer above 0, but {parties!r} came")
    sound = all(
        is_integer(i) and is_integer(j) and 0 <= i < parties and 0 <= j < parties and i != j
        for i, j in edges
    )
    if not sound or len({frozenset(edge) for edge in edges}) < len(edges):
        raise StudyError("expected each pair of different parties at most once")


def calibrate_gopa(
    low: Fraction,
    high: Fraction,
    grid: Fraction,
    parties: int,
    edges: Edges,
    epsilon: Fraction,
    delta: Fraction,
    ratio: Fraction,
    colluding: frozenset[int] = frozenset(),
) -> Gopa:
    """GOPA with nearly the least σ_η² for (epsilon, delta), and σ_Δ² = ratio x σ_η².

    The other arguments are those of `Gopa`.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)

    def with_own(own: Fraction) -> Gopa:
        return Gopa(low, high, grid, parties, edges, own, own * ratio, colluding)

    enough = least_scale(
        lambda own: satisfies(gaussian_curve(with_own(own).rho), epsilon, delta), Fraction(1)
    )
    return with_own(enough)


@lru_cache(maxsize=64)
def _rho_for_own_one(
    honest: tuple[int, ...], edges: Edges, ratio: Fraction, steps: int
) -> Fraction:
    """ρ for σ_η² = 1, σ_Δ² = ratio and changes up to `steps`: the worst over honest parties.

    ρ falls as 1/σ_η².
    """
    place = {party: number for number, party in enumerate(honest)}
    by_place = [(place[i], place[j]) for i, j in edges]
    flows = _flows(len(honest), by_place, float(ratio))
    return max(
        _rho_of(number, flows[:, number].tolist(), by_place, ratio, steps)
        for number in range(len(honest))
    )


def _flows(parties: int, edges: list[tuple[int, int]], ratio: float) -> NDArray[np.int64]:
    """For each party a flow of 1 along the edges, in parts of `FLOW`: (edges, parties) int64.

    Least squares: s = ratio Bᵀ (I + ratio BBᵀ)^{-1} e_r, in floating point, then rounded. Any flow
    gives a proof.
    """
    incidence = np.zeros((parties, len(edges)))
    for number, (i, j) in enumerate(edges):
        incidence[i, number], incidence[j, number] = 1.0, -1.0
    inner = np.eye(parties) + ratio * incidence @ incidence.T
    flows: NDArray[np.float64] = ratio * incidence.T @ np.linalg.inv(inner) * FLOW
    return np.rint(flows).astype(np.int64)


def _rho_of(
    party: int, along: list[int], edges: list[tuple[int, int]], ratio: Fraction, steps: int
) -> Fraction:
    """(Σ s²/ratio + Σ t²)/2 with the bounds of s and t in the module's text."""
    left: dict[int, int] = defaultdict(int, {party: FLOW})
    degree: dict[int, int] = defaultdict(int)
    for (i, j), flow in zip(edges, along, strict=True):
        if flow:
            left[i], left[j] = left[i] - flow, left[j] + flow
            degree[i], degree[j] = degree[i] + 1, degree[j] + 1
    half = FLOW // 2
    squares_s = sum((steps * abs(flow) + half) ** 2 for flow in along if flow)
    squares_t = sum((steps * abs(flow) + half * degree[i]) ** 2 for i, flow in left.items())
    return (squares_s / ratio + squares_t) / (2 * FLOW**2)
