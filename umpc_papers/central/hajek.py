"""The local Hájek projection estimator: records whose sets average far from the rest weigh less.

H_i, the mean of f over the sets that hold record i, is close to the overall mean for most data. For
a degenerate statistic it is close for all records. Where every H_i is within ξ of the overall mean,
replacing a record changes the mean by about 2kξ/n, not by kΔf/n. The estimator Ã equals the mean in
that case. Otherwise, in sets with an outlying record, it replaces f by a mixture of f and the
overall mean. The noise is scaled to a smooth bound on Ã's sensitivity. The result is epsilon-DP for
every table and every family.

*Privacy.* `smooth` proves the bound. `heavy_tail` proves epsilon = 3^{3/4} α + 3β for noise S/α.

*Exactness.* All numbers are integers and fractions up to the noise, which is a real number rounded
to a public grid. α, β and the slope η are public functions of n, k, C, ξ and epsilon. Among a few
candidates they are those with the least S/α at L = 0.

*Mean squared error.* At L = 0 it is exactly that of the noise, (S(0)/α)² + grid²/12, because the
noise has variance 1, plus the variance of the mean.

*Subsampling* (section 4.5): the estimator over a subsampled family. The paper draws M sets and
gives up if M_i or M_ij are too uneven. Here the bound takes max M_i/M and max M_ij/M_i from the
family that was drawn. It holds for every family and never gives up.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, Algorithm 3, Theorems 2 and 4, Lemmas 5 and 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from umpc.dp.events import PureEvent, check_epsilon, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.mpc.arrays import Integers
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.heavy_tail import DILATE, GRID, SLIDE, add_heavy_tail
from umpc_papers.central.smooth import LocalBound, smooth_estimates
from umpc_papers.central.terms import (
    CompleteFamily,
    Family,
    Terms,
    kernel_terms,
    share,
    subsampled_family,
    sums,
)

SLOPES = 2.0 ** (np.arange(-24, 7) / 2)
"""Candidates for the slope η, in multiples of epsilon."""
SLIDING_PARTS = tuple(Fraction(percent, 100) for percent in (30, 40, 50, 60, 70, 80, 90, 95, 98))
"""Candidates for the part of epsilon that goes to the slide α."""


@dataclass(frozen=True)
class Tuning:
    """The estimator's public parameters.

    Args:
        bound: on the local sensitivity, in units.
        alpha, beta: the slide and the dilation that the noise allows.
    """

    bound: LocalBound
    alpha: Fraction
    beta: Fraction

    def scale(self, level: int, records: int) -> Fraction:
        """S/α, the noise's scale for a table with this L, in units."""
        return self.bound.smooth(level, self.beta, records) / self.alpha


@dataclass(frozen=True)
class Reweighted:
    """The reweighted mean of a table. Both numbers are secret.

    Args:
        level: L.
        value: Ã, in units.
    """

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
    """The slope and the division of epsilon with the least noise at L = 0, among 31 × 9 candidates.

    All arguments are public.

    Args:
        width: C in units.
        concentration: ξ in units. A larger ξ than C counts as C, because no deviation exceeds C.
        part, together: q and p.
        epsilon: > 0, exact.
        n: the number of records.
    """
    xi = min(concentration, Fraction(width))
    slopes = float(epsilon) * SLOPES
    found = []
    for sliding in SLIDING_PARTS:
        # epsilon = SLIDE α + DILATE β
        alpha = sliding * epsilon / SLIDE
        beta = (1 - sliding) * epsilon / DILATE
        noise = smooth_estimates(
            float(xi / width), slopes, float(beta), n, float(part), float(together)
        )
        best = int(np.argmin(noise))
        found.append((float(noise[best]) / float(alpha), float(slopes[best]), alpha, beta))
    _, slope, alpha, beta = min(found, key=lambda choice: choice[0])
    bound = LocalBound(Fraction(width), Fraction(xi), _short(slope), part, together)
    return Tuning(bound, alpha, beta)


def _short(number: float) -> Fraction:
    """A number above 0, rounded to 20 significant bits, however small it is."""
    mantissa, exponent = math.frexp(number)
    return round(mantissa * (1 << 20)) * Fraction(2) ** (exponent - 20)


def reweight(terms: Terms, family: Family, bound: LocalBound) -> Reweighted:
    """L and Ã, exactly.

    Cost: one pass over the family, and a second one where some record is outlying.
    """
    whole, at = sums(terms, family)
    # Equation 11: A and the H_i.
    mean = Fraction(whole, family.count)
    means = [
        Fraction(int(a), int(m)) if m else mean for a, m in zip(at, family.occurrences, strict=True)
    ]
    deviations = [abs(at_record - mean) for at_record in means]
    # Equation 12: L.
    level = least_level(deviations, bound)
    threshold = bound.threshold(level)
    # Equation 14: the weights of the bad records.
    weights = {i: weight(u, level, bound) for i, u in enumerate(deviations) if u > threshold}
    outlying = sorted(weights, key=weights.__getitem__)
    if not outlying:
        return Reweighted(level, mean)
    # Equation 15: Ã is A less the sum of (1 - w_S)(f_S - A)/M.
    counts, found = _by_least_weight(terms, family, outlying)
    missing = sum(
        ((1 - weights[i]) * (found[rank] - counts[rank] * mean) for rank, i in enumerate(outlying)),
        Fraction(0),
    )
    return Reweighted(level, mean - missing / family.count)


def least_level(deviations: list[Fraction], bound: LocalBound) -> int:
    """L: the least t >= 0 such that at most t deviations exceed ξ + d t (equation 12)."""
    descending = sorted(deviations, reverse=True)
    return next(
        t
        for t in range(len(descending) + 1)
        if t == len(descending) or descending[t] <= bound.threshold(t)
    )


def weight(deviation: Fraction, level: int, bound: LocalBound) -> Fraction:
    """w_i: 1 up to the threshold, then a linear fall to 0 over `fade` (equation 14)."""
    beyond = deviation - bound.threshold(level)
    if beyond <= 0:
        return Fraction(1)
    return max(Fraction(0), 1 - beyond / bound.fade)


def _by_least_weight(
    terms: Terms, family: Family, outlying: list[int]
) -> tuple[list[int], list[int]]:
    """For each outlying record, the sets in which it has the least weight.

    Args:
        outlying: numbers of the outlying records, by ascending weight.

    Returns: the number of such sets, and the sum of f over them in units, for each record.
    """
    rank: Integers = np.full(terms.records, len(outlying), dtype=np.int64)
    rank[outlying] = np.arange(len(outlying))
    counts = np.zeros(len(outlying), dtype=np.int64)
    found = np.zeros(len(outlying), dtype=np.int64)
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
    """The private mean of f over a family, in values (Algorithm 3). It is epsilon-DP.

    Args:
        concentration: ξ in values.
        epsilon: > 0, exact.
        grid: granularity of the release, in values.
    """
    if not terms.width:
        return terms.low * terms.unit
    tuning = tuning_of(terms, family, concentration, epsilon)
    found = reweight(terms, family, tuning.bound)
    # Algorithm 3, last step: noise scaled to the smooth sensitivity.
    scale = tuning.scale(found.level, terms.records)
    return add_heavy_tail(found.value * terms.unit, scale * terms.unit, grid, bits)


def tuning_of(terms: Terms, family: Family, concentration: Fraction, epsilon: Fraction) -> Tuning:
    """The public parameters for a family of sets; they do not depend on the records' values.

    Args:
        concentration: ξ in values.
    """
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
) -> Fraction:
    """ξ such that, for a bounded and degenerate kernel, every |H_i - A| <= ξ.

    It holds except with probability `failure`. Given X_i, H_i is a U-statistic of degree k - 1. It
    is hence a mean of means of m = (n-1)//(k-1) independent values of range C and variance v.
    Therefore |H_i - θ| <= t except with probability 2 exp(-m t²/(2(v + Ct/3))) (Bernstein;
    Hoeffding 1963, section 5). A satisfies this bound with m = n // k. Each of the two gets half of
    `failure`. A choice that does not fit the data costs accuracy only.

    Paper: 002, Lemma 6, with its constants. For a kernel that is not degenerate, E[f | X_i] may
    differ from θ by up to C more.

    Args:
        records, degree: n and k.
        width: C in values.
        variance: v, at least the variance of f given X_i, in squared values.
        failure: the probability that some record violates the bound.
    """
    blocks = (records - 1) // max(1, degree - 1)
    c = float(width)
    v = float(variance)
    # |H_i - θ| for all records, and |A - θ|.
    near = _bernstein(blocks, c, v, math.log(4 * records / float(failure)))
    centre = _bernstein(records // degree, c, v, math.log(4 / float(failure)))
    return Fraction(near + centre).limit_denominator(1 << 40)


def _bernstein(blocks: int, width: float, variance: float, exponent: float) -> float:
    """The t that solves blocks t²/(2(v + width t/3)) = exponent."""
    linear = width * exponent / (3 * blocks)
    return linear + math.sqrt(linear * linear + 2 * variance * exponent / blocks)


@dataclass(frozen=True)
class LocalHajek:
    """The local Hájek estimator, epsilon-DP for replace-one.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
        concentration: ξ >= 0, exact, in values: the expected distance of the H_i from the mean, at
            most.
        count: M of a subsampled family (section 4.5); None takes all sets.
        grid: granularity of the release, in values; exact.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
        StudyError: another parameter is out of its range.
    """

    kernel: Kernel
    epsilon: Fraction
    concentration: Fraction
    count: int | None = None
    grid: Fraction = GRID

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not is_exact(self.concentration) or self.concentration < 0:
            raise StudyError(
                "the concentration must be an exact number, 0 or more, "
                f"but {self.concentration!r} came"
            )
        if not is_exact(self.grid) or self.grid <= 0:
            raise StudyError(f"the grid must be an exact number above 0, but {self.grid!r} came")
        if self.count is not None and not (is_integer(self.count) and self.count > 0):
            raise StudyError(
                f"the number of subsampled sets must be an integer above 0, but {self.count!r} came"
            )

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values.

        Reveals: this number; the family may be public.
        """
        terms = kernel_terms(self.kernel, columns)
        family = self.family(terms.records, bits)
        xi = Fraction(self.concentration)
        return private_mean(terms, family, xi, self.epsilon, bits, self.grid)

    def family(self, records: int, bits: RandomBits) -> Family:
        """The family of sets. `estimate` draws it before all else."""
        if self.count is None:
            return CompleteFamily(records, self.kernel.degree)
        return subsampled_family(records, self.kernel.degree, self.count, bits)

    def noise_variance(self, family: Family, level: int = 0) -> float:
        """Noise variance for tables of this L, exactly, in squared values.

        It is (S/α)² for the noise and grid²/12 for the rounding.
        """
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
        """Mean squared error towards the parameter, over all sets and for tables of L = 0.

        Args:
            records: n.
            variance: of the complete U-statistic (`moments`).
        """
        return variance + self.noise_variance(CompleteFamily(records, self.kernel.degree))

    @property
    def event(self) -> PureEvent:
        """The privacy event that the accountant charges."""
        return PureEvent(self.epsilon)
