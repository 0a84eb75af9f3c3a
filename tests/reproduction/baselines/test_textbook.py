"""The textbook's mechanisms that no protocol uses: their laws, and the arguments they refuse."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reproduction.baselines.coins import MOST_TRIES
from reproduction.baselines.textbook import (
    calibrate_gaussian,
    discrete_gaussian,
    exponential,
    gaussian,
    local_mean,
    randomised_response,
)
from tests.support.statistical import ALPHA, WRONG_SCALES, N, SeededBits
from umpc.errors import InvalidEpsilon, LocalProtocolError, StudyError

EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**5)


def chi_square_of_odds(seen: np.ndarray, weights: np.ndarray) -> float:
    return float(stats.chisquare(seen, weights / weights.sum() * seen.sum()).pvalue)


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


def test_a_local_mean_has_the_slides_variance_and_clips():
    """Bellet 2021: "with the Laplace mechanism, we get an estimate with variance 2/nε²"."""
    bits, zero, one = SeededBits("local mean"), Fraction(0), Fraction(1)
    values = [Fraction(number, 4) for number in (0, 1, 2, 3, 9, -2)]
    clipped = Fraction(0 + 1 + 2 + 3 + 4 + 0, 24)
    drawn = np.array([float(local_mean(values, zero, one, EPSILON, bits)) for _ in range(150)])
    ratio = drawn.var() / (2 / (6 * float(EPSILON) ** 2))
    assert 0.5 < ratio < 1.8 and abs(drawn.mean() - clipped) < 6 * drawn.std() / 150**0.5


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


@pytest.mark.parametrize("word", [0, 1], ids=["zeros", "ones"])
def test_a_dead_source_ends(word):
    """All zeros or all ones: an answer or an error, never an endless loop."""
    asked = 0

    def dead(count: int) -> int:
        nonlocal asked
        asked += 1
        return (1 << count) - 1 if word else 0

    try:
        exponential([Fraction(1), Fraction(2), Fraction(0)], Fraction(1), Fraction(1), dead)
    except LocalProtocolError as error:
        assert "source of randomness" in str(error)
    assert asked < 1000 * MOST_TRIES


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
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
        exponential([Fraction(1)], Fraction(1), 0, SeededBits("unused"))
