"""The interval for the statistic on all sets of the records: noise and the sampling of E together.

An interval holds each value θ that the released means do not contradict. For a statistic θ, some
combination of the sums has the mean 0 over all sets if θ is true:

| estimator | combination |
|---|---|
| mean, total, collision entropy | f0 − θ |
| mean with variance | f0 − θ, given the first sum alone |
| ratio | f0 − θ·f1 (Fieller 1954) |
| differences | f0 − f1 in place of f0 |
| geometric ratio | f0 − θ·(f1·√(s2/s1) + f2·√(s1/s2))/2, linear at the released means |

The released combination is then an error alone. Its law is computed (`error_law.py`), and θ is in
the interval if both tails at the released value exceed 2.5 %. So the interval holds the true θ in
95 % of all runs, whatever the records are.

*A released value that is impossible.* Noise may move it beyond all possible values. It then counts
as the nearest possible one. Each possible θ lies on the same side of both, and nearer to the
second. So no θ is contradicted that was not before, and the values that are not contradicted have
no gaps. Every interval is cut to the possible values: what is cut off was never the true value.

*What is public.* The law of the noise and a bound of the variance of each combination follow from
public numbers alone (`released_means.py`).

*What is approximate.* The sampling error is taken as a mean of independent draws with the bound's
variance. It is a sum over many sets of randomly numbered records, whose law is close to normal; for
few or rare sets the draws are as skew as sets can be. For geometric ratios the combination is
linear. `python -m bench.coverage` counts how often intervals hold the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf, isfinite, log, sqrt

import numpy as np

from umpc.ustat.error_law import ErrorLaw, Floats
from umpc.ustat.estimators import DIFFERENCES, ENTROPIES, WITH_VARIANCE, log_of
from umpc.ustat.pair_quantiles import MEDIAN, median_spread, quantile_interval
from umpc.ustat.released_means import Interval, ReleasedStatistic

TAIL = 0.025
"""Each tail of a 95 % interval."""
FIRST_STEP = 1.25
"""The next step outward, as a multiple of the candidate's distance from the estimate."""
DOUBLINGS = 64
STEPS = 20
LATE = 10
"""From this step of the search on, the bracket is halved."""
ACCURACY = 1e-3
"""The accuracy of an end, relative to its distance from the estimate."""
BEYOND = 1 + 4 * ACCURACY
"""An end is found where θ so much farther from the estimate is contradicted."""
LEAST_GROWTH = 1.5
"""The least next step outward, as a multiple of the last one."""
INWARD = 1e-6
"""How far the search begins from an end of the possible values, in widths of their range."""

BOTH = "both"
"""Sum 1 + sum 2, beside the estimators of a study."""
COMBINED = {name: (inner, -1.0) for name, inner in DIFFERENCES.items()} | {BOTH: ("mean", 1.0)}
"""Estimators of a combination of two sums: what takes it, and the second sum's weight."""

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
    if statistic.ends:
        return pair_interval(statistic, MEDIAN, tail)
    search = _Search(estimator, statistic, tail * statistic.shown(estimator))
    least, most = search.range
    low, high = max(search.end(-1), least), min(search.end(1), most)
    return _in_own_unit(estimator, low, high, sets)


def statistic_range(estimator: str, points: Floats, sets: int) -> Interval:
    """All values that the statistic can have; infinite where public numbers do not bound it."""
    return _in_own_unit(estimator, *possible_means(estimator, points), sets)


def pair_interval(statistic: ReleasedStatistic, share: float, tail: float = TAIL) -> Interval:
    """The interval for the value below which a share of pairs lies."""
    means = [entry.mean for entry in statistic.sums]
    return quantile_interval(statistic.law, means, statistic.ends, share, tail)


def _in_own_unit(estimator: str, low: float, high: float, sets: int) -> Interval:
    """The ends of θ as ends of the statistic."""
    if estimator == "total":
        return low * sets, high * sets
    if estimator in ENTROPIES:
        # it decreases in the mean, and 0.0 − x is never −0.0
        base = ENTROPIES[estimator]
        return 0.0 - log_of(high, base), 0.0 - log_of(low, base) if low > 0 else inf
    return low, high


def theta_of(estimator: str, value: float, sets: int) -> float:
    """θ of a value of the statistic."""
    if estimator == "total":
        return value / sets
    return ENTROPIES[estimator] ** -value if estimator in ENTROPIES else value


def possible_means(estimator: str, points: Floats) -> Interval:
    """The range of θ: of the mean of the one kernel, or of the ratio."""
    if estimator in COMBINED:
        inner, sign = COMBINED[estimator]
        first = points[:, :1] + sign * points[:, 1:2]
        return possible_means(inner, np.hstack([first, points[:, 2:]]))
    if estimator in ("ratio", "geometric_ratio"):
        return possible_values(estimator, points)
    return float(points[:, 0].min()), float(points[:, 0].max())


def possible_values(estimator: str, points: Floats) -> Interval:
    """The range of a ratio of means, from all values that its sums have together.

    A mean of numerators is at most the largest quotient times the mean of denominators. For a
    geometric mean of two denominators that is the inequality of Cauchy and Schwarz.
    """
    if estimator not in ("ratio", "geometric_ratio"):
        return -inf, inf
    if (points[:, 1:] < 0).any():
        return -inf, inf
    below = points[:, 1] if estimator == "ratio" else np.sqrt(points[:, 1] * points[:, 2])
    if not below.any():
        return -inf, inf
    quotients = points[below > 0, 0] / below[below > 0]
    without = points[below == 0, 0]
    least = -inf if (without < 0).any() else float(quotients.min())
    most = inf if (without > 0).any() else float(quotients.max())
    if estimator == "ratio":
        return least, most
    # the geometric mean may exceed each denominator's own, so quotients may be nearer to 0
    return min(least, 0.0), max(most, 0.0)


def is_covered(estimator: str, statistic: ReleasedStatistic, sets: int, value: float) -> bool:
    """Whether the interval holds this value of the statistic, without computing its ends.

    Args: as in `covering_interval`.
    """
    search = _Search(estimator, statistic, TAIL * statistic.shown(estimator))
    return search.holds(theta_of(estimator, value, sets))


def sampling_std(estimator: str, statistic: ReleasedStatistic, sets: int) -> float:
    """The standard deviation from the sampling of E, for the worst table with the released means.

    Args: as in `covering_interval`.
    """

    def part(law: ErrorLaw) -> float:
        return law.sampling.std if law.sampling else 0.0

    return _std_of(estimator, statistic, sets, part)


def population_std(estimator: str, statistic: ReleasedStatistic, sets: int) -> float:
    """The standard deviation from the drawing of the records, for the worst population.

    Args: as in `covering_interval`.
    """
    return _std_of(estimator, statistic, sets, lambda law: law.normal)


def _std_of(
    estimator: str, statistic: ReleasedStatistic, sets: int, part: Callable[[ErrorLaw], float]
) -> float:
    """By the delta method; of a pair median, from that of the share of pairs below it.

    Args: part: the standard deviation of a part of an error.
    """
    means = [entry.mean for entry in statistic.sums]
    if statistic.ends:
        return median_spread(
            means, statistic.ends, lambda *combined: part(statistic.law(*combined))
        )
    found, start = contrast_of(estimator, means)
    return _slope(estimator, means, sets) * part(statistic.law(*found(start)))


def _slope(estimator: str, means: Sequence[float], sets: int) -> float:
    """|∂ statistic / ∂ combination| at the released means."""
    if estimator in COMBINED:
        inner, sign = COMBINED[estimator]
        return _slope(inner, [means[0] + sign * means[1], *means[2:]], sets)
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
    if estimator in COMBINED:
        inner, sign = COMBINED[estimator]
        known, start = contrast_of(inner, [means[0] + sign * means[1], *means[2:]])

        def contrast(theta: float) -> tuple[list[float], float]:
            (first, *rest), constant = known(theta)
            return [first, sign * first, *rest], constant

        return contrast, start
    if estimator == "ratio":
        return lambda theta: ([1.0, -theta], 0.0), means[0] / means[1]
    if estimator == "geometric_ratio":
        first, second = sqrt(means[2] / means[1]) / 2, sqrt(means[1] / means[2]) / 2
        start = means[0] / (sqrt(means[1]) * sqrt(means[2]))
        return lambda theta: ([1.0, -theta * first, -theta * second], 0.0), start
    return lambda theta: ([1.0], theta), means[0]


class _Search:
    """The search for the ends of the values that the means do not contradict.

    A combination is linear in θ, and 0 at the start. So each θ has a candidate: the θ at which the
    combination would reach a quantile of this θ's own law. The end is its own candidate.
    """

    def __init__(self, estimator: str, statistic: ReleasedStatistic, tail: float):
        means = [entry.mean for entry in statistic.sums]
        self.contrast, self.start = contrast_of(estimator, means)
        self.statistic, self.tail = statistic, tail
        # how fast it falls in θ; its values at 0 and 1 lose no digits beside a large start
        (ones, one), (zeros, zero) = self.contrast(1.0), self.contrast(0.0)
        self.fall = one - zero - float(np.dot(np.subtract(ones, zeros), means))
        self.range = possible_means(estimator, statistic.points)
        self.start = min(max(self.start, self.range[0]), self.range[1])

    @cached_property
    def centre(self) -> Interval:
        """Both quantiles of the start's own law, which both ends need."""
        return self.statistic.law(*self.contrast(self.start)).central(self.tail)

    def quantiles(self, theta: float) -> Interval:
        """Both quantiles of the combination's error if θ is true."""
        if theta == self.start:
            return self.centre
        return self.statistic.law(*self.contrast(theta)).central(self.tail)

    def holds(self, theta: float) -> bool:
        """Whether the means do not contradict θ."""
        low, high = self.quantiles(theta)
        return low <= (self.start - theta) * self.fall <= high

    def beyond(self, step: float, side: int) -> float:
        """How far the candidate lies beyond θ; negative where the means contradict θ.

        Args: step: the distance of θ from the start. Beside a large θ small ones would be lost.
        """
        low, high = self.quantiles(self.start + side * step)
        quantile = low if side > 0 else high
        return -side * quantile / self.fall - step

    def end(self, side: int) -> float:
        """The last θ on one side of the start that the means do not contradict."""

        def past_step(step: float) -> float:
            return self.beyond(step, side)

        inside = self._first_step(side)
        left = past_step(inside)
        if left <= 0:
            return self.start
        # without sampling the law is the same for all θ, and the first candidate is the end
        step = inside + left
        for _ in range(DOUBLINGS):
            past = past_step(step)
            if past < 0 or (past <= ACCURACY * step and past_step(step * BEYOND) < 0):
                if abs(past) > ACCURACY * step:
                    step, past = _root(past_step, inside, left, step, past), 0.0
                return self.start + side * (step + max(0.0, past))
            inside, left, step = step, past, max(FIRST_STEP * (step + past), LEAST_GROWTH * step)
        return side * inf

    def _first_step(self, side: int) -> float:
        """Where the search begins, as a distance from the start.

        At the end of the possible values no table has any spread, but all tables beside it have.
        """
        low, high = self.range
        inward = (self.start - low) if side > 0 else (high - self.start)
        if not isfinite(low) or not isfinite(high):
            return 0.0
        return max(0.0, INWARD * (high - low) - inward)


def _root(
    function: Callable[[float], float], inside: float, left: float, outside: float, past: float
) -> float:
    """The step at which a function falls below 0, by false position (Illinois); never inside it.

    Late steps halve the bracket, because some functions jump.

    Args: left, past: the function at `inside`, above 0, and at `outside`, below 0.
    """
    tolerance = ACCURACY * outside
    weight_in, weight_out = left, past
    for turn in range(STEPS):
        if outside - inside <= tolerance:
            break
        share = weight_in / (weight_in - weight_out)
        # a little beyond the line's root, so that the bracket closes from both ends
        part = 0.5 if turn >= LATE else min(0.99, max(0.01, share + ACCURACY))
        middle = inside + (outside - inside) * part
        found = function(middle)
        if found > 0:
            inside, weight_in, weight_out = middle, found, weight_out / 2
        else:
            outside, weight_out, weight_in = middle, found, weight_in / 2
    return outside
