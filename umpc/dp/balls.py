"""Fractions to certified balls and back: what a calibration rounds, it rounds towards more noise.

A ball (`flint.arb`) certainly holds the number it stands for, at any working precision. `above` is the upper
end of a ball as an exact fraction, so a bound computed in balls and rounded by `above` is still a bound.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, fmpq

from umpc.errors import LocalProtocolError

PRECISION = 128
"""Working precision, in bits, of calibrations and of the accountant. More would only narrow the balls."""

GRID = 40
"""Results are rounded up to multiples of 2^-40: short fractions, far below any epsilon that matters."""


def ball(number: Fraction | int) -> arb:
    """The narrowest ball of the current precision around an exact number."""
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def above(number: arb, grid: int | None = GRID) -> Fraction:
    """A fraction certainly not below the number: the ball's upper end, rounded up to a multiple of 2^-grid.

    Raises:
        LocalProtocolError: the ball is not finite, so nothing is known.
    """
    if not number.is_finite():
        raise LocalProtocolError(
            "expected a finite enclosure, got one that is not; raise the working precision"
        )
    mantissa, exponent = (int(part) for part in number.upper().man_exp())
    exact = Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)
    return (
        exact
        if grid is None
        else Fraction(-(-exact.numerator * (1 << grid) // exact.denominator), 1 << grid)
    )


def below(number: arb, grid: int | None = GRID) -> Fraction:
    """A fraction certainly not above the number."""
    return -above(-number, grid)
