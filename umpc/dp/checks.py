"""Tests that every calibration starts with: numbers must be exact and inside their range.

*Balls.* Fractions to certified balls and back. Every rounding of a calibration goes towards more
noise.

A ball (`flint.arb`) certainly holds the number it stands for, at any working precision. `above` is
the upper end of a ball as an exact fraction. So a bound that is computed in balls and rounded by
`above` is still a bound.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeGuard

from flint import arb, fmpq

from umpc.errors import InvalidEpsilon, LocalProtocolError, StudyError


def is_integer(value: object) -> TypeGuard[int]:
    """Whether the value is an int. True and False are not integers here."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_exact(value: object) -> TypeGuard[int | Fraction]:
    """Whether the value is an int or a Fraction. A float such as 0.1 is not the number written."""
    return is_integer(value) or isinstance(value, Fraction)


def check_epsilon(epsilon: object) -> Fraction:
    """An exact epsilon > 0, as a Fraction.

    Raises:
        InvalidEpsilon: epsilon is not exact, or not above 0.
    """
    if not is_exact(epsilon) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon must be an exact number above 0, such as 1 or 1/2, but {epsilon} came "
            f"(of type {type(epsilon).__name__})"
        )
    return Fraction(epsilon)


def check_delta(delta: object) -> Fraction:
    """An exact delta with 0 < delta < 1, as a Fraction.

    Raises:
        InvalidEpsilon: delta is not exact, or not between 0 and 1.
    """
    if not is_exact(delta) or not 0 < delta < 1:
        raise InvalidEpsilon(
            "delta must be an exact number between 0 and 1, such as Fraction(1, 10**6), "
            f"but {delta} came (of type {type(delta).__name__}); "
            "for no delta at all, take discrete Laplace noise"
        )
    return Fraction(delta)


def check_sensitivity(sensitivity: object) -> int:
    """A sensitivity in units of the sum: an integer, 0 or more.

    Raises:
        StudyError: the sensitivity is not an integer, or it is negative.
    """
    if not is_integer(sensitivity) or sensitivity < 0:
        raise StudyError(f"the sensitivity must be an integer, 0 or more, but {sensitivity!r} came")
    return sensitivity


def check_nodes(nodes: object, honest: object) -> None:
    """Check that 1 <= honest <= nodes.

    Raises:
        StudyError: one of them is not an integer, or is out of range.
    """
    if not (is_integer(nodes) and is_integer(honest) and 1 <= honest <= nodes):
        raise StudyError(
            "the nodes assumed honest must be at least 1 and at most all nodes, but "
            f"{honest!r} of {nodes!r} came; change the number of nodes that may collude"
        )


# --- balls ----------------------------------------------------------------------------------------

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
