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

*Counted sets.* The law of the sampling's error where a kernel has two values: how many sets of E
have one.

    error = width · (H/|E| − p)

H is the number of sets in E with the rarer value, and p ≤ 1/2 is the share of all sets that have
it. E takes each set once at most, so H has a smaller variance than independent draws. For the worst
table it is factor·|E|·p·(1 − p) (`design.py`). H has here the law

    Bin(M, q),  q = 1 − factor·(1 − p),  M = |E|·p/q,

which has the mean |E|·p, this variance, and only whole numbers of sets. For a part of M, one more
draw is made with a chance of frac(M), which makes the variance a little larger, never smaller. For
one set of the rarer value it is the exact law: M = 1, and q is the chance that E takes the set. For
a small E it is the law of |E| independent draws.

Sets without a common record repel each other, so an E of few sets may have a factor above 1. H then
has the law Bin(|E|, p) with a symmetric number of sets more or less, which makes up the variance.

Independent draws of the right variance are no substitute. There are |E|/factor of them, so a single
observed set is more than one draw, and none observed is less likely than it truly is.
`tests/ustat/test_counted_sets.py` adds up the probabilities of hypergeometric laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import ceil, floor, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.error_law import (
    LEAST_LOGARITHM,
    Draws,
    ErrorLaw,
    Floats,
    Noise,
    Sampling,
    whole_draws,
)
from umpc.ustat.estimators import ENTROPIES, QUANTILE
from umpc.ustat.kernel import Kernel
from umpc.ustat.pair_quantiles import cuts_of

Interval = tuple[float, float]

DENOMINATORS = {"ratio": (1,), "geometric_ratio": (1, 2), "difference_ratio": (2,)} | dict.fromkeys(
    ENTROPIES, (0,)
)
"""The sums that must be told from zero, or the value is withheld."""
LEAST_SHOWN = 0.02
"""A value is taken to be shown with at least this probability."""
NEAR = 4.5
"""The standard deviations within which other sums' means are taken to be."""
HALVINGS = 20
"""A denominator of which half would be shown is found within 2^-20 of the released one."""
ROUNDING = 1e-9
"""A share that is negative by less is 0."""


def joint_values(kernels: Sequence[Kernel]) -> Floats:
    """(points, kernels) float64, in the kernels' own unit: their convex hull holds all values.

    Those of one kernel are the ends of its interval.
    """
    if cuts_of(tuple(kernel.expression for kernel in kernels)):
        return np.eye(len(kernels))
    if len(kernels) > 1:
        from umpc.ustat.joint_values import values_together

        return values_together(kernels)
    interval = kernels[0].interval
    return np.array(sorted({(float(end),) for end in (interval.low, interval.high)}))


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
    largest: no combination of mean 0 has a larger variance; infinite where nothing more is known.
    ends: of a pair median, as `estimate` takes them.
    """

    sums: Sequence[ReleasedSum]
    points: Floats
    population: float = 0.0
    edges: int = 0
    ends: Sequence[float] = ()
    largest: float = inf

    @property
    def has_one_law(self) -> bool:
        """Whether the errors have one law, whatever the true value is: that of the noise."""
        return self._draws is None and not self.population

    @property
    def noise_alone(self) -> ReleasedStatistic:
        """The statistic on the sampled sets, whose only error is the noise."""
        sums = [replace(each, sampling=0.0) for each in self.sums]
        return ReleasedStatistic(sums, self.points, ends=self.ends)

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
        widest = min(float(-values.min() * values.max()), self.largest)
        if len(self.sums) == 1 or self.ends:
            return widest
        boxes = [entry.near(self.population) for entry in self.sums[1:]]
        return min(widest, largest_square(values, self.points[:, 1:], boxes, widest))


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


# --- counted sets ---------------------------------------------------------------------------------

EXCESS = 0.01
"""A part of a draw counts as a whole one where the variance grows by less than this part of it."""


@dataclass(frozen=True)
class CountedSets:
    """The error of the mean over E of a kernel with two values.

    Args:
        low, high: the values, less their mean over all sets: low < 0 < high.
        edges: |E|, at least 1. factor: above 0, of the variance of |E| independent draws.
    """

    low: float
    high: float
    edges: float
    factor: float

    @cached_property
    def parts(self) -> Sequence[Draws]:
        """Independent draws whose means add up to the error."""
        width = self.high - self.low
        share = min(self.high, -self.low) / width
        if self.factor > 1 + ROUNDING:
            return [self._part(self.edges, share), self._more(share)]
        chance = max(share, 1 - self.factor * (1 - share))  # they differ in rounding at factor 1
        draws = self.edges * share / chance
        if chance <= EXCESS * draws * (1 - chance):
            whole = float(ceil(draws))
            return [self._part(whole, self.edges * share / whole)]
        whole = float(floor(draws + ROUNDING))
        found = [self._part(whole, chance)] if whole else []
        rest = (draws - whole) * chance
        if rest <= ROUNDING and found:
            return found
        return [*found, self._part(1.0, rest)]

    def _part(self, count: float, chance: float) -> Draws:
        """The law of `count` draws that each take a set with this chance, less its mean."""
        unit = (self.high - self.low) * count / self.edges
        if -self.low > self.high:
            unit = -unit  # the rarer value is the low one
        ends = sorted((-chance * unit, (1 - chance) * unit))
        return Draws(ends[0], ends[1], chance * (1 - chance) * unit**2, count)

    def _more(self, share: float) -> Draws:
        """Sets more or less, each as likely: the variance that |E| independent draws lack."""
        lacking = (self.factor - 1) * self.edges * share * (1 - share)
        count = float(ceil(lacking))
        end = count * (self.high - self.low) / self.edges
        return Draws(-end, end, lacking / count * end**2, count)

    @property
    def std(self) -> float:
        return sqrt(sum(part.std**2 for part in self.parts))

    def modulus(self, times: Floats) -> Floats:
        """|E exp(i·t·error)|, or e^LEAST_LOGARITHM where it is less."""
        found = self.parts[0].modulus(times)
        for part in self.parts[1:]:
            found = np.maximum(found * part.modulus(times), np.exp(LEAST_LOGARITHM))
        return found

    def angle(self, times: Floats) -> Floats:
        """The angle of E exp(i·t·error), which counts where the modulus is not 0."""
        found = self.parts[0].angle(times)
        for part in self.parts[1:]:
            found = found + part.angle(times)
        return found
