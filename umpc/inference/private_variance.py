"""A mean over pairs whose variance in the population is bounded by a released second sum.

For records drawn independently, the mean U of a kernel f over all pairs of n records has

    Var U = (4(n − 2)·ζ₁ + 2·ζ₂) / (n(n − 1))                            (Hoeffding 1948, 5.13),

where ζ₂ = Var f, and ζ₁ is the variance of the projection of f. The second sum has the mean
μ = ζ₁ + θ² (`umpc/ustat/projection.py`). An upper end for μ counts all of that sum's errors: its
noise, the sampling of E and the drawing of the records. It is below μ with a probability of at most
MISSED times that of the interval to miss. For each θ, ζ₁ is then at most the upper end less θ², and
at most ζ₂/2; ζ₂ is at most the largest variance of a kernel with the mean θ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from umpc.ustat.error_law import ErrorLaw
from umpc.ustat.intervals import covering_interval
from umpc.ustat.released_means import Floats, ReleasedStatistic, ReleasedSum

MISSED = 0.1
"""The part of an interval's probability to miss that the upper end for μ takes."""


@dataclass(frozen=True)
class EstimatedVariance(ReleasedStatistic):
    """A mean over pairs for the population. Its one sum is of the kernel over triples.

    Args: records: n. second: the upper end for ζ₁ + θ².
    """

    records: int = 0
    second: float = 0.0

    @property
    def has_one_law(self) -> bool:
        """False: the drawing of the records is an error, and its law depends on the value."""
        return False

    def law(self, weights: Sequence[float], constant: float) -> ErrorLaw:
        """The law of the error of the mean, if `constant` is its true value θ."""
        law = super().law(weights, constant)
        values = self.points @ weights - constant
        largest = float(-values.min() * values.max())
        if largest <= 0:
            return law
        single = min(largest / 2, max(0.0, self.second - constant**2))
        n = self.records
        return replace(law, normal=sqrt((4 * (n - 2) * single + 2 * largest) / (n * (n - 1))))


def upper_second(
    second: ReleasedSum, points: Floats, records: int, missed: float, edges: int = 0
) -> float:
    """The upper end for the population's mean of the second sum.

    Args:
        points: (points, 1) the ends of its kernel. missed: how often the end may be too low.
        edges: |E|; 0 where it is not known.
    """
    independent = max(1, records // 3)
    statistic = ReleasedStatistic([second], points, 1 / independent, edges)
    return covering_interval("mean", statistic, 1, missed)[1]
