"""The discrete Gaussian: its law, its calibration against the exact delta, its tail."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from reproduction.baselines.textbook import calibrate_gaussian
from tests.support.statistical import N_TRIALS, SeededBits, accept_only, shift_delta
from umpc.dp.distributed_gaussian import LARGE_SCALE, DiscreteGaussian, discrete_gaussians
from umpc.dp.random_bits import LESS_OFTEN, OFTEN, trials_for
from umpc.errors import InvalidEpsilon, LocalProtocolError, StudyError

DELTA = Fraction(1, 10**6)


def pmf(parameter: float) -> np.ndarray:
    reach = int(16 * math.sqrt(parameter)) + 40
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * parameter))
    return weights / weights.sum()


def gaussian_law(parameter: Fraction):
    def at(wrong: float):
        table = np.cumsum(pmf(float(parameter) * wrong * wrong))
        reach = len(table) // 2
        return lambda x: table[np.clip(x.astype(int), -reach, reach) + reach]

    return at


@pytest.mark.parametrize("parameter", [Fraction(5, 2), Fraction(10_000)], ids=str)
def test_the_law_is_discrete_gaussian(parameter):
    bits, reach = SeededBits(f"gaussian {parameter}"), int(10 * math.sqrt(parameter)) + 5
    drawn = discrete_gaussians(parameter, N_TRIALS, bits)
    accept_only(drawn, gaussian_law(parameter), -reach, reach, bits)
    assert max(map(abs, drawn)) <= DiscreteGaussian(parameter).tail_bound(64)


def test_a_batch_of_draws_is_as_many_single_ones():
    """Every place of a batch has the law, and places are independent."""
    parameter, bits = Fraction(9), SeededBits("places of a batch")
    drawn = np.array([discrete_gaussians(parameter, 40, bits) for _ in range(2500)], dtype=float)
    assert len(discrete_gaussians(parameter, 0, bits)) == 0
    # 5.5 standard deviations of a mean, a variance and a correlation of 2,500 draws
    assert np.abs(drawn.mean(axis=0)).max() < 5.5 * 3 / 50
    assert np.abs(drawn.var(axis=0) / 9 - 1).max() < 5.5 * (2 / 2500) ** 0.5
    assert np.abs(np.corrcoef(drawn.T) - np.eye(40)).max() < 5.5 / 50
    accept_only(drawn.ravel().tolist(), gaussian_law(parameter), -40, 40, bits)


@pytest.mark.parametrize(
    "parameter", [Fraction(1, 100), Fraction(10**36), Fraction(1, 3)], ids=float
)
def test_any_size_is_drawn(parameter):
    bits, law = SeededBits(f"gaussian size {parameter}"), DiscreteGaussian(parameter)
    drawn = np.array([float(law.draw(bits)) for _ in range(1000)])
    assert drawn.std() <= law.std * 1.08
    assert parameter < 1 or drawn.std() >= law.std * 0.92


def test_proposals_are_accepted_often_enough():
    """The bounds that the numbers of trials rely on."""
    for parameter in [i / 50 for i in range(1, 5000)] + [10.0**k for k in range(3, 9)]:
        t = math.isqrt(int(parameter)) + 1
        y = np.arange(-12 * t - 20, 12 * t + 21)
        odds = np.exp(-((np.abs(y) - parameter / t) ** 2) / (2 * parameter))
        weights = np.exp(-np.abs(y) / t)
        often = (weights * odds).sum() / weights.sum()
        assert often > (OFTEN if t >= LARGE_SCALE else LESS_OFTEN), parameter


@pytest.mark.parametrize("often", [OFTEN, LESS_OFTEN])
def test_so_many_trials_suffice(often):
    for count in (1, 2, 40, 1000):
        trials = trials_for(count, often)
        assert binom.cdf(count - 1, trials, float(often)) < 2.0**-64
        # and not many more than are needed
        assert binom.cdf(count - 1, trials * 7 // 8, float(often)) > 2.0**-66


@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**9)], ids=float)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)], ids=str)
@pytest.mark.parametrize("s", [1, 10])
def test_delta_holds_and_is_not_absurdly_loose(epsilon, delta, s):
    (noise,) = calibrate_gaussian(epsilon, delta, (s,))
    assert shift_delta(pmf(float(noise.parameter)), s, float(epsilon)) <= delta
    low, high = 1e-3, float(noise.parameter)
    while high / low > 1.001:
        v = math.sqrt(low * high)
        low, high = (low, v) if shift_delta(pmf(v), s, float(epsilon)) <= delta else (v, high)
    factor = math.sqrt(float(noise.parameter) / high)
    print(f"epsilon {epsilon}, delta {float(delta):.0e}, s {s}: std is {factor:.3f} of the least")
    assert factor < 1.25


def test_several_sums_share_epsilon():
    one, three, none = calibrate_gaussian(Fraction(1), DELTA, (1, 3, 0))
    (alone,) = calibrate_gaussian(Fraction(1), DELTA, (1,))
    assert three.parameter == 9 * one.parameter and none == DiscreteGaussian(Fraction(0))
    assert one.parameter == pytest.approx(2 * float(alone.parameter), rel=1e-4)


@pytest.mark.parametrize("bits", [1, 20, 40])
@pytest.mark.parametrize("parameter", [Fraction(1, 4), Fraction(30), Fraction(5000)], ids=str)
def test_the_tail_is_bounded_and_the_bound_is_near(parameter, bits):
    table, bound = pmf(float(parameter)), DiscreteGaussian(parameter).tail_bound(bits)
    reach = len(table) // 2
    assert 2 * table[reach + bound + 1 :].sum() <= 2.0**-bits
    assert bits < 40 or 2 * table[reach + int(bound / 1.2) :].sum() > 2.0**-bits


def test_no_noise():
    law = DiscreteGaussian(Fraction(0))
    assert (
        law.draw(lambda count: pytest.fail("no bits are needed")),
        law.std,
        law.tail_bound(),
    ) == (0, 0, 0)


def test_refusals():
    with pytest.raises(LocalProtocolError):
        discrete_gaussians(Fraction(0), 1, SeededBits("unused"))[0]
    with pytest.raises(LocalProtocolError):
        DiscreteGaussian(Fraction(-1))
    with pytest.raises(LocalProtocolError, match="tail"):
        DiscreteGaussian(Fraction(1)).tail_bound(0)
    with pytest.raises(InvalidEpsilon):
        calibrate_gaussian(Fraction(1), Fraction(0), (1,))
    with pytest.raises(StudyError):
        calibrate_gaussian(Fraction(1), DELTA, (-1,))
