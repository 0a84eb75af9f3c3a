"""Off-the-shelf estimates of a U-statistic: CoinPress on the values of f over a family of k-sets.

| function | family | share of one record | non-private variance |
|---|---|---|---|
| `naive` | n // k disjoint sets | 1/(n // k) | ζ_k/(n // k) |
| `all_tuples` | all C(n, k) | k/n | Var U |
| `subsampled` | M uniform sets | max M_i/M, of the family drawn | (1 - 1/M) Var U + ζ_k/M |

*Privacy.* The family depends on no record. Given the family, `coinpress` is epsilon-DP for the
share that this very family has. The paper bounds max M_i/M with high probability. Taking it from
the family that was drawn needs no such event.

*Widths.* Let f be τ-sub-Gaussian around its mean θ; a range C gives τ = C/2. With probability
1 - γ all M terms lie within τ√(2 log(2M/γ)) of θ. The mean of m = n // k independent blocks lies
within τ√(2 log(2/γ)/m) of θ, and so does the complete U-statistic (Hoeffding 1963, section 5; paper
002, Lemma A.3). A subsample's mean lies within τ_γ√(2 log(2/γ)/M) of the complete one, where τ_γ is
the first width. The widths affect accuracy only.

*Predicted mean squared error.* It is the non-private variance of `moments` plus the last step's
noise. Clipping may add to it.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 3.1, Definitions 1-3, Propositions 1-3,
appendices A.2.3-A.2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import TypedDict, Unpack

from umpc.dp.events import PureEvent, check_epsilon, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.mpc.arrays import Integers
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.coinpress import CoinPress
from umpc_papers.central.moments import complete_variance, disjoint_variance, subsampled_variance
from umpc_papers.central.terms import (
    CHUNK,
    CompleteFamily,
    Family,
    disjoint_family,
    kernel_terms,
    share,
    subsampled_family,
    values,
)

FAMILIES = ("disjoint", "all", "subsampled")


class CoinPressOptions(TypedDict, total=False):
    """Parameters of `PrivateTuples` that have usual values."""

    steps: int
    last: Fraction
    failure: Fraction


@dataclass(frozen=True)
class PrivateTuples:
    """CoinPress over a family of sets, epsilon-DP for replace-one.

    The functions `naive`, `all_tuples` and `subsampled` make it.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
        spread: τ, the sub-Gaussian parameter of f, exact, in values. It is a guess that the data
            need not fulfil.
        family: one of `FAMILIES`.
        count: M of a subsampled family, else 0.
        steps, last: the parameters of `CoinPress`.
        failure: γ, for each of the three events that the widths allow for.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
        StudyError: another parameter is out of its range.
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
            raise StudyError("a subsampled family needs its number of sets, and no other does")
        object.__setattr__(self, "event", PureEvent(self.epsilon))

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values.

        Reveals: this number; the family may be public.
        """
        terms = kernel_terms(self.kernel, columns)
        family = self.draw(terms.records, bits)
        found = values(terms, family)
        unit = terms.unit
        part = share(family)

        def mean(low: Fraction, high: Fraction) -> Fraction:
            return clipped_mean(found, low / unit, high / unit) * unit

        return self.coinpress(terms.records, part).mean(mean, part, bits)

    def coinpress(self, records: int, part: Fraction) -> CoinPress:
        """The private mean over a family.

        Args:
            records: n.
            part: the family's share of one record, which sets the grid only.
        """
        interval = self.kernel.interval
        term, mean = self.widths(records)
        low = interval.low
        high = max(interval.high, interval.low + self.kernel.unit)
        return CoinPress(
            low,
            high,
            term_width=term,
            mean_width=mean,
            epsilon=self.epsilon,
            steps=self.steps,
            last=self.last,
            failure=self.failure,
            grid=(high - low) * part / (1 << 16),
        )

    def widths(self, records: int) -> tuple[Fraction, Fraction]:
        """The distances of a term and of the mean from θ, in values; see the module's docstring."""
        blocks = records // self.kernel.degree
        failure = float(self.failure)
        terms = {
            "disjoint": blocks,
            "all": comb(records, self.kernel.degree),
            "subsampled": self.count,
        }[self.family]
        # √(2 log(2M/γ)) for a term, √(2 log(2/γ)/m) for the mean.
        term = math.sqrt(2 * math.log(2 * terms / failure))
        mean = math.sqrt(2 * math.log(2 / failure) / blocks)
        if self.family == "subsampled":
            mean += term * math.sqrt(2 * math.log(2 / failure) / terms)
        return self._in_values(term), self._in_values(mean)

    def _in_values(self, width: float) -> Fraction:
        """τ times a width, as a short fraction."""
        return self.spread * Fraction(width).limit_denominator(1 << 20)

    def noise_variance(self, records: int) -> float:
        """Noise variance of the answer, in squared values.

        A subsample has the share that is expected; see `_typical_share`.
        """
        part = self._typical_share(records)
        return self.coinpress(records, part).noise_variance(part)

    def mse(self, records: int, zetas: tuple[float, ...]) -> float:
        """Mean squared error towards the parameter; the error of clipping is left out.

        Args:
            records: n, independent records.
            zetas: ζ_1 .. ζ_k, squared values.
        """
        noise = self.noise_variance(records)
        if self.family == "subsampled":
            return subsampled_variance(records, self.count, zetas) + noise
        if self.family == "disjoint":
            return disjoint_variance(records, zetas) + noise
        return complete_variance(records, zetas) + noise

    def draw(self, records: int, bits: RandomBits) -> Family:
        """The family of sets. `estimate` draws it before all else."""
        k = self.kernel.degree
        if self.family == "disjoint":
            return disjoint_family(records, k, bits)
        if self.family == "all":
            return CompleteFamily(records, k)
        return subsampled_family(records, k, self.count, bits)

    def _typical_share(self, records: int) -> Fraction:
        """max M_i/M, or for a subsample its usual value.

        Each M_i is binomial with mean μ = kM/n. The largest of n such numbers is near
        μ + √(2 μ log n).
        """
        k = self.kernel.degree
        if self.family == "disjoint":
            return Fraction(1, records // k)
        if self.family == "all":
            return Fraction(k, records)
        mean = k * self.count / records
        most = min(self.count, math.ceil(mean + math.sqrt(2 * mean * math.log(records))))
        return Fraction(most, self.count)


def naive(
    kernel: Kernel, epsilon: Fraction, spread: Fraction, **options: Unpack[CoinPressOptions]
) -> PrivateTuples:
    """CoinPress on disjoint sets (Definition 1)."""
    return PrivateTuples(kernel, epsilon, spread, "disjoint", **options)


def all_tuples(
    kernel: Kernel, epsilon: Fraction, spread: Fraction, **options: Unpack[CoinPressOptions]
) -> PrivateTuples:
    """CoinPress on all sets (Definition 2)."""
    return PrivateTuples(kernel, epsilon, spread, "all", **options)


def subsampled(
    kernel: Kernel,
    epsilon: Fraction,
    spread: Fraction,
    count: int,
    **options: Unpack[CoinPressOptions],
) -> PrivateTuples:
    """CoinPress on M independent sets (Definition 3)."""
    return PrivateTuples(kernel, epsilon, spread, "subsampled", count, **options)


def clipped_mean(found: Integers, low: Fraction, high: Fraction) -> Fraction:
    """The exact mean of integers after clipping to [low, high].

    Args:
        found: (count,) int64.
        low, high: in the unit of the integers.
    """
    total = Fraction(0)
    for start in range(0, len(found), CHUNK):
        some = found[start : start + CHUNK]
        under = some <= math.floor(low)
        over = some >= math.ceil(high)
        inside = int(some[~(under | over)].sum())
        total += inside + int(under.sum()) * low + int(over.sum()) * high
    return total / len(found)
