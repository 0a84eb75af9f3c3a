"""Noise and attempt of a study: the two derivations that every process makes for itself, in one place.

`mpc` knows no noise and `dp` knows no shares; here they meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.dp.calibration import DistributedLaplace
from umpc.dp.committee import CommitteeLaplace
from umpc.mpc.attempt import Attempt, Member, Sizes
from umpc.mpc.noise import FAILURE_BITS, CoinToss, committee_size
from umpc.study import Study

Noise = DistributedLaplace | CommitteeLaplace


def noise_of(sizes: Sizes) -> tuple[Noise, ...]:
    """The noise of each sum: its part of ε against replacing one record.

    The parts add up to the study's ε (sequential composition: the sums are released together).
    """
    study = sizes.study
    parts = zip(study.epsilons, sizes.sensitivities, strict=True)
    if study.noise == "in_mpc":
        return tuple(CommitteeLaplace(epsilon, sensitivity) for epsilon, sensitivity in parts)
    nodes, honest = len(study.nodes), study.honest
    return tuple(DistributedLaplace(epsilon, sensitivity, nodes, honest) for epsilon, sensitivity in parts)


def delta_of(sizes: Sizes) -> float:
    """δ of a study: what finite bits cost, and what it costs that a committee may have no honest member."""
    study = sizes.study
    if study.noise != "in_mpc":
        return 0.0
    smaller = committee_size(len(study.nodes), study.max_colluding) < len(study.nodes)
    return min(1.0, sum(noise.delta for noise in noise_of(sizes)) + (2.0**-FAILURE_BITS if smaller else 0.0))


def noise_tails(sizes: Sizes) -> list[int]:
    """A bound of each sum's noise in units, but for a probability of 2^-64."""
    return [noise.tail_bound() for noise in noise_of(sizes)]


def attempt_of(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> Attempt:
    """The attempt that these members and openings define, in a ring that holds sums and noise."""
    sizes = Sizes.of(study, members)
    coins = [CoinToss(law.thresholds, law.weights) for law in noise_of(sizes) if isinstance(law, CommitteeLaplace)]
    return Attempt(study, members, openings, noise_tails(sizes), coins)
