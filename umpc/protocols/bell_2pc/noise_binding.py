"""The noise of every pair's value, and the attempt whose circuits draw it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from umpc.crypto.ring import Ring
from umpc.errors import RangeError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.garbled.pair_noise import AddedCoins, PairNoise, Shift
from umpc.protocols.bell_2pc.pair_mechanisms import (
    BITS,
    PairLaplace,
    PairResponse,
    epsilon_of_pair,
)
from umpc.protocols.u_mpc.noise_binding import check_edges, ring_for
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes

PairLaw = PairLaplace | PairResponse

MAX_RELEASED = 1 << 17
"""The most values of pairs that one node can release: 1 MiB of 8 bytes each."""


def noise_of_pairs(sizes: Sizes) -> tuple[PairLaw, ...]:
    """The noise of every pair's value, for each sum. The sums share δ as they share ε."""
    study = sizes.study
    degree = sizes.max_degree
    laws: list[PairLaw] = []
    for total, kernel in zip(study.epsilons, study.parsed_kernels, strict=True):
        part = study.exact_delta * total / study.exact_epsilon
        epsilon = epsilon_of_pair(total, part, degree)
        if study.noise == "randomised_response":
            low = int(kernel.interval.low / kernel.unit)
            width = kernel.sensitivity_units
            laws.append(PairResponse(epsilon, low, width, sizes.edges, degree))
        else:
            change = kernel.sensitivity_units
            laws.append(PairLaplace(epsilon, change, sizes.edges, degree, total))
    return tuple(laws)


def delta_of_pairs(sizes: Sizes) -> Fraction:
    """δ of a study: that of advanced composition where it is used, and that of finite bits."""
    study = sizes.study
    laws = noise_of_pairs(sizes)
    composed = any(
        law.epsilon * law.degree > total for law, total in zip(laws, study.epsilons, strict=True)
    )
    bits = sum((law.delta for law in laws), Fraction(0))
    return min(Fraction(1), study.exact_delta * composed + bits)


def pairs_ring(sizes: Sizes) -> Ring:
    """The ring of the sums of all pairs' noisy values. Raises: RangeError."""
    return ring_for(sizes, [law.tail_bound() for law in noise_of_pairs(sizes)])


def pairs_attempt(
    study: Study, members: Sequence[Member], openings: Sequence[bytes]
) -> SharedAttempt:
    """The attempt of these members and openings, with the gates of every pair's noise.

    Raises: RemoteProtocolError, RangeError where there are too many pairs.
    """
    sizes = Sizes.of(study, members)
    check_released(sizes)
    check_edges(sizes)
    gates = [_gates(law) for law in noise_of_pairs(sizes)]
    return SharedAttempt(study, members, openings, pairs_ring(sizes), pair_noise=gates)


def check_released(sizes: Sizes) -> None:
    """Whether a node can release so many values. Raises: RangeError."""
    values = sizes.edges * len(sizes.study.kernels)
    if values > MAX_RELEASED:
        raise RangeError(
            f'"{sizes.study.protocol}" releases a value of every pair: {values} of them, at most '
            f"{MAX_RELEASED} are possible; ask for fewer edges"
        )


def _gates(law: PairLaw) -> PairNoise:
    """The law as the operation of a circuit."""
    if isinstance(law, PairResponse):
        return Shift(BITS, law.low, law.width + 1, law.thresholds)
    return AddedCoins(BITS, law.coins.thresholds, law.coins.weights)
