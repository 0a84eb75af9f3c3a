"""Releases as data: the events of `umpc/dp/events.py`, and that of the exponential mechanism.

The relation between tables is replace-one throughout. `accounting` computes what events cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from umpc.dp.events import (
    ApproximateEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
    check_epsilon,
)

__all__ = [
    "ApproximateEvent",
    "Event",
    "ExponentialEvent",
    "FiniteEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "SkellamEvent",
]


@dataclass(frozen=True)
class ExponentialEvent:
    """The exponential mechanism with odds exp(epsilon u/(2 sensitivity)).

    It is epsilon-DP, and its privacy loss has a range of width epsilon.

    Args:
        epsilon: > 0, exact.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))


FiniteEvent = PureEvent | ApproximateEvent | LaplaceEvent | ExponentialEvent
"""Events that have an epsilon of their own."""

Event = FiniteEvent | GaussianEvent | SkellamEvent
