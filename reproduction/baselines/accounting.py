"""The cost of several releases together: the smallest epsilon that a composition theorem proves.

| theorem | for which events | paper |
|---|---|---|
| basic | epsilons add, exactly | Dwork, Kenthapadi, McSherry, Mironov, Naor 2006 |
| advanced | with an epsilon | Dwork, Rothblum, Vadhan 2010, by Kairouz, Oh, Viswanath 2015 |
| renyi | all | Mironov 2017 |
| losses | with an epsilon | Kairouz, Oh, Viswanath 2015 (optimal for equal ones); `losses` |

Each theorem is valid for adaptively chosen releases whose parameters were fixed beforehand, so the
least epsilon is valid too. The relation is replace-one (`events`). Every result is a Fraction, and
certainly not below the theorem's value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeGuard

from reproduction.baselines.curves import (
    bounded_range_curve,
    discrete_laplace_curve,
    pure_curve,
    total_curve,
)
from reproduction.baselines.events import (
    ApproximateEvent,
    Event,
    ExponentialEvent,
    FiniteEvent,
    GaussianEvent,
    LaplaceEvent,
    SkellamEvent,
)
from reproduction.baselines.losses import loss_epsilon
from umpc.dp.composition import Curve, gaussian_curve, renyi_epsilon, skellam_curve
from umpc.dp.events import PureEvent
from umpc.errors import InvalidEpsilon
from umpc_papers.bell_2pc.pair_mechanisms import advanced_composition


def compose(events: Sequence[Event], delta: Fraction = Fraction(0)) -> Fraction:
    """The smallest epsilon proved for all events together with this delta.

    Args:
        events: the releases, in any order. No events cost nothing.
        delta: 0 <= delta < 1, exact. With 0 only events of a pure epsilon compose, and the result
            is their exact sum.

    Raises:
        InvalidEpsilon: delta is out of range, or too small for these events.
    """
    bounds = compositions(events, delta)
    if not bounds:
        raise InvalidEpsilon(
            f"these {len(events)} releases are not (epsilon, {delta})-DP for any epsilon; "
            "ask with a larger delta"
        )
    return min(bounds.values())


def compositions(events: Sequence[Event], delta: Fraction = Fraction(0)) -> dict[str, Fraction]:
    """The epsilon of every theorem that applies, by its name in the table above.

    Raises:
        InvalidEpsilon: delta is out of range.
    """
    if not 0 <= delta < 1:
        raise InvalidEpsilon(f"delta must be at least 0 and below 1, but {delta} came")
    delta = Fraction(delta)
    if not events:
        return {"basic": Fraction(0)}
    finite = [event for event in events if _is_finite(event)]
    spent = (event.delta for event in events if isinstance(event, ApproximateEvent))
    left = delta - sum(spent, Fraction(0))
    bounds = {"basic": _basic(events, left), "renyi": _renyi(events, left)}
    if len(finite) == len(events) and delta:
        bounds["advanced"] = _advanced(finite, left)
        bounds["losses"] = loss_epsilon(finite, delta)
    return {name: epsilon for name, epsilon in bounds.items() if epsilon is not None}


def _is_finite(event: Event) -> TypeGuard[FiniteEvent]:
    return not isinstance(event, GaussianEvent | SkellamEvent)


def _basic(events: Sequence[Event], left: Fraction) -> Fraction | None:
    """The sum of the epsilons. Events without one share what is left of delta, by Rényi."""
    total = sum((event.epsilon for event in events if _is_finite(event)), Fraction(0))
    others = [event for event in events if not _is_finite(event)]
    if not others:
        return total if left >= 0 else None
    rest = _renyi(others, left)
    return None if rest is None else total + rest


def _advanced(events: Sequence[FiniteEvent], left: Fraction) -> Fraction | None:
    """Advanced composition, where some delta is left for it."""
    if left <= 0:
        return None
    return advanced_composition(Counter(event.epsilon for event in events), left)


def _renyi(events: Sequence[Event], left: Fraction) -> Fraction | None:
    """The sum of all Rényi curves, where some delta is left for it."""
    if left <= 0:
        return None
    curves = [(_curve(event), times) for event, times in Counter(events).items()]
    return renyi_epsilon(total_curve(curves), left)


def _curve(event: Event) -> Curve:
    """A bound on the Rényi divergences of one event; an approximate one outside its own delta."""
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
