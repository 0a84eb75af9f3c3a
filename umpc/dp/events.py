"""A release as data: its mechanism's parameters, all exact, and the relation they hold for.

The relation is replace-one: neighbours have the same number of records and differ in one of them.
(A guarantee with parameter epsilon for adding or removing a record is a guarantee with 2 epsilon
for replacing one, because a replacement is two such steps.)

The events of other mechanisms, and an accountant that composes them, are in `bench/baselines`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from umpc.dp.checks import check_epsilon


@dataclass(frozen=True)
class PureEvent:
    """A release that is epsilon-DP, such as randomised response.

    Args:
        epsilon: > 0, exact.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
