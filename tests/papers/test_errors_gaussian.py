"""The Gaussian mechanism's range of ε: Sinh & Ramon 2025, lemma A.6, and the slides of Bellet 2021.

The exact δ of Gaussian noise is that of Balle & Wang 2018, theorem 8.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from reproduction.baselines.textbook import calibrate_gaussian


def exact_delta(sigma: float, epsilon: float) -> float:
    """The least δ of normal noise of this standard deviation, for sensitivity 1."""
    near = stats.norm.cdf(1 / (2 * sigma) - epsilon * sigma)
    far = stats.norm.logcdf(-1 / (2 * sigma) - epsilon * sigma)
    return float(near - exp(epsilon + far))


def textbook_sigma(epsilon: float, delta: float) -> float:
    """√(2 ln(1.25/δ))/ε."""
    return sqrt(2 * log(1.25 / delta)) / epsilon


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_the_theorem_holds_up_to_epsilon_one(delta):
    for epsilon in np.linspace(0.05, 1, 20):
        assert exact_delta(textbook_sigma(epsilon, delta), epsilon) < delta


@pytest.mark.parametrize(
    ("delta", "last"), [(1e-3, 7.46), (1e-5, 8.41), (1e-6, 8.78), (1e-9, 9.62)]
)
def test_the_theorem_fails_for_large_epsilon(delta, last):
    """A.6: "ϵ, δ ∈ R"; the slides: "Let ε, δ > 0". Dwork & Roth 2014, theorem A.1: ε < 1."""
    assert exact_delta(textbook_sigma(last, delta), last) <= delta
    assert exact_delta(textbook_sigma(last + 0.02, delta), last + 0.02) > delta


def test_how_far_it_fails():
    """At ε = 10 and δ = 10⁻⁵ the true δ is 2.27 times as large; at ε = 20 it is 150 times."""
    ratios = [exact_delta(textbook_sigma(e, 1e-5), e) / 1e-5 for e in (10, 20)]
    print(f"true δ over the claimed one at ε = 10 and 20: {ratios[0]:.2f}, {ratios[1]:.1f}")
    assert ratios == pytest.approx([2.265, 152.7], rel=1e-3)


def test_ours_holds_for_every_epsilon():
    """`calibrate_gaussian` goes by Rényi divergences: in 1,000 steps it is nearly continuous."""
    for epsilon in (1, 10, 20):
        (noise,) = calibrate_gaussian(Fraction(epsilon), Fraction(1, 10**5), (1000,))
        assert exact_delta(noise.std / 1000, epsilon) < 1e-5


def test_a_delta_above_five_quarters_has_no_sigma():
    """δ > 1.25 asks for the root of a negative number; δ >= 1 promises nothing anyway."""
    with pytest.raises(ValueError):
        textbook_sigma(1.0, 2.0)
