"""The local Hájek estimator for kernels of wide range whose values lie close together: half the records find where.

1. A random half: `naive`, a coarse private mean θ~ of f.
2. The other half: f is cut to θ~ ± r, where r is the width of all its values around θ and the error of θ~ together,
   and the local Hájek estimator runs with the cut function, of range 2r in place of C, and ξ for sub-Gaussian H_i.

Privacy. The halves are random and depend on no value. A replaced record of the first half changes θ~ only, which is
epsilon-DP, and what follows uses θ~ and the other records. One of the second half leaves θ~ as it is, and the
estimator is epsilon-DP for any interval. So all is epsilon-DP with epsilon, not epsilon/2, for each part: parallel
composition, adaptive.

Widths, for a τ-sub-Gaussian f (paper 002, Lemma 5: H_i is τ-sub-Gaussian too), n records in the second half, m = n //
k: values within τ√(2 log(2 C(n,k)/γ)), H_i within τ√(2 log(2n/γ)), their mean within τ√(2 log(2/γ)/m) of θ; θ~ within
its noise's reach and τ√(2 log(2/γ)/m'). Accuracy only: where the data are otherwise, the cut adds bias.

MSE, predicted at L = 0 and where nothing is cut: the complete variance for n/2 records plus the noise.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 4.3, Lemma 5, Corollary 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from umpc.dp.checks import check_epsilon, is_exact
from umpc.dp.events import PureEvent
from umpc.dp.heavy_tail import GRID
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError, TooFewRecords
from umpc.protocols.central.adaptations import PrivateTuples, naive
from umpc.protocols.central.hajek import private_mean, tune
from umpc.protocols.central.moments import complete_variance
from umpc.protocols.central.terms import CompleteFamily, kernel_terms, permutation, share
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel


@dataclass(frozen=True)
class SplitHajek:
    """epsilon-DP, replace-one.

    Args:
        kernel: symmetric, of degree k.
        epsilon: > 0, exact.
        spread: τ, exact, in values; a guess that the data need not fulfil.
        failure: γ, of each width.
        grid: granularity of the release, in values.
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
        """The noisy mean, in the kernel's values. Reveals: this number, and θ~ were it shown."""
        records = len(next(iter(columns.values())))
        if records < 4 * self.kernel.degree:
            raise TooFewRecords(
                f"expected at least {4 * self.kernel.degree} records, {records} came"
            )
        order = permutation(records, bits)
        first, second = (
            {name: c[part] for name, c in columns.items()} for part in self._halves(order)
        )
        centre = self.coarse.estimate(first, bits)
        terms = kernel_terms(self.kernel, second)
        low, high = self._cut(centre, records)
        cut = terms.clipped(low, high)
        family = CompleteFamily(terms.records, terms.degree)
        return private_mean(
            cut, family, self.concentration(terms.records), self.epsilon, bits, self.grid
        )

    @property
    def coarse(self) -> PrivateTuples:
        """The mean of the first half."""
        return naive(self.kernel, self.epsilon, self.spread, failure=self.failure)

    def _halves(self, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = len(order) // 2
        return order[:half], order[half:]

    def _cut(self, centre: Fraction, records: int) -> tuple[int, int]:
        """θ~ ± r in units, inside the kernel's range, always as long."""
        unit, reach = self.kernel.unit, self.cut_units(records)
        bottom = math.floor(self.kernel.interval.low / unit)
        top = math.ceil(self.kernel.interval.high / unit)
        low = max(bottom, min(math.floor(centre / unit) - reach // 2, top - reach))
        return low, low + reach

    def cut_units(self, records: int) -> int:
        """2r in units, whatever the data are; at most the kernel's range."""
        half = records // 2
        pairs = math.comb(records - half, self.kernel.degree)
        wide = math.sqrt(2 * math.log(2 * pairs / float(self.failure)))
        noise = math.sqrt(self.coarse.noise_variance(half) / 2) * math.log(1 / float(self.failure))
        near = math.sqrt(2 * math.log(2 / float(self.failure)) / (half // self.kernel.degree))
        radius = float(self.spread) * (wide + near) + noise
        whole = math.ceil(self.kernel.interval.high / self.kernel.unit)
        whole -= math.floor(self.kernel.interval.low / self.kernel.unit)
        return min(whole, 2 * math.ceil(radius / float(self.kernel.unit)) + 1)

    def concentration(self, records: int) -> Fraction:
        """ξ for so many records in the second half, in values."""
        at_record = math.sqrt(2 * math.log(2 * records / float(self.failure)))
        mean = math.sqrt(2 * math.log(2 / float(self.failure)) / (records // self.kernel.degree))
        return self.spread * Fraction(at_record + mean).limit_denominator(1 << 20)

    def noise_variance(self, records: int) -> float:
        """At L = 0, squared values."""
        rest = records - records // 2
        family, unit = CompleteFamily(rest, self.kernel.degree), self.kernel.unit
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
        """Towards the parameter, for independent records with these ζ_1 .. ζ_k; cuts not counted."""
        return complete_variance(records - records // 2, zetas) + self.noise_variance(records)

    @property
    def event(self) -> PureEvent:
        return PureEvent(self.epsilon)
