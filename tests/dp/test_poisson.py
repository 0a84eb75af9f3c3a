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

from tests.support.statistical import N_TRIALS, N, SeededBits, accept, accept_only
from umpc.dp.events import ball
from umpc.dp.geometric_poisson import MOST_MEAN, LargePoisson, acceptance, sample_poisson, table_of
from umpc.dp.random_bits import OFTEN
from umpc.errors import LocalProtocolError


def poisson_law(mean: Fraction):
    """The law of the mean times a factor: for a Poisson variable the scale that can be wrong."""
    return lambda wrong: lambda x: stats.poisson(float(mean) * wrong).cdf(x)


@pytest.mark.parametrize(
    "mean", [Fraction(3, 10), Fraction(7, 2), Fraction(250), Fraction(1000)], ids=str
)
def test_the_law_is_poisson(mean):
    bits = SeededBits(f"poisson {mean}")
    drawn = [sample_poisson(mean, bits) for _ in range(N_TRIALS if mean > 256 else 6 * N)]
    accept_only(drawn, poisson_law(mean), 0, int(3 * mean) + 60, bits)


@pytest.mark.parametrize(
    "mean", [Fraction(10**9), Fraction(10**18) + Fraction(1, 3), Fraction(MOST_MEAN)], ids=float
)
def test_a_large_mean_is_normal_around_it(mean):
    """x - mean in units of sqrt(mean); the skewness, 1/sqrt(mean), is far below what the draws can
    show."""
    bits, unit = SeededBits(f"large poisson {mean}"), math.isqrt(int(mean))
    drawn = [math.floor(1000 * (sample_poisson(mean, bits) - mean) / unit) for _ in range(N_TRIALS)]
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
    """The bound that `OFTEN` states, over all means that are drawn in trials."""
    for mean in [Fraction(i) for i in range(257, 1100, 7)] + [
        Fraction(10**k) for k in range(4, 18)
    ]:
        mode, scale = math.floor(mean), math.isqrt(math.floor(mean)) + 1
        span, stride = 12 * scale, max(1, scale // 50)
        y = np.arange(-span, span + 1, stride)
        odds = [float(acceptance(mean, int(v), 64)) if mode + v >= 0 else 0.0 for v in y]
        weights = np.exp(-np.abs(y) / scale)
        often = (weights * odds).sum() / weights.sum()
        assert often > OFTEN, mean


@pytest.mark.parametrize("mean", [Fraction(257), Fraction(10**6, 3), Fraction(2**100)], ids=float)
def test_the_odds_in_fixed_steps_hold_the_odds(mean):
    """Stirling's series with its remainder against flint's log k!, and sharp enough to decide."""
    law = LargePoisson(mean)
    scale = math.isqrt(math.floor(mean)) + 1
    for y in [*range(-3 * scale, 3 * scale, max(1, scale // 7)), 1, -(law.mode // 2), -law.mode]:
        odds = law.odds(y)
        assert odds.overlaps(acceptance(mean, y, 400)) and bool(odds.rad() < 2.0**-136), y
    assert law.odds(-law.mode - 1) == 0


@pytest.mark.parametrize("mean", [Fraction(1, 3), Fraction(60), Fraction(256)], ids=str)
def test_the_table_is_the_whole_law(mean):
    """Against scipy; and both ends leave out less than 2^-96."""
    table = table_of(mean)
    law = stats.poisson(float(mean))
    balls = table.survival(table.first, table.last, 192)
    for k, above in enumerate(balls, table.first):
        assert float(above) == pytest.approx(law.sf(k), rel=1e-9)
    assert bool(balls[-1] < 2.0**-96)
    assert not table.first or bool(1 - balls[0] < 2.0**-96)


def test_the_same_stream_gives_the_same_draws():
    bits = SeededBits("poisson vector")
    means = [Fraction(1, 3), Fraction(10), Fraction(10**6), Fraction(10**18)]
    assert [sample_poisson(mean, bits) for mean in means] == [0, 15, 998694, 1000000001130076530]


@pytest.mark.parametrize("mean", [Fraction(-1), Fraction(MOST_MEAN + 1)])
def test_a_mean_out_of_range_is_refused(mean):
    with pytest.raises(LocalProtocolError, match="Poisson law of mean"):
        sample_poisson(mean, SeededBits("unused"))
