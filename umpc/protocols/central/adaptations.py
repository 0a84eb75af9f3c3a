"""Off-the-shelf estimates of a U-statistic: CoinPress on the values of f over a family of k-sets.

| function | family | share of one record | non-private variance |
|---|---|---|---|
| `naive` | n // k disjoint sets | 1/(n // k) | ζ_k/(n // k) |
| `all_tuples` | all C(n, k) | k/n | Var U |
| `subsampled` | M uniform sets | max M_i/M, of the family drawn | (1 - 1/M) Var U + ζ_k/M |

Privacy: given the family, which depends on no record, `coinpress` is epsilon-DP for the share that this very family
has. The paper bounds max M_i/M with high probability; taking it from the family drawn needs no such event.

Widths. If f is τ-sub-Gaussian around its mean θ (of a range C: τ = C/2), then with chance 1 - γ all M terms lie within
τ√(2 log(2M/γ)) of θ, the mean of m = n // k independent blocks, and so the complete U-statistic (Hoeffding 1963,
section 5; paper 002, Lemma A.3), within τ√(2 log(2/γ)/m); a subsample's mean moves from the complete one by τ_γ√(2
log(2/γ)/M) more, τ_γ the first width. These are for accuracy only.

MSE, predicted: the non-private variance of `moments`, plus the last step's noise; up to what clipping may add.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 3.1, Definitions 1-3, Propositions 1-3, appendices A.2.3-A.2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

import numpy as np

from umpc.dp.checks import check_epsilon, is_exact, is_integer
from umpc.dp.events import PureEvent
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.protocols.central.coinpress import CoinPress
from umpc.protocols.central.moments import complete_variance, disjoint_variance, subsampled_variance
from umpc.protocols.central.terms import (
    CHUNK,
    CompleteFamily,
    Family,
    disjoint_family,
    kernel_terms,
    share,
    subsampled_family,
    values,
)
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel

FAMILIES = ("disjoint", "all", "subsampled")


@dataclass(frozen=True)
class PrivateTuples:
    """epsilon-DP, replace-one. Made by `naive`, `all_tuples` and `subsampled`.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
        spread: τ, sub-Gaussian parameter of f, exact, in values; a guess that the data need not fulfil.
        family: one of `FAMILIES`.
        count: M of a subsampled family.
        steps, last: as of `CoinPress`.
        failure: γ, of each of the three events that the widths allow for.
    """

    kernel: Kernel
    epsilon: Fraction
    spread: Fraction
    family: str
    count: int = 0
    steps: int = 3
    last: Fraction = Fraction(3, 4)
    failure: Fraction = Fraction(1, 100)
    event: PureEvent = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not is_exact(self.spread) or self.spread <= 0:
            raise StudyError(
                f"the spread must be an exact number above 0, but {self.spread!r} came"
            )
        if self.family not in FAMILIES:
            raise StudyError(
                f"the family must be one of {', '.join(FAMILIES)}, but {self.family!r} came"
            )
        if (self.family == "subsampled") != (is_integer(self.count) and self.count > 0):
            raise StudyError("a subsampled family, and only that, needs its number of sets")
        object.__setattr__(self, "event", PureEvent(self.epsilon))

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values. Reveals: this number; the family may be public."""
        terms = kernel_terms(self.kernel, columns)
        family = self.draw(terms.records, bits)
        found, unit = values(terms, family), terms.unit
        part = share(family)
        return self.coinpress(terms.records, part).mean(
            lambda low, high: _clipped_mean(found, low / unit, high / unit) * unit, part, bits
        )

    def coinpress(self, records: int, part: Fraction) -> CoinPress:
        """The private mean over this family. part: the family's share of one record; it sets the grid only."""
        interval, (term, mean) = self.kernel.interval, self.widths(records)
        low, high = interval.low, max(interval.high, interval.low + self.kernel.unit)
        return CoinPress(
            low,
            high,
            term,
            mean,
            self.epsilon,
            self.steps,
            self.last,
            self.failure,
            (high - low) * part / (1 << 16),
        )

    def widths(self, records: int) -> tuple[Fraction, Fraction]:
        """Of a term and of the mean around θ, in values."""
        blocks, failure = records // self.kernel.degree, float(self.failure)
        terms = {
            "disjoint": blocks,
            "all": comb(records, self.kernel.degree),
            "subsampled": self.count,
        }[self.family]
        term = math.sqrt(2 * math.log(2 * terms / failure))
        mean = math.sqrt(2 * math.log(2 / failure) / blocks)
        if self.family == "subsampled":
            mean += term * math.sqrt(2 * math.log(2 / failure) / terms)
        return tuple(
            self.spread * Fraction(width).limit_denominator(1 << 20) for width in (term, mean)
        )

    def noise_variance(self, records: int) -> float:
        """Of the answer, squared values. For a subsample with the share that is expected: see `_typical_share`."""
        part = self._typical_share(records)
        return self.coinpress(records, part).noise_variance(part)

    def mse(self, records: int, zetas: tuple[float, ...]) -> float:
        """Towards the parameter, for independent records with these ζ_1 .. ζ_k; clipping not counted."""
        if self.family == "subsampled":
            return subsampled_variance(records, self.count, zetas) + self.noise_variance(records)
        variance = {"disjoint": disjoint_variance, "all": complete_variance}[self.family](
            records, zetas
        )
        return variance + self.noise_variance(records)

    def draw(self, records: int, bits: RandomBits) -> Family:
        """The sets; `estimate` begins with it."""
        k = self.kernel.degree
        if self.family == "disjoint":
            return disjoint_family(records, k, bits)
        return (
            CompleteFamily(records, k)
            if self.family == "all"
            else subsampled_family(records, k, self.count, bits)
        )

    def _typical_share(self, records: int) -> Fraction:
        """max M_i/M. Of a subsample: M_i is binomial of mean μ = kM/n, the greatest of n near μ + √(2 μ log n)."""
        k = self.kernel.degree
        if self.family == "disjoint":
            return Fraction(1, records // k)
        if self.family == "all":
            return Fraction(k, records)
        mean = k * self.count / records
        most = min(self.count, math.ceil(mean + math.sqrt(2 * mean * math.log(records))))
        return Fraction(most, self.count)


def naive(kernel: Kernel, epsilon: Fraction, spread: Fraction, **others) -> PrivateTuples:
    """Definition 1: CoinPress on disjoint sets."""
    return PrivateTuples(kernel, epsilon, spread, "disjoint", **others)


def all_tuples(kernel: Kernel, epsilon: Fraction, spread: Fraction, **others) -> PrivateTuples:
    """Definition 2: on all sets."""
    return PrivateTuples(kernel, epsilon, spread, "all", **others)


def subsampled(
    kernel: Kernel, epsilon: Fraction, spread: Fraction, count: int, **others
) -> PrivateTuples:
    """Definition 3: on M independent sets."""
    return PrivateTuples(kernel, epsilon, spread, "subsampled", count, **others)


def _clipped_mean(found: np.ndarray, low: Fraction, high: Fraction) -> Fraction:
    """Exact mean of integers after clipping to [low, high]."""
    total = Fraction(0)
    for start in range(0, len(found), CHUNK):
        some = found[start : start + CHUNK]
        under, over = some <= math.floor(low), some >= math.ceil(high)
        inside = int(some[~(under | over)].sum())
        total += inside + int(under.sum()) * low + int(over.sum()) * high
    return total / len(found)
