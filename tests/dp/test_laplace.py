"""Shares of discrete Laplace noise: their sum, the tests' power, and the law's description."""

from __future__ import annotations

import dataclasses
import math
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.statistical import WRONG_SCALES, N, SeededBits, accept, reject
from umpc.dp.calibration import DiscreteLaplace, sample_share
from umpc.dp.polya import LEAST_LOG_RATIO, sample_polyas
from umpc.errors import LocalProtocolError

SCALE = Fraction(7)


def cdf(x: int, scale: Fraction = SCALE) -> float:
    """scipy's own discrete Laplace: tanh(a/2) exp(-a|x|)."""
    return float(stats.dlaplace.cdf(x, float(1 / scale)))


def sums(honest: int, shares: int, bits: SeededBits, count: int = N) -> list[int]:
    return [sum(sample_share(honest, 1 / SCALE, bits) for _ in range(shares)) for _ in range(count)]


# --- shares ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("honest", "count"), [(1, N), (2, N), (3, N), (16, 1_500)])
def test_h_shares_sum_to_discrete_laplace(honest, count):
    """And to no other scale's: the power of the same draws."""
    bits = SeededBits(f"sum of {honest}")
    drawn = sums(honest, honest, bits, count)
    accept(drawn, cdf, -500, 500, bits)
    for wrong in WRONG_SCALES:
        reject(drawn, partial(cdf, scale=SCALE * wrong), -500, 500, bits)


@pytest.mark.parametrize("shares", [1, 3])
def test_power_a_wrong_number_of_shares_is_found(shares):
    bits = SeededBits(f"{shares} shares of 2")
    reject(sums(2, shares, bits), cdf, -500, 500, bits)


def test_a_share_is_up_then_down():
    """The first of two draws is added, the second is taken away."""
    for number in range(10):
        bits, again = (SeededBits(f"up and down {number}") for _ in range(2))
        up, down = sample_polyas(Fraction(1, 2), Fraction(1, 10), 2, bits)
        assert sample_share(2, Fraction(1, 10), again) == up - down


def test_the_same_stream_gives_the_same_shares():
    bits = SeededBits("share vector")
    third, large = Fraction(1, 1000), Fraction(1, 10**9)
    assert [sample_share(3, third, bits) for _ in range(6)] == [1227, -2, -125, 2464, 928, -3577]
    assert [sample_share(1, large, bits) for _ in range(3)] == [
        -653641447,
        -1787216174,
        -1660878118,
    ]


def test_huge_log_ratio_has_no_noise():
    bits = SeededBits("huge")
    assert {
        sample_share(honest, Fraction(10**9), bits) for honest in (1, 2, 16) for _ in range(50)
    } == {0}


@pytest.mark.parametrize("honest", [0, -1])
def test_no_honest_node_is_refused(honest):
    with pytest.raises(LocalProtocolError, match="at least 1 honest node"):
        sample_share(honest, Fraction(1), SeededBits("unused"))


# --- the law's description ------------------------------------------------------------------------


@given(log_ratio=st.fractions(Fraction(1, 1000), 30), x=st.integers(-300, 300))
def test_pmf_and_cdf_are_scipys(log_ratio, x):
    law, other = DiscreteLaplace(log_ratio), stats.dlaplace(float(log_ratio))
    assert law.pmf(x) == pytest.approx(other.pmf(x), rel=1e-9, abs=1e-300)
    assert law.cdf(x) == pytest.approx(other.cdf(x), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("log_ratio", [Fraction(1, 50), Fraction(1), Fraction(5)], ids=str)
def test_moments_are_those_of_the_pmf(log_ratio):
    law = DiscreteLaplace(log_ratio)
    xs = np.arange(-3000, 3001)
    pmf = np.array([law.pmf(int(x)) for x in xs])
    assert pmf.sum() == pytest.approx(1, rel=1e-12)
    assert law.variance == pytest.approx((pmf * xs**2).sum(), rel=1e-10)
    assert law.std == pytest.approx(math.sqrt(law.variance), rel=1e-12)
    assert law.cdf(4) - law.cdf(3) == pytest.approx(law.pmf(4), rel=1e-9)


LEAST_EXACT = sys.float_info.min
"""Smaller probabilities are floats of fewer digits."""


@given(
    log_ratio=st.fractions(Fraction(1, 10**6), 40),
    x=st.integers(-50, 50),
    shift=st.integers(-20, 20),
)
def test_a_shift_costs_log_ratio_per_unit(log_ratio, x, shift):
    """Differential privacy itself: P(x) <= exp(log_ratio |shift|) P(x + shift), with equality on
    one side."""
    law = DiscreteLaplace(log_ratio)
    here, there = law.pmf(x), law.pmf(x + shift)
    if min(here, there) >= LEAST_EXACT:
        assert math.log(here) - math.log(there) <= float(log_ratio * abs(shift)) + 1e-9
    if law.pmf(abs(shift)) >= LEAST_EXACT:
        assert math.log(law.pmf(0)) - math.log(law.pmf(shift)) == pytest.approx(
            float(log_ratio * abs(shift)), abs=1e-9
        )


def test_tiny_log_ratio_is_stable():
    """std near sqrt(2)/log_ratio; 1-q computed as a difference of floats would be 0 from
    1e-16 on."""
    for digits in (9, 18, 60):
        law = DiscreteLaplace(Fraction(1, 10**digits))
        assert law.std == pytest.approx(math.sqrt(2) * 10.0**digits, rel=1e-8)
        assert law.variance == pytest.approx(2 * 100.0**digits, rel=1e-8)
        assert law.pmf(0) == pytest.approx(0.5 / 10.0**digits, rel=1e-8)
        assert law.cdf(0) == pytest.approx(0.5, rel=1e-8)
        assert law.cdf(10**digits) == pytest.approx(1 - 0.5 / math.e, rel=1e-8)


def test_huge_log_ratio_is_stable():
    assert DiscreteLaplace(Fraction(100)).variance == pytest.approx(2 * math.exp(-100), rel=1e-9)
    for log_ratio in (Fraction(10**9), Fraction(10**400)):
        law = DiscreteLaplace(log_ratio)
        assert (law.pmf(0), law.pmf(1), law.cdf(-1), law.cdf(0)) == (1, 0, 0, 1)
        assert law.variance == law.std == 0


@pytest.mark.parametrize("log_ratio", [Fraction(0), Fraction(-1), LEAST_LOG_RATIO / 2])
def test_log_ratio_out_of_range_is_refused(log_ratio):
    with pytest.raises(LocalProtocolError, match="log_ratio"):
        DiscreteLaplace(log_ratio)


def test_the_law_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DiscreteLaplace(Fraction(1)).log_ratio = Fraction(2)
