"""Mechanisms of one trusted place: their laws, exact on grids too, and their guarantees."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.statistical import ALPHA, WRONG_SCALES, N, SeededBits, accept_only
from umpc.dp.gaussian import calibrate_gaussian
from umpc.dp.mechanisms import (
    discrete_gaussian,
    discrete_laplace,
    exponential,
    gaussian,
    grid_sensitivity,
    laplace,
    on_grid,
    randomised_response,
)
from umpc.errors import InvalidEpsilon, StudyError

EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**5)


def chi_square_of_odds(seen: np.ndarray, weights: np.ndarray) -> float:
    return float(stats.chisquare(seen, weights / weights.sum() * seen.sum()).pvalue)


# --- noise on numbers ---------------------------------------------------------------------------------------


def test_discrete_laplace_adds_the_law_to_the_value():
    bits = SeededBits("mechanism laplace")
    drawn = [discrete_laplace(1000, 3, EPSILON, bits) - 1000 for _ in range(4 * N)]
    accept_only(drawn, lambda wrong: stats.dlaplace(1 / (6 * wrong)).cdf, -300, 300, bits)


def test_laplace_is_near_the_continuous_law():
    """On a grid of 1/1000 no test of this size can tell; in steps, shifted by the half that rounding hides."""
    bits, grid = SeededBits("laplace"), Fraction(1, 1000)
    drawn = [laplace(Fraction(1, 3), Fraction(2), EPSILON, bits, grid) for _ in range(4 * N)]
    assert all((value / grid).denominator == 1 for value in drawn)
    steps = [int((value - Fraction(333, 1000)) / grid) for value in drawn]
    law = lambda wrong: lambda x: stats.laplace(scale=4000 * wrong).cdf(x + 0.5)  # noqa: E731
    accept_only(steps, law, -200_000, 200_000, bits)


def test_gaussian_is_near_the_continuous_law():
    bits, grid = SeededBits("gaussian"), Fraction(1, 1000)
    (noise,) = calibrate_gaussian(EPSILON, DELTA, (2000,))
    drawn = [
        int(gaussian(Fraction(0), Fraction(2), EPSILON, DELTA, bits, grid) / grid)
        for _ in range(300)
    ]
    p = stats.kstest(np.array(drawn) / noise.std, "norm").pvalue
    assert p > ALPHA
    assert discrete_gaussian(7, 0, EPSILON, DELTA, bits) == 7


@settings(max_examples=60)
@given(
    value=st.fractions(-100, 100, max_denominator=1000),
    change=st.fractions(0, 10, max_denominator=1000),
    part=st.fractions(-1, 1, max_denominator=100),
    grid=st.fractions(Fraction(1, 100), 3, max_denominator=100),
)
def test_rounding_to_the_grid_keeps_the_sensitivity(value, change, part, grid):
    """Two values that differ by at most the sensitivity differ by at most its steps; and rounding is to nearest."""
    here, there = on_grid(value, grid), on_grid(value + part * change, grid)
    assert abs(here - there) <= grid_sensitivity(change, grid)
    assert abs(here * grid - value) <= grid / 2


# --- choices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [2, 5])
def test_the_odds_of_randomised_response(answers):
    bits, epsilon = SeededBits(f"response {answers}"), Fraction(6, 5)
    seen = np.bincount(
        [randomised_response(1, answers, epsilon, bits) for _ in range(4 * N)], minlength=answers
    )

    def p(at: float) -> float:
        return chi_square_of_odds(seen, np.where(np.arange(answers) == 1, math.exp(at), 1.0))

    assert p(1.2) > ALPHA
    for wrong in WRONG_SCALES:
        assert p(1.2 * float(wrong)) < ALPHA


def test_the_odds_of_the_exponential_mechanism():
    bits, epsilon, sensitivity = SeededBits("exponential"), Fraction(3, 2), Fraction(2, 3)
    utilities = [Fraction(0), Fraction(1, 3), Fraction(2), Fraction(-1), Fraction(7, 4)]
    seen = np.bincount(
        [exponential(utilities, sensitivity, epsilon, bits) for _ in range(4 * N)], minlength=5
    )

    def p(at: float) -> float:
        return chi_square_of_odds(seen, np.exp(at * np.array(utilities, dtype=float) / (2 * 2 / 3)))

    assert p(1.5) > ALPHA
    for wrong in WRONG_SCALES:
        assert p(1.5 * float(wrong)) < ALPHA


def test_a_single_choice_is_made():
    assert exponential([Fraction(-5)], Fraction(1), Fraction(1), SeededBits("one")) == 0
    assert randomised_response(0, 1, Fraction(1), SeededBits("one")) == 0


def test_a_hopeless_output_is_not_chosen():
    bits = SeededBits("hopeless")
    assert {
        exponential([Fraction(10**6), Fraction(0)], Fraction(1), Fraction(1), bits)
        for _ in range(100)
    } == {0}


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda bits: laplace(0.5, Fraction(1), EPSILON, bits),
        lambda bits: laplace(Fraction(1), 0.5, EPSILON, bits),
        lambda bits: laplace(Fraction(1), Fraction(-1), EPSILON, bits),
        lambda bits: laplace(Fraction(1), Fraction(1), EPSILON, bits, Fraction(0)),
        lambda bits: laplace(Fraction(1), Fraction(1), EPSILON, bits, 0.5),
        lambda bits: randomised_response(2, 2, EPSILON, bits),
        lambda bits: randomised_response(-1, 2, EPSILON, bits),
        lambda bits: exponential([], Fraction(1), EPSILON, bits),
        lambda bits: exponential([Fraction(1)], Fraction(0), EPSILON, bits),
        lambda bits: exponential([0.5], Fraction(1), EPSILON, bits),
    ],
)
def test_inexact_or_impossible_arguments_are_refused(call):
    with pytest.raises(StudyError):
        call(SeededBits("unused"))


def test_epsilon_is_exact():
    with pytest.raises(InvalidEpsilon):
        discrete_laplace(0, 1, 0.5, SeededBits("unused"))
    with pytest.raises(InvalidEpsilon):
        exponential([Fraction(1)], Fraction(1), 0, SeededBits("unused"))
