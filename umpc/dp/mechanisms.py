"""Mechanisms of one trusted place: what noise in shares is compared with, and the textbook's list.

| function | guarantee | law, drawn exactly |
|---|---|---|
| `discrete_laplace` | epsilon | P(x) ~ exp(-epsilon |x|/s) on the integers |
| `laplace` | epsilon | the same on a grid of reals |
| `discrete_gaussian` | epsilon, delta | P(x) ~ exp(-x^2/(2 parameter)) on the integers |
| `gaussian` | epsilon, delta | the same on a grid of reals |
| `randomised_response` | epsilon, local | the truth with odds e^epsilon : 1 against each other answer |
| `exponential` | epsilon | P(o) ~ exp(epsilon u_o/(2 s)) |

Relation: replace-one. Inputs are exact; integers and fractions up to the answer.

Reals. A Laplace variable in floating point tells its input by its last bits (Mironov 2012). So a real value is first
rounded to a grid and gets discrete noise there, as Google's libraries and OpenDP do: of two values that differ by at
most s, the rounded ones differ by at most ceil(s/grid) steps, and the noise is calibrated to that. The guarantee is
exact, the price at most one step of sensitivity and half a step of value; the grid is public.

These run where the data are, one answer at a time, and their running time follows the answer. In a study, noise comes
from `calibration`, `skellam` or coins in the computation.

Paper: Dwork, McSherry, Nissim, Smith 2006 (Laplace); Ghosh, Roughgarden, Sundararajan 2009; Canonne, Kamath, Steinke
2020; Warner 1965 and Kairouz, Bonawitz, Ramage 2016 (k-ary randomised response); McSherry, Talwar 2007 (exponential).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from umpc.dp.checks import check_epsilon, check_sensitivity, is_exact, is_integer
from umpc.dp.coins import MOST_TRIES, bernoulli_exp, sample_discrete_laplace, uniform_below
from umpc.dp.gaussian import calibrate_gaussian
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError, StudyError


def discrete_laplace(value: int, sensitivity: int, epsilon: Fraction, bits: RandomBits) -> int:
    """value + discrete Laplace noise of scale sensitivity/epsilon; epsilon-DP.

    Args:
        value: an integer; replacing one record changes it by at most `sensitivity`.
        sensitivity: >= 0, in its units.
        epsilon: > 0, exact.
        bits: the source of randomness.
    """
    epsilon, s = check_epsilon(epsilon), check_sensitivity(sensitivity)
    return value + sample_discrete_laplace(epsilon / s, bits) if s else value


def discrete_gaussian(
    value: int, sensitivity: int, epsilon: Fraction, delta: Fraction, bits: RandomBits
) -> int:
    """value + discrete Gaussian noise of `calibrate_gaussian`; (epsilon, delta)-DP. Arguments as above."""
    (noise,) = calibrate_gaussian(epsilon, delta, (sensitivity,))
    return value + noise.draw(bits)


def laplace(
    value: Fraction,
    sensitivity: Fraction,
    epsilon: Fraction,
    bits: RandomBits,
    grid: Fraction = Fraction(1, 1 << 20),
) -> Fraction:
    """The value on the grid + discrete Laplace noise there, a fine version of Laplace noise; epsilon-DP.

    Args:
        value: an exact real; replacing one record changes it by at most `sensitivity`.
        sensitivity: >= 0, exact, in the same units.
        epsilon: > 0, exact.
        bits: the source of randomness.
        grid: > 0, exact and public; the answer is a multiple of it.
    """
    return grid * discrete_laplace(
        on_grid(value, grid), grid_sensitivity(sensitivity, grid), epsilon, bits
    )


def gaussian(
    value: Fraction,
    sensitivity: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    bits: RandomBits,
    grid: Fraction = Fraction(1, 1 << 20),
) -> Fraction:
    """The value on the grid + discrete Gaussian noise there; (epsilon, delta)-DP. Arguments as of `laplace`."""
    steps = grid_sensitivity(sensitivity, grid)
    return grid * discrete_gaussian(on_grid(value, grid), steps, epsilon, delta, bits)


def on_grid(value: Fraction, grid: Fraction) -> int:
    """The nearest multiple of the grid, in steps; the upper one of two."""
    _check_exact(value, "the value")
    _check_grid(grid)
    return math.floor(Fraction(value) / grid + Fraction(1, 2))


def grid_sensitivity(sensitivity: Fraction, grid: Fraction) -> int:
    """By how many steps values rounded to the grid differ at most: |floor(a) - floor(b)| <= ceil(|a - b|)."""
    _check_exact(sensitivity, "the sensitivity")
    _check_grid(grid)
    return check_sensitivity(math.ceil(Fraction(sensitivity) / grid))


def randomised_response(value: int, answers: int, epsilon: Fraction, bits: RandomBits) -> int:
    """One of 0 .. answers-1: the true value with odds e^epsilon : 1 against each other one; epsilon-DP, locally.

    Rejection: propose an answer, accept the true one always and another with odds exp(-epsilon).

    Args:
        value: the truth, 0 .. answers-1.
        answers: k >= 1.
        epsilon: > 0, exact.
        bits: the source of randomness.
    """
    if not (is_integer(answers) and is_integer(value) and 0 <= value < answers):
        raise StudyError(
            f"expected an answer between 0 and {answers} - 1; check the number of answers"
        )
    return exponential(
        [Fraction(answer == value) for answer in range(answers)],
        Fraction(1),
        2 * check_epsilon(epsilon),
        bits,
    )


def exponential(
    utilities: Sequence[Fraction], sensitivity: Fraction, epsilon: Fraction, bits: RandomBits
) -> int:
    """An index o with probability proportional to exp(epsilon utilities[o] / (2 sensitivity)); epsilon-DP.

    Rejection: propose o uniformly, accept with odds exp(-epsilon (max - utilities[o])/(2 sensitivity)), a coin of
    rational exponent and hence exact (`coins`). As many proposals as there are outputs at most, on average.

    Args:
        utilities: one exact number for each output, at least one; larger is better.
        sensitivity: > 0, exact; most by which replacing one record changes any of them.
        epsilon: > 0, exact.
        bits: the source of randomness.
    """
    epsilon = check_epsilon(epsilon)
    _check_exact(sensitivity, "the sensitivity")
    if sensitivity <= 0 or not utilities:
        raise StudyError(
            "the exponential mechanism needs at least one output and a sensitivity above 0"
        )
    for utility in utilities:
        _check_exact(utility, "a utility")
    best = max(utilities)
    for _ in range(MOST_TRIES * len(utilities)):
        proposed = uniform_below(len(utilities), bits)
        exponent = epsilon * (best - utilities[proposed]) / (2 * Fraction(sensitivity))
        if bernoulli_exp(exponent.numerator, exponent.denominator, bits):
            return proposed
    raise LocalProtocolError(
        "expected the exponential mechanism to accept a proposal, but it did not; "
        "a working source of randomness never does that: check the source, then start again"
    )


def _check_exact(number: object, name: str) -> None:
    if not is_exact(number):
        raise StudyError(
            f"{name} must be an exact number, such as 1 or Fraction(1, 2), but a {type(number).__name__} came"
        )


def _check_grid(grid: object) -> None:
    if not is_exact(grid) or grid <= 0:
        raise StudyError(f"the grid must be an exact number above 0, but {grid!r} came")
