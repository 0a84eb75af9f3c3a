"""The textbook's mechanisms that no protocol uses: Gaussian, local means, exponential, and so on.

| function | guarantee | law, drawn exactly |
|---|---|---|
| `discrete_gaussian` | epsilon, delta | P(x) ~ exp(-x^2/(2 parameter)) on the integers |
| `gaussian` | epsilon, delta | the same on a grid of reals |
| `randomised_response` | epsilon, local | the truth with odds e^epsilon : 1 against other answers |
| `local_mean` | epsilon, local | each value on a grid + discrete Laplace noise of its own |
| `exponential` | epsilon | P(o) ~ exp(epsilon u_o/(2 s)) |

The relation is replace-one. Inputs are exact, and only integers and fractions are used. A real
value is rounded to a public grid first, as in `umpc_papers/central/laplace.py`.

Paper: Bellet 2021 (slides; the list); Canonne, Kamath, Steinke 2020 (discrete Gaussian); Warner
1965 and Kairouz, Bonawitz, Ramage 2016 (k-ary randomised response); McSherry, Talwar 2007
(exponential).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from reproduction.baselines.coins import (
    MOST_TRIES,
    bernoulli_exp,
    sample_discrete_laplace,
    uniform_below,
)
from umpc.dp.composition import gaussian_curve, least_scale, satisfies
from umpc.dp.distributed_gaussian import DiscreteGaussian
from umpc.dp.events import check_delta, check_epsilon, check_sensitivity, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError, StudyError
from umpc_papers.central.laplace import check_exact, grid_sensitivity, on_grid


def local_mean(
    values: Sequence[Fraction],
    low: Fraction,
    high: Fraction,
    epsilon: Fraction,
    bits: RandomBits,
    grid: Fraction = Fraction(1, 1 << 10),
) -> Fraction:
    """An averaging query in the local model: the mean of values that each have Laplace noise.

    Paper: Bellet 2021 (slides): a variance of 2/(n epsilon^2) for values in [0, 1], n times that of
    a curator. Each record sends its value by itself, clipped and rounded to the grid.

    Args:
        values: of all records, at least one. low, high: their public range; exact.
        epsilon: > 0, exact, for each record.

    Raises:
        InvalidEpsilon: epsilon is not exact or not in its range.
    """
    steps = grid_sensitivity(high - low, grid)
    ratio = check_epsilon(epsilon) / steps
    sent = [
        on_grid(min(max(Fraction(value), low), high), grid) + sample_discrete_laplace(ratio, bits)
        for value in values
    ]
    return sum(sent) * grid / len(sent)


def discrete_gaussian(
    value: int, sensitivity: int, epsilon: Fraction, delta: Fraction, bits: RandomBits
) -> int:
    """value + discrete Gaussian noise of `calibrate_gaussian`; (epsilon, delta)-DP.

    Args:
        value: an integer; replacing one record changes it by at most `sensitivity`.
        sensitivity: >= 0, in its units.
        epsilon: > 0, exact.
        delta: 0 < delta < 1, exact.
        bits: the source of randomness.

    Raises:
        InvalidEpsilon: epsilon or delta is not exact or not in its range.
        StudyError: the sensitivity is not an integer, 0 or more.
    """
    (noise,) = calibrate_gaussian(epsilon, delta, (sensitivity,))
    return value + noise.draw(bits)


def gaussian(
    value: Fraction,
    sensitivity: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    bits: RandomBits,
    grid: Fraction = Fraction(1, 1 << 20),
) -> Fraction:
    """The value on the grid + discrete Gaussian noise there; (epsilon, delta)-DP.

    Args:
        value: an exact real; replacing one record changes it by at most `sensitivity`.
        sensitivity: >= 0, exact, in the same units.
        epsilon: > 0, exact.
        delta: 0 < delta < 1, exact.
        bits: the source of randomness.
        grid: > 0, exact and public; the answer is a multiple of it.
    """
    steps = grid_sensitivity(sensitivity, grid)
    return grid * discrete_gaussian(on_grid(value, grid), steps, epsilon, delta, bits)


def randomised_response(value: int, answers: int, epsilon: Fraction, bits: RandomBits) -> int:
    """One of 0 .. answers-1: the truth with odds e^epsilon : 1 against each other answer.

    It is epsilon-DP, locally. Rejection: propose an answer, accept the true one always and another
    one with odds exp(-epsilon).

    Args:
        value: the truth, 0 .. answers-1.
        answers: k >= 1.
        epsilon: > 0, exact.
        bits: the source of randomness.

    Raises:
        StudyError: the value is not one of the answers.
    """
    if not (is_integer(answers) and is_integer(value) and 0 <= value < answers):
        raise StudyError(
            f"expected an answer between 0 and {answers} - 1; check the number of answers"
        )
    utilities = [Fraction(answer == value) for answer in range(answers)]
    return exponential(utilities, Fraction(1), 2 * check_epsilon(epsilon), bits)


def exponential(
    utilities: Sequence[Fraction], sensitivity: Fraction, epsilon: Fraction, bits: RandomBits
) -> int:
    """An index o with probability proportional to exp(epsilon utilities[o] / (2 sensitivity)).

    It is epsilon-DP. Rejection: propose o uniformly, accept with odds
    exp(-epsilon (max - utilities[o])/(2 sensitivity)), a coin of rational exponent and hence exact
    (`coins`). On average there are at most as many proposals as outputs.

    Args:
        utilities: one exact number for each output, at least one; larger is better.
        sensitivity: > 0, exact; most by which replacing one record changes any of them.
        epsilon: > 0, exact.
        bits: the source of randomness.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: another argument is not exact or not in its range.
        LocalProtocolError: the source of randomness is broken.
    """
    epsilon = check_epsilon(epsilon)
    check_exact(sensitivity, "the sensitivity")
    if sensitivity <= 0 or not utilities:
        raise StudyError(
            "the exponential mechanism needs at least one output and a sensitivity above 0"
        )
    for utility in utilities:
        check_exact(utility, "a utility")
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


def calibrate_gaussian(
    epsilon: Fraction, delta: Fraction, sensitivities: tuple[int, ...]
) -> tuple[DiscreteGaussian, ...]:
    """Noise that makes several integers (epsilon, delta)-DP together, in proportion to s_i.

    Parameter v_i = k s_i^2 gives rho = (number of sums of sensitivity > 0)/(2k). k is the least, to
    one part in 2^16 above, for which some integer order proves (epsilon, delta).

    The standard deviation is less than a quarter above the least that the exact delta allows on one
    sum, because the step from Rényi to delta loses a little (`tests/dp/test_gaussian.py` prints how
    much).

    Raises:
        InvalidEpsilon: epsilon or delta is not exact or not in its range.
        StudyError: a sensitivity is not an integer, 0 or more.
    """
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    squares = [check_sensitivity(s) ** 2 for s in sensitivities]
    noisy = sum(square > 0 for square in squares)
    if not noisy:
        return tuple(DiscreteGaussian(Fraction(0)) for _ in squares)
    k = _parameter_per_square(epsilon, delta, noisy)
    return tuple(DiscreteGaussian(k * square) for square in squares)


@lru_cache(maxsize=64)
def _parameter_per_square(epsilon: Fraction, delta: Fraction, sums: int) -> Fraction:
    """k, remembered, because every release with the same budget needs it again."""
    return least_scale(
        lambda k: satisfies(gaussian_curve(sums / (2 * k)), epsilon, delta), Fraction(sums)
    )
