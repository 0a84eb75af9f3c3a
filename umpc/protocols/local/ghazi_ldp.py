"""Any pair kernel from randomised vectors: A = V' G V, each record tells one bit about its column of V.

Paper: Ghazi, Kamath, Kumar, Manurangsi, Sealfon 2024 (arXiv 2406.16305), as Sinh & Ramon 2025, D.1.3 describe it: both
columns of A = L' R randomised, the inner product of their averages. Departures, each less error or fewer bytes:
- One vector for both sides (`factors`), hence all of epsilon on it.
- Pairs i != j only: with w_i the unbiased vector of record i and w = sum w_i, the estimate is
  [ w' G w - sum_i w_i' G w_i ] / (n(n-1)), unbiased for the quantised U-statistic; a record's own square is not.
- One bit and a seed instead of a vector of d numbers (`sphere`).
- A projection is a choice (`dimension`), not d = O(epsilon^2 n log t), which for any use exceeds t, the rank of A.

*Variance*, given the records (and the projection), with k = rho^2/d, m_i the vector of record i, u = sum m_i and
C_i = k I - m_i m_i' (the second moment of w_i is k I):

    (n(n-1))^2 Var = 4 sum_i u_i' G C_i G u_i + 2 [ tr(G S G S) - sum_i tr(G C_i G C_i) ],   u_i = u - m_i, S = sum C_i,

that is 4 k |G u|^2 n + 2 n^2 k^2 rank(A) to first order, k = (pi/2) r^2/g^2: r^2 in place of the t^2 of `bell_ldp`.

Reveals: to the coordinator one bit of each record, epsilon-DP. LocalCost: one round, one bit a record, a seed of 32 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.crypto.packing import check_counts, pack, packed_bytes, split_seed, unpack
from umpc.dp.checks import check_epsilon
from umpc.dp.exact_sampling import SEED_BYTES, ShakeStream, draw_seed, truth_threshold
from umpc.dp.random_bits import RandomBits
from umpc.protocols.local.estimate import LocalCost, LocalEstimate
from umpc.protocols.local.factors import Factors, factor, project
from umpc.protocols.local.quantisation import Quantiser
from umpc.protocols.local.sphere import collect, scale, tell_side
from umpc.ustat.clear import Columns


@dataclass(frozen=True)
class GhaziLdp:
    """epsilon: > 0, exact; of each record. cells: the kernel and its bins.

    dimension: of the Johnson–Lindenstrauss projection; None projects nothing. seed: the projection's, public.
    """

    epsilon: Fraction
    cells: Quantiser
    dimension: int | None = None
    seed: bytes = bytes(SEED_BYTES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        _ = self.threshold

    @cached_property
    def threshold(self) -> int:
        """A record's bit is the truth with threshold/2^64, else a fair coin."""
        return truth_threshold(self.epsilon, 2)

    @property
    def truth(self) -> float:
        """g."""
        return self.threshold / 2.0**64

    @cached_property
    def factors(self) -> Factors:
        exact = factor(self.cells.matrix)
        return exact if self.dimension is None else project(exact, self.dimension, self.seed)

    @property
    def scale(self) -> float:
        """rho, the norm of an unbiased vector."""
        return scale(self.factors.radius, self.truth, self.factors.dimension)

    # --- the node ---------------------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """What a node sends: a public seed, then one bit for each of its records."""
        public, stream = draw_seed(bits), ShakeStream(draw_seed(bits), "ghazi-ldp private")
        cell = self.cells.draw(columns, stream)
        return public + pack(
            tell_side(self.factors.vectors, cell, public, self.threshold, stream), 1
        )

    # --- the coordinator --------------------------------------------------------------------------------------

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[int]) -> LocalEstimate:
        """The estimate from every node's message. Raises: EncodingError for one that does not decode."""
        n, form = check_counts(messages, counts), self.factors.form
        total, own = np.zeros(len(form)), 0.0
        for message, count in zip(messages, counts, strict=True):
            public, body = split_seed(message)
            signs = 1.0 - 2.0 * unpack(body, count, 1)
            (mine,), squares = collect(public, signs[None], form)
            total, own = total + mine, own + squares
        value = self.scale**2 * (total @ form @ total - own) / (n * (n - 1))
        return LocalEstimate(float(value), sqrt(self._plug_in_variance(self.scale * total, n)), n)

    def check(self, message: bytes, count: int) -> None:
        """Raises: EncodingError for a message that does not decode, of a node with so many records."""
        unpack(split_seed(message)[1], count, 1)

    def _plug_in_variance(self, total: np.ndarray, n: int) -> float:
        """To first order, |G u|^2 estimated by |G w|^2 less the part that is noise."""
        k, g = self.scale**2 / self.factors.dimension, self.factors.form
        rank = float(np.sum(g * g))
        signal = max(float(np.sum((g @ total) ** 2)) - n * k * rank, 0.0)
        return (4 * k * signal * n + 2 * n * n * k * k * rank) / (n * (n - 1)) ** 2

    # --- theory -----------------------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records, with this projection. exact: the statistic; None: no error of cells."""
        rows, weights = self.cells.laws(columns)
        variance = self._variance(rows, weights)
        return variance if exact is None else variance + (self.expected(columns) - exact) ** 2

    def expected(self, columns: Columns) -> float:
        """What the estimate is unbiased for: the quantised statistic, with the kernel that the vectors stand for."""
        rows, weights = self.cells.laws(columns)
        means, n = rows @ self.factors.vectors, int(weights.sum())
        total, form = weights @ means, self.factors.form
        own = weights @ np.einsum("id,de,ie->i", means, form, means, optimize=True)
        return float((total @ form @ total - own) / (n * (n - 1)))

    def _variance(self, rows: np.ndarray, weights: np.ndarray) -> float:
        k, g, n = self.scale**2 / self.factors.dimension, self.factors.form, float(weights.sum())
        means = rows @ self.factors.vectors
        others = (weights @ means - means) @ g
        first = weights @ (k * np.sum(others**2, axis=1) - np.sum(others * means, axis=1) ** 2)
        spread = n * k * np.eye(len(g)) - means.T @ (weights[:, None] * means)
        both = np.sum((g @ spread) * (g @ spread).T)
        turned = means @ g
        own = (
            k * k * np.sum(g * g)
            - 2 * k * np.sum(turned**2, axis=1)
            + np.sum(turned * means, axis=1) ** 2
        )
        return max(0.0, float((4 * first + 2 * (both - weights @ own)) / (n * (n - 1)) ** 2))

    def message_bytes(self, records: int) -> int:
        """Of a node with so many records."""
        return SEED_BYTES + packed_bytes(records, 1)

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Args: how many records each node has."""
        n, d = sum(records_per_node), self.factors.dimension
        return LocalCost(
            sum(map(self.message_bytes, records_per_node)), 1, 2 * n * d, 2 * n * d + d * d
        )


def sinh_ramon_bytes(records: int, epsilon: float, cells: int, element_bytes: int) -> float:
    """What Sinh & Ramon 2025, table 1, charge: n d numbers, d = epsilon^2 n ln t, without the constants it omits."""
    return records * epsilon**2 * records * float(np.log(cells)) * element_bytes


def bound(records: int, epsilon: float, gamma: float, rank: int) -> float:
    """Sinh & Ramon 2025, equation 19, with this randomiser's constants, for small epsilon.

    8 pi y^2/(epsilon^2 n) + 8 pi^2 y^2 rank/(epsilon^4 n^2), from the variance above with y = r^2, |G u/n| <= r and
    1/g near 2/epsilon. The paper has these powers, with 1 for both constants, and d = epsilon^2 n ln t for the rank, so
    that the second term is the larger one; the rank is at most t. It bounds y by O(t L): every matrix has
    y <= sqrt(t) max |A|, and a product of two sign kernels O(ln^2 t).
    """
    return 8 * np.pi * gamma**2 / (epsilon**2 * records) + 8 * np.pi**2 * gamma**2 * rank / (
        epsilon**4 * records**2
    )
