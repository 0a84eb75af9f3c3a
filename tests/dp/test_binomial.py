"""Coins: the exact delta, and the least number, far below the literature's sufficient number."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.statistical import shift_delta
from umpc.dp.committee import MOST_TOSSED, binomial_delta, binomial_std, distribution, least_coins
from umpc.errors import InvalidEpsilon, LocalProtocolError, StudyError

DELTA = Fraction(1, 10**6)


def exact_delta(coins: int, shift: int, epsilon: Fraction, digits: int = 60) -> Fraction:
    """By integers: sum of max(0, C(m,x) - e^epsilon C(m,x-s))/2^m, with e^epsilon as a fraction
    from below."""
    growth = Fraction(int(math.exp(float(epsilon)) * (1 - 1e-12) * 10**digits), 10**digits)
    total = Fraction(0)
    for x in range(coins + shift + 1):
        here = math.comb(coins, x)
        there = math.comb(coins, x - shift) if x >= shift else 0
        total += max(Fraction(0), here - growth * there)
    return total / 2**coins


@settings(max_examples=100)
@given(
    coins=st.integers(0, 80),
    s=st.integers(0, 30),
    epsilon=st.fractions(Fraction(1, 20), 6, max_denominator=20),
)
def test_delta_is_the_hockey_stick_of_every_small_case(coins, s, epsilon):
    ours = binomial_delta(coins, s, epsilon)
    exact = exact_delta(coins, s, epsilon)  # a little above, as its e^epsilon is below
    assert exact * (1 - Fraction(1, 10**8)) - Fraction(1, 10**10) <= ours
    assert ours <= exact * (1 + Fraction(1, 2**31)) + Fraction(1, 10**14)


@pytest.mark.parametrize(("coins", "s"), [(1000, 3), (1001, 40), (200_000, 100)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_delta_of_more_coins_by_scipy(coins, s, epsilon):
    table = stats.binom.pmf(np.arange(coins + 1), coins, 0.5)
    assert float(binomial_delta(coins, s, epsilon)) == pytest.approx(
        shift_delta(table, s, float(epsilon)), rel=1e-6, abs=1e-14
    )


@settings(max_examples=60)
@given(
    coins=st.integers(1, 5000),
    s=st.integers(1, 60),
    epsilon=st.fractions(Fraction(1, 10), 4, max_denominator=20),
)
def test_delta_falls_with_coins_and_epsilon_and_grows_with_the_change(coins, s, epsilon):
    delta, slack = binomial_delta(coins, s, epsilon), 1 + Fraction(1, 2**30)
    assert binomial_delta(coins + 1, s, epsilon) <= delta * slack
    assert binomial_delta(coins, s, epsilon * 2) <= delta * slack
    assert delta <= binomial_delta(coins, s + 1, epsilon) * slack


@pytest.mark.parametrize("delta", [Fraction(1, 1000), DELTA, Fraction(1, 2**40)], ids=float)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)], ids=str)
@pytest.mark.parametrize("s", [1, 14, 400])
def test_the_number_is_enough_and_two_fewer_are_not(epsilon, delta, s):
    coins = least_coins(epsilon, delta, s)
    assert coins % 2 == 0
    assert binomial_delta(coins, s, epsilon) <= delta < binomial_delta(coins - 2, s, epsilon)
    sufficient = 64 * math.log(2 / delta) / epsilon**2 * s * s
    print(
        f"epsilon {epsilon}, delta {float(delta):.0e}, s {s}: {coins} coins, "
        f"{sufficient / coins:.1f} x fewer than 2006"
    )
    assert sufficient / coins > (9 if epsilon <= 1 else 1)


def test_the_noise_is_near_gaussian():
    """Many coins are as many as the analytic Gaussian mechanism's variance needs."""
    coins = least_coins(Fraction(1), DELTA, 400)
    low, high = (
        1.0,
        10.0,
    )  # sigma per unit of sensitivity, by bisection on Balle and Wang's exact delta
    for _ in range(60):
        sigma = (low + high) / 2
        a, b = 1 / (2 * sigma) - sigma, -1 / (2 * sigma) - sigma
        delta = stats.norm.cdf(a) - math.e * stats.norm.cdf(b)
        low, high = (low, sigma) if delta <= DELTA else (sigma, high)
    assert binomial_std(coins) / 400 == pytest.approx(high, rel=1e-3)


@pytest.mark.parametrize("coins", [10**3, 10**7, 10**12, MOST_TOSSED])
@pytest.mark.parametrize("deviations", [-8, 0, 3])
def test_the_distribution_function_is_sharp_up_to_the_most_coins(coins, deviations):
    k = coins // 2 + deviations * math.isqrt(coins) // 2
    with ctx.workprec(128):
        ball = distribution(coins, k)
        assert ball.rel_accuracy_bits() > 60
    expected = stats.norm.cdf((k + 0.5 - coins / 2) / (math.sqrt(coins) / 2))
    assert float(ball) == pytest.approx(expected, rel=0.3 if deviations < 0 else 1e-3)


def test_the_ends():
    assert least_coins(Fraction(1), DELTA, 0) == 0 and binomial_delta(0, 0, Fraction(1)) == 0
    assert binomial_delta(3, 4, Fraction(1)) == 1
    assert binomial_delta(10, 1, Fraction(50)) == pytest.approx(
        2.0**-10
    )  # the one outcome that tells them apart


def test_refusals():
    with pytest.raises(InvalidEpsilon, match="2\\^50"):
        least_coins(Fraction(1, 1000), DELTA, 10**9)
    with pytest.raises(InvalidEpsilon):
        least_coins(Fraction(1), Fraction(1), 1)
    with pytest.raises(InvalidEpsilon):
        binomial_delta(10, 1, 0.5)
    with pytest.raises(StudyError):
        least_coins(Fraction(1), DELTA, -1)
    for coins in (-1, MOST_TOSSED + 1, 2.0):
        with pytest.raises(LocalProtocolError, match="coins"):
            binomial_delta(coins, 1, Fraction(1))
