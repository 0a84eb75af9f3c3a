"""Binomial noise from fair coins inside the computation: the exact number of coins that suffices.

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
from fractions import Fraction

from flint import arb, ctx

from umpc.dp.checks import above, ball, check_delta, check_epsilon, check_sensitivity, is_integer
from umpc.errors import InvalidEpsilon, LocalProtocolError

MOST_COINS = 1 << 50
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
    if not is_integer(coins) or not 0 <= coins <= MOST_COINS:
        raise LocalProtocolError(f"expected 0 .. 2^50 coins, got {coins!r}")
    if not s:
        return Fraction(0)
    if s > coins:
        return Fraction(1)
    t = _last_above(coins, s, epsilon)
    precision = 64
    while precision <= MOST_PRECISION:
        with ctx.workprec(precision):
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
        if 2 * high > MOST_COINS:
            raise InvalidEpsilon(
                f"epsilon = {epsilon} and delta = {delta} take more than 2^50 coins for a "
                f"sensitivity of {s}; take discrete Laplace or Skellam noise"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_delta(2 * middle, s, epsilon) > delta:
            low = middle
        else:
            high = middle
    return 2 * high


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
    return (arb(1) / 2).beta_lower(coins - k, k + 1, regularized=True)


def _last_above(coins: int, s: int, epsilon: Fraction) -> int:
    """The last t with P(t) > e^epsilon P(t-s). It is at least s-1, where P(t-s) = 0."""
    low = s - 1  # true here
    high = coins + 1  # false here: P is 0
    while high - low > 1:
        middle = (low + high) // 2
        if _is_above(coins, middle, s, epsilon):
            low = middle
        else:
            high = middle
    return low


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
