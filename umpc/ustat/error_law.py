"""The law of a released number's error: its noise and the sampling of E together.

    error = Σ weight · noise + (mean over E − mean over all sets)

The noise of one sum is a difference of two negative binomials on the grid of the sum's unit:
discrete Laplace of shape 1, or N/h of it where each of N nodes adds its part and h suffice. Its
characteristic function is exact,

    φ(t) = (1 + v·(1 − cos(t·step)))^(−shape),  v = variance / (shape · step²).

Without a grid it is (1 + variance·t²/(2·shape))^(−shape), and for a large shape it is Skellam's.
Binomial noise takes that one, whose 95 % interval holds it at every number of coins. So does
randomised response. Its noise lies beside the grid by an unknown shift, which moves all quantiles
outward. The noise of density √2/π/(1 + z⁴), with z in standard deviations, has

    φ(t) = e^(−s)·(cos s + sin s),  s = |t|·std/√2.

Its tails fall as 1/z³ only. `tests/study/test_interval.py` adds up the probabilities of all laws.

The sampling has the largest variance that the table can have (`intervals.py`). A single sum counts
how many of the sets in E have one of two values, and its law is that of such a count
(`released_means.py`). A combination of several sums is the mean of independent draws. A draw takes
the kernel's ends, or is right. Given its variance, no law inside the ends has rarer and larger
errors.

The product of all characteristic functions is inverted on a grid by one fast Fourier transform. The
grid is smoothed, and both quantiles are moved outward by four of its steps. So atoms of a discrete
law count as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, inf, pi, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

POINTS = 1 << 13
"""The points of the grid."""
REACH = 24.0
"""The grid's half width in standard deviations. A Laplace tail beyond it is below 2^-48."""
SMOOTHING = 1.25
"""The standard deviation of the normal law that smooths the grid, in its steps."""
SLACK = 4.0
"""The steps of the grid by which both quantiles are moved outward."""
LEAST_LOGARITHM = -60.0
"""Smaller numbers count for nothing, and the smallest ones take a processor ten times as long."""
ROUNDING = 1e-15
"""Shares that are 1 together may differ from it by less."""
HEAVY_TAILS = 0.0
"""The shape that stands for the noise of density √2/π/(1 + z⁴)."""
HEAVY_REACH = 18.0
"""Errors with heavy tails beyond so many standard deviations are not told apart.

Other errors exceed the 6 that are left of REACH with a chance of less than 1e-9.
"""
BEYOND_REACH = sqrt(2) / pi / 3 / HEAVY_REACH**3
"""The chance of heavy tails on each side of it, at most."""
NOTHING = 1e-14
"""Where a characteristic function stays below it, it changes no probability by more than 1e-10."""


@dataclass(frozen=True)
class Noise:
    """The noise of one released mean.

    Args:
        std: its standard deviation.
        step: the distance of the mean's possible values; 0 where there is no grid.
        shape: 1 for the Laplace law; larger for the noise of more nodes than suffice; HEAVY_TAILS
            for the law of the Hájek mechanisms.
        shift: the most by which the noise lies beside multiples of the step. It is moved there in
            the law, so quantiles are moved outward by as much.
    """

    std: float
    step: float = 0.0
    shape: float = 1.0
    shift: float = 0.0

    def characteristic(self, times: Floats) -> Floats:
        """E exp(i·t·noise), which is real because the law is symmetric."""
        if self.shape == HEAVY_TAILS:
            turn = self.std * np.abs(times) / sqrt(2)
            heavy: Floats = np.exp(-turn) * (np.cos(turn) + np.sin(turn))
            return heavy
        if self.step:
            spread = (self.std / self.step) ** 2 / self.shape
            inside = 2 * spread * np.sin(times * (self.step / 2)) ** 2
        else:
            inside = (self.std * times) ** 2 / (2 * self.shape)
        real: Floats = np.exp(-self.shape * np.log1p(inside))
        return real


class Sampling(Protocol):
    """The law of the sampling's error. Its mean is 0."""

    @property
    def std(self) -> float:
        """The standard deviation."""
        ...

    def modulus(self, times: Floats) -> Floats:
        """|E exp(i·t·error)|, or e^LEAST_LOGARITHM where it is less."""
        ...

    def angle(self, times: Floats) -> Floats:
        """The angle of E exp(i·t·error), which counts where the modulus is not 0."""
        ...


@dataclass(frozen=True)
class Draws:
    """The mean of independent draws from {low, 0, high}, with mean 0 and this variance of one draw.

    Args:
        low, high: low < 0 < high. variance: at most −low·high. count: how many draws, at least 1.
    """

    low: float
    high: float
    variance: float
    count: float

    @property
    def std(self) -> float:
        return sqrt(self.variance / self.count)

    def modulus(self, times: Floats) -> Floats:
        """|E exp(i·t·mean)|, or e^LEAST_LOGARITHM where it is less.

        |Σ p·exp(i·a)|² = 1 − 4·Σ p·q·sin²((a − b)/2) over pairs of values loses no digits where t
        is small. A sine of all times takes a tenth of an interval's time, so none is computed for
        draws that are never right: those of a single sum, which has the largest variance.
        """
        above, below = self._shares
        none = 1 - above - below
        half = times / (2 * self.count)
        lost = above * below * np.sin(half * (self.high - self.low)) ** 2
        if none > ROUNDING:
            lost += none * above * np.sin(half * self.high) ** 2
            lost += none * below * np.sin(half * self.low) ** 2
        # a modulus of 0 has the logarithm −inf
        with np.errstate(divide="ignore"):
            logarithm = self.count / 2 * np.log1p(np.maximum(-4 * lost, -1))
        found: Floats = np.exp(np.maximum(logarithm, LEAST_LOGARITHM))
        return found

    def angle(self, times: Floats) -> Floats:
        """The angle of E exp(i·t·mean), which counts where the modulus is not 0."""
        above, below = self._shares
        at = times / self.count
        real = 2 * (
            above * np.sin(at * (self.high / 2)) ** 2 + below * np.sin(at * (self.low / 2)) ** 2
        )
        imaginary = above * np.sin(at * self.high) + below * np.sin(at * self.low)
        found: Floats = self.count * np.arctan2(imaginary, 1 - real)
        return found

    @property
    def _shares(self) -> tuple[float, float]:
        """The probabilities of high and of low in one draw."""
        width = self.high - self.low
        return self.variance / (self.high * width), self.variance / (-self.low * width)


@dataclass(frozen=True)
class ErrorLaw:
    """The law of Σ weight · noise + sampling.

    Args:
        noises: each sum's noise. weights: one for each. sampling: None where E is all sets.
        normal: the standard deviation of a further error that is normal; 0 for none.
    """

    noises: Sequence[Noise]
    weights: Sequence[float]
    sampling: Sampling | None = None
    normal: float = 0.0

    @cached_property
    def std(self) -> float:
        squares = [
            (weight * noise.std) ** 2
            for weight, noise in zip(self.weights, self.noises, strict=True)
        ]
        sampling = self.sampling.std**2 if self.sampling else 0.0
        return sqrt(sum(squares) + sampling + self.normal**2)

    def central(self, tail: float) -> tuple[float, float]:
        """(low, high): the error is below low, or above high, with probability `tail` each.

        They are rounded outward by the slack. Both are infinite for a tail that heavy tails beyond
        the grid may have.
        """
        if not self.std:
            return 0.0, 0.0
        tail -= self.beyond
        if tail <= 0:
            return -inf, inf
        low, high = np.interp((tail, 1 - tail), self._below, self._places)
        return float(low) - self.slack, float(high) + self.slack

    @property
    def slack(self) -> float:
        """How far a value of the grid may be from the error that it stands for."""
        if not self.std:
            return 0.0
        noises = zip(self.weights, self.noises, strict=True)
        return SLACK * self._step + sum(abs(weight) * noise.shift for weight, noise in noises)

    @property
    def beyond(self) -> float:
        """The chance of an error beyond the grid, on each side, at most."""
        heavy = any(noise.std and noise.shape == HEAVY_TAILS for noise in self.noises)
        return BEYOND_REACH if heavy else 0.0

    def below(self, chance: float) -> float:
        """The error below which it lies with this chance, up to the grid's step."""
        return float(np.interp(chance, self._below, self._places)) if self.std else 0.0

    def masses(self) -> tuple[Floats, Floats]:
        """The grid's points and their probabilities; one point at 0 where there is no error."""
        if not self.std:
            return np.zeros(1), np.ones(1)
        return self._places[:-1] + self._step / 2, np.diff(self._below)

    def at_most(self, value: float) -> float:
        """P(error ≤ value), up to the grid's step."""
        if not self.std:
            return float(value >= 0)
        return float(np.interp(value, self._places, self._below, 0.0, 1.0))

    @property
    def _places(self) -> Floats:
        """The borders between the grid's points: (POINTS + 1,) float64."""
        places = (np.arange(POINTS + 1) - POINTS / 2 - 0.5) * self._step
        return np.asarray(places, dtype=np.float64)

    @property
    def _step(self) -> float:
        return 2 * REACH * self.std / POINTS

    @cached_property
    def _below(self) -> Floats:
        """P(error < place) at the borders between the grid's points: (POINTS + 1,) float64."""
        step = self._step
        times: Floats = np.arange(POINTS // 2 + 1, dtype=np.float64) * (2 * pi / (POINTS * step))
        law: Floats | Complexes
        if self.sampling:
            law = np.zeros(len(times), dtype=np.complex128)
            modulus = self.sampling.modulus(times)
            # most of it is nothing, and no other factor exceeds 1
            there = np.flatnonzero(modulus > NOTHING)
            size = self._without_sampling(times[there]) * modulus[there]
            angle = self.sampling.angle(times[there])
            law.real[there] = size * np.cos(angle)
            law.imag[there] = -size * np.sin(angle)
        else:
            law = self._without_sampling(times)
        mass = np.fft.fftshift(np.fft.irfft(law, POINTS))
        below: Floats = np.concatenate([[0.0], np.maximum.accumulate(np.cumsum(mass))])
        return below

    def _without_sampling(self, times: Floats) -> Floats:
        """The characteristic function of all errors but the sampling, smoothed: real, at most 1."""
        size: Floats = np.exp(-((SMOOTHING * self._step * times) ** 2) / 2)
        # a median of pairs has many sums of the same law and few weights
        terms = Counter(zip(map(abs, self.weights), self.noises, strict=True))
        for (weight, noise), count in terms.items():
            size *= noise.characteristic(weight * times) ** count
        if self.normal:
            size *= np.exp(-((self.normal * times) ** 2) / 2)
        return size


def whole_draws(count: float) -> float:
    """The number of draws, rounded down where that changes anything; at least 1."""
    return float(max(1, floor(count))) if count < 1 << 20 else count
