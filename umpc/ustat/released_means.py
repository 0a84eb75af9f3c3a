"""The released means of a statistic, and what is public about their errors.

The law of the noise, |E|, the numbers of records, the kernels' ranges and the released means are
public; the variance σ² of a combination g of the kernels over all sets is not. It has a bound that
follows from public numbers:

    σ² <= max Σ p·g²  over shares p of the values that g can have,
    with Σ p = 1, Σ p·g = 0, and the other sums' means near the released ones.

Without other sums this is −min g · max g (Bhatia & Davis 2000): for Kendall's tau 1 − θ², and for a
share θ(1 − θ). Some table attains it. *Near* means within NEAR standard deviations of the noise and
the sampling; they are exceeded with a probability below 0.2 % for each sum. The variance of the
mean over E is at most factor·σ²/|E| (`design.py`), exact for some table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.counted_sets import CountedSets
from umpc.ustat.error_law import Draws, ErrorLaw, Noise, Sampling, whole_draws
from umpc.ustat.estimators import ENTROPIES, QUANTILE

Floats = NDArray[np.float64]
Interval = tuple[float, float]

DENOMINATORS = {"ratio": (1,), "geometric_ratio": (1, 2)} | dict.fromkeys(ENTROPIES, (0,))
"""The sums that must be told from zero, or the value is withheld."""
LEAST_SHOWN = 0.02
"""A value is taken to be shown with at least this probability."""
NEAR = 4.5
"""The standard deviations within which other sums' means are taken to be."""
HALVINGS = 20
"""A denominator of which half would be shown is found within 2^-20 of the released one."""
ROUNDING = 1e-9
"""A share that is negative by less is 0."""


@dataclass(frozen=True)
class ReleasedSum:
    """A released mean over E.

    Args:
        noise: the law of its noise.
        low, high: the range of its kernel.
        sampling: the standard deviation from taking E, for the worst table: √(factor/|E|)·width/2.
    """

    mean: float
    noise: Noise
    low: float
    high: float
    sampling: float

    def near(self, population: float = 0.0) -> Interval:
        """The mean over all sets, or in the population, lies here with a probability above 99.8 %.

        Args: population: as in `ReleasedStatistic`.
        """
        sampled = population * (self.high - self.low) ** 2 / 4
        far = NEAR * sqrt(self.noise.std**2 + self.sampling**2 + sampled)
        return max(self.low, self.mean - far), min(self.high, self.mean + far)


@dataclass(frozen=True)
class ReleasedStatistic:
    """The released means of a statistic, and all values that its kernels have on the same records.

    points: (points, sums) float64, of `joint_values`.
    population: Var(mean over all sets of records that are drawn at random) is at most this times
        the variance of a kernel: k/n, or 1/min(n0, n1) (Hoeffding 1948, 5.13 and 5.20). It is 0
        for statistics of these records and not of their population.
    edges: |E|; 0 where the means are not those of |E| different sets.
    """

    sums: Sequence[ReleasedSum]
    points: Floats
    population: float = 0.0
    edges: int = 0

    @property
    def has_one_law(self) -> bool:
        """Whether the errors have one law, whatever the true value is: that of the noise."""
        return self._draws is None and not self.population

    @property
    def noise_alone(self) -> ReleasedStatistic:
        """The statistic on the sampled sets, whose only error is the noise."""
        return ReleasedStatistic([replace(each, sampling=0.0) for each in self.sums], self.points)

    def law(self, weights: Sequence[float], constant: float) -> ErrorLaw:
        """The law of the error of Σ weight·mean − constant, if its true value is 0."""
        noises = [entry.noise for entry in self.sums]
        values = self.points @ np.array(weights) - constant
        low, high = float(values.min()), float(values.max())
        if self.has_one_law or low >= 0 or high <= 0:
            # the worst table has no spread, or no table has this value
            return ErrorLaw(noises, weights)
        variance = self._variance(values)
        if variance <= 0:
            return ErrorLaw(noises, weights)
        sampling = self._sampling(low, high, variance)
        return ErrorLaw(noises, weights, sampling, sqrt(self.population * variance))

    def _sampling(self, low: float, high: float, variance: float) -> Sampling | None:
        """The law of the sampling's error of a combination with these ends and this variance.

        Between the ends lie other values, unless the variance is the largest one.
        """
        draws = self._draws
        if draws is None:
            return None
        if self.edges and variance >= -low * high * (1 - ROUNDING):
            return CountedSets(low, high, self.edges, self.edges / draws)
        return Draws(low, high, variance, whole_draws(draws))

    def shown(self, estimator: str) -> float:
        """How likely the value was to be shown, judged by the means of a value that is shown.

        A value is withheld where a denominator is not above QUANTILE standard deviations of its
        noise. So the denominators that are shown are too large on average. The true one is taken
        to be the least under which half of those shown are as large as the released one.
        """
        hidden = 0.0
        for place in DENOMINATORS.get(estimator, ()):
            weights = [float(number == place) for number in range(len(self.sums))]
            entry = self.sums[place]
            hidden += _hidden(self.law(weights, entry.mean), entry)
        return max(LEAST_SHOWN, 1 - hidden)

    @property
    def _draws(self) -> float | None:
        """|E| / factor, at least 1; None where the sums are over all sets."""
        counts = [
            ((entry.high - entry.low) / (2 * entry.sampling)) ** 2
            for entry in self.sums
            if entry.sampling and entry.high > entry.low
        ]
        return max(1.0, min(counts)) if counts else None

    def _variance(self, values: Floats) -> float:
        """The largest variance of a combination with these values at the points and mean 0."""
        widest = float(-values.min() * values.max())
        if len(self.sums) == 1:
            return widest
        boxes = [entry.near(self.population) for entry in self.sums[1:]]
        return min(widest, largest_square(values, self.points[:, 1:], boxes, widest))

    def std(self, weights: Sequence[float], constant: float) -> float:
        """The standard deviation from the sampling of E, for the worst table."""
        sampling = self.law(weights, constant).sampling
        return sampling.std if sampling else 0.0


def _hidden(law: ErrorLaw, entry: ReleasedSum) -> float:
    """How likely a denominator is below the limit, if its true mean is the one of `shown`.

    Args: law: of its error.
    """
    limit = QUANTILE * entry.noise.std

    def too_small(mean: float) -> bool:
        above = 1 - law.at_most(limit - mean)
        return 1 - law.at_most(entry.mean - mean) < above / 2

    low, high = 0.0, entry.mean
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return law.at_most(limit - high)


def largest_square(
    values: Floats, others: Floats, boxes: Sequence[Interval], otherwise: float
) -> float:
    """max Σ p·values² over shares p of the points with Σ p·values = 0 and other means in boxes.

    A linear program has its maximum at a basic solution, and there are few enough to try all.

    Args:
        values: (points,). others: (points, boxes) the other kernels' values.
        otherwise: the answer where no shares meet the conditions.
    """
    points, count = others.shape
    scale = float(np.abs(values).max())
    # rows: Σ p = 1, Σ p·g = 0, Σ p·f + slack = high, slack + rest = high − low
    rows = 2 + 2 * count
    system = np.zeros((rows, points + 2 * count))
    right = np.zeros(rows)
    system[0, :points] = right[0] = 1
    system[1, :points] = values / scale
    for box, (low, high) in enumerate(boxes):
        if low > high:
            return otherwise
        size = float(np.abs(others[:, box]).max()) or 1.0
        row, slack = 2 + 2 * box, points + 2 * box
        system[row, :points] = others[:, box] / size
        system[row, slack] = system[row + 1, slack] = system[row + 1, slack + 1] = 1
        right[row : row + 2] = high / size, (high - low) / size
    chosen = _bases(points + 2 * count, rows)
    bases = np.moveaxis(system[:, chosen], 0, 1)
    regular = np.abs(np.linalg.det(bases)) > ROUNDING
    if not regular.any():
        return otherwise
    solutions = np.linalg.solve(bases[regular], right[:, None])[:, :, 0]
    possible = (solutions >= -ROUNDING).all(axis=1)
    if not possible.any():
        return otherwise
    squares = np.concatenate([values**2, np.zeros(2 * count)])
    found = (squares[chosen[regular][possible]] * solutions[possible]).sum(axis=1)
    return float(found.max())


@lru_cache(maxsize=16)
def _bases(columns: int, rows: int) -> NDArray[np.int64]:
    return np.array(list(combinations(range(columns), rows)))
