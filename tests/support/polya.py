"""The Polya law, and checks that any way of drawing it must pass."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

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


def check_law(draws: Draws, shape: Fraction, scale: Fraction) -> None:
    """The law is Polya; at scale 7 no other scale's: the power of these draws."""
    bits = SeededBits(f"polya {shape} {scale}")
    drawn = draws(shape, scale, bits, 0)
    accept(drawn, partial(cdf, shape, scale), 0, high(scale), bits)
    for wrong in WRONG_SCALES if scale == 7 else ():
        reject(drawn, partial(cdf, shape, scale * wrong), 0, high(scale), bits)


def check_power_of_shape(draws: Draws) -> None:
    bits = SeededBits("power of shape")
    shape, scale = Fraction(1, 3), Fraction(7)
    drawn = draws(Fraction(1, 4), scale, bits, 0)
    reject(drawn, partial(cdf, shape, scale), 0, high(scale), bits)


def check_geometric(draws: Draws) -> None:
    """Shape 1 is the geometric law."""
    bits, scale = SeededBits("geometric"), Fraction(5)
    success = -special.expm1(-float(1 / scale))
    drawn = draws(Fraction(1), scale, bits, 0)
    accept(drawn, lambda k: float(stats.geom.cdf(k + 1, success)), 0, 400, bits)


def check_sum(draws: Draws) -> None:
    """A shape above one is a sum."""
    bits, shape, scale = SeededBits("five halves"), Fraction(5, 2), Fraction(7)
    accept(draws(shape, scale, bits, 3_000), partial(cdf, shape, scale), 0, high(scale), bits)


def check_gamma(draws: Draws, shape: Fraction) -> None:
    """X/scale tends to Gamma(shape, 1); at 1e9 1,000 draws show no difference."""
    bits, scale = SeededBits(f"large {shape}"), Fraction(10**9)
    law = stats.gamma(float(shape), scale=float(scale))
    accept(draws(shape, scale, bits, 1_000), lambda k: float(law.cdf(k)), 0, 60 * 10**9, bits)
