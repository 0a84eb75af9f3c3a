"""The complete U-statistic with Laplace noise of its global sensitivity: what every other protocol has to beat.

The sum of f over all C(n, k) sets is an integer in the kernel's units. Replacing one record changes the C(n-1, k-1)
sets that hold it, each by at most Δf = high - low, so the sum's sensitivity is C(n-1, k-1) Δf units, hence the mean's
kΔf/n. Discrete Laplace noise on the integer sum: pure epsilon-DP, exact, and no grid besides the kernel's own unit.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, Lemma 3 with equation 1; Dwork, McSherry, Nissim, Smith 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

from umpc.dp.checks import check_epsilon
from umpc.dp.events import PureEvent
from umpc.dp.laplace import DiscreteLaplace
from umpc.dp.mechanisms import discrete_laplace
from umpc.dp.random_bits import RandomBits
from umpc.protocols.central.terms import CompleteFamily, kernel_terms, total
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel


@dataclass(frozen=True)
class GlobalSensitivity:
    """epsilon-DP, replace-one.

    Args:
        kernel: symmetric, of degree k; its interval is the public range.
        epsilon: > 0, exact.
    """

    kernel: Kernel
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values. Reveals: this number. Cost: C(n, k) evaluations."""
        terms = kernel_terms(self.kernel, columns)
        family = CompleteFamily(terms.records, terms.degree)
        noisy = discrete_laplace(
            total(terms, family), self.sensitivity(terms.records), self.epsilon, bits
        )
        return noisy * terms.unit / family.count

    def sensitivity(self, records: int) -> int:
        """Of the sum over all sets, in units."""
        return comb(records - 1, self.kernel.degree - 1) * self.kernel.sensitivity_units

    def noise_variance(self, records: int) -> float:
        """Of the mean, squared values: near 2(kΔf/(nε))². The MSE towards the complete U-statistic, exactly."""
        sensitivity = self.sensitivity(records)
        if not sensitivity:
            return 0.0
        law = DiscreteLaplace(self.epsilon / sensitivity)
        return law.variance * float(self.kernel.unit / comb(records, self.kernel.degree)) ** 2

    def mse(self, records: int, variance: float = 0.0) -> float:
        """Towards the parameter, where the complete U-statistic has this variance (`moments`)."""
        return variance + self.noise_variance(records)

    @property
    def event(self) -> PureEvent:
        return PureEvent(self.epsilon)
