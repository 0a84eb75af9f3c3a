"""The laws of a pair's noise: their exact cost for a pair and for a record, and theorem 5.

Theorem 5 is checked by enumeration.
"""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, lgamma, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.statistical import hockey_stick
from umpc.dp.calibration import DiscreteLaplace
from umpc.errors import InvalidEpsilon
from umpc_papers.bell_2pc.pair_mechanisms import (
    BITS,
    MOST_VALUES,
    PairLaplace,
    PairResponse,
    advanced_composition,
    epsilon_of_pair,
    theorem_5,
)

getcontext().prec = 60
WHOLE = 1 << BITS


def power(epsilon: Fraction) -> Decimal:
    """e^ε to 60 digits."""
    return (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()


# --- randomised response -----------------------------------------------------------------------

EPSILONS = [Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(20)]
by_law = pytest.mark.parametrize("width", [1, 2, 5, MOST_VALUES - 1])


def law_of(response: PairResponse, value: int) -> dict[int, Fraction]:
    """The law of one value's response, from the thresholds.

    The shift is the number of thresholds above the random number.
    """
    steps = [0, *sorted(response.thresholds), WHOLE]
    shifts = {
        response.width - i: Fraction(steps[i + 1] - steps[i], WHOLE)
        for i in range(response.width + 1)
    }
    return {
        response.low + (value - response.low + shift) % (response.width + 1): mass
        for shift, mass in shifts.items()
    }


@by_law
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_odds_of_randomised_response_are_at_most_e_epsilon_and_hardly_less(epsilon, width):
    response = PairResponse(epsilon, -2, width, 1)
    laws = [law_of(response, value) for value in range(-2, width - 1)]
    assert all(sum(law.values()) == 1 and len(law) == width + 1 for law in laws)
    odds = max(first[out] / second[out] for first in laws for second in laws for out in first)
    assert odds == 1 / response.wrong - width
    assert Decimal(odds.numerator) / Decimal(odds.denominator) <= power(epsilon)
    sharper = Fraction(WHOLE, response.wrong_odds - 1) - width if response.wrong_odds > 1 else None
    assert sharper is None or Decimal(sharper.numerator) / Decimal(sharper.denominator) > power(
        epsilon
    )


@by_law
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_randomised_response_is_unbiased_with_the_stated_deviation(epsilon, width):
    response = PairResponse(epsilon, -2, width, 1)
    spreads = []
    for value in range(-2, width - 1):
        law = law_of(response, value)
        mean = sum(mass * response.unbiased(out) for out, mass in law.items())
        assert mean == value
        spreads.append(
            sum(mass * (response.unbiased(out) - value) ** 2 for out, mass in law.items())
        )
    assert response.std == pytest.approx(sqrt(max(spreads)), rel=1e-9)
    many = PairResponse(epsilon, -2, width, 9)
    assert many.std == pytest.approx(3 * response.std) and (many.delta, many.tail_bound()) == (0, 0)
    outs = [-2, width - 2, -2, -2, -2, width - 2, -2, -2, -2]
    assert many.unbiased(sum(outs)) == sum(map(response.unbiased, outs))


def test_a_kernel_of_one_value_is_public():
    response = PairResponse(Fraction(1), 5, 0, 7)
    assert (response.thresholds, response.wrong, response.std, response.unbiased(35)) == (
        (),
        0,
        0,
        35,
    )


def test_a_kernel_of_too_many_values_is_refused():
    assert len(PairResponse(Fraction(1), 0, MOST_VALUES - 1, 1).thresholds) == MOST_VALUES - 1
    with pytest.raises(
        InvalidEpsilon, match=f'at most {MOST_VALUES} values.*noise = "pair_laplace"'
    ):
        PairResponse(Fraction(1), 0, MOST_VALUES, 1)


def test_a_response_tells_something_of_the_value_or_is_refused():
    """Rounding towards more noise may remove all dependence on the value."""
    for digits, width in product((9, 12, 13, 14, 15, 20, 30), (1, 2, 3, 7, MOST_VALUES - 1)):
        try:
            response = PairResponse(Fraction(1, 10**digits), 0, width, 1)
        except InvalidEpsilon as error:
            assert digits > 9 and "larger epsilon" in error.message
        else:
            assert response.contrast > 0 and response.std > 0, (
                f"epsilon 1e-{digits}, {width + 1} values"
            )


# --- discrete Laplace --------------------------------------------------------------------------


def coin_law(law: PairLaplace) -> dict[int, Fraction]:
    """The exact law of one pair's noise."""
    masses = {0: Fraction(1)}
    for threshold, weight in zip(law.coins.thresholds, law.coins.weights, strict=True):
        chance, moved = Fraction(threshold, WHOLE), {}
        for value, mass in masses.items():
            moved[value] = moved.get(value, Fraction(0)) + mass * (1 - chance)
            moved[value + weight] = moved.get(value + weight, Fraction(0)) + mass * chance
        masses = moved
    return masses


LAWS = [(Fraction(3), 1), (Fraction(4), 2), (Fraction(7, 2), 3)]
"""(ε0, width): few enough coins for exact fractions."""


@pytest.mark.parametrize(("epsilon", "width"), LAWS, ids=str)
def test_the_distance_bounds_that_from_the_exact_law(epsilon, width):
    """P*(x) = (1 − q)/(1 + q)·q^|x| with q = e^{−ε0/s}, to 60 digits."""
    law = PairLaplace(epsilon, width, 1, 1, epsilon)
    masses, q = coin_law(law), 1 / power(epsilon / width)
    assert sum(masses.values()) == 1 and max(
        masses
    ) == law.coins.tail_bound() == law.tail_bound() == -min(masses)
    outside = 1 - sum((1 - q) / (1 + q) * q ** abs(x) for x in masses)
    between = sum(
        abs(Decimal(m.numerator) / Decimal(m.denominator) - (1 - q) / (1 + q) * q ** abs(x))
        for x, m in masses.items()
    )
    distance = (outside + between) / 2
    assert (
        0
        < distance
        <= Decimal(law.coins.distance.numerator) / Decimal(law.coins.distance.denominator)
    )
    assert float(distance) > float(law.coins.distance) / 2000, "the bound is of the right order"


@pytest.mark.parametrize("pairs_of_a_record", [1, 2])
@pytest.mark.parametrize(("epsilon", "width"), LAWS[:2], ids=str)
def test_delta_bounds_what_a_records_pairs_lose_beyond_epsilon(epsilon, width, pairs_of_a_record):
    """The hockey stick of exact laws: k independent values, each shifted by the whole range."""
    k = pairs_of_a_record
    law = PairLaplace(epsilon, width, k, k, epsilon * k)
    masses = coin_law(law)
    factor = Fraction(str(power(epsilon * k)))
    shifted = {value + width: mass for value, mass in masses.items()}
    both = [
        (masses.get(out, Fraction(0)), shifted.get(out, Fraction(0))) for out in {*masses, *shifted}
    ]
    both = [(each, 1) for each in both] if k == 1 else grouped(both)
    exact = max(
        sum(times * max(Fraction(0), p - factor * q) for (p, q), times in both),
        sum(times * max(Fraction(0), q - factor * p) for (p, q), times in both),
    )
    assert 0 < exact <= law.delta
    stated = k * (1 + exp(epsilon * k)) * float(law.coins.distance)
    assert float(law.delta) == pytest.approx(stated, rel=1e-9)


def grouped(both: list[tuple[Fraction, Fraction]]) -> list[tuple[tuple[Fraction, Fraction], int]]:
    """Unordered pairs of outcomes: products of probabilities, and the number of orders of each."""
    return [
        ((p * p2, q * q2), 1 if i == j else 2)
        for (i, (p, q)), (j, (p2, q2)) in combinations_with_replacement(list(enumerate(both)), 2)
    ]


def test_without_the_tail_epsilon_is_lost_and_only_with_delta_kept():
    """Power: for a law with twice the claimed ε0, the hockey stick is far above δ."""
    law, claimed = (
        PairLaplace(Fraction(2), 1, 1, 1, Fraction(2)),
        PairLaplace(Fraction(1), 1, 1, 1, Fraction(1)),
    )
    masses = coin_law(law)
    outs = sorted({*masses, *(value + 1 for value in masses)})
    p, q = (np.array([float(masses.get(out - shift, 0)) for out in outs]) for shift in (0, 1))
    assert hockey_stick(p, q, 1.0) > 0.1 > 1e6 * float(claimed.delta)
    assert hockey_stick(p, q, 2.0) <= float(law.delta) + 1e-15


def test_a_public_value_gets_no_noise_and_delta_is_at_most_1():
    law = PairLaplace(Fraction(1), 0, 10, 3, Fraction(3))
    assert (law.coins.weights, law.std, law.tail_bound(), law.delta) == ((), 0, 0, 0)
    assert PairLaplace(Fraction(10**6), 10**9, 10, 3, Fraction(10**6)).delta == 1


@pytest.mark.parametrize(("epsilon", "width"), LAWS, ids=str)
def test_the_sums_deviation_is_that_of_independent_pairs(epsilon, width):
    law = PairLaplace(epsilon, width, 25, 1, epsilon)
    variance = sum(float(mass) * value**2 for value, mass in coin_law(law).items())
    assert (
        law.std
        == pytest.approx(5 * sqrt(variance), rel=1e-6)
        == 5 * DiscreteLaplace(epsilon / width).std
    )
    assert law.unbiased(-3) == -3 and law.tail_bound() == 25 * law.coins.tail_bound()


# --- composition -------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)], ids=str)
def test_of_one_pair_or_without_delta_the_epsilons_add(delta):
    assert (
        epsilon_of_pair(Fraction(3, 7), delta, 1)
        == epsilon_of_pair(Fraction(3, 7), delta, 0)
        == Fraction(3, 7)
    )
    assert epsilon_of_pair(Fraction(3, 7), Fraction(0), 9) == Fraction(3, 63)


@pytest.mark.parametrize("degree", [60, 100, 4520])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)], ids=str)
def test_advanced_composition_allows_more_and_certainly_not_too_much(epsilon, degree):
    """Kairouz, Oh & Viswanath 2015: kε0·tanh(ε0/2) + ε0·sqrt(2k ln(1/δ))."""
    delta = Fraction(1, 10**6)
    each = epsilon_of_pair(epsilon, delta, degree)
    assert epsilon / degree < each and advanced_composition({each: degree}, delta) <= epsilon
    x = float(each)
    advanced = degree * x * (exp(x) - 1) / (exp(x) + 1) + x * sqrt(2 * degree * log(1e6))
    assert advanced == pytest.approx(float(epsilon), rel=1e-9)


def test_where_advanced_composition_allows_less_the_epsilons_add():
    """This holds for few pairs, k < 2 ln(1/δ), and for large ε."""
    assert epsilon_of_pair(Fraction(1), Fraction(1, 10**6), 27) == Fraction(1, 27)
    assert epsilon_of_pair(Fraction(400), Fraction(1, 10**6), 100) == 4


@given(st.fractions(Fraction(1, 1000), 50), st.integers(2, 500), st.integers(1, 40))
def test_never_less_than_basic_and_certified(epsilon, degree, digits):
    delta = Fraction(1, 2**digits)
    each = epsilon_of_pair(epsilon, delta, degree)
    assert epsilon / degree <= each <= epsilon
    assert each == epsilon / degree or advanced_composition({each: degree}, delta) <= epsilon


def test_more_epsilon_more_delta_and_fewer_pairs_allow_more():
    usual = (Fraction(1), Fraction(1, 10**6), 100)
    for place, better in ((0, Fraction(2)), (1, Fraction(1, 10**3)), (2, 50)):
        changed = [*usual]
        changed[place] = better
        assert epsilon_of_pair(*changed) > epsilon_of_pair(*usual)


@pytest.mark.parametrize("degree", [40, 200])
def test_the_exact_loss_of_k_responses_is_within_epsilon_and_delta(degree):
    """The sum of losses ±ε0 is binomial. Its hockey stick is at most δ, but not for 1.5·ε0."""
    epsilon, delta = Fraction(1), Fraction(1, 10**4)
    each = float(epsilon_of_pair(epsilon, delta, degree))
    assert losses_beyond(each, degree, 1.0) <= float(delta) < losses_beyond(1.5 * each, degree, 1.0)


def losses_beyond(each: float, degree: int, epsilon: float) -> float:
    """δ(ε) of k randomised responses of two values."""
    likely, total = exp(each) / (1 + exp(each)), 0.0
    for right in range(degree + 1):
        ways = lgamma(degree + 1) - lgamma(right + 1) - lgamma(degree - right + 1)
        p, q = (
            ways + r * log(likely) + (degree - r) * log(1 - likely) for r in (right, degree - right)
        )
        total += max(0.0, exp(p) - exp(epsilon + q))
    return total


# --- theorem 5 ---------------------------------------------------------------------------------

LAW = {0: Fraction(1, 2), 1: Fraction(1, 3), 3: Fraction(1, 6)}
"""The law of one record; records are independent."""
KERNELS = {"Gini": lambda x, y: Fraction(abs(x - y), 3), "a sum": lambda x, y: Fraction(x + y, 6)}
"""Kernels with values in [0, 1]. For the sum, ζ2 = 2ζ1."""


def pairings_of(records: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """All perfect matchings: 3 of 4 records, 15 of 6."""
    if not records:
        return [()]
    first, *rest = records
    return [
        ((first, other), *more)
        for other in rest
        for more in pairings_of(tuple(each for each in rest if each != other))
    ]


def zetas(kernel) -> tuple[Fraction, Fraction, Fraction]:
    """Mean, ζ1 and ζ2 from their definitions."""
    given = {x: sum(p * kernel(x, y) for y, p in LAW.items()) for x in LAW}
    mean = sum(p * given[x] for x, p in LAW.items())
    one = sum(p * (given[x] - mean) ** 2 for x, p in LAW.items())
    two = sum(p * r * (kernel(x, y) - mean) ** 2 for x, p in LAW.items() for y, r in LAW.items())
    return mean, one, two


def enumerated(kernel, records: int, pairings: int, noise: Fraction) -> Fraction:
    """The mean squared error over all tables, all P pairings, and ±`noise` on each pair."""
    mean, total, pairs = zetas(kernel)[0], Fraction(0), pairings * records // 2
    choices = list(product(pairings_of(tuple(range(records))), repeat=pairings))
    signs = [sum(each) for each in product((-1, 1), repeat=pairs)] if noise else [0]
    for values in product(LAW, repeat=records):
        mass = Fraction(1)
        for value in values:
            mass *= LAW[value]
        table = [[kernel(x, y) for y in values] for x in values]
        sums = [sum(table[i][j] for each in choice for i, j in each) for choice in choices]
        squares = sum(
            ((found + noise * sign) / pairs - mean) ** 2 for found in sums for sign in signs
        )
        total += mass * squares / (len(sums) * len(signs))
    return total


@pytest.mark.parametrize(
    ("records", "pairings", "noise"),
    [(2, 1, 1), (2, 2, 2), (2, 3, 0), (4, 1, 1), (4, 2, Fraction(1, 2)), (4, 3, 0), (6, 1, 0)],
    ids=str,
)
@pytest.mark.parametrize("name", KERNELS)
def test_theorem_5_by_enumeration_of_all_tables_and_pairings(name, records, pairings, noise):
    _, one, two = zetas(KERNELS[name])
    exact = enumerated(KERNELS[name], records, pairings, Fraction(noise))
    stated = theorem_5(records, pairings, float(one), float(two), float(noise) ** 2)
    assert stated == pytest.approx(float(exact), rel=1e-12)
    assert name != "a sum" or two == 2 * one


@pytest.mark.parametrize(
    ("records", "pairings", "epsilon"), [(4, 1, 1), (4, 2, 2), (2, 3, Fraction(1, 2))], ids=str
)
def test_the_noise_term_is_4p_and_the_papers_own_is_half_of_it(records, pairings, epsilon):
    """Laplace noise of scale P/ε has variance 2(P/ε)², and so has ±√2·P/ε.

    Only variances matter here. The paper has 2P/(nε²).
    """
    scale = Fraction(pairings) / epsilon
    silent = enumerated(KERNELS["Gini"], records, pairings, Fraction(0))
    rational = Fraction(7, 5) * scale  # ±1.4·P/ε in place of ±√2·P/ε
    loud = enumerated(KERNELS["Gini"], records, pairings, rational)
    noise_term = (loud - silent) * 2 * scale**2 / rational**2
    paper = 2 * pairings / (records * Fraction(epsilon) ** 2)
    assert noise_term == 4 * pairings / (records * Fraction(epsilon) ** 2) == 2 * paper
    assert theorem_5(records, pairings, 0, 0, float(2 * scale**2)) == pytest.approx(
        float(noise_term), rel=1e-12
    )


def test_a_pair_law_gives_the_variance_that_theorem_5_takes():
    """Discrete Laplace of scale P/ε in fine units: 2(P/ε)² times the square of f's range."""
    units, epsilon, pairings = 10**6, Fraction(1), 3
    law = PairLaplace(epsilon / pairings, units, 1, pairings, epsilon)
    assert (law.std / units) ** 2 == pytest.approx(2 * pairings**2, rel=1e-9)


@pytest.mark.parametrize("epsilon", [BITS - 1, BITS, 10**18])
def test_a_large_epsilon_leaves_the_least_odds_of_a_wrong_value_at_once(epsilon):
    """From BITS·ln 2 on the odds are 1, as the formula says.

    A former version computed all digits of e^ε, for which 10^18 needed too much memory.
    """
    assert PairResponse(Fraction(epsilon), 0, 2, 1).wrong == Fraction(1, 1 << BITS)
