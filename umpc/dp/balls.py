"""Fractions to certified balls and back. Every rounding of a calibration goes towards more noise.

A ball (`flint.arb`) certainly holds the number it stands for, at any working precision. `above` is
the upper end of a ball as an exact fraction. So a bound that is computed in balls and rounded by
`above` is still a bound.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, fmpq

from umpc.errors import LocalProtocolError

PRECISION = 128
"""Working precision of calibrations and accountants, in bits. More would only narrow the balls."""

GRID = 40
"""Results are rounded up to multiples of 2^-40: short fractions, far below a useful epsilon."""


def ball(number: Fraction | int) -> arb:
    """The narrowest ball of the current precision around an exact number."""
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def above(number: arb, grid: int | None = GRID) -> Fraction:
    """A fraction certainly not below the number.

    Args:
        number: a ball.
        grid: the ball's upper end is rounded up to a multiple of 2^-grid. None: it is kept exactly.

    Raises:
        LocalProtocolError: the ball is not finite, so nothing is known about the number.
    """
    if not number.is_finite():
        raise LocalProtocolError(
            "expected a finite enclosure, got one that is not; raise the working precision"
        )
    mantissa, exponent = (int(part) for part in number.upper().man_exp())
    exact = mantissa * Fraction(2) ** exponent
    if grid is None:
        return exact
    steps = -(-exact.numerator * (1 << grid) // exact.denominator)
    return Fraction(steps, 1 << grid)


def below(number: arb, grid: int | None = GRID) -> Fraction:
    """A fraction certainly not above the number. Arguments and errors are those of `above`."""
    return -above(-number, grid)
