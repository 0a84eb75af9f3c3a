"""Laplace noise at one trusted place, on an integer or on a real number, drawn exactly.

| function | guarantee | law, drawn exactly |
|---|---|---|
| `discrete_laplace` | epsilon | P(x) ~ exp(-epsilon |x|/s) on the integers |
| `laplace` | epsilon | the same on a grid of reals |

The relation is replace-one. Inputs are exact, and only integers and fractions are used.

Reals. A Laplace variable in floating point tells its input by its last bits (Mironov 2012). So a
real value is first rounded to a grid and gets discrete noise there, as in Google's libraries and in
OpenDP. If two values differ by at most s, the rounded ones differ by at most ceil(s/grid) steps,
and the noise is calibrated to that. The guarantee is exact. The price is at most one step of
sensitivity and half a step of value; the grid is public.

These functions run where the data are, one answer at a time. In a study, noise comes from
`calibration`, `skellam` or coins in the computation. `reproduction/baselines/textbook.py` has the
mechanisms that no protocol uses.

Paper: Dwork, McSherry, Nissim, Smith 2006 (Laplace); Ghosh, Roughgarden, Sundararajan 2009 (the
discrete law).
"""

from __future__ import annotations

import math
from fractions import Fraction

from umpc.dp.events import check_epsilon, check_sensitivity, is_exact
from umpc.dp.geometric_poisson import discrete_laplaces
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError


def discrete_laplace(value: int, sensitivity: int, epsilon: Fraction, bits: RandomBits) -> int:
    """value + discrete Laplace noise of scale sensitivity/epsilon; epsilon-DP.

    Args:
        value: an integer; replacing one record changes it by at most `sensitivity`.
        sensitivity: >= 0, in its units. 0 adds no noise.
        epsilon: > 0, exact.
        bits: the source of randomness.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: the sensitivity is not an integer, 0 or more.
    """
    epsilon = check_epsilon(epsilon)
    s = check_sensitivity(sensitivity)
    if not s:
        return value
    return value + discrete_laplaces(epsilon / s, 1, bits)[0]


def laplace(
    value: Fraction,
    sensitivity: Fraction,
    epsilon: Fraction,
    bits: RandomBits,
    grid: Fraction = Fraction(1, 1 << 20),
) -> Fraction:
    """The value on the grid + discrete Laplace noise there, near Laplace noise; epsilon-DP.

    Args:
        value: an exact real; replacing one record changes it by at most `sensitivity`.
        sensitivity: >= 0, exact, in the same units.
        epsilon: > 0, exact.
        bits: the source of randomness.
        grid: > 0, exact and public; the answer is a multiple of it.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: another argument is not exact or not in its range.
    """
    steps = grid_sensitivity(sensitivity, grid)
    return grid * discrete_laplace(on_grid(value, grid), steps, epsilon, bits)


def on_grid(value: Fraction, grid: Fraction) -> int:
    """The nearest multiple of the grid, in steps; the upper one of two.

    Raises:
        StudyError: the value is not exact, or the grid is not an exact number above 0.
    """
    check_exact(value, "the value")
    _check_grid(grid)
    return math.floor(Fraction(value) / grid + Fraction(1, 2))


def grid_sensitivity(sensitivity: Fraction, grid: Fraction) -> int:
    """The most steps by which values rounded to the grid differ.

    |floor(a) - floor(b)| <= ceil(|a - b|), in steps.

    Raises:
        StudyError: the sensitivity is not exact or negative, or the grid is not above 0.
    """
    check_exact(sensitivity, "the sensitivity")
    _check_grid(grid)
    return check_sensitivity(math.ceil(Fraction(sensitivity) / grid))


def check_exact(number: object, name: str) -> None:
    """Check that a number is an int or a Fraction.

    Raises:
        StudyError: it is something else; the message calls it by its name.
    """
    if not is_exact(number):
        raise StudyError(
            f"{name} must be an exact number, such as 1 or Fraction(1, 2), "
            f"but a {type(number).__name__} came"
        )


def _check_grid(grid: object) -> None:
    if not is_exact(grid) or grid <= 0:
        raise StudyError(f"the grid must be an exact number above 0, but {grid!r} came")
