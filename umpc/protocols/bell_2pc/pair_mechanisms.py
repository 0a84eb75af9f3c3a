"""Noise of every pair's value by itself: the two-party protocol of Bell, Bellet, Gascón & Kulkarni 2020, section 5.

A record is in at most k pairs, each pair's noisy value is ε0-DP in each of its records, and all values are released:
so a record costs k·ε0 (basic composition), or with δ what advanced composition proves. The relation is replace-one; the
k pairs are fixed before any data, and the values of other pairs do not depend on the record.

| law | a pair's value | a record's δ, beside the composition's |
|---|---|---|
| `PairLaplace` | f + discrete Laplace of finite bits | k·(1 + e^ε)·(distance from the exact law) |
| `PairResponse` | f with probability p, else one of the other m − 1 values, equally likely | 0 |

The mean over m pairs has a noise variance of (pair's variance)/m. `theorem_5` is the whole error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import sqrt

from flint import arb, ctx

from umpc.dp.accounting import advanced_composition
from umpc.dp.balls import PRECISION, above, ball
from umpc.dp.checks import check_epsilon
from umpc.dp.committee import CommitteeLaplace, cost_of_distance
from umpc.errors import InvalidEpsilon

BITS = 46
"""Bits of a random number inside a pair's circuit: each costs an AND gate. δ of a pair is about 2^-40 for ε = 1."""
STEPS = 40
"""ε0 is a multiple of ε/k·2^-STEPS where advanced composition decides."""
MOST_VALUES = 64
"""Randomised response is for kernels of at most so many values: each takes a comparison."""


@dataclass(frozen=True)
class PairLaplace:
    """Discrete Laplace noise of each of `pairs` values, ε0-DP each.

    Args: epsilon: ε0. width: s, the range of a value in units; 0 says that it is public. total: ε of a record's pairs.
    """

    epsilon: Fraction
    width: int
    pairs: int
    degree: int
    total: Fraction

    @cached_property
    def coins(self) -> CommitteeLaplace:
        """The noise of one pair."""
        return CommitteeLaplace(self.epsilon, self.width, BITS)

    @property
    def delta(self) -> Fraction:
        """What finite bits cost: the values of a record's k pairs are within k·distance of the exact law's."""
        return min(Fraction(1), cost_of_distance(self.total, self.degree * self.coins.distance))

    @property
    def std(self) -> float:
        """Standard deviation of the sum's noise, in units."""
        return self.coins.std * sqrt(self.pairs)

    def tail_bound(self) -> int:
        """An integer that the sum's noise never exceeds in magnitude."""
        return self.pairs * self.coins.tail_bound()

    def unbiased(self, total: int) -> Fraction:
        """The sum that a noisy total estimates."""
        return Fraction(total)


@dataclass(frozen=True)
class PairResponse:
    """Randomised response of each of `pairs` values over the m = width + 1 values low .. low + width, ε0-DP each.

    A wrong value has probability w = ⌈2^BITS·(1 − p)/(m − 1)⌉/2^BITS with p = e^ε0/(e^ε0 + m − 1), rounded towards
    more noise: so the odds of the true value are at most e^ε0, exactly.
    """

    epsilon: Fraction
    low: int
    width: int
    pairs: int
    degree: int = 1
    delta = Fraction(0)

    def __post_init__(self) -> None:
        if self.width >= MOST_VALUES:
            raise InvalidEpsilon(
                f"randomised response is for kernels of at most {MOST_VALUES} values, this one has {self.width + 1}; "
                f'take a coarser resolution, or noise = "pair_laplace"'
            )
        if self.contrast <= 0:
            raise InvalidEpsilon(
                f"epsilon {float(self.epsilon):.3g} a pair leaves nothing of one of {self.width + 1} values; ask for a "
                f"larger epsilon"
            )

    @cached_property
    def wrong_odds(self) -> int:
        """2^BITS·w."""
        return _wrong_odds(self.epsilon, self.width) if self.width else 0

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Of the shift's steps: [r < j·2^BITS·w] for j = m − 1 .. 1, of which as many are 1 as the shift is long."""
        return tuple(step * self.wrong_odds for step in range(self.width, 0, -1))

    @property
    def wrong(self) -> Fraction:
        return Fraction(self.wrong_odds, 1 << BITS)

    @property
    def contrast(self) -> Fraction:
        """By how much the true value is likelier than another: what is left of it."""
        return 1 - (self.width + 1) * self.wrong

    @property
    def std(self) -> float:
        """Standard deviation of the unbiased sum's noise, in units, at most: of the value for which it is largest."""
        values = range(self.width + 1)
        total, squares = sum(values), sum(v * v for v in values)
        means = (self.contrast * v + self.wrong * total for v in values)
        spread = max(
            self.contrast * v * v + self.wrong * squares - m * m
            for v, m in zip(values, means, strict=True)
        )
        return sqrt(spread * self.pairs) / float(self.contrast)

    def tail_bound(self) -> int:
        """Values stay in the kernel's range."""
        return 0

    def unbiased(self, total: int) -> Fraction:
        """The sum that a noisy total estimates: (total − pairs·w·Σ values)/contrast."""
        values = (self.width + 1) * (2 * self.low + self.width)
        return (total - self.pairs * self.wrong * Fraction(values, 2)) / self.contrast


@lru_cache(maxsize=64)
def epsilon_of_pair(epsilon: Fraction, delta: Fraction, degree: int) -> Fraction:
    """ε0 of which k releases cost at most ε: by basic or, with δ > 0, advanced composition, whatever allows more."""
    check_epsilon(epsilon)
    if not delta or degree < 2:
        return epsilon / max(1, degree)
    unit = epsilon / degree / (1 << STEPS)
    fits, too_much = 1 << STEPS, degree << STEPS
    while too_much - fits > 1:
        middle = (fits + too_much) // 2
        if advanced_composition({unit * middle: degree}, delta) <= epsilon:
            fits = middle
        else:
            too_much = middle
    return unit * fits


@lru_cache(maxsize=64)
def _wrong_odds(epsilon: Fraction, width: int) -> int:
    """⌈2^BITS/(e^ε0 + m − 1)⌉."""
    if epsilon >= BITS:  # e^ε0 > 2^BITS; and a large ε0 takes memory that nobody has
        return 1
    with ctx.workprec(PRECISION):
        return int(above((arb(1) * (1 << BITS)) / (ball(epsilon).exp() + width), 0))


def theorem_5(
    records: int, pairings: int, zeta_1: float, zeta_2: float, noise_variance: float
) -> float:
    """Mean squared error of the mean over P random pairings of n records, n even, against the population's mean.

    Paper: theorem 5 and appendix C.1. Its noise term 2P/(nε²) is half of what it derives: the mean of Pn/2 Laplace
    variables of scale P/ε has variance 2(P/ε)²/(Pn/2) = 4P/(nε²).

    Args:
        records: n, even.
        zeta_1, zeta_2: variances of E[f(x, X)] over x, and of f(X, Y).
        noise_variance: of one pair; 2(P/ε)² for Laplace noise and f in [0, 1].
    """
    n, p = records, pairings
    sampling = 2 * (p - 1) * (1 - 1 / (n - 1)) * zeta_1 + (1 + (p - 1) / (n - 1)) * zeta_2
    return 2 / (p * n) * (sampling + noise_variance)
