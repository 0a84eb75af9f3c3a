"""The complete U-statistic with Laplace noise of its global sensitivity: the baseline.

The sum of f over all C(n, k) sets is an integer in the kernel's units. Replacing one record changes
the C(n-1, k-1) sets that hold it, each by at most Δf = high - low. The sum's sensitivity is
therefore C(n-1, k-1) Δf units, and the mean's is kΔf/n. The integer sum gets discrete Laplace
noise. The result is exactly epsilon-DP, and it needs no grid besides the kernel's own unit.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, Lemma 3 with equation 1; Dwork, McSherry, Nissim, Smith
2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

from umpc.dp.calibration import DiscreteLaplace
from umpc.dp.events import PureEvent, check_epsilon
from umpc.dp.random_bits import RandomBits
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.central.laplace import discrete_laplace
from umpc_papers.central.terms import CompleteFamily, kernel_terms, total


@dataclass(frozen=True)
class GlobalSensitivity:
    """The global-sensitivity mechanism, epsilon-DP for replace-one.

    Args:
        kernel: symmetric, of degree k; its interval is the public range.
        epsilon: > 0, exact.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
    """

    kernel: Kernel
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))

    def estimate(self, columns: Columns, bits: RandomBits) -> Fraction:
        """The noisy mean, in the kernel's values.

        Reveals: this number.
        Cost: C(n, k) evaluations.
        """
        terms = kernel_terms(self.kernel, columns)
        family = CompleteFamily(terms.records, terms.degree)
        exact = total(terms, family)
        # Lemma 3: noise of scale sensitivity/epsilon.
        noisy = discrete_laplace(exact, self.sensitivity(terms.records), self.epsilon, bits)
        return noisy * terms.unit / family.count

    def sensitivity(self, records: int) -> int:
        """Sensitivity of the sum over all sets, in units."""
        return comb(records - 1, self.kernel.degree - 1) * self.kernel.sensitivity_units

    def noise_variance(self, records: int) -> float:
        """Noise variance of the mean, in squared values: near 2(kΔf/(nε))².

        It is exactly the mean squared error towards the complete U-statistic.
        """
        sensitivity = self.sensitivity(records)
        if not sensitivity:
            return 0.0
        law = DiscreteLaplace(self.epsilon / sensitivity)
        return law.variance * float(self.kernel.unit / comb(records, self.kernel.degree)) ** 2

    def mse(self, records: int, variance: float = 0.0) -> float:
        """Mean squared error towards the parameter.

        Args:
            records: n.
            variance: of the complete U-statistic (`moments`).
        """
        return variance + self.noise_variance(records)

    @property
    def event(self) -> PureEvent:
        """The privacy event that the accountant charges."""
        return PureEvent(self.epsilon)
