"""A kernel of two public classes from randomised responses: the AUC, and any mean of two samples.

Paper: Bell et al. 2020, section 3, for a kernel whose two records are of two classes. A record
sends its cell, or a random one, as in `bell_ldp`; its class is public, so each node sends one
message for each class. Let g be the probability of the truth, b have (1-g)/t in each of its t
entries, and let h+ and h- be the histograms of the cells that n+ and n- records send. Records of
different classes answer independently, so

    U = (h+ - n+ b)' A (h- - n- b) / (g^2 n+ n-)

is unbiased for the mean of A over all pairs of a record of either class. No record is paired with
itself, so nothing is subtracted.

*Variance*, given the records. Let r+ and S+ be the mean and the covariance of (h+ - n+ b)/g, and r-
and S- those of the other class. The two are independent, so

    (n+ n-)^2 Var U = r-' A' S+ A r- + r+' A S- A' r+ + tr(A' S+ A S-).

The report estimates it from the answers (`noise_estimate`).

Reveals: to the coordinator, the cell that each record sends, and its class. The cell is epsilon-DP
for each record, whoever colludes.
Cost: one round; log2 t bits for each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from umpc.mpc.arrays import Floats
from umpc.ustat.clear import Columns
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.estimate import LocalEstimate, check_counts
from umpc_papers.local.noise_estimate import CellShares, variance_of_classes
from umpc_papers.local.rounding_noise import of_classes

Received = tuple[Sequence[bytes], Sequence[int]]
"""One class: every node's message, and the node's number of records of the class."""


@dataclass(frozen=True)
class BellLdpClasses(BellLdp):
    """A kernel of two classes, epsilon-DP for each record in the local model.

    Args: as in `BellLdp`; the kernel's first record is of the first class.
    """

    def aggregate_classes(self, first: Received, second: Received) -> LocalEstimate:
        """The estimate from all nodes' messages of both classes.

        Raises:
            EncodingError: a message does not decode.
        """
        sizes = [check_counts(*received, least=1) for received in (first, second)]
        told = [self._histogram(received) for received in (first, second)]
        left, right = (CellShares(each, self.truth) for each in told)
        std = sqrt(self._reported_variance(left, right))
        return LocalEstimate(self.value_of_classes(*told), std, sum(sizes))

    def _histogram(self, received: Received) -> Floats:
        """The cells that all records of a class sent: (t,) float64."""
        told = np.zeros(self.cells.size)
        for message, count in zip(*received, strict=True):
            told += self._decode(message, count)
        return told

    def value_of_classes(self, first: Floats, second: Floats) -> float:
        """The unbiased estimate U. Args: the histograms h+ and h- of what was sent, (t,)."""
        left, right = (CellShares(told, self.truth).shares for told in (first, second))
        return float(left @ self.cells.matrix @ right)

    def possible_of_classes(self, first: int, second: int) -> tuple[float, float]:
        """The range of estimates over so many records, but for a probability of 2^-64.

        Paper: McDiarmid 1989, as `likely_range`. Another answer of a record of a class of n moves U
        by at most c/n. So P(|U - E U| >= s) <= 2 exp(-2 s^2/(c^2 (1/n+ + 1/n-))).
        """
        matrix = self.cells.matrix
        b = (1 - self.truth) / self.cells.size
        columns, rows = matrix.sum(axis=0), matrix.sum(axis=1)
        # (e_i - b)' A (e_j - b), without the constant, which no answer changes.
        pairs = (matrix - b * columns - b * rows[:, None]) / self.truth**2
        change = max(float(np.ptp(pairs, axis=axis).max()) for axis in (0, 1))
        margin = change * sqrt(65 * log(2) * (1 / first + 1 / second) / 2)
        return float(matrix.min()) - margin, float(matrix.max()) + margin

    def _reported_variance(self, first: CellShares, second: CellShares) -> float:
        """The variance of responses and rounding by the answers, and its own error more."""
        matrix = self.cells.matrix
        means = matrix @ second.shares, matrix.T @ first.shares
        sizes = round(first.records), round(second.records)
        rounding = of_classes(self.cells, means, sizes, first.shares, second.shares)
        return variance_of_classes(matrix, first, second) + rounding

    # --- theory --------------------------------------------------------------------------------

    def predicted_mse_of_classes(
        self, first: Columns, second: Columns, exact: float | None = None
    ) -> float:
        """Mean squared error on these records.

        Args:
            exact: the statistic without quantisation; None leaves the error of quantisation out.
        """
        laws = [self.cells.laws(columns) for columns in (first, second)]
        rows = [rows for rows, _ in laws]
        variance = self.variance_of(rows, [weights.astype(np.float64) for _, weights in laws])
        if exact is None:
            return variance
        return variance + (self.cells.quantised_classes(first, second) - exact) ** 2

    def variance_of(self, rows: Sequence[Floats], weights: Sequence[Floats]) -> float:
        """Var U given the records; the formula stands in the module's docstring.

        Args:
            rows: of each class (m, t) float64, the law of a record's cell.
            weights: of each class (m,), the number of records with each law.
        """
        matrix = self.cells.matrix
        (left, left_spread), (right, right_spread) = (
            self._moments(law, weight) for law, weight in zip(rows, weights, strict=True)
        )
        of_first = matrix @ right
        of_second = left @ matrix
        both = np.sum((matrix.T @ left_spread @ matrix) * right_spread)
        variance = of_first @ left_spread @ of_first + of_second @ right_spread @ of_second + both
        return max(0.0, float(variance))

    def _moments(self, rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of the unbiased estimate of each cell's share: (t,), (t, t)."""
        n = float(weights.sum())
        p = self.truth * rows + (1 - self.truth) / self.cells.size
        spread = np.diag(weights @ p) - p.T @ (weights[:, None] * p)
        return weights @ rows / n, spread / (n * self.truth) ** 2
