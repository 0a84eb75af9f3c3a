"""The Polya law, and checks that any way of drawing it must pass."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest
from scipy import special, stats

from tests.support.statistical import WRONG_SCALES, SeededBits, accept, reject
from umpc.dp.polya import LEAST_LOG_RATIO

ONES = (1 << 64) - 1
SHAPES = [Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 16)]
WHOLE_RANGE = [LEAST_LOG_RATIO, Fraction(1, 10**9), Fraction(1), Fraction(2), Fraction(10**9)]
SCALES = [Fraction(1, 2), Fraction(7), Fraction(40)]
Draws = Callable[[Fraction, Fraction, SeededBits, int], list[int]]
"""Draws of a shape and a scale. The last argument is their number; 0 is the usual one."""


def cdf(shape: Fraction, scale: Fraction, k: int) -> float:
    """P(X <= k) from scipy's incomplete beta function, which shares no code with flint."""
    if k < 0:
        return 0.0
    return float(special.betainc(float(shape), k + 1, -special.expm1(-float(1 / scale))))


def high(scale: Fraction) -> int:
    """A number that hardly any draw exceeds."""
    return int(60 * scale) + 60


class LawOfDraws:
    """Checks of any way to draw. A subclass sets `draws`."""

    draws: Draws

    @pytest.mark.parametrize("scale", SCALES, ids=str)
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_the_law_is_polya(self, shape, scale):
        """At scale 7 no other scale's: the power of these draws."""
        bits = SeededBits(f"polya {shape} {scale}")
        drawn = self.draws(shape, scale, bits, 0)
        accept(drawn, partial(cdf, shape, scale), 0, high(scale), bits)
        for wrong in WRONG_SCALES if scale == 7 else ():
            reject(drawn, partial(cdf, shape, scale * wrong), 0, high(scale), bits)

    def test_power_a_wrong_shape_is_found(self):
        bits = SeededBits("power of shape")
        shape, scale = Fraction(1, 3), Fraction(7)
        drawn = self.draws(Fraction(1, 4), scale, bits, 0)
        reject(drawn, partial(cdf, shape, scale), 0, high(scale), bits)

    def test_shape_one_is_the_geometric_law(self):
        bits, scale = SeededBits("geometric"), Fraction(5)
        success = -special.expm1(-float(1 / scale))
        drawn = self.draws(Fraction(1), scale, bits, 0)
        accept(drawn, lambda k: float(stats.geom.cdf(k + 1, success)), 0, 400, bits)

    def test_a_shape_above_one_is_a_sum(self):
        bits, shape, scale = SeededBits("five halves"), Fraction(5, 2), Fraction(7)
        drawn = self.draws(shape, scale, bits, 3_000)
        accept(drawn, partial(cdf, shape, scale), 0, high(scale), bits)

    @pytest.mark.parametrize("shape", [Fraction(1), Fraction(1, 2), Fraction(1, 3)], ids=str)
    def test_at_scale_1e9_the_law_is_gamma(self, shape):
        """X/scale tends to Gamma(shape, 1); at 1e9 1,000 draws show no difference."""
        bits, scale = SeededBits(f"large {shape}"), Fraction(10**9)
        law = stats.gamma(float(shape), scale=float(scale))
        drawn = self.draws(shape, scale, bits, 1_000)
        accept(drawn, lambda k: float(law.cdf(k)), 0, 60 * 10**9, bits)
