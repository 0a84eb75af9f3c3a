"""Noise and attempt of a study: the two derivations that every process makes for itself, in one place.

`mpc` knows no noise and `dp` knows no shares; here they meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from umpc.dp.calibration import DistributedLaplace
from umpc.dp.committee import CommitteeBinomial, CommitteeLaplace
from umpc.dp.skellam import DistributedSkellam, SkellamShare
from umpc.mpc.attempt import Attempt
from umpc.mpc.garbled.pair_noise import AddedCoins, PairNoise, Shift
from umpc.mpc.masked.committee_coins import FAILURE_BITS, CoinToss, committee_size
from umpc.protocols.bell_2pc.pair_mechanisms import BITS, PairLaplace, PairResponse, epsilon_of_pair
from umpc.protocols.ghazi_shuffle.mixing import delta_of_mixing
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes

Noise = (
    DistributedLaplace
    | SkellamShare
    | CommitteeLaplace
    | CommitteeBinomial
    | PairLaplace
    | PairResponse
)


def noise_of(sizes: Sizes) -> tuple[Noise, ...]:
    """The noise of each sum: its part of ε (and of δ) against replacing one record.

    The parts add up to the study's ε and δ (basic composition: the sums are released together); Skellam noise is
    calibrated for all sums at once, whatever the parts are.
    """
    study = sizes.study
    if study.noise_of_pairs:
        return _of_pairs(sizes)
    nodes, honest = len(study.nodes), study.honest
    parts = list(zip(study.epsilons, sizes.sensitivities, strict=True))
    if study.noise == "in_mpc":
        return tuple(CommitteeLaplace(epsilon, sensitivity) for epsilon, sensitivity in parts)
    if study.noise == "binomial":
        share = study.exact_delta / study.exact_epsilon
        return tuple(
            CommitteeBinomial(epsilon, epsilon * share, sensitivity)
            for epsilon, sensitivity in parts
        )
    if study.noise == "skellam":
        return _skellam(study.exact_epsilon, study.exact_delta, sizes.sensitivities, nodes, honest)
    return tuple(
        DistributedLaplace(epsilon, sensitivity, nodes, honest) for epsilon, sensitivity in parts
    )


@lru_cache(maxsize=16)
def _skellam(
    epsilon: Fraction, delta: Fraction, sensitivities: tuple[int, ...], nodes: int, honest: int
) -> tuple:
    """Skellam noise of all sums: its calibration is a search, and a study asks for it several times."""
    return DistributedSkellam(epsilon, delta, sensitivities, nodes, honest).sums


def _of_pairs(sizes: Sizes) -> tuple[PairLaplace | PairResponse, ...]:
    """The noise of every pair's value, for each sum. The sums share δ as they share ε."""
    study, degree, laws = sizes.study, sizes.max_degree, []
    for total, kernel in zip(study.epsilons, study.parsed_kernels, strict=True):
        epsilon = epsilon_of_pair(total, study.exact_delta * total / study.exact_epsilon, degree)
        if study.noise == "randomised_response":
            low = int(kernel.interval.low / kernel.unit)
            laws.append(PairResponse(epsilon, low, kernel.sensitivity_units, sizes.edges, degree))
        else:
            laws.append(PairLaplace(epsilon, kernel.sensitivity_units, sizes.edges, degree, total))
    return tuple(laws)


def _gates(law: PairLaplace | PairResponse) -> PairNoise:
    """The law as what a circuit computes."""
    if isinstance(law, PairResponse):
        return Shift(BITS, law.low, law.width + 1, law.thresholds)
    return AddedCoins(BITS, law.coins.thresholds, law.coins.weights)


def delta_of(sizes: Sizes) -> Fraction:
    """δ of a study: what it asks for, what finite bits cost, and that a committee may have no honest member.

    Of a shuffled one: that heaps of equal sums can be told apart with a probability of 2^-40.
    """
    study = sizes.study
    if study.shuffled:
        return delta_of_mixing(study.exact_epsilon)
    if study.noise_of_pairs:
        laws = noise_of(sizes)
        composed = any(
            law.epsilon * law.degree > total
            for law, total in zip(laws, study.epsilons, strict=True)
        )
        return min(Fraction(1), study.exact_delta * composed + sum(law.delta for law in laws))
    if not study.committee_draws:
        return study.exact_delta
    smaller = committee_size(len(study.nodes), study.max_colluding) < len(study.nodes)
    bits = sum(
        (noise.delta for noise in noise_of(sizes) if isinstance(noise, CommitteeLaplace)),
        Fraction(0),
    )
    return min(
        Fraction(1), study.exact_delta + bits + (Fraction(1, 1 << FAILURE_BITS) if smaller else 0)
    )


def noise_tails(sizes: Sizes) -> list[int]:
    """A bound of each sum's noise in units, but for a probability of 2^-64."""
    return [noise.tail_bound() for noise in noise_of(sizes)]


def attempt_of(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> Attempt:
    """The attempt that these members and openings define, in a ring that holds sums and noise."""
    if study.one_message:  # no sum is shared, so no noise has to fit its ring
        return Attempt(study, members, openings, [0] * len(study.kernels))
    sizes = Sizes.of(study, members)
    laws = noise_of(sizes)
    coins = [
        CoinToss(law.thresholds, law.weights, law.offset) for law in laws if study.committee_draws
    ]
    of_pairs = [_gates(law) for law in laws if study.noise_of_pairs]
    return Attempt(study, members, openings, [law.tail_bound() for law in laws], coins, of_pairs)
