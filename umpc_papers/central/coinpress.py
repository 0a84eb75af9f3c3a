"""CoinPress in one dimension: a private mean of close terms somewhere in a wide public range.

Each step clips the terms to the interval known so far, widened by the width of one term. It
releases the noisy mean of the clipped terms. The next interval is the one that this mean and its
noise allow. The last mean is the answer.

*Privacy.* One record is in at most a part `share` of the M terms (paper 002, equation A.34; 1/M for
independent terms). Given the earlier releases, a step's interval is fixed. Replacing one record
moves the clipped mean by at most share × (length of the clipping interval). The step adds discrete
Laplace noise for its part of epsilon. The parts add up to epsilon (basic composition, adaptive), so
the answer is epsilon-DP for all data. Widths that do not fit the data cost accuracy only.

*Exactness.* Ends of intervals and clipped means are fractions. `mechanisms.laplace` draws the noise
on a public grid, and adds one step of the grid to the sensitivity. The lengths of all intervals
follow from the parameters, not from the data (paper 002, proof of Theorem A.1). The noise of every
step is therefore known beforehand: `plan`.

Paper: Biswas, Dong, Kamath, Ullman 2020, section 2; Chaudhuri, Loh, Pandey, Sarkar 2024, Algorithms
A.6 and A.7. Departures: epsilon is divided as `last` says, not in halves. The clipping interval is
cut to the function's public range, so the noise never exceeds what that range requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from umpc.dp.calibration import DiscreteLaplace
from umpc.dp.events import check_epsilon, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc_papers.central.laplace import grid_sensitivity, laplace

ClippedMean = Callable[[Fraction, Fraction], Fraction]
"""ExactKind mean of the terms after clipping to [low, high]."""


@dataclass(frozen=True)
class Narrowing:
    """One step: a release that narrows the interval. All numbers but epsilon are in values.

    Args:
        clip: length of the clipping interval.
        epsilon: the step's part of epsilon.
        sensitivity: share × clip.
        grid: granularity of the release.
        half: half the length of the next interval.
    """

    clip: Fraction
    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    half: Fraction

    @property
    def noise_variance(self) -> float:
        """Variance of the discrete law on the grid, exactly, in squared values."""
        steps = grid_sensitivity(self.sensitivity, self.grid)
        if not steps:
            return 0.0
        return DiscreteLaplace(self.epsilon / steps).variance * float(self.grid) ** 2


@dataclass(frozen=True)
class CoinPress:
    """A private mean, epsilon-DP for replace-one.

    Args:
        low, high: public range of the terms, and hence of their mean; exact.
        term_width: the expected distance of all terms from their expectation, at most; exact, in
            values.
        mean_width: the expected distance of the terms' mean from the expectation, at most.
        epsilon: > 0, exact.
        steps: the number of releases, 1 or more.
        last: the last release's part of epsilon, 0 < last < 1; a single step takes all of epsilon.
        failure: the probability that the noise of some narrowing step exceeds the width that the
            next interval allows for it.
        grid: granularity of the releases, in values; public.

    Raises:
        InvalidEpsilon: epsilon is not exact or not above 0.
        StudyError: another parameter is not exact or out of its range.
    """

    low: Fraction
    high: Fraction
    term_width: Fraction
    mean_width: Fraction
    epsilon: Fraction
    steps: int = 3
    last: Fraction = Fraction(3, 4)
    failure: Fraction = Fraction(1, 100)
    grid: Fraction = Fraction(1, 1 << 24)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        parts = (self.last, self.failure)
        widths = (self.term_width, self.mean_width, self.grid)
        if not all(is_exact(number) for number in (self.low, self.high, *widths, *parts)):
            raise StudyError("CoinPress needs exact numbers, such as 1 or Fraction(1, 2)")
        if not (self.low < self.high and all(width > 0 for width in widths)):
            raise StudyError("CoinPress needs low < high, and widths and a grid above 0")
        whole_steps = is_integer(self.steps) and self.steps >= 1
        if not (whole_steps and all(0 < part < 1 for part in parts)):
            raise StudyError("CoinPress needs at least one step, and parts between 0 and 1")

    def plan(self, share: Fraction) -> tuple[Narrowing, ...]:
        """The steps, which do not depend on the data.

        Args:
            share: the largest part of the terms that holds one record.
        """
        return _plan(self, share)

    def part(self, number: int) -> Fraction:
        """The part of epsilon that step `number` takes, counted from 0."""
        if self.steps == 1:
            return self.epsilon
        if number == self.steps - 1:
            return self.epsilon * self.last
        return self.epsilon * (1 - self.last) / (self.steps - 1)

    def noise_reach(self, sensitivity: Fraction, epsilon: Fraction) -> Fraction:
        """A width that Laplace noise exceeds with probability at most failure/steps.

        It is scale × log(steps/failure), and one grid step.
        """
        logarithm = Fraction(math.log(self.steps / float(self.failure)))
        reach = logarithm.limit_denominator(1 << 20)
        return (sensitivity + self.grid) / epsilon * reach + self.grid

    def mean(self, clipped_mean: ClippedMean, share: Fraction, bits: RandomBits) -> Fraction:
        """The private mean, a multiple of the grid (Algorithm A.6).

        Reveals: the answer; the guarantee also covers the releases of all steps.
        """
        low = Fraction(self.low)
        high = Fraction(self.high)
        centre = (low + high) / 2
        for step in self.plan(share):
            # Algorithm A.7: clip to the interval around the centre, inside the range.
            start = max(low, min(centre - step.clip / 2, high - step.clip))
            exact = clipped_mean(start, start + step.clip)
            # Algorithm A.7: release the mean with Laplace noise.
            released = laplace(exact, step.sensitivity, step.epsilon, bits, self.grid)
            centre = max(low, min(released, high))
        return released

    def noise_variance(self, share: Fraction) -> float:
        """Noise variance of the answer, in squared values: that of the last step.

        Clipping adds a bias where the widths are too small.
        """
        return self.plan(share)[-1].noise_variance


@lru_cache(maxsize=64)
def _plan(coinpress: CoinPress, share: Fraction) -> tuple[Narrowing, ...]:
    """The steps; the proof of Theorem A.1 shows that their lengths do not depend on the data."""
    found: list[Narrowing] = []
    whole = Fraction(coinpress.high - coinpress.low)
    half = whole / 2
    for number in range(coinpress.steps):
        epsilon = coinpress.part(number)
        # Algorithm A.7: the interval, widened by one term's width on both sides.
        clip = min(2 * (half + coinpress.term_width), whole)
        sensitivity = share * clip
        # Algorithm A.7: the next interval allows for the mean's width and the noise.
        noise = coinpress.noise_reach(sensitivity, epsilon)
        half = min(half, coinpress.mean_width + noise)
        found.append(Narrowing(clip, epsilon, sensitivity, coinpress.grid, half))
    return tuple(found)
