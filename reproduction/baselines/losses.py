"""Privacy loss distributions of discrete laws: exact composition by products of polynomials.

A mechanism's worst neighbours are two laws P and Q. The loss is L = log P(x)/Q(x) for x from P. For
independent releases losses add, adaptive or not, and
delta(epsilon) = P(L = oo) + E max(0, 1 - e^{epsilon - L}). Here a loss distribution is a polynomial
sum of P(L = i step) z^i with certified balls as coefficients, so composition is multiplication.

    epsilon-DP         L = +-epsilon with odds e^epsilon : 1 (randomised response dominates all)
    discrete Laplace   L = log_ratio (s - 2x), cut to +-s log_ratio, for x from the law

Both pairs are their own mirror images, so one direction serves both. A loss that is no multiple of
the step is rounded up, which only overstates it. If the step divides all losses, nothing is
rounded: for equal epsilon-DP events the result is the optimal composition theorem of Kairouz, Oh,
Viswanath 2015.

Paper: Sommer, Meiser, Mohammadi 2019 (loss distributions); Zhu, Dong, Wang 2022 (dominating pairs
compose, adaptively); Murtagh, Vadhan 2016 (why different epsilons are rounded: exact is #P-hard).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from flint import arb, arb_poly, ctx

from reproduction.baselines.events import ApproximateEvent, FiniteEvent, LaplaceEvent
from umpc.dp.events import above, ball

PRECISION = 192
"""Bits of the balls: products keep delta sharp to about 1e-40."""

MOST_CELLS = 1 << 15
"""Most steps between 0 and the sum of all epsilons, if the step divides every loss."""

ROUNDED_CELLS = 1 << 13
"""Steps between 0 and the sum of all epsilons otherwise; a finer step costs more than it gains."""


def lattice_step(events: Sequence[FiniteEvent]) -> Fraction | None:
    """The step of the losses.

    It is the greatest step that divides every loss. If that is too fine, it is the sum of the
    epsilons over 2^13. It is None if there are so many events that rounding each up by a step might
    cost as much as their sum.
    """
    total = sum((event.epsilon for event in events), Fraction(0))
    losses = [
        1 / event.scale if isinstance(event, LaplaceEvent) else event.epsilon for event in events
    ]
    denominator = math.lcm(*(loss.denominator for loss in losses))
    common = Fraction(math.gcd(*(int(loss * denominator) for loss in losses)), denominator)
    if total <= common * MOST_CELLS:
        return common
    return total / ROUNDED_CELLS if len(events) < ROUNDED_CELLS else None


def loss_epsilon(events: Sequence[FiniteEvent], delta: Fraction) -> Fraction | None:
    """An epsilon such that all events together are (epsilon, delta)-DP, rounded up.

    Args:
        events: at least one.
        delta: 0 < delta < 1, exact.

    Returns:
        None if nothing is proved.
    """
    step = lattice_step(events)
    if step is None:
        return None
    with ctx.workprec(PRECISION):
        product = arb_poly([1])
        offset = 0
        finite = arb(1)
        for event, times in Counter(events).items():
            cells, cell_offset = _cells(event, step)
            product = product * arb_poly(cells) ** times
            offset += times * cell_offset
            if isinstance(event, ApproximateEvent):
                finite *= (1 - ball(event.delta)) ** times
        return _least_epsilon(product, offset, 1 - finite, finite, step, delta)


def _cells(event: FiniteEvent, step: Fraction) -> tuple[list[arb], int]:
    """Probabilities of the losses offset, offset + step, ...; the offset is in steps."""
    top = math.ceil(event.epsilon / step)
    if isinstance(event, LaplaceEvent):
        return _laplace_cells(event, step, top)
    bottom = math.ceil(-event.epsilon / step)
    odds = ball(event.epsilon).exp()
    return [1 / (1 + odds), *[arb(0)] * (top - bottom - 1), odds / (1 + odds)], bottom


def _laplace_cells(event: LaplaceEvent, step: Fraction, top: int) -> tuple[list[arb], int]:
    """Probabilities of discrete Laplace losses.

    Cell i holds the losses in ((i-1) step, i step], which are those of the x with
    (s - i u)/2 <= x < (s - (i-1) u)/2, u = step scale. x <= 0 has loss +s/scale and odds 1/(1+q);
    x >= s has -s/scale and odds q^s/(1+q); between them P(x) sums geometrically.
    """
    s = event.sensitivity
    unit = step * event.scale

    def power(times: int) -> arb:
        """q^times, q = exp(-1/scale)."""
        return ball(-times / event.scale).exp()

    bottom = math.ceil(-event.epsilon / step)
    cells = [arb(0)] * (top - bottom + 1)
    for i in range(bottom, top + 1):
        first = max(1, math.ceil((s - i * unit) / 2))
        end = min(s, math.ceil((s - (i - 1) * unit) / 2))
        if first < end:
            missing = -ball((first - end) / event.scale).expm1()
            cells[i - bottom] += power(first) * missing / (1 + power(1))
    cells[-1] += 1 / (1 + power(1))
    cells[0] += power(s) / (1 + power(1))
    return cells, bottom


def _least_epsilon(
    product: arb_poly, offset: int, infinite: arb, finite: arb, step: Fraction, delta: Fraction
) -> Fraction | None:
    """The least epsilon >= 0 with infinite + finite (A - e^epsilon B) <= delta.

    A and B are sums of P(L) and P(L) e^-L over L > epsilon. They are constant between two multiples
    of the step, where delta(epsilon) is continuous and falls. From the top down, the first multiple
    at which it exceeds delta ends the search. The crossing above it is
    log((A - (delta - infinite)/finite) / B).
    """
    allowed = (ball(delta) - infinite) / finite
    if not allowed > 0:
        return None
    unit = ball(step)
    above_a = arb(0)
    above_b = arb(0)
    cells = product.coeffs()
    for i in range(offset + len(cells) - 1, -1, -1):
        here = (i * unit).exp()
        if not above_a - here * above_b <= allowed:
            crossing = ((above_a - allowed) / above_b).log()
            least = above(crossing) if crossing.is_finite() else (i + 1) * step
            return min((i + 1) * step, max(i * step, least))
        if i - offset >= 0:
            above_a += cells[i - offset]
            above_b += cells[i - offset] / here
    return Fraction(0)
