"""The local Hájek estimator for kernels of wide range whose values lie close together.

1. A random half of the records: `naive` gives θ~, a coarse private mean of f.
2. The other half: f is cut to θ~ ± r, and the local Hájek estimator runs with the cut function. Its
   range is 2r in place of C, and ξ is that of sub-Gaussian H_i. Here r is the width of all values
   of f around θ plus the error of θ~.

*Privacy.* The halves are random and depend on no value. A replaced record of the first half changes
θ~ only. θ~ is epsilon-DP, and the second part uses θ~ and the other records. A replaced record of
the second half leaves θ~ unchanged, and the estimator is epsilon-DP for every interval. The result
is therefore epsilon-DP although each part uses epsilon, not epsilon/2: adaptive parallel
composition.

*Widths.* Let f be τ-sub-Gaussian; then so is H_i (paper 002, Lemma 5). Let the second half have n
records and m = n // k blocks, and the first half m' blocks. All values lie within
τ√(2 log(2 C(n,k)/γ)) of θ, all H_i within τ√(2 log(2n/γ)), and their mean within τ√(2 log(2/γ)/m).
θ~ lies within the reach of its noise plus τ√(2 log(2/γ)/m'). The widths affect accuracy only. Where
the data differ, the cut adds a bias.

*Predicted mean squared error*, at L = 0 and where nothing is cut: the complete variance for n/2
records plus the noise.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 4.3, Lemma 5, Corollary 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from umpc.dp.events import PureEvent, check_epsilon, is_exact
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError, TooFewRecords
from umpc.mpc.arrays import Integers
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.adaptations import PrivateTuples, naive
from umpc_papers.central.hajek import private_mean, tune
from umpc_papers.central.heavy_tail import GRID
from umpc_papers.central.moments import complete_variance
from umpc_papers.central.terms import CompleteFamily, kernel_terms, permutation, share


@dataclass(frozen=True)
class SplitHajek:
    """The local Hájek estimator around a coarse mean, epsilon-DP for replace-one.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
        spread: τ, exact, in values. It is a guess that the data need not fulfil.
        failure: γ, for each width; exact.
        grid: granularity of the release, in values; exact.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
        StudyError: another parameter is not exact or out of its range.
    """

    kernel: Kernel
    epsilon: Fraction
    spread: Fraction
    failure: Fraction = Fraction(1, 100)
    grid: Fraction = GRID

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not all(map(is_exact, (self.spread, self.failure, self.grid))):
            raise StudyError("expected exact numbers, such as 1 or Fraction(1, 2)")
        if not (self.spread > 0 and 0 < self.failure < 1 and self.grid > 0):
            raise StudyError("spread and grid must be above 0, failure between 0 and 1")

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values.

        Reveals: this number; the guarantee also covers θ~.

        Raises:
            TooFewRecords: there are fewer than 4k records.
        """
        records = len(next(iter(columns.values())))
        least = 4 * self.kernel.degree
        if records < least:
            raise TooFewRecords(f"expected at least {least} records, {records} came")
        order = permutation(records, bits)
        first, second = (
            {name: column[half] for name, column in columns.items()} for half in _halves(order)
        )
        # Section 4.3: the coarse mean θ~ of the first half.
        centre = self.coarse.estimate(first, bits)
        # Section 4.3: f projected to the interval around θ~.
        terms = kernel_terms(self.kernel, second)
        cut = terms.clipped(*self.cut_interval(centre, records))
        # Section 4.3: Algorithm 3 on the second half.
        family = CompleteFamily(terms.records, terms.degree)
        xi = self.concentration(terms.records)
        return private_mean(cut, family, xi, self.epsilon, bits, self.grid)

    @property
    def coarse(self) -> PrivateTuples:
        """The private mean of the first half (Definition 1)."""
        return naive(self.kernel, self.epsilon, self.spread, failure=self.failure)

    def cut_interval(self, centre: Fraction, records: int) -> tuple[int, int]:
        """θ~ ± r in units, inside the kernel's range.

        Args:
            centre: θ~, in values.
            records: n of both halves together, on which alone the length depends.
        """
        reach = self.cut_units(records)
        bottom, top = self._range_units()
        around = math.floor(centre / self.kernel.unit) - reach // 2
        low = max(bottom, min(around, top - reach))
        return low, low + reach

    def cut_units(self, records: int) -> int:
        """2r in units for all data; at most the length of the kernel's range.

        Args:
            records: n of both halves together.
        """
        half = records // 2
        failure = float(self.failure)
        sets = math.comb(records - half, self.kernel.degree)
        # The width of all values around θ.
        wide = math.sqrt(2 * math.log(2 * sets / failure))
        # The reach of θ~'s noise, and the distance of the first half's mean from θ.
        noise = math.sqrt(self.coarse.noise_variance(half) / 2) * math.log(1 / failure)
        near = math.sqrt(2 * math.log(2 / failure) / (half // self.kernel.degree))
        radius = float(self.spread) * (wide + near) + noise
        bottom, top = self._range_units()
        return min(top - bottom, 2 * math.ceil(radius / float(self.kernel.unit)) + 1)

    def _range_units(self) -> tuple[int, int]:
        """The kernel's range in units, rounded outwards."""
        interval = self.kernel.interval
        unit = self.kernel.unit
        return math.floor(interval.low / unit), math.ceil(interval.high / unit)

    def concentration(self, records: int) -> Fraction:
        """ξ in values (Lemma 5).

        Args:
            records: n of the second half.
        """
        failure = float(self.failure)
        at_record = math.sqrt(2 * math.log(2 * records / failure))
        mean = math.sqrt(2 * math.log(2 / failure) / (records // self.kernel.degree))
        return self.spread * Fraction(at_record + mean).limit_denominator(1 << 20)

    def noise_variance(self, records: int) -> float:
        """Noise variance at L = 0, in squared values.

        Args:
            records: n of both halves together.
        """
        rest = records - records // 2
        family = CompleteFamily(rest, self.kernel.degree)
        unit = self.kernel.unit
        width = self.cut_units(records)
        if not width:
            return 0.0
        tuning = tune(
            width,
            self.concentration(rest) / unit,
            share(family),
            family.together,
            self.epsilon,
            rest,
        )
        return float(tuning.scale(0, rest) * unit) ** 2 + float(self.grid) ** 2 / 12

    def mse(self, records: int, zetas: tuple[float, ...]) -> float:
        """Mean squared error towards the parameter; the error of the cut is left out.

        Args:
            records: n of both halves together, independent records.
            zetas: ζ_1 .. ζ_k, squared values.
        """
        return complete_variance(records - records // 2, zetas) + self.noise_variance(records)

    @property
    def event(self) -> PureEvent:
        """The privacy event that the accountant charges."""
        return PureEvent(self.epsilon)


def _halves(order: Integers) -> tuple[Integers, Integers]:
    half = len(order) // 2
    return order[:half], order[half:]
