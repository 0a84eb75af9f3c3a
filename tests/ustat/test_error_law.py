"""umpc.ustat.error_law: quantiles against exact sums of probabilities."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, sqrt

import numpy as np
import pytest
from scipy import signal, stats

from umpc.inference.null_laws import GREATER, NormalLaw, p_value
from umpc.inference.report_inference import BoundedErrorLaw
from umpc.ustat import error_law
from umpc.ustat.error_law import (
    BEYOND_REACH,
    HEAVY_TAILS,
    POINTS,
    REACH,
    SLACK,
    Draws,
    ErrorLaw,
    Noise,
    whole_draws,
)
from umpc_papers.central.heavy_tail import distribution

TAIL = 0.025
WIDER = 2.2 * SLACK * 2 * REACH / POINTS
"""Standard deviations by which both quantiles together are rounded outward, at most."""


def difference(shape: float, q: float, most: int = 4000) -> np.ndarray:
    """The law of a difference of two negative binomials, from −most to most."""
    own = stats.nbinom.pmf(np.arange(most + 1), shape, 1 - q)
    return signal.fftconvolve(own, own[::-1])


def std_of(shape: float, q: float) -> float:
    return sqrt(2 * shape * q) / (1 - q)


def beyond(z: float) -> float:
    """The chance that noise with heavy tails is above z standard deviations."""
    return 1 - float(distribution(Fraction(z), 64).mid())


def test_heavy_tails_have_the_quantiles_of_the_sampler():
    """The Laplace law misses 2.5 times too often at 99.9 %, and 11 times at 99.99 %."""
    law = ErrorLaw([Noise(2.0, shape=HEAVY_TAILS)], [1.0])
    for tail in (0.05, 0.025, 0.005, 0.0005, 0.00005):
        low, high = law.central(tail)
        assert low == pytest.approx(-high, rel=1e-3)
        assert 0.5 * tail < beyond(high / 2) <= tail
    assert beyond(law.central(TAIL)[1] / 2) == pytest.approx(TAIL, rel=0.05)
    assert law.central(BEYOND_REACH) == (-inf, inf)


@pytest.mark.parametrize("z", [2, 5, 17, 25, 1000])
def test_no_p_value_with_heavy_tails_is_too_small(z):
    law = ErrorLaw([Noise(1.0, shape=HEAVY_TAILS)], [1.0])
    found = p_value(NormalLaw(0.0, 0.0), law, z, GREATER)
    assert beyond(z) <= found <= 1.1 * beyond(z) + 2 * BEYOND_REACH
    assert ErrorLaw([Noise(0.0, shape=HEAVY_TAILS)], [1.0]).beyond == 0.0


def test_a_bound_for_every_number_of_records_ends_where_heavy_tails_leave_the_grid():
    noise = [Noise(1.0, shape=HEAVY_TAILS)]
    law = BoundedErrorLaw(noise, [1.0], low=-1e-6, high=1e-6, independent=100)
    assert beyond(law.central(2 * BEYOND_REACH)[1]) <= 2 * BEYOND_REACH
    assert law.central(BEYOND_REACH) == (-inf, inf)


@pytest.mark.parametrize("shape", [1, 1.5, 3])
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 2.0, 6.0])
def test_noise_alone_has_the_quantiles_of_its_exact_law(shape, epsilon):
    q = exp(-epsilon)
    law = difference(shape, q)
    places = np.arange(len(law)) - len(law) // 2
    least = places[np.searchsorted(np.cumsum(law), TAIL)]
    std = std_of(shape, q) / 7
    low, high = ErrorLaw([Noise(std, 1 / 7, shape)], [1.0]).central(TAIL)
    assert -high == pytest.approx(low, abs=1e-6 * std)
    assert least / 7 - WIDER * std <= low <= least / 7, "and the atom itself is inside"


def test_without_a_grid_the_law_is_laplace_and_for_many_nodes_normal():
    low, _ = ErrorLaw([Noise(3.0)], [2.0]).central(TAIL)
    assert low == pytest.approx(6 * stats.laplace(scale=sqrt(0.5)).ppf(TAIL), rel=0.02)
    low, _ = ErrorLaw([Noise(3.0, shape=1e6)], [-2.0]).central(TAIL)
    assert low == pytest.approx(6 * stats.norm.ppf(TAIL), rel=0.02)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_draws_of_two_values_are_binomial(share):
    draws = Draws(-share, 1 - share, share * (1 - share), 200)
    low, high = ErrorLaw([Noise(1e-9)], [1.0], draws).central(TAIL)
    exact = stats.binom.ppf([TAIL, 1 - TAIL], 200, share) / 200 - share
    assert low <= exact[0] and exact[1] <= high
    assert high - low <= exact[1] - exact[0] + 2 * WIDER * draws.std


def test_draws_of_three_values_have_their_variance_and_noise_adds_its_own():
    draws = Draws(-2.0, 1.0, 0.5, 50)
    assert draws.std == pytest.approx(0.1)
    law = ErrorLaw([Noise(0.3), Noise(0.4)], [1.0, -0.5], draws)
    assert law.std == pytest.approx(sqrt(0.09 + 0.04 + 0.01))
    rng = np.random.default_rng(14)
    chances = [0.5 / 6, 1 - 0.5 / 6 - 0.5 / 3, 0.5 / 3]
    counts = rng.multinomial(50, chances, 400_000)
    drawn = counts @ np.array([-2.0, 0.0, 1.0]) / 50
    drawn += rng.laplace(scale=0.3 / sqrt(2), size=len(drawn))
    drawn += rng.laplace(scale=0.2 / sqrt(2), size=len(drawn))
    low, high = law.central(TAIL)
    assert [low, high] == pytest.approx(np.quantile(drawn, [TAIL, 1 - TAIL]), rel=0.04)


def test_no_error_has_no_width_and_draws_are_whole_where_it_matters():
    assert ErrorLaw([Noise(0.0)], [1.0]).central(TAIL) == (0.0, 0.0)
    assert whole_draws(0.4) == 1 and whole_draws(7.9) == 7 and whole_draws(1e9 + 0.5) > 1e9


@pytest.mark.parametrize("values", [(-2.0, 1.0, 0.5), (-1.0, 1.0, 1.0), (-0.2, 0.8, 0.16)])
@pytest.mark.parametrize("count", [1, 7, 9000])
def test_draws_have_the_characteristic_function_of_their_probabilities(values, count):
    low, high, variance = values
    above, below = variance / (high * (high - low)), variance / (-low * (high - low))
    times = np.linspace(0, 40 * sqrt(count), 500)
    one = above * np.exp(1j * times / count * high) + below * np.exp(1j * times / count * low)
    exact = (one + 1 - above - below) ** count
    draws = Draws(low, high, variance, count)
    assert np.allclose(draws.modulus(times), abs(exact), rtol=0, atol=1e-10)
    own = draws.modulus(times) * np.exp(1j * draws.angle(times))
    assert np.allclose(own, exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize("count", [1, 40, 1e6])
def test_what_is_left_out_of_the_transform_changes_no_probability(count, limit):
    draws = Draws(-2.0, 1.0, 0.5, count)
    parts = [Noise(draws.std, draws.std / 9)], [1.0], draws
    _, masses = ErrorLaw(*parts).masses()
    limit(error_law, NOTHING=0.0)
    limit(error_law, LEAST_LOGARITHM=-700.0)
    _, exact = ErrorLaw(*parts).masses()
    assert np.allclose(np.cumsum(masses), np.cumsum(exact), rtol=0, atol=1e-10)
