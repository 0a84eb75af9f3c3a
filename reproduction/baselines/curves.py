"""Rényi curves of the events that only the accountant composes, and the sum of several curves.

`umpc/dp/composition.py` has the curves of the noise that protocols use, and the step to
(epsilon, delta).

Paper: Mironov 2017 (the definition, composition).
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from umpc.dp.composition import Curve
from umpc.dp.events import ball


def pure_curve(epsilon: Fraction) -> Curve:
    """The tight curve of every epsilon-DP mechanism, which is that of randomised response.

    With P = (e^eps, 1)/(e^eps + 1) and Q its mirror image,
    R = log((e^{a eps} + e^{(1-a) eps})/(e^eps + 1))/(a-1).
    """

    def curve(order: int) -> arb:
        eps = ball(epsilon)
        moment = ((order * eps).exp() + ((1 - order) * eps).exp()) / (eps.exp() + 1)
        return moment.log() / (order - 1)

    return curve


def bounded_range_curve(epsilon: Fraction) -> Curve:
    """The curve of the exponential mechanism: the lesser of the pure curve and rho alpha.

    Its privacy loss lies in an interval of width epsilon, so rho = epsilon^2/8.

    Paper: Dong, Durfee, Rogers 2020 (bounded range); Cesar, Rogers 2021 (the constant 1/8).
    """
    pure = pure_curve(epsilon)
    return lambda order: pure(order).min(ball(epsilon * epsilon / 8) * order)


def discrete_laplace_curve(log_ratio: Fraction, sensitivity: int) -> Curve:
    """The exact divergence of P(x) ~ q^|x| and its shift by s, q = exp(-log_ratio).

    The sum over x of P^a Q^{1-a} is (1-q)/(1+q) (q^{(1-a)s} + q^{as}) / (1-q) for x <= 0 and
    x >= s. Between them it is (1-q)/(1+q) q^{(1-a)s} (r + ... + r^{s-1}) with r = q^{2a-1}. A
    smaller shift diverges less: the law is log-concave, so all its hockey-stick divergences grow
    with the shift, and Rényi's with these.
    """

    def curve(order: int) -> arb:
        grown = (1 - order) * sensitivity
        step = 2 * order - 1
        outer = power(grown) + power(order * sensitivity)
        ratio = lacking(step * (sensitivity - 1)) / lacking(step)
        between = lacking(1) * power(grown + step) * ratio
        return ((outer + between) / (1 + power(1))).log() / (order - 1)

    def power(times: int) -> arb:
        """q^times."""
        return ball(-log_ratio * times).exp()

    def lacking(times: int) -> arb:
        """1 - q^times, without cancellation."""
        return -ball(-log_ratio * times).expm1()

    return curve


def total_curve(curves: list[tuple[Curve, int]]) -> Curve:
    """Composition: divergences add. Each curve comes with the number of times it is used."""
    return lambda order: sum((times * curve(order) for curve, times in curves), arb(0))
