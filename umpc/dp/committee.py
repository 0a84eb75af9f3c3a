"""Noise from independent coins: the noise that a committee can compute under shares.

A geometric of ratio q = exp(-log_ratio) has independent binary digits. Digit i is 1 with odds
q^{2^i}, that is with probability p_i = 1/(1 + exp(2^i log_ratio)), because P(X = Σ 2^i b_i) is
proportional to Π q^{2^i b_i}. The difference of two geometrics is discrete Laplace
(`calibration.py`), so no sign and no doubled zero need care. A committee flips coin i by comparing
PRECISION bits that no member knows with the public threshold p_i·2^PRECISION, in a time that
depends on nothing secret (`umpc/mpc`).

Finite bits cost a distance from the exact law, stated in `distance`: thresholds are rounded down,
by less than 2^-bits a coin, and digits from B on are left out. The chance that they are not all 0
is below q^{2^B}.

Paper: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, section 4 (geometric noise from biased coins
under shares); Fu & Wang 2024, arXiv 2409.10667 (its cost).

*Binomial.* Binomial noise from fair coins inside the computation: the exact number of coins that
suffices.

    noise = Binomial(coins, 1/2) - coins/2

A committee's shared random bits are fair coins for free, and their sum is an addition. If one
party's bits are honest, the XOR with all other parties' bits is honest, for every coin. The noise
is bounded by coins/2, hence delta > 0 for any number of coins. It needs of the order of
(sensitivity/epsilon)^2 log(1/delta) coins, so it suits small sensitivities.

The guarantee, exact. Neighbours (replace-one) differ in the sum by d <= s. Let F be the
distribution function of Binomial(coins, 1/2). P(x)/P(x-d) falls in x (log-concave law), so the sets
that tell the neighbours apart best are half-lines, and the least delta for epsilon is

    delta_d = max over t of F(t) - e^epsilon F(t-d),

the t being the last with P(t) > e^epsilon P(t-d). The expression grows with d (F(t-d) falls), so
d = s is the worst; the other direction is its mirror image. One more coin is post-processing, so
delta falls with the number of coins, and bisection finds the least number. F is a certified
incomplete beta function.

Paper: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, Our data, ourselves (the mechanism, with
64 log(2/delta)/epsilon^2 coins as sufficient for s = 1; the exact number is 9 to 40 times less for
epsilon <= 1); Agarwal, Suresh, Yu, Kumar, McMahan 2018 (cpSGD; a closed bound for
vectors, not needed for one sum).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import arb, ctx

from umpc.dp.calibration import LN2_ABOVE, NORMAL_SHAPE, DiscreteLaplace
from umpc.dp.events import above, ball, check_delta, check_epsilon, check_sensitivity, is_integer
from umpc.errors import InvalidEpsilon, LocalProtocolError

PRECISION = 64
"""Bits of a coin's random number and of its threshold.

Digits are drawn up to the B for which q^{2^B} is at most 2^-PRECISION.
"""

MOST_DIGITS = 62
"""More digits than a sum of 64 bits holds."""

MOST_COINS = 1 << 17
"""Most fair coins of one sum's binomial noise."""

MOST_WORKING_BITS = 1 << 14
"""Working precision at which a threshold gives up."""


@dataclass(frozen=True)
class CommitteeLaplace:
    """Discrete Laplace noise for a sum of this sensitivity, drawn by a committee coin by coin.

    Args:
        epsilon: > 0, exact.
        sensitivity: s >= 0, in units of the sum; 0 says that the sum is public: no noise.
        bits: bits of a coin's random number; the tail that is left out is at most 2^-bits.

    Raises:
        InvalidEpsilon: the noise would not fit 62 bits.
        LocalProtocolError: epsilon or the sensitivity is out of range.
    """

    epsilon: Fraction
    sensitivity: int
    bits: int = PRECISION

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.sensitivity < 0:
            raise LocalProtocolError(
                "expected epsilon > 0 and a sensitivity of 0 or more, "
                f"got {self.epsilon}, {self.sensitivity}"
            )
        if self.digits > MOST_DIGITS:
            raise InvalidEpsilon(
                f"the noise for epsilon {self.epsilon} and a sensitivity of {self.sensitivity} "
                f"needs {self.digits} bits, at most {MOST_DIGITS} are possible; "
                "ask for a larger epsilon or coarser resolutions"
            )

    @property
    def log_ratio(self) -> Fraction:
        """-log q = epsilon / sensitivity, per unit of the sum. Sensitivity 0 has none."""
        return self.epsilon / self.sensitivity

    @cached_property
    def digits(self) -> int:
        """B, the least with 2^B · log_ratio >= bits · ln 2."""
        if not self.sensitivity:
            return 0
        # q^{2^B} <= 2^-bits (spec/noise.py, `committee_law`)
        needed = self.bits * LN2_ABOVE / self.log_ratio
        return max(0, math.ceil(needed) - 1).bit_length()

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """⌊p_i · 2^bits⌋ of each coin, in the order of `weights`.

        They are exact numbers, so all processes get the same.
        """
        # digit i: 1/(1 + e^{2^i log_ratio}) (Dwork et al. 2006, section 4)
        ratios = (self.log_ratio * (1 << digit) for digit in range(self.digits))
        return tuple(threshold_of(ratio, self.bits) for ratio in ratios) * 2

    @property
    def weights(self) -> tuple[int, ...]:
        """Each coin's weight: the first geometric's digits, then the second's, negative."""
        digits = tuple(1 << digit for digit in range(self.digits))
        # the difference of two geometrics is discrete Laplace
        return digits + tuple(-weight for weight in digits)

    @property
    def offset(self) -> int:
        """0: nothing is subtracted from the coins' sum, as the two geometrics' means cancel."""
        return 0

    @property
    def distance(self) -> Fraction:
        """A bound of the total variation distance from the exact law: two geometrics of B coins."""
        # 2^-bits for each rounded threshold, and for each tail
        return Fraction(2 * (self.digits + 1), 1 << self.bits) if self.sensitivity else Fraction(0)

    @property
    def delta(self) -> Fraction:
        """The delta that the distance costs, at most 1."""
        return min(Fraction(1), cost_of_distance(self.epsilon, self.distance))

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in units of the sum."""
        return DiscreteLaplace(self.log_ratio).std if self.sensitivity else 0.0

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared units of the sum."""
        return self.std * self.std

    def tail_bound(self) -> int:
        """An integer that the noise never exceeds in magnitude."""
        return (1 << self.digits) - 1


@dataclass(frozen=True)
class CommitteeBinomial:
    """Noise from fair coins, (ε, δ)-DP: the sum of n coins, less n/2.

    A fair coin's threshold is exact, so nothing is added to δ. The number of coins grows with the
    square of the sensitivity; `committee.py` finds the least.

    Paper: Dwork et al. 2006 (`committee.py`).

    Raises:
        InvalidEpsilon: more than MOST_COINS are needed.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        # A mechanism that is (ε, δ)-DP for a shift s has a variance n/4 of at least about (s/2ε)²,
        # so many cases are refused before any search.
        too_many = self.sensitivity**2 > MOST_COINS * self.epsilon**2
        if too_many or self.count > MOST_COINS:
            raise InvalidEpsilon(
                f"binomial noise for epsilon {self.epsilon} and a sensitivity of "
                f"{self.sensitivity} needs more than {MOST_COINS} coins; "
                'ask for a larger epsilon or fewer edges, or take noise = "in_mpc"'
            )

    @cached_property
    def count(self) -> int:
        """n, the number of coins."""
        return least_coins(self.epsilon, self.delta, self.sensitivity) if self.sensitivity else 0

    @property
    def thresholds(self) -> tuple[int, ...]:
        """2^PRECISION/2 for each coin."""
        return (1 << (PRECISION - 1),) * self.count

    @property
    def weights(self) -> tuple[int, ...]:
        """1 for each coin."""
        return (1,) * self.count

    @property
    def offset(self) -> int:
        """n/2, which is subtracted from the coins' sum."""
        return self.count // 2

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in units of the sum."""
        return binomial_std(self.count)

    @property
    def shape(self) -> float:
        """That of Skellam's law, whose tails of this variance are heavier: `NORMAL_SHAPE`."""
        return NORMAL_SHAPE

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared units of the sum."""
        return self.count / 4

    def tail_bound(self) -> int:
        """An integer that the noise never exceeds in magnitude."""
        return self.count - self.offset


def cost_of_distance(epsilon: Fraction, distance: Fraction) -> Fraction:
    """δ = (1 + e^ε)·d, rounded up, for laws at a distance d from laws that are ε-close.

    P(S) ≤ P*(S) + d ≤ e^ε·Q*(S) + d ≤ e^ε·(Q(S) + d) + d.
    """
    # a float of e^epsilon, raised by more than its error
    growth = Fraction(math.exp(min(epsilon, Fraction(700)))) * (1 + Fraction(1, 1 << 40))
    return (1 + growth) * distance


def threshold_of(exponent: Fraction, precision: int) -> int:
    """⌊2^precision / (1 + e^exponent)⌋.

    The number before the floor is transcendental, so a sharp enough ball decides.
    """
    bits = 256
    while bits <= MOST_WORKING_BITS:
        with ctx.workprec(bits):
            # spec/noise.py, `scaled`
            scaled = arb((1, precision)) / (1 + ball(exponent).exp())
            exact = scaled.floor().unique_fmpz()
            if exact is not None:
                return int(exact)
        bits *= 2
    raise LocalProtocolError(
        f"no sharp enclosure of a coin's threshold came in {MOST_WORKING_BITS} bits of precision"
    )


# --- binomial -------------------------------------------------------------------------------------

MOST_TOSSED = 1 << 50
"""Far more than any committee tosses; enclosures are sharp up to there."""

MOST_PRECISION = 1 << 12
"""Working precision at which a search gives up: `flint` would have to be at fault."""


def binomial_delta(coins: int, sensitivity: int, epsilon: Fraction) -> Fraction:
    """The least delta for which this noise is (epsilon, delta)-DP.

    Args:
        coins: number of fair coins, >= 0.
        sensitivity: s >= 0, most by which replacing one record changes the sum, in units of the
            sum.
        epsilon: > 0, exact.

    Returns:
        delta, rounded up in its 32nd bit or later.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: the sensitivity is not an integer, 0 or more.
        LocalProtocolError: coins is out of range.
    """
    epsilon = check_epsilon(epsilon)
    s = check_sensitivity(sensitivity)
    if not is_integer(coins) or not 0 <= coins <= MOST_TOSSED:
        raise LocalProtocolError(f"expected 0 .. 2^50 coins, got {coins!r}")
    if not s:
        return Fraction(0)
    if s > coins:
        return Fraction(1)
    # half-lines tell the neighbours apart best (log-concave law): up to the last t with
    # P(t) > e^epsilon P(t-s), which is at least s-1, where P(t-s) = 0, and at most coins
    places = range(coins + 1)
    t = bisect_left(places, True, s, key=lambda x: not _is_above(coins, x, s, epsilon)) - 1
    precision = 64
    while precision <= MOST_PRECISION:
        with ctx.workprec(precision):
            # F(t) - e^epsilon F(t - s)
            delta = distribution(coins, t) - ball(epsilon).exp() * distribution(coins, t - s)
            if delta.is_finite() and bool(delta > 0) and delta.rel_accuracy_bits() >= 32:
                return min(Fraction(1), above(delta, None))
        precision *= 2
    raise LocalProtocolError(
        f"expected a sharp delta of {coins} coins, none came in {MOST_PRECISION} bits"
    )


def least_coins(epsilon: Fraction, delta: Fraction, sensitivity: int) -> int:
    """The least even number of fair coins whose noise is (epsilon, delta)-DP.

    The number is even, so that coins/2 is an integer.

    Args:
        epsilon: > 0, exact.
        delta: 0 < delta < 1, exact.
        sensitivity: s >= 0 in units of the sum. 0 needs no coin.

    Raises:
        InvalidEpsilon: epsilon or delta is not exact or not in its range, or it takes more than
            2^50 coins.
        StudyError: the sensitivity is not an integer, 0 or more.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    s = check_sensitivity(sensitivity)
    if not s:
        return 0
    high = 1  # in pairs of coins
    while binomial_delta(2 * high, s, epsilon) > delta:
        high *= 2
        if 2 * high > MOST_TOSSED:
            raise InvalidEpsilon(
                f"epsilon = {epsilon} and delta = {delta} take more than 2^50 coins for a "
                f"sensitivity of {s}; take discrete Laplace or Skellam noise"
            )
    # delta falls with the number of coins, so bisection finds the least
    return 2 * bisect_left(
        range(high),
        True,
        high // 2 + 1,
        key=lambda pairs: binomial_delta(2 * pairs, s, epsilon) <= delta,
    )


def binomial_std(coins: int) -> float:
    """Standard deviation of the noise, sqrt(coins)/2, in units of the sum.

    The noise itself never exceeds coins/2.
    """
    return math.sqrt(coins) / 2


def distribution(coins: int, k: int) -> arb:
    """F(k) = P(Binomial(coins, 1/2) <= k) = I_{1/2}(coins - k, k + 1), as a ball."""
    if k < 0:
        return arb(0)
    if k >= coins:
        return arb(1)
    # a certified incomplete beta function
    return (arb(1) / 2).beta_lower(coins - k, k + 1, regularized=True)


def _is_above(coins: int, x: int, s: int, epsilon: Fraction) -> bool:
    """Whether log P(x)/P(x-s) > epsilon.

    They are never equal: the log of a fraction is not a fraction (Lindemann).
    """
    precision = 128
    while precision <= MOST_PRECISION:
        with ctx.workprec(precision):
            difference = _log_choose(coins, x) - _log_choose(coins, x - s) - ball(epsilon)
            if difference > 0 or difference < 0:
                return bool(difference > 0)
        precision *= 2
    raise LocalProtocolError(
        f"expected a decided comparison for {coins} coins, none came in {MOST_PRECISION} bits"
    )


def _log_choose(n: int, k: int) -> arb:
    """log C(n, k) - log n!; the term log n! cancels in a difference."""
    return -arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
