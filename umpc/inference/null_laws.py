"""Laws of a statistic's value under a hypothesis, before any noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from math import erfc, lgamma, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EQUAL = 1e-6
"""Two values are equal if they differ by less than this share of a law's step."""
PRODUCTS = 200
"""The products i·j up to which chi-squares of tau* are taken one by one; the rest is normal."""
TAU_STAR_VARIANCE = 8 / 25
"""n² times the variance of tau*, in the limit."""
GRID = 1 << 14
LOW, HIGH = -4.0, 28.0
MOST_DEGREES = 400
"""Chi-squares of more degrees of freedom are taken as normal."""

_erfc = np.vectorize(erfc, otypes=[np.float64])


class NullLaw(ABC):
    """The law of a statistic under a hypothesis."""

    name: str
    """The law in words."""

    @abstractmethod
    def at_least(self, values: Floats) -> Floats:
        """P(statistic ≥ value), for each value."""

    @abstractmethod
    def at_most(self, values: Floats) -> Floats:
        """P(statistic ≤ value), for each value."""


@dataclass(frozen=True)
class CountLaw(NullLaw):
    """start + step·count, with a probability for each count.

    Args: probabilities: (counts,) float64. step: above 0. rounding: by which tails may be too low;
        they are raised by it.
    """

    probabilities: Floats = field(repr=False)
    start: float
    step: float
    name: str = "exact law of the ranks"
    rounding: float = 0.0

    def at_least(self, values: Floats) -> Floats:
        count = np.ceil((np.asarray(values) - self.start) / self.step - EQUAL)
        tails = np.concatenate([np.cumsum(self.probabilities[::-1])[::-1], [0.0]])
        return self._at(tails, count)

    def at_most(self, values: Floats) -> Floats:
        count = np.floor((np.asarray(values) - self.start) / self.step + EQUAL) + 1
        return self._at(np.concatenate([[0.0], np.cumsum(self.probabilities)]), count)

    def _at(self, tails: Floats, count: Floats) -> Floats:
        places = np.clip(count, 0, len(self.probabilities)).astype(np.int64)
        return np.minimum(1.0, tails[places] + self.rounding)


@dataclass(frozen=True)
class LargestTailLaw(NullLaw):
    """The largest tail of several laws, each of which may be the true one; the same on both sides.

    Args: tails: at −limit + step·count, for each count, (counts,) float64.
    """

    tails: Floats = field(repr=False)
    limit: float
    step: float
    name: str = "largest exact law of the ranks"

    def at_least(self, values: Floats) -> Floats:
        count = np.ceil((np.asarray(values) + self.limit) / self.step - EQUAL)
        places = np.clip(count, 0, len(self.tails)).astype(np.int64)
        return np.append(self.tails, 0.0)[places]

    def at_most(self, values: Floats) -> Floats:
        return self.at_least(-np.asarray(values))


@dataclass(frozen=True)
class NormalLaw(NullLaw):
    """Normal with this mean and standard deviation, which may be 0.

    Args: factor: of both tails, at least 1. half_step: by which values are moved towards the mean,
        at least 0; half the distance of possible values.
    """

    mean: float
    std: float
    name: str = "normal law"
    factor: float = 1.0
    half_step: float = 0.0

    def at_least(self, values: Floats) -> Floats:
        return self._above(np.asarray(values) - self.mean)

    def at_most(self, values: Floats) -> Floats:
        return self._above(self.mean - np.asarray(values))

    def _above(self, distances: Floats) -> Floats:
        if not self.std:
            return (distances <= 0).astype(np.float64)
        tails = _erfc((distances - self.half_step) / (self.std * sqrt(2))) / 2
        found: Floats = np.minimum(1.0, self.factor * tails)
        return found


@dataclass(frozen=True)
class ChiSquareLaw(NullLaw):
    """scale·(χ² − degrees), with so many degrees of freedom."""

    degrees: int
    scale: float
    name: str = "chi-square law"

    def at_least(self, values: Floats) -> Floats:
        chi = np.maximum(np.asarray(values) / self.scale + self.degrees, 0.0)
        if self.degrees > MOST_DEGREES:
            found: Floats = _erfc((chi - self.degrees) / sqrt(4.0 * self.degrees)) / 2
            return found
        return chi_square_above(chi, self.degrees)

    def at_most(self, values: Floats) -> Floats:
        return 1 - self.at_least(values)


@dataclass(frozen=True)
class TauStarLaw(NullLaw):
    """Bergsma and Dassios' tau* of independent continuous columns, of this standard deviation.

    n·tau* tends to Σ λ_ij·(χ²_ij − 1) with λ_ij = 36/(π⁴·i²·j²) (Nandy, Weihs & Drton 2016). The
    limit is scaled to the exact variance of n records. Its upper tail is too short by a share of
    order 1/n, for which there is the factor. It has no lower tail where n records have one, so
    nothing is known about that.

    Args: factor: of the upper tail, at least 1.
    """

    std: float
    factor: float = 1.0
    name: str = "sum of chi-squares"

    def at_least(self, values: Floats) -> Floats:
        places, above = _tau_star_limit()
        scaled = np.asarray(values) * (sqrt(TAU_STAR_VARIANCE) / self.std)
        tails = np.interp(scaled, places, above, 1.0, 0.0)
        return np.minimum(1.0, self.factor * tails)

    def at_most(self, values: Floats) -> Floats:
        return np.ones_like(np.asarray(values, dtype=np.float64))


def chi_square_above(values: Floats, degrees: int) -> Floats:
    """P(χ² ≥ value), by the finite sum for whole degrees of freedom (Abramowitz & Stegun 26.4)."""
    half = np.asarray(values, dtype=np.float64) / 2
    is_odd = degrees % 2
    found: Floats = _erfc(np.sqrt(half)) if is_odd else np.zeros_like(half)
    with np.errstate(divide="ignore"):
        logs = np.log(half)
    for place in range(degrees // 2):
        power = place + is_odd / 2
        term = -half + (power * logs if power else 0.0) - lgamma(power + 1)
        found = found + np.exp(term)
    return np.minimum(1.0, found)


@lru_cache(maxsize=1)
def _tau_star_limit() -> tuple[Floats, Floats]:
    """Σ λ_ij·(χ²_ij − 1) at (places,): the probabilities to be at least there."""
    step = (HIGH - LOW) / GRID
    times = np.arange(GRID // 2 + 1) * (2 * pi / (GRID * step))
    logs = np.zeros(len(times), dtype=np.complex128)
    rest = TAU_STAR_VARIANCE
    for product in range(1, PRODUCTS + 1):
        weight = 36 / pi**4 / product**2
        many = sum(product % divisor == 0 for divisor in range(1, product + 1))
        logs -= many * (np.log1p(-2j * weight * times) / 2 + 1j * weight * times)
        rest -= many * 2 * weight**2
    logs -= max(rest, 0.0) * times**2 / 2
    # irfft with e^{+i…} gives the density at −place, hence the conjugate
    density = np.fft.irfft(np.exp(logs - 1j * times * LOW).conj(), GRID)
    above = np.cumsum(density[::-1])[::-1]
    places: Floats = np.asarray(LOW + (np.arange(GRID) - 0.5) * step, dtype=np.float64)
    return places, np.clip(above, 0.0, 1.0)


def discrete_share(values: float) -> float:
    """1 − Σ p³ of the flattest law over so many values: how far ranks with ties reach."""
    return 1 - 1 / values**2


def untied_share(values: float) -> float:
    """1 − Σ p² of the flattest law over so many values: the most untied pairs."""
    return 1 - 1 / values
