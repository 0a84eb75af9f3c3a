"""Rényi differential privacy: curves of mechanisms, and the step from a curve to (epsilon, delta).

A mechanism is (alpha, R)-RDP if the Rényi divergence of order alpha between its outputs on two neighbours,
both ways, is at most R. Divergences of independent releases add, adaptive or not, and

    epsilon = R + log(1 - 1/alpha) - (log delta + log alpha)/(alpha - 1)

is valid for every alpha > 1 (Canonne, Kamath, Steinke 2020, section 2; Balle et al. 2020). Orders here
are integers of 2 and more: the Skellam theorem is stated for these, and others lose little.

Everything is a certified ball, every result rounded up.

Paper: Mironov 2017 (the definition, composition); Bun, Steinke 2016 (concentrated DP: R = rho alpha).
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
    """2, 3, ... 24, then each a twelfth more than the one before: close enough to the best real order."""
    orders = [2]
    while orders[-1] < MOST_ORDER:
        orders.append(orders[-1] + max(1, orders[-1] // 12))
    return orders


ORDERS = _orders()
"""One grid for all, so that an event more, or a smaller delta, never seems to cost less."""


def pure_curve(epsilon: Fraction) -> Curve:
    """The tight curve of everything that is epsilon-DP: that of randomised response.

    With P = (e^eps, 1)/(e^eps + 1) and Q its mirror image, R = log((e^{a eps} + e^{(1-a) eps})/(e^eps + 1))/(a-1).
    """

    def curve(order: int) -> arb:
        eps = ball(epsilon)
        return (((order * eps).exp() + ((1 - order) * eps).exp()) / (eps.exp() + 1)).log() / (
            order - 1
        )

    return curve


def bounded_range_curve(epsilon: Fraction) -> Curve:
    """The exponential mechanism: its privacy loss lies in an interval of width epsilon, so rho = epsilon^2/8.

    Paper: Dong, Durfee, Rogers 2020 (bounded range); Cesar, Rogers 2021 (the constant 1/8).
    """
    pure = pure_curve(epsilon)
    return lambda order: pure(order).min(ball(epsilon * epsilon / 8) * order)


def discrete_laplace_curve(log_ratio: Fraction, sensitivity: int) -> Curve:
    """Exact divergence of P(x) ~ q^|x| and its shift by s, q = exp(-log_ratio).

    sum over x of P^a Q^{1-a} = (1-q)/(1+q) (q^{(1-a)s} + q^{as}) / (1-q) for x <= 0 and x >= s, and between them
    (1-q)/(1+q) q^{(1-a)s} (r + ... + r^{s-1}) with r = q^{2a-1}. A smaller shift diverges less: the law is
    log-concave, so all its hockey-stick divergences grow with the shift, and Rényi's with these.
    """

    def curve(order: int) -> arb:
        grown, step = (1 - order) * sensitivity, 2 * order - 1
        outer = power(grown) + power(order * sensitivity)
        between = (
            lacking(1) * power(grown + step) * lacking(step * (sensitivity - 1)) / lacking(step)
        )
        return ((outer + between) / (1 + power(1))).log() / (order - 1)

    def power(times: int) -> arb:
        """q^times."""
        return ball(-log_ratio * times).exp()

    def lacking(times: int) -> arb:
        """1 - q^times, without cancellation."""
        return -ball(-log_ratio * times).expm1()

    return curve


def gaussian_curve(rho: Fraction) -> Curve:
    """rho-zCDP. Discrete Gaussian noise of parameter sigma^2 on an integer: rho = s^2/(2 sigma^2).

    Paper: Canonne, Kamath, Steinke 2020, theorem 4.
    """
    return lambda order: ball(rho * order)


def skellam_curve(variances: tuple[Fraction, ...], sensitivities: tuple[int, ...]) -> Curve:
    """Skellam noise of variance mu_i on each of several integers, of which the i-th changes by at most s_i.

        R = sum over i of  a s^2/(2 mu) + min( ((2a-1) s^2 + 6 s)/(4 mu^2), 3 s/(2 mu) )

    The theorem bounds one coordinate; noise is independent, so divergences add. Increasing in s, hence true
    of smaller changes. For integer orders.

    Paper: Agarwal, Kairouz, Liu 2021, section 3 (one dimension; several with one common mu), taken on trust and
    compared with the exact divergence in `tests/dp/test_skellam.py`, from mu = 1/20 to 400.
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


def total_curve(curves: list[tuple[Curve, int]]) -> Curve:
    """Composition: divergences add. Each curve comes with the number of times it is used."""
    return lambda order: sum((times * curve(order) for curve, times in curves), arb(0))


def epsilon_at(curve: Curve, order: int, delta: Fraction) -> arb:
    """The epsilon that this one order proves."""
    return (
        curve(order)
        + (1 - arb(1) / order).log()
        - (ball(delta).log() + arb(order).log()) / (order - 1)
    )


def renyi_epsilon(curve: Curve, delta: Fraction) -> Fraction:
    """An epsilon >= 0 such that the curve implies (epsilon, delta)-DP, rounded up: the least over `ORDERS`.

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
    with ctx.workprec(PRECISION):
        most = ball(
            epsilon - Fraction(1, 1 << GRID)
        )  # so that `renyi_epsilon`, rounded up, is not above epsilon
        return any(bool(epsilon_at(curve, order, delta) <= most) for order in ORDERS)


def least_scale(holds: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """Nearly the least number for which `holds`: bisection to one part in 2^16, ending where it does hold.

    Args:
        holds: true of all large enough numbers; only its answers at the returned number matter for a guarantee.
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
