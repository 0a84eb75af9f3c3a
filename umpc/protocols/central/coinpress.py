"""CoinPress in one dimension: a private mean of terms that lie close together somewhere in a wide public range.

Each step clips the terms to the interval known so far and the width of one term around it, releases the noisy mean of
the clipped terms, and takes as the next interval what that mean and its noise allow. The last mean is the answer.

Privacy. Of the M terms one record is in a part `share` at most (paper 002, equation A.34; 1/M for independent terms).
Given the earlier releases, a step's interval is fixed, and replacing one record moves the clipped mean by at most
share x (length of the clipping interval); discrete Laplace noise for its part of epsilon. Parts add up to epsilon
(basic composition, adaptive): pure epsilon-DP whatever the data are. Widths that do not fit the data cost accuracy
only.

Exact. Ends of intervals and clipped means are fractions; noise is drawn on a public grid by `mechanisms.laplace`, which
adds one step of the grid to the sensitivity. The lengths of all intervals follow from the parameters, not from the data
(paper 002, proof of Theorem A.1), so the noise of every step is known beforehand: `plan`.

Paper: Biswas, Dong, Kamath, Ullman 2020, section 2; Chaudhuri, Loh, Pandey, Sarkar 2024, Algorithms A.6 and A.7.
Departures: epsilon is divided as `last` says, not in halves; the clipping interval is cut to the function's public
range, so the noise never exceeds what that range asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from umpc.dp.checks import check_epsilon, is_exact, is_integer
from umpc.dp.laplace import DiscreteLaplace
from umpc.dp.mechanisms import grid_sensitivity, laplace
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError

ClippedMean = Callable[[Fraction, Fraction], Fraction]
"""Exact mean of the terms after clipping to [low, high]."""


@dataclass(frozen=True)
class Step:
    """One release. All in values.

    clip: length of the clipping interval. epsilon: its part. sensitivity: share x clip. half: of the next interval.
    """

    clip: Fraction
    epsilon: Fraction
    sensitivity: Fraction
    grid: Fraction
    half: Fraction

    @property
    def noise_variance(self) -> float:
        """Squared values; exactly that of the discrete law on the grid."""
        steps = grid_sensitivity(self.sensitivity, self.grid)
        return (
            DiscreteLaplace(self.epsilon / steps).variance * float(self.grid) ** 2 if steps else 0.0
        )


@dataclass(frozen=True)
class CoinPress:
    """epsilon-DP, replace-one.

    Args:
        low, high: public range of the terms and hence of their mean; exact.
        term_width: all terms are expected within this of their expectation; exact, in values.
        mean_width: and so is their mean, within this.
        epsilon: > 0, exact.
        steps: releases, 1 or more. last: part of epsilon for the last, 0 < last < 1 (all of it for one step).
        failure: chance that the noise of some narrowing step exceeds what the next interval allows for.
        grid: granularity of the releases, in values; public.
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
        numbers = (
            self.low,
            self.high,
            self.term_width,
            self.mean_width,
            self.last,
            self.failure,
            self.grid,
        )
        if not all(is_exact(number) for number in numbers):
            raise StudyError("CoinPress needs exact numbers, such as 1 or Fraction(1, 2)")
        if not (
            self.low < self.high and self.term_width > 0 and self.mean_width > 0 and self.grid > 0
        ):
            raise StudyError("CoinPress needs low < high, and widths and a grid above 0")
        if not (
            is_integer(self.steps)
            and self.steps >= 1
            and 0 < self.last < 1
            and 0 < self.failure < 1
        ):
            raise StudyError("CoinPress needs at least one step, and parts between 0 and 1")

    def plan(self, share: Fraction) -> tuple[Step, ...]:
        """The steps, whatever the data are.

        Args:
            share: the part of the terms that one record is in, at most.
        """
        return _plan(self, share)

    def _part(self, number: int) -> Fraction:
        if self.steps == 1:
            return self.epsilon
        if number == self.steps - 1:
            return self.epsilon * self.last
        return self.epsilon * (1 - self.last) / (self.steps - 1)

    def _noise_reach(self, sensitivity: Fraction, epsilon: Fraction) -> Fraction:
        """A width that Laplace noise exceeds with chance failure/steps: scale x log(steps/failure), and a grid step."""
        reach = math.log(self.steps / float(self.failure))
        return (sensitivity + self.grid) / epsilon * Fraction(reach).limit_denominator(
            1 << 20
        ) + self.grid

    def mean(self, clipped_mean: ClippedMean, share: Fraction, bits: RandomBits) -> Fraction:
        """The private mean, a multiple of the grid. Reveals: the releases of all steps, were they shown."""
        low, high = Fraction(self.low), Fraction(self.high)
        centre = (low + high) / 2
        for step in self.plan(share):
            start = max(low, min(centre - step.clip / 2, high - step.clip))
            exact = clipped_mean(start, start + step.clip)
            released = laplace(exact, step.sensitivity, step.epsilon, bits, self.grid)
            centre = max(low, min(released, high))
        return released

    def noise_variance(self, share: Fraction) -> float:
        """Of the answer, squared values: the last step's noise. Clipping adds bias where the widths are too small."""
        return self.plan(share)[-1].noise_variance


@lru_cache(maxsize=64)
def _plan(of: CoinPress, share: Fraction) -> tuple[Step, ...]:
    found, whole = [], Fraction(of.high - of.low)
    half = whole / 2
    for number in range(of.steps):
        epsilon, clip = of._part(number), min(2 * (half + of.term_width), whole)
        sensitivity = share * clip
        half = min(half, of.mean_width + of._noise_reach(sensitivity, epsilon))
        found.append(Step(clip, epsilon, sensitivity, of.grid, half))
    return tuple(found)
