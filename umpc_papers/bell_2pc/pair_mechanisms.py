"""Noise on every pair's value separately: the two-party protocol of Bell et al. 2020.

Paper: Bell, Bellet, Gascón & Kulkarni 2020, section 5. A record is in at most k pairs. Each pair's
noisy value is ε0-DP in each of its records, and all values are released. A record therefore costs
k·ε0 by basic composition, or with δ the ε that advanced composition proves. The relation is
replace-one. The k pairs are fixed before any data, and the values of other pairs do not depend on
the record.

| law | a pair's value | a record's δ, besides the composition's |
|---|---|---|
| `PairLaplace` | f + discrete Laplace of finite bits | k·(1 + e^ε)·(distance from the exact law) |
| `PairResponse` | f with probability p, else one of the m − 1 others, equally likely | 0 |

The mean over m pairs has a noise variance of (pair's variance)/m. `theorem_5` is the whole error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import sqrt

from flint import arb, ctx

from umpc.dp.calibration import NORMAL_SHAPE
from umpc.dp.committee import CommitteeLaplace, cost_of_distance
from umpc.dp.events import PRECISION, above, ball, check_epsilon
from umpc.errors import InvalidEpsilon

BITS = 46
"""Bits of a random number inside a pair's circuit.

Each bit costs an AND gate. A pair's δ is about 2^-40 for ε = 1.
"""
STEPS = 40
"""Where advanced composition decides, ε0 is a multiple of ε/k·2^-STEPS."""
MOST_VALUES = 64
"""The largest number of values of a kernel with randomised response: each takes a comparison."""


@dataclass(frozen=True)
class PairLaplace:
    """Discrete Laplace noise on each of `pairs` values, ε0-DP for each value.

    Args:
        epsilon: ε0.
        width: s, the length of a value's range in units; 0 says that the value is public.
        pairs: the number of values.
        degree: k, the largest number of pairs that hold one record.
        total: ε of all pairs of one record.
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
        """The cost of finite bits.

        The noisy values of a record's k pairs are within statistical distance k·distance of values
        with the exact law.
        """
        distance = self.degree * self.coins.distance
        return min(Fraction(1), cost_of_distance(self.total, distance))

    @property
    def std(self) -> float:
        """Standard deviation of the sum's noise, in units."""
        return self.coins.std * sqrt(self.pairs)

    @property
    def shape(self) -> float:
        """The number of discrete Laplace laws that the sum's noise is made of."""
        return float(self.pairs)

    def tail_bound(self) -> int:
        """An integer that the magnitude of the sum's noise never exceeds."""
        return self.pairs * self.pair_tail_bound()

    def pair_tail_bound(self) -> int:
        """An integer that the magnitude of one pair's noise never exceeds."""
        return self.coins.tail_bound()

    def unbiased(self, total: int) -> Fraction:
        """The sum that a noisy total estimates."""
        return Fraction(total)


@dataclass(frozen=True)
class PairResponse:
    """Randomised response on each of `pairs` values, ε0-DP for each value.

    A value is one of the m = width + 1 integers low .. low + width. A wrong value has probability
    w = ⌈2^BITS·(1 − p)/(m − 1)⌉/2^BITS with p = e^ε0/(e^ε0 + m − 1). It is rounded towards more
    noise, so the odds of the true value are at most e^ε0, exactly.

    Args:
        epsilon: ε0.
        low: the least value, in units.
        width: m − 1.
        pairs: the number of values.
        degree: k, the largest number of pairs that hold one record.

    Raises:
        InvalidEpsilon: the kernel has more than `MOST_VALUES` values, or ε0 is so small that the
            response would not depend on the value.
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
                f"randomised response is for kernels of at most {MOST_VALUES} values, "
                f"this one has {self.width + 1}; "
                'take a coarser resolution, or noise = "pair_laplace"'
            )
        if self.contrast <= 0:
            raise InvalidEpsilon(
                f"with epsilon {float(self.epsilon):.3g} for each pair, the response would not "
                f"depend on the value (one of {self.width + 1}); ask for a larger epsilon"
            )

    @cached_property
    def wrong_odds(self) -> int:
        """2^BITS·w, an integer."""
        return _wrong_odds(self.epsilon, self.width) if self.width else 0

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Thresholds of the circuit's comparisons with a uniform r: j·2^BITS·w for j = m − 1 .. 1.

        The shift of the value is the number of thresholds that exceed r.
        """
        return tuple(step * self.wrong_odds for step in range(self.width, 0, -1))

    @property
    def wrong(self) -> Fraction:
        """w, the probability of each wrong value."""
        return Fraction(self.wrong_odds, 1 << BITS)

    @property
    def contrast(self) -> Fraction:
        """The probability of the true value minus that of another value."""
        return 1 - (self.width + 1) * self.wrong

    @property
    def std(self) -> float:
        """Upper bound on the standard deviation of the unbiased sum's noise, in units.

        It is the standard deviation for the value whose response has the largest variance.
        """
        values = range(self.width + 1)
        total = sum(values)
        squares = sum(v * v for v in values)
        means = (self.contrast * v + self.wrong * total for v in values)
        spread = max(
            self.contrast * v * v + self.wrong * squares - m * m
            for v, m in zip(values, means, strict=True)
        )
        return sqrt(spread * self.pairs) / float(self.contrast)

    @property
    def shape(self) -> float:
        """Many answers, each of which has a part: `NORMAL_SHAPE`."""
        return NORMAL_SHAPE

    @property
    def step(self) -> float:
        """The most by which one answer changes the unbiased sum, in units."""
        return self.width / float(self.contrast)

    @property
    def shift(self) -> float:
        """The most by which the noise lies beside multiples of `step`, in units.

        An unbiased sum less its expectation may be anything between two of them: the expectation
        depends on the values.
        """
        return self.step

    def tail_bound(self) -> int:
        """0, because noisy values stay in the kernel's range."""
        return 0

    def pair_tail_bound(self) -> int:
        """0, as for the sum."""
        return 0

    def unbiased(self, total: int) -> Fraction:
        """The sum that a noisy total estimates: (total − pairs·w·Σ values)/contrast."""
        values = (self.width + 1) * (2 * self.low + self.width)
        return (total - self.pairs * self.wrong * Fraction(values, 2)) / self.contrast


@lru_cache(maxsize=64)
def epsilon_of_pair(epsilon: Fraction, delta: Fraction, degree: int) -> Fraction:
    """The ε0 at which k releases cost at most ε.

    It is the larger one of basic composition's ε/k and, with δ > 0, advanced composition's ε0.

    Args:
        epsilon: ε > 0, exact.
        delta: exact; 0 allows basic composition only.
        degree: k.
    """
    check_epsilon(epsilon)
    if not delta or degree < 2:
        return epsilon / max(1, degree)
    unit = epsilon / degree / (1 << STEPS)
    # Bisection between basic composition's ε/k and ε.
    fits = 1 << STEPS
    too_much = degree << STEPS
    while too_much - fits > 1:
        middle = (fits + too_much) // 2
        if advanced_composition({unit * middle: degree}, delta) <= epsilon:
            fits = middle
        else:
            too_much = middle
    return unit * fits


@lru_cache(maxsize=64)
def _wrong_odds(epsilon: Fraction, width: int) -> int:
    """2^BITS·w = ⌈2^BITS/(e^ε0 + m − 1)⌉."""
    # e^ε0 > 2^BITS, and a large ε0 would take more memory than any machine has.
    if epsilon >= BITS:
        return 1
    with ctx.workprec(PRECISION):
        return int(above((arb(1) * (1 << BITS)) / (ball(epsilon).exp() + width), 0))


def theorem_5(
    records: int, pairings: int, zeta_1: float, zeta_2: float, noise_variance: float
) -> float:
    """Mean squared error of the mean over P random pairings, against the population's mean.

    Paper: Bell et al. 2020, theorem 5 and appendix C.1. The theorem's noise term 2P/(nε²) is half
    of the term that its proof derives: the mean of Pn/2 Laplace variables of scale P/ε has variance
    2(P/ε)²/(Pn/2) = 4P/(nε²).

    Args:
        records: n, even.
        pairings: P.
        zeta_1: the variance of E[f(x, X)] over x.
        zeta_2: the variance of f(X, Y).
        noise_variance: the noise variance of one pair; 2(P/ε)² for Laplace noise and f in [0, 1].
    """
    n = records
    p = pairings
    sampling = 2 * (p - 1) * (1 - 1 / (n - 1)) * zeta_1 + (1 + (p - 1) / (n - 1)) * zeta_2
    return 2 / (p * n) * (sampling + noise_variance)


def advanced_composition(counts: Mapping[Fraction, int], delta: Fraction) -> Fraction:
    """The epsilon of several epsilon_i-DP releases together, for a given delta.

        sum of eps (e^eps - 1)/(e^eps + 1) + sqrt(2 ln(1/delta) sum of eps^2)

    The privacy loss of one release is +-eps with the odds of randomised response. Its mean is the
    first term. The sum of k bounded losses exceeds its mean by the second term with a probability
    of at most delta (Hoeffding). The relation is replace-one. The bound holds for adaptively chosen
    releases whose parameters were fixed beforehand.

    Paper: Dwork, Rothblum, Vadhan 2010, in the form of Kairouz, Oh, Viswanath 2015, section 3.

    Args:
        counts: the number of releases for each epsilon > 0, exact.
        delta: 0 < delta < 1, exact.

    Returns:
        An exact fraction, certainly not below the expression above.
    """
    with ctx.workprec(PRECISION):
        mean = arb(0)
        for epsilon, times in counts.items():
            mean += times * ball(epsilon) * (ball(epsilon) / 2).tanh()
        squares = ball(sum(times * epsilon**2 for epsilon, times in counts.items()))
        return above(mean + (-2 * ball(delta).log() * squares).sqrt())
