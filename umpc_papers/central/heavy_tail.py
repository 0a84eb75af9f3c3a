"""Noise of density √2/π / (1 + z⁴): pure epsilon-DP with a scale that depends on the data.

The guarantee. Let S be a β-smooth upper bound on the local sensitivity of g, that is
|g(x) - g(x')| <= S(x) and S(x) <= e^β S(x') for neighbours. Release g(x) + (S(x)/α) Z with density
h of Z. On log scale:

- a shift by Δ, |Δ| <= α in units of the scale, costs at most 3^{3/4} |Δ|, because
  |h'/h| = 4|z|³/(1+z⁴) is greatest at z⁴ = 3, where it is 3^{3/4};
- a dilation by e^λ, |λ| <= β, costs at most 3|λ|, because
  d/dλ log(e^λ h(e^λ z)) = 1 - 4z⁴/(1+z⁴) lies in (-3, 1].

From x to x', shift and then dilate: epsilon = 3^{3/4} α + 3β. (The paper leaves the constant open;
Nissim, Raskhodnikova and Smith 2007 have α = β = ε/10 for this density. Here α = β gives ε/5.28.)

Exact. The released value is the real number value + scale·Z, rounded to a public grid. Rounding is
post-processing, so the guarantee is that of the real number. Value and scale are fractions. Z is
known through as many bits as the rounding needs: the answer is the k with U between F at the two
ends of its cell, F enclosed in a ball, U extended bit by bit, as in `polya`. Z has mean 0 and
variance 1: ∫z²/(1+z⁴) = ∫1/(1+z⁴) = π/√2. No fourth moment exists.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, Lemma 4; Nissim, Raskhodnikova, Smith 2007, section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from flint import arb, ctx

from umpc.dp.events import ball
from umpc.dp.random_bits import LazyUniform, RandomBits, is_below
from umpc.errors import LocalProtocolError

SLIDE = Fraction(22_796, 10_000)
"""At least 3^{3/4} = 2.27950...: the most that a shift by one unit of the scale costs."""

DILATE = Fraction(3)
"""The most that a dilation by a factor e costs."""

GRID = Fraction(1, 1 << 30)
"""Default granularity of releases, in values."""

MOST_BITS = 4096
"""Bits of U that a working source does not get to."""


def distribution(z: Fraction, precision: int) -> arb:
    """F(z) as a ball.

    F(z) = 1/2 + log((z²+√2z+1)/(z²-√2z+1))/(4π) + (atan(√2z+1) + atan(√2z-1))/(2π).
    """
    with ctx.workprec(precision):
        x = ball(z)
        square = x * x + 1
        slope = arb(2).sqrt() * x
        logarithm = ((square + slope) / (square - slope)).log() / 4
        angle = ((slope + 1).atan() + (slope - 1).atan()) / 2
        return arb(1) / 2 + (logarithm + angle) / arb.pi()


def add_heavy_tail(value: Fraction, scale: Fraction, grid: Fraction, bits: RandomBits) -> Fraction:
    """value + scale·Z, rounded to the nearest multiple of the grid.

    Args:
        value: exact, in values.
        scale: >= 0, exact, in values.
        grid: > 0, exact, in values.
        bits: the only source of randomness. The running time depends on the value.

    Raises:
        LocalProtocolError: the scale or the grid is out of range, or the source of randomness is
            broken.
    """
    if scale < 0 or grid <= 0:
        raise LocalProtocolError(
            f"expected a scale of 0 or more and a grid above 0, got {scale} and {grid}"
        )
    centre = (value / grid + Fraction(1, 2)).__floor__()
    if not scale:
        return centre * grid
    u = LazyUniform(bits, MOST_BITS)

    def is_at_most(k: int) -> bool:
        """Whether U < F(upper end of cell k): the answer is at most k."""
        z = ((k + Fraction(1, 2)) * grid - value) / scale
        return is_below(u, partial(distribution, z))

    reach = max(1, (scale / grid).__floor__())
    return _search(is_at_most, centre, reach) * grid


def _search(is_at_most: Callable[[int], bool], centre: int, reach: int) -> int:
    """The least k for which `is_at_most` holds: steps that double, then bisection."""
    if is_at_most(centre):
        low, high = centre - reach, centre
        while is_at_most(low):
            reach *= 2
            low, high = centre - reach, low
    else:
        low, high = centre, centre + reach
        while not is_at_most(high):
            reach *= 2
            low, high = high, centre + reach
    while high - low > 1:
        middle = (low + high) // 2
        if is_at_most(middle):
            high = middle
        else:
            low = middle
    return high
