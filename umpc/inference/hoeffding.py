"""An error law with Hoeffding's bound for the population, for every number of records.

A U-statistic of n records is a mean, over all orders of the records, of means of m = n/k
independent values of its kernel (Hoeffding 1963, section 5a). So every bound by the exponential
moment of such a mean holds for it. For values in [low, high] with mean 0,

    P(U >= t) <= exp(−m·KL(q ‖ p)),  p = −low/(high − low),  q = (t − low)/(high − low)

(Hoeffding 1963, theorem 1). The noise is independent of the records, so with its exact law

    P(noise + U >= x) <= Σ over noise values e of P(e)·bound(x − e).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.error_law import ErrorLaw
from umpc.ustat.released_means import ReleasedStatistic

Floats = NDArray[np.float64]
STEPS = 22
ROUNDING = 1e-6
"""A quantile is moved outward by this part of it. The end of the range may be a quantile."""
TOGETHER = 16
"""Neighbouring points of the error's grid are taken together, at the outer end of each group."""


@dataclass(frozen=True)
class BoundedErrorLaw(ErrorLaw):
    """Noise and sampling, and the population's error by its bound.

    Args: low, high: the ends of the combination, low < 0 < high. independent: m.
    """

    low: float = 0.0
    high: float = 0.0
    independent: int = 1

    def central(self, tail: float) -> tuple[float, float]:
        """(low, high): the error lies beyond either with a probability of at most `tail`.

        Both are infinite for a tail that heavy tails beyond the grid may have.
        """
        tail -= self.beyond
        if tail <= 0:
            return -inf, inf
        places, masses = self.masses()
        above = self._end(places, masses, self.low, self.high, tail)
        below = self._end(-places, masses, -self.high, -self.low, tail)
        return -below, above

    def _end(self, places: Floats, masses: Floats, low: float, high: float, tail: float) -> float:
        """The least error that is exceeded with a probability of at most `tail`."""
        shifted, masses = _grouped(places, masses)
        shifted = shifted + self.slack
        inside, outside = 0.0, high + float(shifted.max()) + self.slack
        for _ in range(STEPS):
            middle = (inside + outside) / 2
            bound = float(masses @ self._bound(middle - shifted, low, high))
            inside, outside = (middle, outside) if bound > tail else (inside, middle)
        return outside * (1 + ROUNDING)

    def _bound(self, values: Floats, low: float, high: float) -> Floats:
        """The bound of P(U >= value), for values in [low, high] with mean 0."""
        p = -low / (high - low)
        q = np.clip((values - low) / (high - low), p, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = q * np.log(q / p)
            second = np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - p)), 0.0)
        bound: Floats = np.exp(-self.independent * (first + second))
        return np.where(values > high, 0.0, bound)


def _grouped(places: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Fewer points, none of which lies below those that it stands for."""
    order = np.argsort(places)
    starts = np.arange(0, len(places), TOGETHER)
    return (
        np.maximum.reduceat(places[order], starts),
        np.add.reduceat(masses[order], starts),
    )


@dataclass(frozen=True)
class BoundedStatistic(ReleasedStatistic):
    """A released statistic whose population error is bounded for every number of records.

    independent: m, the number of disjoint sets of records.
    """

    independent: int = 1

    def law(self, weights: Sequence[float], constant: float) -> ErrorLaw:
        inner = super().law(weights, constant)
        values = self.points @ np.array(weights) - constant
        low, high = float(values.min()), float(values.max())
        if low >= 0 or high <= 0:
            return inner
        return BoundedErrorLaw(
            inner.noises,
            inner.weights,
            inner.sampling,
            low=low,
            high=high,
            independent=self.independent,
        )
