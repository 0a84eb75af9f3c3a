"""Composition of releases that are chosen one after another: what they cost together.

A ledger is a *privacy filter*: everybody who asks sees the earlier releases, and then chooses the
next one and its parameters. The filter stops before the studies together would cost more than the
site's ε. Theorems for parameters that were fixed beforehand do not cover this. These do:

| composition | the studies together are | paper |
|---|---|---|
| basic | (Σ ε, Σ δ)-DP | Rogers, Roth, Ullman, Vadhan 2016, section 3 |
| advanced | (ρ + 2√(ρ ln 1/δ'), Σ δ + δ')-DP with ρ = Σ ε tanh(ε/2) | Whitehouse et al. 2023 |
| zcdp | (ε(ρ, δ'), Σ δ + δ')-DP with ρ = Σ of the events' ρ | the same; Feldman, Zrnic 2021 |

δ' is the composition's own, which the site states. ε(ρ, δ') is the least that a Rényi order
proves. Advanced knows each study's (ε, δ) only, zcdp its events.

*One bound for all paths.* A filter needs one number that only grows, here ρ, and a bound of it that
was fixed beforehand, here the ρ for which the formula reaches the site's ε. The least over several
theorems is not a filter by itself. It is one for basic beside one of the others, at no cost. Divide
the paths of asking and answering into those that end with ρ within its bound, and the rest, which
end with Σ ε within its bound. On the first, Σ (P − e^ε Q)⁺ is at most δ', because a run that stops
where ρ would pass its bound has the same paths. On the rest P ≤ e^ε Q, because all their releases
are pure but for the failures Σ δ. So basic is used where every release counts the same δ in both,
and one release with less δ in zcdp (such as Gaussian noise) ends its use.

*ρ of an ε-DP release* is ε tanh(ε/2) (Bun & Steinke 2016 have ε²/2). Its divergence is at most that
of randomised response, log(cosh((α − 1/2)ε)/cosh(ε/2))/(α − 1). log cosh √v is concave in v, so
with v = (α − 1/2)²ε² and the tangent at ε²/4 this is at most α ε tanh(ε/2). It is reached as
α → 1.

Every number is exact or rounded up, so no result is below its formula.

*Renyi.* Rényi differential privacy: curves of noise, and the step from a curve to (epsilon, delta).

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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from umpc.dp.events import (
    GRID,
    PRECISION,
    ApproximateEvent,
    ConcentratedEvent,
    Event,
    FailureEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
    above,
    ball,
    below,
)
from umpc.errors import InvalidEpsilon

BASIC, ADVANCED, ZCDP = COMPOSITIONS = ("basic", "advanced", "zcdp")
RHO_GRID = 80
"""A release's ρ is rounded up to a multiple of 2^-80, so that sums of many stay short."""

NOISE_WITHOUT_EPSILON = (GaussianEvent, ConcentratedEvent, SkellamEvent)
"""Events that have an ε only with a δ. In zcdp they cost no δ."""


@dataclass(frozen=True)
class Weight:
    """The cost of some releases, as one composition counts it. Weights of several add up.

    epsilon: the sum of the ε. rho: the sum of the ρ, 0 where basic composition needs none.
    delta: the sum of the δ. plain: whether basic composition would count the same δ.
    """

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    plain: bool = True

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.epsilon + other.epsilon,
            self.rho + other.rho,
            self.delta + other.delta,
            self.plain and other.plain,
        )


@dataclass(frozen=True)
class Composition:
    """How a site adds up what its studies cost.

    Args:
        name: one of COMPOSITIONS.
        delta: δ' of the composition itself, beside the δ of the studies: 0 for basic, else between
            0 and 1, exact.

    Raises:
        InvalidEpsilon: the name is unknown, or δ' does not fit it.
    """

    name: str = BASIC
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.name not in COMPOSITIONS:
            raise InvalidEpsilon(
                f"composition: one of {', '.join(COMPOSITIONS)} was expected, and {self.name!r} "
                "came. Correct composition under [budget]"
            )
        if self.delta != 0 if self.name == BASIC else not 0 < self.delta < 1:
            raise InvalidEpsilon(
                f"composition {self.name!r}: a delta "
                f"{'of 0' if self.name == BASIC else 'above 0 and below 1'} was expected, and "
                f"{self.delta} came. Correct composition_delta under [budget]"
            )

    def __str__(self) -> str:
        return self.name if self.name == BASIC else f"{self.name} at delta {self.delta}"

    def weigh(self, epsilon: Fraction, delta: Fraction, events: tuple[Event, ...] = ()) -> Weight:
        """The weight of one release that is (ε, δ)-DP. Args: events: its mechanism, if known."""
        if self.name == BASIC:
            # Rogers et al. 2016, section 3: the sums of epsilon and of delta
            return Weight(epsilon, delta=delta)
        if self.name == ADVANCED or not events:
            # Whitehouse et al. 2023: rho from epsilon alone
            return Weight(epsilon, rho_of_pure(epsilon), delta)
        # Feldman & Zrnic 2021: rho of what was done
        rho = sum((rho_of(event) for event in events), Fraction(0))
        failure = sum((failure_of(event) for event in events), Fraction(0))
        # without an epsilon of its own, basic composition has nothing to count
        plain = not any(isinstance(event, NOISE_WITHOUT_EPSILON) for event in events)
        return Weight(epsilon, rho, max(failure, delta) if plain else failure, plain)

    def epsilon(self, weight: Weight) -> Fraction:
        """The ε of all releases of this weight together."""
        if self.name == BASIC or (not weight.rho and weight.plain):
            return weight.epsilon
        formula = advanced_epsilon if self.name == ADVANCED else concentrated_epsilon
        composed = formula(weight.rho, self.delta)
        # one bound for all paths: the smaller one holds (docstring)
        return min(weight.epsilon, composed) if weight.plain else composed


def total_weight(weights: Iterable[Weight]) -> Weight:
    """The weight of several releases together."""
    return sum(weights, Weight())


@lru_cache(maxsize=1024)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """ε tanh(ε/2), rounded up: every ε-DP release is ρ-zCDP for this ρ."""
    with ctx.workprec(PRECISION):
        # the tangent of log cosh sqrt(v) at epsilon^2/4 (docstring)
        return above(ball(epsilon) * (ball(epsilon) / 2).tanh(), RHO_GRID)


def rho_of(event: Event) -> Fraction:
    """A ρ with which the event is ρ-zCDP, apart from its `failure_of`."""
    match event:
        case PureEvent(epsilon) | ApproximateEvent(epsilon, _):
            return rho_of_pure(epsilon)
        case LaplaceEvent():
            return rho_of_pure(event.epsilon)
        case FailureEvent():
            return Fraction(0)
        case ConcentratedEvent(rho):
            return rho
        case GaussianEvent():
            return event.rho
        case SkellamEvent(variances, sensitivities):
            pairs = zip(variances, sensitivities, strict=True)
            return sum((_rho_of_skellam(mu, s) for mu, s in pairs if s), Fraction(0))


def _rho_of_skellam(mu: Fraction, s: int) -> Fraction:
    """The largest ratio of `renyi.skellam_curve` to its order, over the integers of 2 and more."""
    # Agarwal, Kairouz & Liu 2021: the curve over alpha is largest at 2
    slope = Fraction(s * s) / (2 * mu)
    squared = (s * s + Fraction(max(0, 6 * s - s * s), 4)) / (2 * mu * mu)
    return slope + min(squared, 3 * s / (4 * mu))


def failure_of(event: Event) -> Fraction:
    """The probability outside of which the event is `rho_of`-zCDP."""
    return event.delta if isinstance(event, ApproximateEvent | FailureEvent) else Fraction(0)


@lru_cache(maxsize=1024)
def advanced_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """ρ + 2√(ρ ln 1/δ), rounded up (Bun & Steinke 2016, proposition 1.3)."""
    with ctx.workprec(PRECISION):
        # Bun & Steinke 2016, proposition 1.3
        return above(ball(rho) + 2 * (-ball(rho) * ball(delta).log()).sqrt())


@lru_cache(maxsize=1024)
def concentrated_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The least ε that a Rényi order proves of a ρ-zCDP release, rounded up."""
    return renyi_epsilon(gaussian_curve(rho), delta) if rho else Fraction(0)


@lru_cache(maxsize=256)
def concentrated_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Nearly the largest ρ that implies (ε, δ)-DP, rounded down to 20 binary digits.

    Noise that was calibrated for (ε, δ) by Rényi orders has a ρ of about this.
    """
    with ctx.workprec(PRECISION):
        high = below(ball(epsilon))
    low = Fraction(0)
    step = high
    while step * (1 << 20) >= high:
        # `low` always fits: bisection from below
        if concentrated_epsilon(low + step, delta) <= epsilon:
            low += step
        step /= 2
    return low


# --- renyi ----------------------------------------------------------------------------------------

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
    # Bun & Steinke 2016, definition 1.1
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
        # Agarwal, Kairouz & Liu 2021, section 3: the smaller of two bounds
        return ball(order * slope + sum(scale * min(order * a + b, c) for scale, a, b, c in rest))

    return curve


def epsilon_at(curve: Curve, order: int, delta: Fraction) -> arb:
    """The epsilon that this one order proves."""
    return (
        # Canonne, Kamath & Steinke 2020, section 2
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
        # every order proves an epsilon, so the least of them holds
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
        # double until it holds
        if holds(high):
            break
        high *= 2
    else:
        raise InvalidEpsilon("no amount of noise gives this epsilon and delta; ask for larger ones")
    low = high / 2
    for _ in range(400):
        # halve until it does not
        if not holds(low):
            break
        low, high = low / 2, low
    step = (high - low) / 2
    while step * (1 << 16) >= high:
        # `high` always holds: no guarantee rests on the search
        if holds(high - step):
            high -= step
        step /= 2
    return high
