"""Each central mechanism by its name, with parameters that are public.

Public are the kernel, ε, the numbers of records and sets, and what a study says of τ or ξ.

| name | protocol | usual parameters, C the kernel's range |
|---|---|---|
| `laplace` | `GlobalSensitivity` | C |
| `coinpress_naive`, `coinpress_all`, `coinpress_subsampled` | `PrivateTuples` | τ = C/2 |
| `hajek`, `hajek_subsampled` | `LocalHajek` | ξ = C |
| `hajek_split` | `SplitHajek` | τ = C/2 |

A variable in a range C is C/2-sub-Gaussian (Hoeffding 1963), and no H_i is farther than C from A.
Both facts hold for every table. So nothing is ever clipped, cut or weighted down: every estimate is
the mean over its family plus noise. The noise has exactly the predicted variance for all records,
except that CoinPress also rounds to 1/2^16 of one record's largest effect. The price is that these
mechanisms improve on `laplace` only with more knowledge than the range, for example that the values
or the H_i lie close together. With these parameters `laplace` is therefore the best of them. A
study with more knowledge states a smaller τ or ξ. The release is ε-DP for every table then too. If
the knowledge is wrong, values are clipped or sets weigh less, and the noise of the Hájek mechanisms
is larger than predicted.

*The error of taking sets.* Let v <= C²/4 be the variance of f over all sets of this table. The mean
over the family differs from the mean over all sets by a variance of at most

- v/M for M independent sets,
- v (1/m + λ) for m disjoint sets, where λ = C(n-k-2, k-2)/C(n-k, k), and λ = 0 for k = 1. The
  values of two disjoint sets have a covariance of at most λ v. λ is the second of the nonnegative
  eigenvalues of Kneser's graph over its degree (Lovász 1979; it needs n >= 2k).

All sets of a random part of n' records do no worse than n' // k disjoint sets. Given the part, the
mean over all its sets is the expectation of the mean over disjoint sets.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024.

*Median of means* makes a private estimate that is good with chance 3/4 good with any chance.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np

from umpc.dp.events import PureEvent, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.adaptations import PrivateTuples, all_tuples, naive, subsampled
from umpc_papers.central.edges import concentration_from_edges
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.hajek import LocalHajek, bernstein_concentration
from umpc_papers.central.private_spread import FAILURE, PrivateSpread
from umpc_papers.central.split import SplitHajek
from umpc_papers.central.terms import SUM_BITS, CompleteFamily, Family, permutation, share

NAMES = (
    "laplace",
    "coinpress_naive",
    "coinpress_all",
    "coinpress_subsampled",
    "hajek",
    "hajek_subsampled",
    "hajek_split",
)
MOST_SETS = 1 << 30
"""The largest number of sets of records: they take minutes."""
MOST_VALUES = 1 << 27
"""The largest number of values that CoinPress holds at once: they take a gibibyte."""
MOST_BITS = SUM_BITS
"""The largest number of bits of a sum, as in `terms`."""

CentralMechanism = GlobalSensitivity | PrivateTuples | LocalHajek | SplitHajek
"""The protocols behind the names."""


@dataclass(frozen=True)
class Choice:
    """A mechanism with its parameters, epsilon-DP for replace-one.

    Args:
        name: one of `NAMES`.
        kernel: symmetric.
        epsilon: > 0, exact.
        count: M of a subsampled family, else 0.
        spread: τ, in values; None takes half the range, which always holds.
        concentration: ξ, in values; None takes the range, which always holds.
        chunks: K of a median of means over K parts of the records, odd; 1 is the mechanism itself.
        private: "spread", "concentration" or "edges", which is then estimated first; else empty.
        private_share: the share of epsilon for it; 0 without one.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
        StudyError: another parameter is out of its range.
    """

    name: str
    kernel: Kernel
    epsilon: Fraction
    count: int = 0
    spread: Fraction | None = None
    concentration: Fraction | None = None
    chunks: int = 1
    private: str = ""
    private_share: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise StudyError(f"the mechanism must be one of {', '.join(NAMES)}, got {self.name!r}")
        _ = self.protocol

    @cached_property
    def protocol(self) -> CentralMechanism:
        """The protocol, with the parameters of the module's table."""
        kernel = self.kernel
        epsilon = self.epsilon * (1 - self.private_share)
        width = kernel.interval.width
        usual = max(width, kernel.unit) / 2
        spread = usual if self.spread is None else min(self.spread, usual)
        xi = width if self.concentration is None else min(self.concentration, width)
        makers: dict[str, Callable[[], CentralMechanism]] = {
            "laplace": lambda: GlobalSensitivity(kernel, epsilon),
            "coinpress_naive": lambda: naive(kernel, epsilon, spread),
            "coinpress_all": lambda: all_tuples(kernel, epsilon, spread),
            "coinpress_subsampled": lambda: subsampled(kernel, epsilon, spread, self.count),
            "hajek": lambda: LocalHajek(kernel, epsilon, xi),
            "hajek_subsampled": lambda: LocalHajek(kernel, epsilon, xi, self.count),
            "hajek_split": lambda: SplitHajek(kernel, epsilon, spread),
        }
        return makers[self.name]()

    def check_records(self, records: int) -> None:
        """Check the number of records, before anything leaves a node.

        Raises:
            TooFewRecords: there are too few records for this mechanism.
            RangeError: there are too many sets, or a sum may not fit 62 bits.
        """
        k = self.kernel.degree
        least = 4 * k if self.splits else max(2, k)
        least = max(least * self.chunks, 2 * k if self.private else 0)
        if records < least:
            parts = f" in {self.chunks} parts" if self.chunks > 1 else ""
            raise TooFewRecords(
                f'"{self.name}" over sets of {k}{parts} needs at least {least} records, {records} '
                f"came"
            )
        sets = self.sets(records)
        most = MOST_VALUES if self.name.startswith("coinpress") else MOST_SETS
        if sets > most:
            raise RangeError(
                f'"{self.name}" over {records:,} records averages {sets:,} sets, '
                f"at most {most:,} are possible; take fewer records, "
                "or a subsampled mechanism with at most this number of sets"
            )
        if sets * self.kernel.magnitude_units >= 1 << MOST_BITS:
            raise RangeError(
                f"the sum of {sets:,} values of the kernel may not fit {MOST_BITS} bits; "
                "take coarser resolutions of its fields"
            )

    @property
    def splits(self) -> bool:
        """Whether the estimate averages sets of a half of the records."""
        return self.name == "hajek_split"

    def averaged_records(self, records: int) -> int:
        """The number of records whose sets the estimate averages."""
        return records - records // 2 if self.splits else records

    def sets(self, records: int) -> int:
        """The number of sets that the estimate averages, of all parts."""
        if self.chunks > 1:
            small, larger = divmod(records, self.chunks)
            one = replace(self, chunks=1)
            return larger * one.sets(small + 1) + (self.chunks - larger) * one.sets(small)
        k = self.kernel.degree
        if self.name == "coinpress_naive":
            return records // k
        return self.count or comb(self.averaged_records(records), k)

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values.

        Reveals: this number.
        """
        return self.release(columns, bits)[0]

    def release(self, columns: Columns, bits: RandomBits) -> tuple[Fraction, Choice]:
        """The noisy mean, and the mechanism with the parameters that were estimated for it.

        Reveals: both.
        """
        settled = self.settled(columns, bits)
        if self.chunks > 1:
            return MedianOfMeans(settled.protocol, self.chunks).estimate(columns, bits), settled
        return settled.protocol.estimate(columns, bits), settled

    def settled(self, columns: Columns, bits: RandomBits) -> Choice:
        """The mechanism for the rest of epsilon, with its parameter from the private share."""
        if not self.private:
            return self
        share = self.epsilon * self.private_share
        own = PrivateSpread(self.kernel, share)
        rest = replace(
            self,
            epsilon=self.epsilon * (1 - self.private_share),
            private="",
            private_share=Fraction(0),
        )
        if self.private == "spread":
            return replace(rest, spread=own.scale(columns, bits))
        records = len(next(iter(columns.values()))) // self.chunks
        if self.private == "edges":
            xi = concentration_from_edges(self.kernel, share, columns, records, bits)
            return replace(rest, concentration=xi)
        width = self.kernel.interval.width
        if not width:
            return rest
        variance = own.variance(columns, bits)
        xi = bernstein_concentration(records, self.kernel.degree, width, variance, FAILURE)
        return replace(rest, concentration=xi)

    def family(self, records: int, bits: RandomBits) -> Family:
        """The sets that `estimate` averages when it is given the same bits.

        In a median of means: those of a smallest part. With a private parameter other disjoint sets
        are drawn, as many.
        """
        if self.chunks > 1:
            return replace(self, chunks=1).family(records // self.chunks, bits)
        if isinstance(self.protocol, PrivateTuples):
            return self.protocol.draw(records, bits)
        if isinstance(self.protocol, LocalHajek):
            return self.protocol.family(records, bits)
        return CompleteFamily(self.averaged_records(records), self.kernel.degree)

    def noise_std(self, records: int, family: Family) -> float:
        """Standard deviation of the answer's noise, in values; it is exact for all tables.

        In a median of means it is a bound: √(2K/(K+1)) times that of a part. With a private
        parameter it is the largest that the parameter may lead to.
        """
        if self.chunks > 1:
            one = replace(self, chunks=1)
            return self._of_median(one.noise_std(records // self.chunks, family))
        if isinstance(self.protocol, PrivateTuples):
            part = share(family)
            return math.sqrt(self.protocol.coinpress(records, part).noise_variance(part))
        if isinstance(self.protocol, LocalHajek):
            return math.sqrt(self.protocol.noise_variance(family))
        return math.sqrt(self.protocol.noise_variance(records))

    def noise_step(self, records: int) -> float:
        """The distance of the possible values of the answer's noise; 0 where it hardly counts.

        Only the noise on the sum over all sets has the kernel's own unit.
        """
        if self.name != "laplace" or self.chunks > 1:
            return 0.0
        return float(self.kernel.unit / self.sets(records))

    def sampling_bound(self, records: int) -> float:
        """Upper bound on the standard deviation of taking a family, not all sets, in values."""
        k = self.kernel.degree
        half = float(self.kernel.interval.width) / 2
        if self.chunks > 1:
            part = replace(self, chunks=1)
            taken = part.averaged_records(records // self.chunks) // k
            return self._of_median(half * math.sqrt(min(1.0, 1 / taken + _shared(records, k))))
        if self.name in ("laplace", "coinpress_all", "hajek"):
            return 0.0
        if self.count:
            return half / math.sqrt(self.count)
        taken = self.averaged_records(records) // k
        return half * math.sqrt(min(1.0, 1 / taken + _shared(records, k)))

    def _of_median(self, single: float) -> float:
        """A bound for the median of K runs, from the standard deviation of one run (`median`)."""
        return math.sqrt(MedianOfMeans(self.protocol, self.chunks).mse_bound(single**2))

    def miss_of_median(self, records: int, family: Family) -> tuple[float, float]:
        """An error, and the chance that a median of means exceeds it (Wrapper 1).

        A part errs by more than twice its standard deviation with a chance of at most 1/4
        (Chebyshev). The median does so only if most of the parts do.
        """
        noise, taken = self.noise_std(records, family), self.sampling_bound(records)
        single = math.hypot(noise, taken) / self._of_median(1.0)
        return 2 * single, float(failure(self.chunks, Fraction(1, 4)))

    @property
    def event(self) -> PureEvent:
        """The privacy event that the accountant charges."""
        return PureEvent(self.epsilon)


def _shared(records: int, degree: int) -> float:
    """λ, the bound on the covariance of two disjoint sets."""
    if degree < 2 or 2 * degree > records:
        return 0.0
    return comb(records - degree - 2, degree - 2) / comb(records - degree, degree)


# --- median ---------------------------------------------------------------------------------------


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
