"""Rényi differential privacy: curves of noise, and the step from a curve to (epsilon, delta).

A mechanism is (alpha, R)-RDP if the Rényi divergence of order alpha between its outputs on two
neighbours, both ways, is at most R. Divergences of independent releases add, adaptive or not, and

    epsilon = R + log(1 - 1/alpha) - (log delta + log alpha)/(alpha - 1)

is valid for every alpha > 1 (Canonne, Kamath, Steinke 2020, section 2; Balle et al. 2020). Orders
here are integers of 2 and more: the Skellam theorem is stated for these, and other laws lose
little.

Every number is a certified ball, and every result is rounded up.

Paper: Mironov 2017 (the definition, composition); Bun, Steinke 2016 (concentrated DP:
R = rho alpha).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from umpc.dp.balls import GRID, PRECISION, above, ball
from umpc.errors import InvalidEpsilon

Curve = Callable[[int], arb]
"""alpha -> a bound on the Rényi divergence of order alpha, in nats."""

MOST_ORDER = 1 << 32
"""Largest order tried; of use down to an epsilon of about 1e-8."""


def _orders() -> list[int]:
    """2, 3, ... 24, then steps of a twelfth: close enough to the best real order."""
    orders = [2]
    while orders[-1] < MOST_ORDER:
        orders.append(orders[-1] + max(1, orders[-1] // 12))
    return orders


ORDERS = _orders()
"""One grid for all curves, so that one event more, or a smaller delta, never seems to cost less."""


def gaussian_curve(rho: Fraction) -> Curve:
    """The curve of rho-zCDP: R = rho alpha.

    Discrete Gaussian noise of parameter sigma^2 on an integer has rho = s^2/(2 sigma^2).

    Paper: Canonne, Kamath, Steinke 2020, theorem 4.
    """
    return lambda order: ball(rho * order)


def skellam_curve(variances: tuple[Fraction, ...], sensitivities: tuple[int, ...]) -> Curve:
    """The curve of Skellam noise of variance mu_i on several integers that change by at most s_i.

        R = sum over i of  a s^2/(2 mu) + min( ((2a-1) s^2 + 6 s)/(4 mu^2), 3 s/(2 mu) )

    The theorem bounds one coordinate. Noise is independent, so divergences add. The bound increases
    in s, so it holds for smaller changes too. It is for integer orders.

    Paper: Agarwal, Kairouz, Liu 2021, section 3 (one dimension; several with one common mu). The
    theorem is not proved here; `tests/dp/test_skellam.py` compares it with the exact divergence,
    from mu = 1/20 to 400.
    """
    kinds = Counter((Fraction(mu), s) for mu, s in zip(variances, sensitivities, strict=True) if s)
    slope = sum((times * s * s / (2 * mu) for (mu, s), times in kinds.items()), Fraction(0))
    rest = [
        (times / mu, s * s / (2 * mu), (6 * s - s * s) / (4 * mu), Fraction(3 * s, 2))
        for (mu, s), times in kinds.items()
    ]

    def curve(order: int) -> arb:
        return ball(order * slope + sum(scale * min(order * a + b, c) for scale, a, b, c in rest))

    return curve


def epsilon_at(curve: Curve, order: int, delta: Fraction) -> arb:
    """The epsilon that this one order proves."""
    return (
        curve(order)
        + (1 - arb(1) / order).log()
        - (ball(delta).log() + arb(order).log()) / (order - 1)
    )


def renyi_epsilon(curve: Curve, delta: Fraction) -> Fraction:
    """The least epsilon >= 0 over `ORDERS` for which the curve implies (epsilon, delta)-DP.

    It is rounded up.

    Raises:
        InvalidEpsilon: delta is not between 0 and 1.
    """
    if not 0 < delta < 1:
        raise InvalidEpsilon(
            f"Rényi divergences give an epsilon only for 0 < delta < 1, got {delta}"
        )
    with ctx.workprec(PRECISION):
        return max(Fraction(0), min(above(epsilon_at(curve, order, delta)) for order in ORDERS))


def satisfies(curve: Curve, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether some order of `ORDERS` certainly proves (epsilon, delta)-DP."""
    # One step of the grid less, so that `renyi_epsilon`, rounded up, is not above epsilon.
    least = epsilon - Fraction(1, 1 << GRID)
    with ctx.workprec(PRECISION):
        most = ball(least)
        return any(bool(epsilon_at(curve, order, delta) <= most) for order in ORDERS)


def least_scale(holds: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """Nearly the least number for which `holds`, found by bisection to one part in 2^16.

    Args:
        holds: true of all large enough numbers. A guarantee rests only on its answer at the
            returned number, which is true.
        start: > 0, where the search begins.

    Raises:
        InvalidEpsilon: it holds nowhere between start x 2^-400 and start x 2^400.
    """
    high = start
    for _ in range(400):
        if holds(high):
            break
        high *= 2
    else:
        raise InvalidEpsilon("no amount of noise gives this epsilon and delta; ask for larger ones")
    low = high / 2
    for _ in range(400):
        if not holds(low):
            break
        low, high = low / 2, low
    step = (high - low) / 2
    while step * (1 << 16) >= high:
        if holds(high - step):
            high -= step
        step /= 2
    return high
