"""Any pair kernel from randomised vectors: each record sends one bit about its cell's vector.

The kernel matrix is factorised as A = V' G V, and a record's vector is its cell's column of V.

Paper: Ghazi, Kamath, Kumar, Manurangsi, Sealfon 2024 (arXiv 2406.16305), as Sinh & Ramon 2025,
D.1.3 describe it. There, both columns of A = L' R are randomised, and the estimate is the inner
product of their averages. Each departure reduces the error or the number of bytes:

- One vector serves for both sides (`factors`), so it gets all of epsilon.
- Only pairs i != j count. With w_i the unbiased vector of record i and w = sum w_i, the estimate
  is [ w' G w - sum_i w_i' G w_i ] / (n(n-1)). It is unbiased for the quantised U-statistic,
  whereas a record's own square is not.
- A record sends one bit, and a node one seed, instead of a vector of d numbers (`sphere`).
- A projection is optional (`dimension`). The paper takes d = O(epsilon^2 n log t), which in all
  practical uses exceeds t, and so the rank of A.

*Variance*, given the records (and the projection). Let k = rho^2/d, m_i the vector of record i,
u = sum m_i, u_i = u - m_i, C_i = k I - m_i m_i' (the second moment of w_i is k I) and S = sum C_i:

    (n(n-1))^2 Var = 4 sum_i u_i' G C_i G u_i + 2 [ tr(G S G S) - sum_i tr(G C_i G C_i) ].

To first order that is 4 k |G u|^2 n + 2 n^2 k^2 rank(A) with k = (pi/2) r^2/g^2. Here r^2 stands
in place of the t^2 of `bell_ldp`.

Reveals: to the coordinator, one bit of each record, epsilon-DP.
Cost: one round; one bit for each record and a seed of 32 bytes for each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.events import check_epsilon
from umpc.dp.random_bits import RandomBits
from umpc.mpc.arrays import Floats, Integers
from umpc.ustat.clear import Columns
from umpc_papers.exact_sampling import (
    SEED_BYTES,
    ShakeStream,
    draw_seed,
    split_seed,
    truth_threshold,
)
from umpc_papers.local.estimate import LocalCost, LocalEstimate, check_counts, likely_range
from umpc_papers.local.factors import Factors, factor, project
from umpc_papers.local.noise_estimate import reported
from umpc_papers.local.quantisation import Quantiser
from umpc_papers.local.sphere import collect, scale, tell_side


@dataclass(frozen=True)
class GhaziLdp:
    """A pair kernel from one-bit vectors, epsilon-DP for each record in the local model.

    Args:
        epsilon: > 0, exact; for each record.
        cells: the kernel and its bins.
        dimension: d of the Johnson-Lindenstrauss projection; None takes no projection.
        seed: the projection's 32 public bytes.

    Raises:
        InvalidEpsilon: epsilon is not exact, or so small that no record would tell the truth.
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
        """A record's bit is the truth with probability threshold/2^64, else a fair coin."""
        return truth_threshold(self.epsilon, 2)

    @property
    def truth(self) -> float:
        """g, the gain of a bit."""
        return self.threshold / 2.0**64

    @cached_property
    def factors(self) -> Factors:
        """V and G, projected where a dimension is given."""
        exact = factor(self.cells.matrix)
        return exact if self.dimension is None else project(exact, self.dimension, self.seed)

    @property
    def scale(self) -> float:
        """rho, the norm of an unbiased vector."""
        return scale(self.factors.radius, self.truth, self.factors.dimension)

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """A node's message: a public seed, then one bit for each of its records."""
        public = draw_seed(bits)
        stream = ShakeStream(draw_seed(bits), "ghazi-ldp private")
        cell = self.cells.draw(columns, stream)
        told = tell_side(self.factors.vectors, cell, public, self.threshold, stream)
        return public + pack(told, 1)

    # --- the coordinator -----------------------------------------------------------------------

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[int]) -> LocalEstimate:
        """The estimate from all nodes' messages.

        Raises:
            EncodingError: a message does not decode.
        """
        n = check_counts(messages, counts)
        form = self.factors.form
        total = np.zeros(len(form))
        own = 0.0
        for message, count in zip(messages, counts, strict=True):
            public, body = split_seed(message)
            signs = 1.0 - 2.0 * unpack(body, count, 1).astype(np.float64)
            (mine,), squares = collect(public, signs[None], form)
            total = total + mine
            own += squares
        # [ w' G w - sum_i w_i' G w_i ] / (n(n-1)), where w = rho times the total.
        value = self.scale**2 * (total @ form @ total - own) / (n * (n - 1))
        return LocalEstimate(float(value), sqrt(self._reported_variance(self.scale * total, n)), n)

    def possible(self, n: int) -> tuple[float, float]:
        """The range of estimates over n records, but for a probability of 2^-64.

        A record's vector has the norm rho, so another one changes a pair by at most 2 rho² |G|.
        """
        vectors = self.factors.vectors
        form = self.factors.form
        matrix = vectors @ form @ vectors.T
        change = 2 * self.scale**2 * float(np.linalg.norm(form, 2))
        return likely_range(float(matrix.min()), float(matrix.max()), change, n)

    def check(self, message: bytes, count: int) -> None:
        """Decode the message of a node with `count` records, and drop the result.

        Raises:
            EncodingError: the message does not decode.
        """
        unpack(split_seed(message)[1], count, 1)

    def _reported_variance(self, total: Floats, n: int) -> float:
        """The variance by the answers, and its own error more (`noise_estimate.reported`).

        |G w|^2 less its noise estimates |G u|^2. Each coordinate of w has at most the variance n k.
        """
        k = self.scale**2 / self.factors.dimension
        form = self.factors.form
        turned = form @ total
        second = 2 * n * n * k * k * float(np.sum(form * form))
        # 4 k n |G w|^2 is too large by two times the second order.
        unbiased = 4 * k * n * float(turned @ turned) - second
        std = 8 * k * n * sqrt(n * k) * float(np.linalg.norm(form @ turned))
        return reported(unbiased, second, std) / (n * (n - 1)) ** 2

    # --- theory --------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records, with this projection.

        Args:
            exact: the statistic without quantisation; None leaves the error of quantisation out.
        """
        variance = self.variance_of(*self.cells.laws(columns))
        if exact is None:
            return variance
        return variance + (self.expected(columns) - exact) ** 2

    def expected(self, columns: Columns) -> float:
        """The mean of the estimate: the quantised statistic with the vectors' kernel V' G V."""
        rows, weights = self.cells.laws(columns)
        means = rows @ self.factors.vectors
        n = int(weights.sum())
        total = weights @ means
        form = self.factors.form
        own = weights @ np.einsum("id,de,ie->i", means, form, means, optimize=True)
        return float((total @ form @ total - own) / (n * (n - 1)))

    def variance_of(self, rows: Floats, weights: Integers) -> float:
        """The variance given the records; the formula stands in the module's docstring."""
        k = self.scale**2 / self.factors.dimension
        form = self.factors.form
        n = float(weights.sum())
        means = rows @ self.factors.vectors
        # First order: 4 sum_i u_i' G C_i G u_i.
        others = (weights @ means - means) @ form
        first = weights @ (k * np.sum(others**2, axis=1) - np.sum(others * means, axis=1) ** 2)
        # Second order: tr(G S G S), less the records' own tr(G C_i G C_i).
        spread = n * k * np.eye(len(form)) - means.T @ (weights[:, None] * means)
        both = np.sum((form @ spread) * (form @ spread).T)
        turned = means @ form
        own = (
            k * k * np.sum(form * form)
            - 2 * k * np.sum(turned**2, axis=1)
            + np.sum(turned * means, axis=1) ** 2
        )
        return max(0.0, float((4 * first + 2 * (both - weights @ own)) / (n * (n - 1)) ** 2))

    def message_bytes(self, records: int) -> int:
        """Bytes of the message of a node with this many records."""
        return SEED_BYTES + packed_size(records, 1)

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Cost of a run with these numbers of records."""
        n = sum(records_per_node)
        d = self.factors.dimension
        return LocalCost(
            message_bytes=sum(map(self.message_bytes, records_per_node)),
            rounds=1,
            node_operations=2 * n * d,
            coordinator_operations=2 * n * d + d * d,
        )


def bound(records: int, epsilon: float, gamma: float, rank: int) -> float:
    """Bound on the variance for small epsilon, with this randomiser's constants.

    It is 8 pi y^2/(epsilon^2 n) + 8 pi^2 y^2 rank/(epsilon^4 n^2), from the variance above with
    y = r^2, |G u/n| <= r and 1/g near 2/epsilon.

    Paper: Sinh & Ramon 2025, equation 19, has these powers, with 1 for both constants and
    d = epsilon^2 n ln t in place of the rank. Its second term is therefore the larger one, whereas
    the rank is at most t. It bounds y by O(t L). In fact every matrix has y <= sqrt(t) max |A|, and
    a product of two sign kernels has y = O(ln^2 t).

    Args:
        gamma: y, the squared radius of the vectors.
        rank: the rank of A.
    """
    first = 8 * np.pi * gamma**2 / (epsilon**2 * records)
    second = 8 * np.pi**2 * gamma**2 * rank / (epsilon**4 * records**2)
    return first + second
