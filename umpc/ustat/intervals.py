"""The interval for the statistic on all sets of the records: noise and the sampling of E together.

An interval holds each value θ that the released means do not contradict. For a statistic θ, some
combination of the sums has the mean 0 over all sets if θ is true:

| estimator | combination |
|---|---|
| mean, total, collision entropy | f0 − θ |
| mean with variance | f0 − θ, given the first sum alone |
| ratio | f0 − θ·f1 (Fieller 1954) |
| geometric ratio | f0 − θ·(f1·√(s2/s1) + f2·√(s1/s2))/2, linear at the released means |

The released combination is then an error alone. Its law is computed (`error_law.py`), and θ is in
the interval if both tails at the released value exceed 2.5 %. So the interval holds the true θ in
95 % of all runs, whatever the records are.

*What is public.* The law of the noise, |E|, the numbers of records, the kernels' ranges and the
released means are public; the variance σ² of the combination g over all sets is not. It has a bound
that follows from public numbers:

    σ² <= max Σ p·g²  over shares p of the values that g can have,
    with Σ p = 1, Σ p·g = 0, and the other sums' means near the released ones.

Without other sums this is −min g · max g (Bhatia & Davis 2000): for Kendall's tau 1 − θ², and for a
share θ(1 − θ). Some table attains it. *Near* means within NEAR standard deviations of the noise and
the sampling; they are exceeded with a probability below 0.2 % for each sum. The variance of the
mean over E is at most factor·σ²/|E| (`design.py`), exact for some table.

*What is approximate.* The sampling error is taken as a mean of independent draws with the bound's
variance. It is a sum over many sets of randomly numbered records, whose law is close to normal; for
few or rare sets the draws are as skew as sets can be. For geometric ratios the combination is
linear. `python -m bench.coverage` counts how often intervals hold the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.error_law import Draws, ErrorLaw, Noise, whole_draws
from umpc.ustat.estimators import ENTROPIES, QUANTILE, WITH_VARIANCE, log_of

Floats = NDArray[np.float64]

TAIL = 0.025
"""Each tail of a 95 % interval."""
DENOMINATORS = {"ratio": (1,), "geometric_ratio": (1, 2)} | dict.fromkeys(ENTROPIES, (0,))
"""The sums that must be told from zero, or the value is withheld."""
LEAST_SHOWN = 0.02
"""A value is taken to be shown with at least this probability."""
NEAR = 4.5
"""The standard deviations within which other sums' means are taken to be."""
FIRST_STEP = 1.25
"""The next step outward, as a multiple of the candidate's distance from the estimate."""
DOUBLINGS = 64
STEPS = 20
ACCURACY = 1e-3
"""The accuracy of an end, relative to its distance from the estimate."""
ROUNDING = 1e-9
"""A share that is negative by less is 0."""

Interval = tuple[float, float]


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

        Args: population: as of `ReleasedStatistic`.
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
    """

    sums: Sequence[ReleasedSum]
    points: Floats
    population: float = 0.0

    def law(self, weights: Sequence[float], constant: float) -> ErrorLaw:
        """The law of the error of Σ weight·mean − constant, if its true value is 0."""
        noises = [entry.noise for entry in self.sums]
        count = self._draws
        values = self.points @ np.array(weights) - constant
        low, high = float(values.min()), float(values.max())
        if (count is None and not self.population) or low >= 0 or high <= 0:
            # the worst table has no spread, or no table has this value
            return ErrorLaw(noises, weights)
        variance = self._variance(values)
        if variance <= 0:
            return ErrorLaw(noises, weights)
        draws = Draws(low, high, variance, count) if count is not None else None
        return ErrorLaw(noises, weights, draws, sqrt(self.population * variance))

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
        """|E| / factor; None where the sums are over all sets."""
        counts = [
            ((entry.high - entry.low) / (2 * entry.sampling)) ** 2
            for entry in self.sums
            if entry.sampling and entry.high > entry.low
        ]
        return whole_draws(min(counts)) if counts else None

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
    for _ in range(STEPS):
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


Contrast = Callable[[float], tuple[list[float], float]]
"""θ → the weights of the sums, and the constant that is subtracted."""


def covering_interval(
    estimator: str, statistic: ReleasedStatistic, sets: int, tail: float = TAIL
) -> Interval:
    """The interval for the statistic on all sets, or in the population.

    Args:
        estimator: the name of one whose denominators can be told from zero, as `estimate` says.
        sets: the number of possible sets.
        tail: the probability of each tail; by default that of a 95 % interval.

    Returns: (low, high). Where the means do not bound the statistic, its ends are those of all
        values that it can have; they are infinite where these have no bound either.
    """
    means = [entry.mean for entry in statistic.sums]
    contrast, start = contrast_of(estimator, means)
    tail = tail * statistic.shown(estimator)
    low, high = (_end(statistic, contrast, start, means, side, tail) for side in (-1, 1))
    if estimator == "total":
        return low * sets, high * sets
    if not (isfinite(low) and isfinite(high)):
        least, most = possible_values(estimator, statistic.points)
        low, high = max(low, least), min(high, most)
    if estimator in ENTROPIES:
        # it decreases in the mean, and 0.0 − x is never −0.0
        base = ENTROPIES[estimator]
        return 0.0 - log_of(high, base), 0.0 - log_of(low, base) if low > 0 else inf
    return low, high


def possible_values(estimator: str, points: Floats) -> Interval:
    """The range of a ratio of means, from all values that its sums have together.

    A mean of numerators is at most the largest quotient times the mean of denominators. For a
    geometric mean of two denominators that is the inequality of Cauchy and Schwarz.
    """
    if estimator not in ("ratio", "geometric_ratio"):
        return -inf, inf
    below = points[:, 1] if estimator == "ratio" else np.sqrt(points[:, 1] * points[:, 2])
    if (points[:, 1:] < 0).any() or (points[below == 0, 0] != 0).any() or not below.any():
        return -inf, inf
    quotients = points[below > 0, 0] / below[below > 0]
    least, most = float(quotients.min()), float(quotients.max())
    if estimator == "ratio":
        return least, most
    # the geometric mean may exceed each denominator's own, so quotients may be nearer to 0
    return min(least, 0.0), max(most, 0.0)


def is_covered(estimator: str, statistic: ReleasedStatistic, sets: int, value: float) -> bool:
    """Whether the interval holds this value of the statistic, without computing its ends.

    Args: as of `covering_interval`.
    """
    theta = value / sets if estimator == "total" else value
    if estimator in ENTROPIES:
        theta = ENTROPIES[estimator] ** -value
    means = [entry.mean for entry in statistic.sums]
    contrast, _ = contrast_of(estimator, means)
    return _holds(statistic, contrast, means, theta, TAIL * statistic.shown(estimator))


def sampling_std(estimator: str, statistic: ReleasedStatistic, sets: int) -> float:
    """The standard deviation from the sampling of E, for the worst table with the released means.

    It follows by the delta method. Args: as of `covering_interval`.
    """
    means = [entry.mean for entry in statistic.sums]
    contrast, start = contrast_of(estimator, means)
    return _slope(estimator, means, sets) * statistic.std(*contrast(start))


def population_std(estimator: str, statistic: ReleasedStatistic, sets: int) -> float:
    """The standard deviation from the drawing of the records, for the worst population.

    It follows by the delta method. Args: as of `covering_interval`.
    """
    means = [entry.mean for entry in statistic.sums]
    contrast, start = contrast_of(estimator, means)
    return _slope(estimator, means, sets) * statistic.law(*contrast(start)).normal


def _slope(estimator: str, means: Sequence[float], sets: int) -> float:
    """|∂ statistic / ∂ combination| at the released means."""
    slopes = {
        "mean": lambda: 1.0,
        WITH_VARIANCE: lambda: 1.0,
        "total": lambda: float(sets),
        "ratio": lambda: 1 / means[1],
        "geometric_ratio": lambda: 1 / (sqrt(means[1]) * sqrt(means[2])),
    }
    if estimator in ENTROPIES:
        return 1 / (means[0] * log(ENTROPIES[estimator]))
    return slopes[estimator]()


def contrast_of(estimator: str, means: Sequence[float]) -> tuple[Contrast, float]:
    """The combination for each θ, and the θ at which the released one is 0."""
    if estimator == "ratio":
        return lambda theta: ([1.0, -theta], 0.0), means[0] / means[1]
    if estimator == "geometric_ratio":
        first, second = sqrt(means[2] / means[1]) / 2, sqrt(means[1] / means[2]) / 2
        start = means[0] / (sqrt(means[1]) * sqrt(means[2]))
        return lambda theta: ([1.0, -theta * first, -theta * second], 0.0), start
    return lambda theta: ([1.0], theta), means[0]


def _end(
    statistic: ReleasedStatistic,
    contrast: Contrast,
    start: float,
    means: Sequence[float],
    side: int,
    tail: float,
) -> float:
    """The last θ on one side of `start` that the means do not contradict.

    A combination is linear in θ, and 0 at the start. So each θ has a candidate: the θ at which the
    combination would reach a quantile of this θ's own law. The end is its own candidate.
    """
    fall = -_combined(contrast, means, start + 1)

    def beyond(theta: float) -> float:
        """How far the candidate lies beyond θ; negative where the means contradict θ."""
        low, high = statistic.law(*contrast(theta)).central(tail)
        quantile = low if side > 0 else high
        return side * (start - quantile / fall - theta)

    inside, left = 0.0, beyond(start)
    if left <= 0:
        return start
    # without sampling the law is the same for all θ, and the first candidate is the end
    step = left
    for _ in range(DOUBLINGS):
        past = beyond(start + side * step)
        if abs(past) <= ACCURACY * step:
            return start + side * (step + max(0.0, past))
        if past < 0:
            found = _root(lambda at: beyond(start + side * at), inside, left, step, past)
            return start + side * found
        inside, left, step = step, past, FIRST_STEP * (step + past)
    return side * inf


def _root(
    function: Callable[[float], float], inside: float, left: float, outside: float, past: float
) -> float:
    """The step at which a falling function is 0, by false position (Illinois); never inside it.

    Args: left, past: the function at `inside`, above 0, and at `outside`, at most 0.
    """
    tolerance = ACCURACY * outside
    weight_in, weight_out = left, past
    for _ in range(STEPS):
        if outside - inside <= tolerance:
            break
        share = weight_in / (weight_in - weight_out)
        # a little beyond the line's root, so that the bracket closes from both ends
        middle = inside + (outside - inside) * min(0.99, max(0.01, share + ACCURACY))
        found = function(middle)
        if found > 0:
            inside, weight_in, weight_out = middle, found, weight_out / 2
        else:
            outside, weight_out, weight_in = middle, found, weight_in / 2
    return outside


def _combined(contrast: Contrast, means: Sequence[float], theta: float) -> float:
    """The released combination for this θ."""
    weights, constant = contrast(theta)
    return sum(weight * mean for weight, mean in zip(weights, means, strict=True)) - constant


def _holds(
    statistic: ReleasedStatistic,
    contrast: Contrast,
    means: Sequence[float],
    theta: float,
    tail: float,
) -> bool:
    """Whether the means do not contradict θ."""
    low, high = statistic.law(*contrast(theta)).central(tail)
    return low <= _combined(contrast, means, theta) <= high
