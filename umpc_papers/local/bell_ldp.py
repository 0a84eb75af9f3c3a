"""Any pair kernel from randomised responses: each record sends its cell or a random cell.

Paper: Bell et al. 2020, section 3, algorithm 1 and appendix A. Let g = 1 - beta be the probability
that a record tells the truth, and let b have (1-g)/t in each of its t entries. Let y_i be the cell
that record i sends, and h the histogram of these cells. Then

    f(y_i, y_j) = g^-2 (e_i - b)' A (e_j - b)

is unbiased for A between the true cells of records i != j. So is the mean over all pairs,

    U = [ (h - nb)' A (h - nb) - sum_c h_c (e_c - b)' A (e_c - b) ] / (g^2 n (n-1)),

which takes time O(n + t^2). The second sum removes the pairs of a record with itself.

*Variance*, given the records. (The paper's lemma 1 is about random records.) Let v_i = (e_i - b)/g
have mean r_i and covariance C_i. Let u = sum r_i, u_i = u - r_i and S = sum C_i. The v_i are
independent, so

    (n(n-1))^2 Var U = 4 sum_i u_i' A C_i A u_i + 2 [ tr(A S A S) - sum_i tr(A C_i A C_i) ].

The report estimates it from the answers (`noise_estimate`).

Reveals: to the coordinator, the cell that each record sends. It is epsilon-DP for each record,
whoever colludes.
Cost: one round; log2 t bits for each record.
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
from umpc.errors import EncodingError
from umpc.mpc.arrays import Floats, Integers
from umpc.ustat.clear import Columns
from umpc_papers.exact_sampling import ShakeStream, draw_seed, respond, truth_threshold
from umpc_papers.local.estimate import LocalCost, LocalEstimate, check_counts, likely_range
from umpc_papers.local.noise_estimate import CellShares, variance_of_pairs
from umpc_papers.local.quantisation import Quantiser
from umpc_papers.local.rounding_noise import of_pairs


@dataclass(frozen=True)
class BellLdp:
    """A pair kernel from randomised responses, epsilon-DP for each record in the local model.

    Args:
        epsilon: > 0, exact; for each record.
        cells: the kernel and its bins.

    Raises:
        InvalidEpsilon: epsilon is not exact, or so small that no record would tell the truth.
    """

    epsilon: Fraction
    cells: Quantiser

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        _ = self.threshold

    @cached_property
    def threshold(self) -> int:
        """A record tells the truth with probability threshold/2^64, rounded down."""
        return truth_threshold(self.epsilon, self.cells.size)

    @property
    def truth(self) -> float:
        """g = 1 - beta."""
        return self.threshold / 2.0**64

    @property
    def width(self) -> int:
        """Bits of a cell's number."""
        return (self.cells.size - 1).bit_length()

    # --- the node ------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """A node's message: one cell for each of its records.

        Args:
            columns: field -> (records,) int64, in steps of the field's resolution.
        """
        stream = ShakeStream(draw_seed(bits), "bell-ldp")
        # Algorithm 1, line 2: quantise.
        cell = self.cells.draw(columns, stream)
        # Algorithm 1, line 3: randomised response over t cells.
        told = respond(cell, self.cells.size, self.threshold, stream)
        # Algorithm 1, line 4: send.
        return pack(told, self.width)

    # --- the coordinator -----------------------------------------------------------------------

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[int]) -> LocalEstimate:
        """The estimate from all nodes' messages (algorithm 1, line 6).

        Raises:
            EncodingError: a message does not decode.
        """
        n = check_counts(messages, counts)
        told = np.zeros(self.cells.size)
        for message, count in zip(messages, counts, strict=True):
            told += self._decode(message, count)
        return LocalEstimate(self.value(told, n), sqrt(self.reported_variance(told, n)), n)

    def check(self, message: bytes, count: int) -> None:
        """Decode the message of a node with `count` records, and drop the result.

        Raises:
            EncodingError: the message does not decode.
        """
        self._decode(message, count)

    def _decode(self, message: bytes, count: int) -> Integers:
        """The histogram of the cells in a message: (t,) int64."""
        numbers = unpack(message, count, self.width)
        if np.any(numbers >= self.cells.size):
            raise EncodingError(
                f"a cell's number in the message is not below {self.cells.size}; "
                "the node must send the numbers of its records' cells"
            )
        return np.bincount(numbers.astype(np.int64), minlength=self.cells.size)

    def error_of_bins(self, messages: Sequence[bytes], counts: Sequence[int]) -> float:
        """About the most that the bins can be off, by the answers themselves (remark 4).

        The root of the estimated mean of `Quantiser.spread` over all pairs. It takes no further ε.
        """
        told = np.zeros(self.cells.size)
        for message, count in zip(messages, counts, strict=True):
            told += self._decode(message, count)
        return sqrt(max(0.0, self.value(told, sum(counts), self.cells.spread)))

    def value(self, told: Floats, n: int, matrix: Floats | None = None) -> float:
        """The unbiased estimate U from the histogram of all cells that were sent.

        Args:
            told: h, (t,) float64, whole numbers.
            n: the number of records, at least 2.
            matrix: the kernel between cells, (t, t) and symmetric; by default the study's own.
        """
        matrix = self.cells.matrix if matrix is None else matrix
        b = (1 - self.truth) / self.cells.size
        centred = told - n * b
        rows = matrix.sum(axis=1)
        # The pairs of a record with itself: sum_c h_c (e_c - b)' A (e_c - b).
        own = told @ (matrix.diagonal() - 2 * b * rows + b * b * rows.sum())
        return float((centred @ matrix @ centred - own) / (self.truth**2 * n * (n - 1)))

    def possible(self, n: int) -> tuple[float, float]:
        """The range of estimates over n records, but for a probability of 2^-64."""
        matrix = self.cells.matrix
        b = (1 - self.truth) / self.cells.size
        rows = matrix.sum(axis=1)
        # (e_i - b)' A (e_j - b), without the constant, which no answer changes.
        pairs = (matrix - b * rows[:, None] - b * rows) / self.truth**2
        change = float(np.ptp(pairs, axis=0).max())
        return likely_range(float(matrix.min()), float(matrix.max()), change, n)

    def reported_variance(self, told: Floats, n: int) -> float:
        """The variance of responses and rounding by the answers, and its own error more.

        Args: told, n: as in `value`.
        """
        own = CellShares(told, self.truth)
        matrix = self.cells.matrix
        rounding = of_pairs(self.cells, matrix @ own.shares, n, own.shares)
        return variance_of_pairs(matrix, own) + rounding

    # --- theory --------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records.

        Args:
            exact: the statistic without quantisation; None leaves the error of quantisation out.
        """
        variance = response_variance(self.cells.matrix, *self.cells.laws(columns), self.truth)
        if exact is None:
            return variance
        return variance + (self.cells.quantised(columns) - exact) ** 2

    def message_bytes(self, records: int) -> int:
        """Bytes of the message of a node with this many records."""
        return packed_size(records, self.width)

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Cost of a run with these numbers of records."""
        n = sum(records_per_node)
        t = self.cells.size
        return LocalCost(
            message_bytes=sum(map(self.message_bytes, records_per_node)),
            rounds=1,
            node_operations=2 * n,
            coordinator_operations=n + t * t,
        )


def response_variance(
    matrix: Floats, rows: Floats, weights: Floats | Integers, truth: float
) -> float:
    """Var U given the records; the formula stands in the module's docstring.

    Args:
        matrix: A, (t, t) float64.
        rows: (m, t) float64, the law of a record's cell.
        weights: (m,), the number of records with each law.
        truth: g; 1 means no randomised response, so that only the rounding is left.
    """
    t = len(matrix)
    g = truth
    # A float, because n^4 does not fit 64 bits.
    n = float(weights.sum())
    p = g * rows + (1 - g) / t
    # First order: 4 sum_i u_i' A C_i A u_i.
    others = (weights @ rows - rows) @ matrix
    first = weights @ (np.sum(p * others**2, axis=1) - np.sum(p * others, axis=1) ** 2) / g**2
    # Second order: tr(A S A S), less the records' own tr(A C_i A C_i).
    spread = np.diag(weights @ p) - p.T @ (weights[:, None] * p)
    both = np.sum((matrix @ spread) * (matrix @ spread).T)
    pa = p @ matrix
    own = (
        np.sum((p @ matrix**2) * p, axis=1)
        - 2 * np.sum(p * pa**2, axis=1)
        + np.sum(pa * p, axis=1) ** 2
    )
    second = 2 * (both - weights @ own) / g**4
    return max(0.0, float((4 * first + second) / (n * (n - 1)) ** 2))
