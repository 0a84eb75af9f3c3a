"""Noise and attempt of a study: the two derivations that every process makes for itself, in one place.

`mpc` knows no noise and `dp` knows no shares; here they meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.dp.calibration import DistributedLaplace
from umpc.mpc.attempt import Attempt, Member, Sizes
from umpc.study import Study


def noise_of(sizes: Sizes) -> DistributedLaplace:
    """The noise of a study over so many records: ε against replacing one record, with h = N − t honest nodes."""
    study = sizes.study
    return DistributedLaplace(
        epsilon=study.exact_epsilon, sensitivity=sizes.sensitivity, nodes=len(study.nodes), honest=study.honest
    )


def attempt_of(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> Attempt:
    """The attempt that these members and openings define, in a ring that holds sum and noise."""
    sizes = Sizes(study, sum(member.records for member in members))
    return Attempt(study, members, openings, noise_of(sizes).tail_bound())
