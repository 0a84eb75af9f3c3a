"""What several releases cost together: the smallest epsilon that a composition theorem proves.

| theorem | for which events | paper |
|---|---|---|
| basic | epsilons add, exactly | Dwork, Kenthapadi, McSherry, Mironov, Naor 2006 |
| advanced | of finite epsilon | Dwork, Rothblum, Vadhan 2010, as Kairouz, Oh, Viswanath 2015, section 3 |
| renyi | all | Mironov 2017 |
| losses | of finite epsilon | Kairouz, Oh, Viswanath 2015 (optimal for equal ones); `losses` |

Each is valid for adaptively chosen releases whose parameters were fixed beforehand, so the least of them is. Relation:
replace-one (`events`). Every result is a Fraction and certainly not below what its theorem says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from flint import arb, ctx

from umpc.dp.balls import PRECISION, above, ball
from umpc.dp.events import (
    ApproximateEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
)
from umpc.dp.losses import loss_epsilon
from umpc.dp.renyi import (
    Curve,
    bounded_range_curve,
    discrete_laplace_curve,
    gaussian_curve,
    pure_curve,
    renyi_epsilon,
    skellam_curve,
    total_curve,
)
from umpc.errors import InvalidEpsilon


def compose(events: Sequence[Event], delta: Fraction = Fraction(0)) -> Fraction:
    """The smallest epsilon proved for all events together with this delta.

    Args:
        events: what was released, in any order. None cost nothing.
        delta: 0 <= delta < 1, exact. With 0 only events of a pure epsilon compose, and the result is their exact sum.

    Raises:
        InvalidEpsilon: delta is out of range, or too small for these events.
    """
    bounds = compositions(events, delta)
    if not bounds:
        raise InvalidEpsilon(
            f"these {len(events)} releases are not (epsilon, {delta})-DP for any epsilon; ask with a larger delta"
        )
    return min(bounds.values())


def compositions(events: Sequence[Event], delta: Fraction = Fraction(0)) -> dict[str, Fraction]:
    """The epsilon of every theorem that applies, by its name in the table above."""
    if not 0 <= delta < 1:
        raise InvalidEpsilon(f"delta must be at least 0 and below 1, but {delta} came")
    events, delta = list(events), Fraction(delta)
    if not events:
        return {"basic": Fraction(0)}
    left = delta - sum(
        (event.delta for event in events if isinstance(event, ApproximateEvent)), Fraction(0)
    )
    bounds = {"basic": _basic(events, left), "renyi": _renyi(events, left)}
    if all(_is_finite(event) for event in events) and delta:
        bounds |= {"advanced": _advanced(events, left), "losses": loss_epsilon(events, delta)}
    return {name: epsilon for name, epsilon in bounds.items() if epsilon is not None}


def _is_finite(event: Event) -> bool:
    return not isinstance(event, GaussianEvent | SkellamEvent)


def _basic(events: list[Event], left: Fraction) -> Fraction | None:
    """The sum of the epsilons; those that have none share what is left of delta, by Rényi."""
    others = [event for event in events if not _is_finite(event)]
    total = sum((event.epsilon for event in events if _is_finite(event)), Fraction(0))
    if not others:
        return total if left >= 0 else None
    rest = _renyi(others, left)
    return None if rest is None else total + rest


def _advanced(events: list[Event], left: Fraction) -> Fraction | None:
    """sum of eps (e^eps - 1)/(e^eps + 1) + sqrt(2 ln(1/delta) sum of eps^2).

    A loss is +-eps with the odds of randomised response: its mean is the first term, and the sum of k bounded
    losses exceeds its mean by the second with probability at most delta (Hoeffding).
    """
    return (
        advanced_composition(Counter(event.epsilon for event in events), left) if left > 0 else None
    )


def advanced_composition(counts: Mapping[Fraction, int], delta: Fraction) -> Fraction:
    """The same of so many ε-DP events for each ε."""
    with ctx.workprec(PRECISION):
        mean = sum(
            (
                times * ball(epsilon) * (ball(epsilon) / 2).tanh()
                for epsilon, times in counts.items()
            ),
            arb(0),
        )
        squares = ball(sum(times * epsilon**2 for epsilon, times in counts.items()))
        return above(mean + (-2 * ball(delta).log() * squares).sqrt())


def _renyi(events: list[Event], left: Fraction) -> Fraction | None:
    if left <= 0:
        return None
    return renyi_epsilon(
        total_curve([(_curve(event), times) for event, times in Counter(events).items()]), left
    )


def _curve(event: Event) -> Curve:
    """A bound on the Rényi divergences of one event; of an approximate one, outside its own delta."""
    match event:
        case PureEvent(epsilon) | ApproximateEvent(epsilon, _):
            return pure_curve(epsilon)
        case ExponentialEvent(epsilon):
            return bounded_range_curve(epsilon)
        case LaplaceEvent(scale, sensitivity):
            return discrete_laplace_curve(1 / scale, sensitivity)
        case GaussianEvent():
            return gaussian_curve(event.rho)
        case SkellamEvent(variances, sensitivities):
            return skellam_curve(variances, sensitivities)
