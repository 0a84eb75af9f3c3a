"""Median of means: it makes a private estimate that is good with chance 3/4 good with any chance.

The records are dealt at random to K tables, the same protocol runs on each, and the median of the K
answers is released. A record is in one table only, and the choice of the table depends on no value.
Replacing the record changes one answer. So the answers together, and their median after them, are
epsilon-DP with the epsilon of a single run (parallel composition under replace-one).

The number of chunks. If each run errs by more than t with chance at most p < 1/2, the median does
so only if at least (K+1)/2 runs do: `failure(K, p)` is that binomial tail exactly. The paper's
K = 8 log(1/γ), by Hoeffding, is about twice the K that p = 1/4 needs.

MSE. For odd K at least (K+1)/2 runs err at least as much as the median, on either side alike, so
error(median)² <= 2/(K+1) x (sum of squared errors): `mse_bound` = 2K/(K+1) x (mean MSE of a run),
for any law. With normal errors the median has about π/(2K) of a run's variance: `mse_normal`.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, Wrapper 1 and Lemma A.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Protocol

import numpy as np

from umpc.dp.events import PureEvent, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError, TooFewRecords
from umpc.ustat.clear import Columns
from umpc_papers.central.terms import permutation


class PrivateEstimator(Protocol):
    """A central protocol that estimates a number."""

    @property
    def event(self) -> PureEvent: ...

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction: ...


def failure(chunks: int, single: Fraction) -> Fraction:
    """Exact chance that at least (K+1)/2 of K independent runs fail, each with chance `single`."""
    tail = range((chunks + 1) // 2, chunks + 1)
    return sum(
        (comb(chunks, j) * single**j * (1 - single) ** (chunks - j) for j in tail), Fraction(0)
    )


def least_chunks(wanted: Fraction, single: Fraction = Fraction(1, 4)) -> int:
    """The least odd K with failure(K, single) <= wanted."""
    if not (
        is_exact(wanted) and is_exact(single) and 0 < wanted < 1 and 0 < single <= Fraction(2, 5)
    ):
        raise StudyError(
            "expected exact chances of failure: wanted between 0 and 1, single at most 2/5"
        )
    chunks = 1
    while failure(chunks, Fraction(single)) > wanted:
        chunks += 2
    return chunks


@dataclass(frozen=True)
class MedianOfMeans:
    """The median of K runs, as private as one run of the inner protocol; replace-one.

    Args:
        inner: the protocol that runs on each table of about n/K records.
        chunks: K, odd.
    """

    inner: PrivateEstimator
    chunks: int

    def __post_init__(self) -> None:
        if not is_integer(self.chunks) or self.chunks < 1 or self.chunks % 2 == 0:
            raise StudyError(
                f"the number of chunks must be an odd integer above 0, but {self.chunks!r} came"
            )

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The median of the K answers, in the kernel's values."""
        records = len(next(iter(columns.values())))
        if records < self.chunks:
            raise TooFewRecords(
                f"expected at least {self.chunks} records, one for each chunk; {records} came"
            )
        parts = np.array_split(permutation(records, bits), self.chunks)
        answers = [
            self.inner.estimate({name: c[part] for name, c in columns.items()}, bits)
            for part in parts
        ]
        return sorted(answers)[self.chunks // 2]

    def mse_bound(self, single_mse: float) -> float:
        """A bound of the median's MSE, from the MSE of one run on n/K records, for any law."""
        return 2 * self.chunks / (self.chunks + 1) * single_mse

    def mse_normal(self, single_mse: float) -> float:
        """About the median's MSE for normal errors and large K; for K = 1 the run's own."""
        return single_mse * (1.0 if self.chunks == 1 else math.pi / (2 * self.chunks))

    @property
    def event(self) -> PureEvent:
        """The cost of the release: that of one run."""
        return self.inner.event
