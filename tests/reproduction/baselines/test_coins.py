"""Exact coins and the discrete Laplace made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reproduction.baselines.coins import (
    MOST_TRIES,
    bernoulli,
    bernoulli_exp,
    sample_discrete_laplace,
    uniform_below,
)
from reproduction.baselines.rejection import reject_gaussian, reject_poisson
from tests.support.statistical import ALPHA, N_MANY, SeededBits, accept_only
from umpc.errors import LocalProtocolError


def binomial_p(successes: int, count: int, odds: float) -> float:
    return float(stats.binomtest(successes, count, odds).pvalue)


@pytest.mark.parametrize(
    ("coin", "odds"),
    [
        (lambda bits: bernoulli(3, 7, bits), 3 / 7),
        (lambda bits: bernoulli_exp(0, 1, bits), 1.0),
        (lambda bits: bernoulli_exp(1, 5, bits), math.exp(-0.2)),
        (lambda bits: bernoulli_exp(1, 1, bits), math.exp(-1)),
        (lambda bits: bernoulli_exp(7, 3, bits), math.exp(-7 / 3)),
    ],
    ids=["3/7", "exp(0)", "exp(-1/5)", "exp(-1)", "exp(-7/3)"],
)
def test_the_odds_of_a_coin(coin: Callable[[SeededBits], bool], odds: float):
    bits = SeededBits(f"coin {odds}")
    heads = sum(coin(bits) for _ in range(N_MANY))
    assert binomial_p(heads, N_MANY, odds) > ALPHA, bits
    for wrong in (0.7, 1.3):
        assert binomial_p(heads, N_MANY, min(1.0, odds * wrong) - (odds * wrong >= 1) * 0.1) < ALPHA


def test_uniform_below_is_uniform():
    bits = SeededBits("uniform")
    seen = np.bincount([uniform_below(13, bits) for _ in range(N_MANY)], minlength=13)
    assert len(seen) == 13 and stats.chisquare(seen).pvalue > ALPHA


def test_a_coin_with_one_side_needs_no_bits():
    assert uniform_below(1, lambda count: pytest.fail("no bits are needed")) == 0


def laplace_cdf(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    return stats.dlaplace(1 / scale).cdf


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(1000)], ids=str)
def test_the_law_is_discrete_laplace(scale):
    bits = SeededBits(f"coins laplace {scale}")
    drawn = [sample_discrete_laplace(1 / scale, bits) for _ in range(N_MANY)]
    accept_only(
        drawn,
        lambda wrong: laplace_cdf(float(scale) * wrong),
        int(-60 * scale),
        int(60 * scale),
        bits,
    )


@pytest.mark.parametrize("scale", [10**18, Fraction(1, 1000)], ids=str)
def test_extreme_scales(scale):
    bits = SeededBits("extreme")
    drawn = [sample_discrete_laplace(1 / Fraction(scale), bits) for _ in range(2000)]
    assert np.mean(np.abs(drawn)) == pytest.approx(float(scale) if scale > 1 else 0, rel=0.2)


@pytest.mark.parametrize("word", [0, 1], ids=["zeros", "ones"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda bits: sample_discrete_laplace(Fraction(1, 5), bits),
        lambda bits: sample_discrete_laplace(Fraction(5, 3), bits),
        lambda bits: reject_poisson(Fraction(10**6), bits),
        lambda bits: reject_poisson(Fraction(1, 3), bits),
        lambda bits: reject_gaussian(Fraction(50), bits),
    ],
    ids=["laplace 5", "laplace 3/5", "poisson 1e6", "poisson 1/3", "gaussian 50"],
)
def test_a_dead_source_ends(draw, word):
    """All zeros or all ones: an answer or an error, never for ever."""
    asked = 0

    def dead(count: int) -> int:
        nonlocal asked
        asked += 1
        return (1 << count) - 1 if word else 0

    try:
        draw(dead)
    except LocalProtocolError as error:
        assert "source of randomness" in str(error)
    assert asked < 1000 * MOST_TRIES


@pytest.mark.parametrize("log_ratio", [Fraction(0), Fraction(-1)])
def test_a_log_ratio_out_of_range_is_refused(log_ratio):
    with pytest.raises(LocalProtocolError, match="log_ratio"):
        sample_discrete_laplace(log_ratio, SeededBits("unused"))
