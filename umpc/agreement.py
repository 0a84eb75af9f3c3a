"""Noise and attempt of a study: the two derivations that every process makes for itself, in one place.

`mpc` knows no noise and `dp` knows no shares; here they meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.dp.calibration import DistributedLaplace
from umpc.mpc.attempt import Attempt, Member, Sizes
from umpc.study import Study


def noise_of(sizes: Sizes) -> tuple[DistributedLaplace, ...]:
    """The noise of each sum: its part of ε against replacing one record, with h = N − t honest nodes.

    The parts add up to the study's ε (sequential composition: the sums are released together).
    """
    study = sizes.study
    return tuple(
        DistributedLaplace(epsilon=epsilon, sensitivity=sensitivity, nodes=len(study.nodes), honest=study.honest)
        for epsilon, sensitivity in zip(study.epsilons, sizes.sensitivities, strict=True)
    )


def noise_tails(sizes: Sizes) -> list[int]:
    """A bound of each sum's noise in units, but for a probability of 2^-64."""
    return [noise.tail_bound() for noise in noise_of(sizes)]


def attempt_of(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> Attempt:
    """The attempt that these members and openings define, in a ring that holds sums and noise."""
    return Attempt(study, members, openings, noise_tails(Sizes.of(study, members)))
