"""The local Hájek projection estimator: records whose sets average far from the rest are weighted down.

H_i, the mean of f over the sets that hold record i, is close to the overall mean for most data (for all, where the
statistic is degenerate). Where every H_i is within ξ of it, replacing a record changes the mean by about 2kξ/n, not
kΔf/n. Ã equals the mean there and else replaces, in sets with an outlying record, f by a mixture of f and the overall
mean; noise is scaled to a smooth bound of its sensitivity. Pure epsilon-DP for every table and every family.

Privacy: `smooth` proves the bound, `heavy_tail` that epsilon = 3^{3/4} α + 3β for noise S/α. Exact: integers and
fractions up to the noise, which is a real number rounded to a public grid. α, β and the slope η are public functions
of n, k, C, ξ and epsilon: those for which S/α is least at L = 0, among a few.

MSE: at L = 0, exactly the noise's (S(0)/α)² + grid²/12 (the noise has variance 1), plus the variance of the mean.

Section 4.5: the same over a subsampled family. The paper draws M sets and gives up if M_i or M_ij are too uneven; here
the bound takes max M_i/M and max M_ij/M_i from the family drawn, so it is right for every family and never gives up.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, Algorithm 3, Theorems 2 and 4, Lemmas 5 and 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from umpc.dp.checks import check_epsilon, is_exact, is_integer
from umpc.dp.events import PureEvent
from umpc.dp.heavy_tail import DILATE, GRID, SLIDE, add_heavy_tail
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.protocols.central.smooth import LocalBound, smooth_estimates
from umpc.protocols.central.terms import (
    CompleteFamily,
    Family,
    Terms,
    kernel_terms,
    share,
    subsampled_family,
    sums,
)
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel


@dataclass(frozen=True)
class Tuning:
    """Public. bound: of the local sensitivity, in units. alpha, beta: slide and dilation that the noise allows."""

    bound: LocalBound
    alpha: Fraction
    beta: Fraction

    def scale(self, level: int, records: int) -> Fraction:
        """S/α of a table with this L, in units."""
        return self.bound.smooth(level, self.beta, records) / self.alpha


@dataclass(frozen=True)
class Reweighted:
    """level: L. value: Ã, in units. Both secret."""

    level: int
    value: Fraction


@lru_cache(maxsize=64)
def tune(
    width: int,
    concentration: Fraction,
    part: Fraction,
    together: Fraction,
    epsilon: Fraction,
    n: int,
) -> Tuning:
    """The slope and the split of epsilon with the least noise at L = 0, among 31 x 9; all arguments are public.

    Args:
        width, concentration: C and ξ in units; a ξ above C counts as C, than which no deviation is greater.
        part, together: q and p. n: records.
    """
    concentration = min(concentration, Fraction(width))
    slopes = float(epsilon) * 2.0 ** (np.arange(-24, 7) / 2)
    found = []
    for sliding in (Fraction(i, 100) for i in (30, 40, 50, 60, 70, 80, 90, 95, 98)):
        alpha, beta = sliding * epsilon / SLIDE, (1 - sliding) * epsilon / DILATE
        noise = smooth_estimates(
            float(concentration / width), slopes, float(beta), n, float(part), float(together)
        )
        best = int(np.argmin(noise))
        found.append((noise[best] / float(alpha), slopes[best], alpha, beta))
    _, slope, alpha, beta = min(found, key=lambda choice: choice[0])
    return Tuning(
        LocalBound(Fraction(width), Fraction(concentration), _short(slope), part, together),
        alpha,
        beta,
    )


def _short(number: float) -> Fraction:
    """A number above 0 to 20 bits, however small it is."""
    mantissa, exponent = math.frexp(float(number))
    return round(mantissa * (1 << 20)) * Fraction(2) ** (exponent - 20)


def reweight(terms: Terms, family: Family, bound: LocalBound) -> Reweighted:
    """L and Ã, exactly. Cost: two passes over the family where some record is outlying, else one."""
    whole, at = sums(terms, family)
    mean, occurrences = Fraction(whole, family.count), family.occurrences
    means = [Fraction(int(a), int(m)) if m else mean for a, m in zip(at, occurrences, strict=True)]
    deviations = [abs(at_record - mean) for at_record in means]
    level = least_level(deviations, bound)
    threshold = bound.threshold(level)
    weights = {i: weight(u, level, bound) for i, u in enumerate(deviations) if u > threshold}
    outlying = sorted(weights, key=weights.__getitem__)
    if not outlying:
        return Reweighted(level, mean)
    counts, found = _by_least_weight(terms, family, outlying)
    missing = sum(
        ((1 - weights[i]) * (found[rank] - counts[rank] * mean) for rank, i in enumerate(outlying)),
        Fraction(0),
    )
    return Reweighted(level, mean - missing / family.count)


def least_level(deviations: list[Fraction], bound: LocalBound) -> int:
    """The least t >= 0 such that at most t deviations exceed ξ + d t."""
    descending = sorted(deviations, reverse=True)
    return next(
        t
        for t in range(len(descending) + 1)
        if t == len(descending) or descending[t] <= bound.threshold(t)
    )


def weight(deviation: Fraction, level: int, bound: LocalBound) -> Fraction:
    """w_i: 1 up to the threshold, then falling to 0 over `fade`."""
    beyond = deviation - bound.threshold(level)
    return Fraction(1) if beyond <= 0 else max(Fraction(0), 1 - beyond / bound.fade)


def _by_least_weight(
    terms: Terms, family: Family, outlying: list[int]
) -> tuple[list[int], list[int]]:
    """Of the sets in which each outlying record is the one of least weight: their number and the sum of f."""
    rank = np.full(terms.records, len(outlying))
    rank[outlying] = np.arange(len(outlying))
    counts, found = np.zeros(len(outlying), dtype=np.int64), np.zeros(len(outlying), dtype=np.int64)
    for sets in family.chunks():
        least = rank[sets].min(axis=0)
        hit = least < len(outlying)
        counts += np.bincount(least[hit], minlength=len(outlying))
        np.add.at(found, least[hit], terms.evaluate(sets[:, hit]))
    return counts.tolist(), found.tolist()


def private_mean(
    terms: Terms,
    family: Family,
    concentration: Fraction,
    epsilon: Fraction,
    bits: RandomBits,
    grid: Fraction = GRID,
) -> Fraction:
    """Algorithm 3: the private mean of f over a family, in values. concentration: ξ in values. epsilon-DP."""
    if not terms.width:
        return terms.low * terms.unit
    tuning = tuning_of(terms, family, concentration, epsilon)
    found = reweight(terms, family, tuning.bound)
    scale = tuning.scale(found.level, terms.records)
    return add_heavy_tail(found.value * terms.unit, scale * terms.unit, grid, bits)


def tuning_of(terms: Terms, family: Family, concentration: Fraction, epsilon: Fraction) -> Tuning:
    """Of a family of sets of a table with so many records: public."""
    return tune(
        terms.width,
        concentration / terms.unit,
        share(family),
        family.together,
        check_epsilon(epsilon),
        terms.records,
    )


def bernstein_concentration(
    records: int,
    degree: int,
    width: Fraction,
    variance: Fraction,
    failure: Fraction,
    values: int | None = None,
) -> Fraction:
    """ξ such that for a bounded, degenerate kernel every |H_i - A| <= ξ but for a chance of `failure`.

    Given X_i, H_i is a U-statistic of degree k - 1, hence a mean of means of m = (n-1)//(k-1) independent values of
    range C and variance v: |H_i - θ| <= t but for 2 exp(-m t²/(2(v + Ct/3))) (Bernstein; Hoeffding 1963, section 5).
    Likewise A with m = n // k. Half of `failure` for each. A choice that does not fit the data costs accuracy only.

    Paper: Lemma 6, with its constants. For a kernel that is not degenerate, E[f | X_i] moves by up to C besides.

    Args:
        width, variance: C in values, v >= the variance of f given X_i, squared values.
        values: how many records to allow for in the union, n if not given.
    """
    blocks, count = (records - 1) // max(1, degree - 1), values or records
    near = _bernstein(blocks, float(width), float(variance), math.log(4 * count / float(failure)))
    centre = _bernstein(
        records // degree, float(width), float(variance), math.log(4 / float(failure))
    )
    return Fraction(near + centre).limit_denominator(1 << 40)


def _bernstein(blocks: int, width: float, variance: float, exponent: float) -> float:
    """The t with blocks t²/(2(v + width t/3)) = exponent."""
    linear = width * exponent / (3 * blocks)
    return linear + math.sqrt(linear * linear + 2 * variance * exponent / blocks)


@dataclass(frozen=True)
class LocalHajek:
    """epsilon-DP, replace-one.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
        concentration: ξ >= 0, exact, in values: how far from the mean the H_i are expected to lie.
        count: M of a subsampled family (section 4.5); None for all sets.
        grid: granularity of the release, in values.
    """

    kernel: Kernel
    epsilon: Fraction
    concentration: Fraction
    count: int | None = None
    grid: Fraction = GRID

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if (
            not is_exact(self.concentration)
            or self.concentration < 0
            or not is_exact(self.grid)
            or self.grid <= 0
        ):
            raise StudyError(
                "expected an exact concentration of 0 or more and an exact grid above 0"
            )
        if self.count is not None and not (is_integer(self.count) and self.count > 0):
            raise StudyError(
                f"the number of subsampled sets must be an integer above 0, but {self.count!r} came"
            )

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values. Reveals: this number; the family may be public."""
        terms = kernel_terms(self.kernel, columns)
        return private_mean(
            terms,
            self.family(terms.records, bits),
            Fraction(self.concentration),
            self.epsilon,
            bits,
            self.grid,
        )

    def family(self, records: int, bits: RandomBits) -> Family:
        if self.count is None:
            return CompleteFamily(records, self.kernel.degree)
        return subsampled_family(records, self.kernel.degree, self.count, bits)

    def noise_variance(self, family: Family, level: int = 0) -> float:
        """Squared values, exactly for tables of this L: (S/α)² of the noise, grid²/12 of the rounding."""
        width = self.kernel.sensitivity_units
        if not width:
            return 0.0
        unit = self.kernel.unit
        tuning = tune(
            width,
            self.concentration / unit,
            share(family),
            family.together,
            self.epsilon,
            family.records,
        )
        return float(tuning.scale(level, family.records) * unit) ** 2 + float(self.grid) ** 2 / 12

    def mse(self, records: int, variance: float = 0.0) -> float:
        """Over all sets towards the parameter, for tables of L = 0 and this variance of the U-statistic."""
        return variance + self.noise_variance(CompleteFamily(records, self.kernel.degree))

    @property
    def event(self) -> PureEvent:
        return PureEvent(self.epsilon)
