"""Laws of a statistic's value under a hypothesis, before any noise.

Exact laws for few records: over all permutations, and the largest over all shares of a label.

The laws of Spearman's rho and of tau* have no short recursion, so all permutations of up to
`FEW` records are visited: 40,320, in less than a second.

*Exact counts.* Exact null laws of rank statistics without ties, as probabilities of each count.

All recursions add positive numbers only, so they lose no digits.

A p-value: the law of a statistic without noise, together with the law of the noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations
from math import erfc, lgamma, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.error_law import ErrorLaw

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
TWO_SIDED, GREATER, LESS = "two-sided", "greater", "less"
ALTERNATIVES = (TWO_SIDED, GREATER, LESS)


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


# --- exact counts of few records ------------------------------------------------------------------


Ints = NDArray[np.int64]

FEW = 8
"""Up to so many records, all permutations are visited."""


@lru_cache(maxsize=FEW)
def rank_products(records: int) -> Floats:
    """Spearman's rho of independent columns without ties (Hoeffding 1948, section 9).

    The statistic is 3·d/(n(n − 1)(n − 2)) with a whole number d, from −(n³ − n)/3 to (n³ − n)/3:
    d = Σ r·s − Σ sign·sign over pairs, for sums of signs r = 2·rank − n − 1 and s of each record.

    Returns: the probability of each d, (2·(n³ − n)/3 + 1,) float64.
    """
    orders = _permutations(records)
    centred = 2 * np.arange(records) - records + 1
    products = (2 * orders - records + 1) @ centred
    rises = [np.sign(orders[:, b : b + 1] - orders[:, :b]).sum(axis=1) for b in range(1, records)]
    found = products - 2 * np.sum(rises, axis=0)
    most = (records**3 - records) // 3
    return np.bincount(found + most, minlength=2 * most + 1) / len(orders)


@lru_cache(maxsize=FEW)
def concordant_fours(records: int) -> Floats:
    """The number of sets of four that both columns split into the same halves, if independent.

    Returns: the probability of each number, float64.
    """
    counts = count_concordant_fours(_permutations(records))
    return np.bincount(counts) / len(counts)


def count_concordant_fours(orders: Ints) -> Ints:
    """The sets of four that are split in the same halves by rank and by place.

    A set counts at its second place b. The other place of its half, before b, and two places after
    b, whose values are both above those of the half, or both below.

    Args: orders: (runs, n) permutations of 0 … n − 1. Returns: (runs,) int64.
    """
    records = orders.shape[1]
    there = orders[:, :, None] == np.arange(records)
    later = np.cumsum(there[:, ::-1], axis=1)[:, ::-1] - there
    below = np.cumsum(later, axis=2) - later
    above = later.sum(axis=2, keepdims=True) - below - later
    found = np.zeros(len(orders), dtype=np.int64)
    for b in range(1, records):
        own, before = orders[:, b : b + 1], orders[:, :b]
        many_above = np.take_along_axis(above[:, b], np.maximum(own, before), axis=1)
        many_below = np.take_along_axis(below[:, b], np.minimum(own, before), axis=1)
        pairs = many_above * (many_above - 1) + many_below * (many_below - 1)
        found += pairs.sum(axis=1) // 2
    return found


@lru_cache(maxsize=8)
def most_of_two_values(records: int, first: int | None = None) -> Floats:
    """The largest tails of two independent columns of two values, over all shares of both.

    With r and s records of the second value, and a of both, the statistic is t = a·n − r·s. For
    given r and s, a is hypergeometric (Fisher 1935). The tail is the largest P(statistic >= t)
    over all s, and over all r unless r is `first`. It holds for −t on the other side, too.

    Returns: the tail at each whole t from −n²/4 on, float64.
    """
    n, half = records, records**2 // 4
    tails = np.zeros(2 * half + 1)
    logs = np.array([lgamma(number + 1) for number in range(n + 1)])
    counts = np.arange(n + 1)
    s, a = counts[:, None], counts[None, :]
    for r in range(n + 1) if first is None else (first,):
        is_there = (a <= r) & (a <= s) & (r - a <= n - s)
        fixed = logs[r] + logs[n - r] + logs[s] + logs[n - s] - logs[n]
        parts = (a, r - a, s - a, n - r - s + a)
        chances = fixed - sum(logs[np.clip(part, 0, n)] for part in parts)
        shares = np.where(is_there, np.exp(chances), 0.0)
        above = np.minimum(1.0, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1])
        np.maximum.at(tails, (a * n - r * s)[is_there] + half, above[is_there])
    # a tail is that of the next value that occurs
    return np.maximum.accumulate(tails[::-1])[::-1]


@lru_cache(maxsize=8)
def most_of_a_label(records: int) -> Floats:
    """The largest tails of a column without ties and an independent label, over its shares.

    With r records of the label, u of whose pairs with others are in order, the statistic is
    t = 2·u − r·(n − r). The tail is the largest P(statistic >= t) over all r.

    Returns: the tail at each whole t from −n²/4 on, float64.
    """
    half = records**2 // 4
    tails = np.zeros(2 * half + 1)
    for r in range(records + 1):
        pairs = r * (records - r)
        above = np.cumsum(mann_whitney(r, records - r)[::-1])[::-1]
        np.maximum.at(tails, 2 * np.arange(pairs + 1) - pairs + half, above)
    return np.minimum(1.0, np.maximum.accumulate(tails[::-1])[::-1])


def _permutations(records: int) -> Ints:
    return np.array(list(permutations(range(records))), dtype=np.int64)


# --- exact counts ---------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def inversions(records: int) -> Floats:
    """The number of discordant pairs if both columns are independent (Kendall 1938).

    Returns: (C(n, 2) + 1,) float64.
    """
    law = np.ones(1)
    for size in range(2, records + 1):
        # the next record is discordant with 0 to size − 1 of the earlier ones, equally likely
        longer = np.zeros(len(law) + size - 1)
        for shift in range(size):
            longer[shift : shift + len(law)] += law
        law = longer / size
    return law


@lru_cache(maxsize=8)
def mann_whitney(first: int, second: int) -> Floats:
    """The number of pairs whose record of the first class is larger (Mann & Whitney 1947).

    Returns: (first·second + 1,) float64.
    """
    # rows[n]: the law for m records of the first class and n of the second
    rows = [np.ones(1) for _ in range(second + 1)]
    for m in range(1, first + 1):
        longer = [np.ones(1)]
        for n in range(1, second + 1):
            law = np.zeros(m * n + 1)
            # the largest record is of the first class, and beats all n, or of the second class
            law[n : n + len(rows[n])] += rows[n] * (m / (m + n))
            law[: len(longer[n - 1])] += longer[n - 1] * (n / (m + n))
            longer.append(law)
        rows = longer
    return rows[second]


@lru_cache(maxsize=8)
def signed_pairs(records: int) -> Floats:
    """The number of pairs with a positive sum, under symmetry about 0 (Wilcoxon 1945, Tukey 1949).

    A pair's sum has the sign of its larger number, so the record of rank r decides r − 1 pairs.

    Returns: (C(n, 2) + 1,) float64.
    """
    law = np.ones(1)
    for others in range(1, records):
        longer = np.zeros(len(law) + others)
        longer[: len(law)] += law / 2
        longer[others:] += law / 2
        law = longer
    # the record of rank 1 decides no pair
    return law


# --- the test -------------------------------------------------------------------------------------


LEAST = 1e-12
"""With noise, p-values below this are not told apart: the law of the noise has no more digits."""
FEW_DIGITS_BELOW = 1e-4
"""Smaller p-values are shown with two digits."""


@dataclass(frozen=True, repr=False)
class NullTest:
    """A test. null: the statistic's value under the hypothesis. law: its law then, in words.
    is_below: the p-value is below p_value, which then is the least one that is told apart.
    """

    p_value: float
    alternative: str
    null: float
    hypothesis: str
    law: str
    is_below: bool = False

    @property
    def size(self) -> str:
        """The p-value in words: p = 0.03, or p < 1e-12."""
        if self.is_below:
            return f"p < {self.p_value:g}"
        digits = ".3g" if self.p_value >= FEW_DIGITS_BELOW else ".1e"
        return f"p = {self.p_value:{digits}}"

    def __repr__(self) -> str:
        size = f"p_value<{self.p_value:g}" if self.is_below else f"p_value={self.p_value!r}"
        rest = ("alternative", "null", "hypothesis", "law")
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in rest)
        return f"NullTest({size}, {told})"


def p_value(law: NullLaw, errors: ErrorLaw, seen: float, alternative: str) -> float:
    """The probability of a value as extreme as the one seen: the law and the noise together.

    P(U + e ≥ x) = Σ over errors e of P(e)·P(U ≥ x − e). Both tails are rounded towards 1, by the
    grid of the errors. Two-sided is twice the smaller tail. With noise, digits below `LEAST` mean
    nothing. With heavy tails no p-value is below the chance of an error beyond the grid.

    Args: law: without noise. errors: the noise and the sampling of E. seen: the released value.
    """
    places, masses = errors.masses()
    tails: Sequence[float]
    above = float(masses @ law.at_least(seen - places - errors.slack)) + errors.beyond
    below = float(masses @ law.at_most(seen - places + errors.slack)) + errors.beyond
    tails = {GREATER: [above], LESS: [below]}.get(alternative, [2 * above, 2 * below])
    return min(1.0, *tails)


def told(found: float, errors: ErrorLaw) -> tuple[float, bool]:
    """A p-value, or `LEAST` and that it is below: with noise, or where it is 0 in floats."""
    is_below = found < LEAST if errors.std else found == 0
    return (LEAST, True) if is_below else (found, False)
