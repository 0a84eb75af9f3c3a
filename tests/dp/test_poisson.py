"""`sample_poisson`: its law at every size of the mean, and the hat that rejection needs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from tests.support.statistical import N_MANY, N, SeededBits, accept, accept_only
from umpc.dp.balls import ball
from umpc.dp.poisson import MOST_MEAN, acceptance, sample_poisson
from umpc.errors import LocalProtocolError


def poisson_law(mean: Fraction):
    """The law of the mean times a factor: for a Poisson variable the scale that can be wrong."""
    return lambda wrong: lambda x: stats.poisson(float(mean) * wrong).cdf(x)


@pytest.mark.parametrize("mean", [Fraction(3, 10), Fraction(7, 2), Fraction(1000)], ids=str)
def test_the_law_is_poisson(mean):
    bits = SeededBits(f"poisson {mean}")
    drawn = [sample_poisson(mean, bits) for _ in range(N_MANY if mean > 9 else 6 * N)]
    accept_only(drawn, poisson_law(mean), 0, int(3 * mean) + 60, bits)


@pytest.mark.parametrize(
    "mean", [Fraction(10**9), Fraction(10**18) + Fraction(1, 3), Fraction(MOST_MEAN)], ids=float
)
def test_a_large_mean_is_normal_around_it(mean):
    """x - mean in units of sqrt(mean); the skewness, 1/sqrt(mean), is far below what the draws can
    show."""
    bits, unit = SeededBits(f"large poisson {mean}"), math.isqrt(int(mean))
    drawn = [math.floor(1000 * (sample_poisson(mean, bits) - mean) / unit) for _ in range(2 * N)]
    accept_only(drawn, lambda wrong: stats.norm(0, 1000 * wrong).cdf, -8000, 8000, bits)


def test_a_small_mean_is_mostly_zero():
    bits, mean = SeededBits("small poisson"), Fraction(1, 100)
    drawn = [sample_poisson(mean, bits) for _ in range(4 * N)]
    accept(
        drawn,
        lambda k: float(special.gammaincc(k + 1, float(mean))) if k >= 0 else 0.0,
        0,
        20,
        bits,
    )


def test_mean_zero_needs_no_bits():
    assert sample_poisson(Fraction(0), lambda count: pytest.fail("no bits are needed")) == 0


@settings(max_examples=200)
@given(
    mean=st.one_of(
        st.fractions(Fraction(1, 1000), 50, max_denominator=1000),
        st.fractions(50, 10**6, max_denominator=100),
        st.integers(1, MOST_MEAN).map(Fraction),
    ),
    steps=st.integers(-4000, 4000),
)
def test_the_odds_of_acceptance_are_below_one(mean, steps):
    """Over the range where they could be above: up to 4 scales from the mode, and next to it."""
    mode, scale = math.floor(mean), math.isqrt(math.floor(mean)) + 1
    for y in {steps * scale // 1000, scale, -scale, scale + 1, -scale - 1, 0, steps}:
        if mode + y >= 0:
            odds = acceptance(mean, y, 512)
            assert odds <= 1 and odds.rel_accuracy_bits() > 400


@pytest.mark.parametrize(
    "mean",
    [Fraction(1, 7), Fraction(99, 100), Fraction(1), Fraction(355, 113), Fraction(60)],
    ids=str,
)
def test_proposal_times_acceptance_is_proportional_to_the_law(mean):
    """The identity that exactness rests on, in balls: exp(-|y|/s) acceptance(y) / p(m+y) is one
    constant."""
    mode, scale = math.floor(mean), math.isqrt(math.floor(mean)) + 1
    with ctx.workprec(128):
        constants = [
            (arb(-abs(y)) / scale).exp()
            * acceptance(mean, y, 128)
            / (ball(mean) ** (mode + y) / arb(mode + y + 1).gamma())
            for y in range(-mode, 40)
        ]
        for constant in constants:
            assert constant.overlaps(constants[0]) and constant.rel_accuracy_bits() > 60


def test_proposals_are_accepted_often_enough():
    """The bound that `MOST_TRIES` relies on, over the means where it is tight."""
    for mean in [Fraction(i, 20) for i in range(1, 120)] + [Fraction(10**k) for k in range(2, 18)]:
        mode, scale = math.floor(mean), math.isqrt(math.floor(mean)) + 1
        span, stride = 12 * scale, max(1, scale // 50)
        y = np.arange(-span, span + 1, stride)
        odds = [float(acceptance(mean, int(v), 64)) if mode + v >= 0 else 0.0 for v in y]
        weights = np.exp(-np.abs(y) / scale)
        assert (weights * odds).sum() / weights.sum() > 0.3, mean


def test_the_same_stream_gives_the_same_draws():
    bits = SeededBits("poisson vector")
    means = [Fraction(1, 3), Fraction(10), Fraction(10**6), Fraction(10**18)]
    assert [sample_poisson(mean, bits) for mean in means] == [0, 11, 1000616, 1000000001356260956]


@pytest.mark.parametrize("mean", [Fraction(-1), Fraction(MOST_MEAN + 1)])
def test_a_mean_out_of_range_is_refused(mean):
    with pytest.raises(LocalProtocolError, match="Poisson law of mean"):
        sample_poisson(mean, SeededBits("unused"))
