"""Any pair kernel from randomised responses: each record tells its cell, or a random one.

Paper: Bell et al. 2020, section 3, algorithm 1 and appendix A. With g = 1 - beta the odds that a record tells the
truth, b = (1-g)/t in every entry, y_i the cell it told and h the histogram of these,

    f(y_i, y_j) = g^-2 (e_i - b)' A (e_j - b)          is unbiased for A between the true cells of i != j, so is

    U = [ (h - nb)' A (h - nb) - sum_c h_c (e_c - b)' A (e_c - b) ] / (g^2 n (n-1)):

all pairs in O(n + t^2), the pairs of a record with itself taken out again.

*Variance*, given the records (the paper's lemma 1 is of random records). With v_i = (e_i - b)/g, mean r_i, covariance
C_i, u = sum r_i and S = sum C_i, and because the v_i are independent,

    (n(n-1))^2 Var U = 4 sum_i u_i' A C_i A u_i + 2 [ tr(A S A S) - sum_i tr(A C_i A C_i) ],    u_i = u - r_i.

Reveals: to the coordinator each record's told cell, epsilon-DP for each record, whoever colludes.
LocalCost: one round, log2 t bits a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from umpc.crypto.packing import check_counts, pack, packed_bytes, unpack
from umpc.dp.checks import check_epsilon
from umpc.dp.exact_sampling import ShakeStream, draw_seed, respond, truth_threshold
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError
from umpc.protocols.local.estimate import LocalCost, LocalEstimate
from umpc.protocols.local.quantisation import Quantiser
from umpc.ustat.clear import Columns


@dataclass(frozen=True)
class BellLdp:
    """epsilon: > 0, exact; of each record. cells: the kernel and its bins.

    Raises: InvalidEpsilon where it is not exact, or so small that the truth would never be told.
    """

    epsilon: Fraction
    cells: Quantiser

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        _ = self.threshold

    @cached_property
    def threshold(self) -> int:
        """A record tells the truth with threshold/2^64, rounded down."""
        return truth_threshold(self.epsilon, self.cells.size)

    @property
    def truth(self) -> float:
        """g = 1 - beta."""
        return self.threshold / 2.0**64

    @property
    def width(self) -> int:
        """Bits of a cell's number."""
        return (self.cells.size - 1).bit_length()

    # --- the node ---------------------------------------------------------------------------------------------

    def randomise(self, columns: Columns, bits: RandomBits) -> bytes:
        """What a node sends: one told cell for each of its records.

        Args: columns: field → (records,) int64, in steps of the field's resolution.
        """
        stream = ShakeStream(draw_seed(bits), "bell-ldp")
        return pack(
            respond(self.cells.draw(columns, stream), self.cells.size, self.threshold, stream),
            self.width,
        )

    # --- the coordinator --------------------------------------------------------------------------------------

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[int]) -> LocalEstimate:
        """The estimate from every node's message. Raises: EncodingError for one that does not decode."""
        n = check_counts(messages, counts)
        told = np.zeros(self.cells.size)
        for message, count in zip(messages, counts, strict=True):
            told += self._decode(message, count)
        return LocalEstimate(self._estimate(told, n), sqrt(self._plug_in_variance(told, n)), n)

    def check(self, message: bytes, count: int) -> None:
        """Raises: EncodingError for a message that does not decode, of a node with so many records."""
        self._decode(message, count)

    def _decode(self, message: bytes, count: int) -> np.ndarray:
        numbers = unpack(message, count, self.width)
        if np.any(numbers >= self.cells.size):
            raise EncodingError(f"a cell's number is not below {self.cells.size}")
        return np.bincount(numbers.astype(np.int64), minlength=self.cells.size)

    def _estimate(self, told: np.ndarray, n: int) -> float:
        matrix, b = self.cells.matrix, (1 - self.truth) / self.cells.size
        centred = told - n * b
        rows = matrix.sum(axis=1)
        own = told @ (matrix.diagonal() - 2 * b * rows + b * b * rows.sum())
        return float((centred @ matrix @ centred - own) / (self.truth**2 * n * (n - 1)))

    def _plug_in_variance(self, told: np.ndarray, n: int) -> float:
        """The variance at the histogram that the messages suggest, clipped to what a histogram can be."""
        histogram = np.maximum((told - n * (1 - self.truth) / self.cells.size) / self.truth, 0)
        total = histogram.sum()
        return response_variance(
            self.cells.matrix,
            np.eye(self.cells.size),
            histogram * (n / total) if total else histogram,
            self.truth,
        )

    # --- theory -----------------------------------------------------------------------------------------------

    def predicted_mse(self, columns: Columns, exact: float | None = None) -> float:
        """Mean squared error on these records.

        exact: the statistic without quantisation; None leaves that error out.
        """
        variance = response_variance(self.cells.matrix, *self.cells.laws(columns), self.truth)
        return (
            variance if exact is None else variance + (self.cells.quantised(columns) - exact) ** 2
        )

    def message_bytes(self, records: int) -> int:
        """Of a node with so many records."""
        return packed_bytes(records, self.width)

    def cost(self, records_per_node: Sequence[int]) -> LocalCost:
        """Args: how many records each node has."""
        n, t = sum(records_per_node), self.cells.size
        return LocalCost(sum(map(self.message_bytes, records_per_node)), 1, 2 * n, n + t * t)


def response_variance(
    matrix: np.ndarray, rows: np.ndarray, weights: np.ndarray, truth: float
) -> float:
    """Var U, see above.

    Args: matrix: A, (t, t). rows: (m, t), the law of a record's cell. weights: (m,), how many records have each.
    truth: g; 1 for no randomised response, so that only the rounding is left.
    """
    t, g, n = (
        len(matrix),
        truth,
        float(weights.sum()),
    )  # whole numbers of 64 bits would not hold n^4
    p = g * rows + (1 - g) / t
    others = (weights @ rows - rows) @ matrix
    first = weights @ (np.sum(p * others**2, axis=1) - np.sum(p * others, axis=1) ** 2) / g**2
    spread = np.diag(weights @ p) - p.T @ (weights[:, None] * p)
    both = np.sum((matrix @ spread) * (matrix @ spread).T)
    pa = p @ matrix
    own = (
        np.sum((p @ matrix**2) * p, axis=1)
        - 2 * np.sum(p * pa**2, axis=1)
        + np.sum(pa * p, axis=1) ** 2
    )
    return max(0.0, float((4 * first + 2 * (both - weights @ own) / g**4) / (n * (n - 1)) ** 2))


def theorem_1(records: int, truth: float, width: float = 1.0) -> float:
    """Bell et al. 2020, theorem 1 (corollary 2): an upper bound of the variance over random records and responses.

    Args: truth: 1 - beta. width: of the kernel's range; the paper has 1.
    """
    n, g = records, truth
    return width**2 * (1 / (n * g**2) + (2 - g) ** 2 / (2 * n * (n - 1) * g**4))


def theorem_1_small_epsilon(records: int, cells: int, epsilon: float, width: float = 1.0) -> float:
    """The same for small epsilon: (1 + t/e)^2/n + 2 (1 + t/e)^4/n^2.

    The paper has half of (1 + t/e)^4/n^2: it lets (1 + beta)^2 be 1, but beta is nearly 1. It then drops the term,
    right for n well above 2 t^2/e^2 only: at 64 cells, epsilon 1 and 4,521 records it is nearly twice the first.
    """
    gain = 1 + cells / epsilon
    return width**2 * (gain**2 / records + 2 * gain**4 / records**2)


def theorem_2_lipschitz(records: int, truth: float, bins: int, lipschitz: float) -> float:
    """MSE bound for a kernel on [0, 1]^2, Lipschitz in each argument, with simple rounding: theorem 1 + L^2/k^2.

    The paper has L^2/(2 k^2). Both arguments move by at most 1/(2k), so the error is at most 2 L/(2k) and its square
    L^2/k^2, which f = L (x + y) reaches with all records at the upper end of their bin.
    """
    return theorem_1(records, truth) + lipschitz**2 / bins**2


def theorem_2_smooth(records: int, truth: float, bins: int, lipschitz: float) -> float:
    """MSE bound for a density that is L-Lipschitz, with the average kernel: theorem 1 + (2 L/k + 2 L^2/k^2)^2.

    The paper squares without the mixed term: 4 L^2/k^2 + 4 L^4/k^4.
    """
    return theorem_1(records, truth) + (2 * lipschitz / bins + 2 * lipschitz**2 / bins**2) ** 2
