"""Noise of density 1/(1 + z⁴): its law, its rounding, and the cost of shifts and dilations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.curated import SeededBits, accept_law, draws, heavy_cdf
from umpc.errors import LocalProtocolError
from umpc_papers.central.heavy_tail import DILATE, SLIDE, add_heavy_tail, distribution

FINE = Fraction(1, 1 << 20)


def test_the_law():
    found = draws(
        lambda bits: add_heavy_tail(Fraction(1, 3), Fraction(2), Fraction(1, 1 << 12), bits),
        1000,
        "heavy tail",
    )
    accept_law(found - 1 / 3, heavy_cdf, 2.0)


@pytest.mark.parametrize("z", [-30, -1.5, 0, 0.25, 1, 4, 1000])
def test_the_closed_form_is_the_integral_of_the_density(z):
    assert abs(float(distribution(Fraction(z), 128)) - heavy_cdf(np.array(z))) < 1e-6


def test_its_variance_is_one():
    z = np.sinh(np.linspace(-16, 16, 200_001))
    density = np.sqrt(2) / np.pi / (1 + z**4)
    assert (
        abs(np.trapezoid(z**2 * density, z) - 1) < 1e-4 and abs(np.trapezoid(density, z) - 1) < 1e-6
    )


def test_rounding_is_to_the_nearest_multiple_of_a_public_grid():
    """Equal bits give an equal real number, which a coarser grid rounds to its multiple."""
    for number in range(20):
        fine, coarse = (
            add_heavy_tail(Fraction(5, 7), Fraction(3), grid, SeededBits(f"rounding {number}"))
            for grid in (FINE, Fraction(1, 2))
        )
        assert (coarse / Fraction(1, 2)).denominator == 1 and abs(fine - coarse) <= Fraction(
            1, 4
        ) + FINE


def test_no_scale_is_no_noise():
    assert add_heavy_tail(
        Fraction(1, 2), Fraction(0), Fraction(1, 8), SeededBits("unused")
    ) == Fraction(1, 2)


def test_sliding_and_dilating_cost_at_most_what_is_said_and_nearly_that():
    z = np.linspace(-50, 50, 50_001)
    log_h = lambda x: -np.log1p(x**4)  # noqa: E731
    slid = max(np.abs(log_h(z + a) - log_h(z)).max() / a for a in (0.01, 0.1, 0.5, 1.0))
    dilated = max(
        np.abs(b + log_h(z * np.exp(b)) - log_h(z)).max() / abs(b) for b in (-0.3, -0.01, 0.01, 0.3)
    )
    assert 0.99 * float(SLIDE) < slid <= float(SLIDE) and 0.99 * float(DILATE) < dilated <= float(
        DILATE
    )


@pytest.mark.parametrize(("scale", "grid"), [(-1, 1), (1, 0), (1, -1)])
def test_refusals(scale, grid):
    with pytest.raises(LocalProtocolError):
        add_heavy_tail(Fraction(0), Fraction(scale), Fraction(grid), SeededBits("unused"))


def test_a_dead_source_is_refused():
    with pytest.raises(LocalProtocolError):
        add_heavy_tail(Fraction(0), Fraction(1), FINE, lambda count: (1 << count) - 1)
