"""The noise of every pair's value or group's sum, and the attempt whose circuits draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from umpc.crypto.ring import Ring
from umpc.errors import RangeError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.garbled.kernel_to_circuit import PairNoise
from umpc.mpc.garbled.plan import GarbledProgram, garbled_program
from umpc.protocols.u_mpc.noise_binding import check_edges, ring_for
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes
from umpc_papers.bell_2pc.group_mechanism import GroupLaplace, groups_of
from umpc_papers.bell_2pc.pair_mechanisms import (
    BITS,
    PairLaplace,
    PairResponse,
    epsilon_of_pair,
)
from umpc_papers.bell_2pc.pair_noise import AddedCoins, Shift
from umpc_papers.bell_2pc.settings import GROUPS, group_of

PairLaw = PairLaplace | PairResponse | GroupLaplace

MAX_RELEASED = 1 << 17
"""The most values that one node can release: 1 MiB of 8 bytes each."""


class PairsAttempt(SharedAttempt):
    """An attempt whose pairs are released in groups; a group of 1 is a pair alone."""

    @cached_property
    def group(self) -> int:
        """The pairs of a group."""
        return group_of(self.study)

    @cached_property
    def program(self) -> GarbledProgram:
        """The plans of garbled edges, of which every edge is a result of its own."""
        patterns = self.hypergraph.rows.shared_patterns
        kernels = self.study.parsed_kernels
        made = garbled_program(kernels, self._sums_ring, patterns, self.pair_noise)
        plans = {each: replace(plan, noisy=True) for each, plan in made.plans.items()}
        return replace(made, plans=plans)

    def released_values(self, node: int) -> int:
        cells = self.cells_of(node).values()
        return sum(groups_of(cell.count, self.group) for cell in cells)


def noise_of_pairs(sizes: Sizes) -> tuple[PairLaw, ...]:
    """The noise of every pair's value, for each sum. The sums share δ as they share ε."""
    study = sizes.study
    degree = sizes.max_degree
    laws: list[PairLaw] = []
    for total, kernel in zip(study.epsilons, study.parsed_kernels, strict=True):
        part = study.exact_delta * total / study.exact_epsilon
        epsilon = epsilon_of_pair(total, part, degree)
        if study.noise == GROUPS:
            change = kernel.sensitivity_units
            laws.append(
                GroupLaplace(total, change, sizes.edges, degree, group_of(study), _cells(sizes))
            )
            continue
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
        law.epsilon * law.degree > total
        for law, total in zip(laws, study.epsilons, strict=True)
        if not isinstance(law, GroupLaplace)
    )
    bits = sum((law.delta for law in laws), Fraction(0))
    return min(Fraction(1), study.exact_delta * composed + bits)


def _cells(sizes: Sizes) -> int:
    """The number of pairs of nodes with records, each node with itself included."""
    holders = sizes.holders
    return holders**2 if sizes.study.two_sample else holders * (holders + 1) // 2


def most_groups(sizes: Sizes) -> int:
    """The most groups that E can have; its pairs, where each has noise of its own."""
    group = group_of(sizes.study)
    if group == 1:
        return sizes.edges
    return min(sizes.edges, sizes.edges // group + _cells(sizes))


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
    laws = noise_of_pairs(sizes)
    gates = [_gates(law) for law in laws if not isinstance(law, GroupLaplace)]
    return PairsAttempt(study, members, openings, pairs_ring(sizes), pair_noise=gates)


def check_released(sizes: Sizes) -> None:
    """Whether a node can release so many values. Raises: RangeError."""
    study = sizes.study
    values = most_groups(sizes) * len(study.kernels)
    if values > MAX_RELEASED:
        what = "pair" if group_of(study) == 1 else f"group of {group_of(study)} pairs"
        raise RangeError(
            f'"{study.protocol}" releases a value of every {what}: {values} of them, at most '
            f"{MAX_RELEASED} are possible; ask for fewer edges, or for larger groups with noise = "
            f'"{GROUPS}"'
        )


def _gates(law: PairLaplace | PairResponse) -> PairNoise:
    """The law as the operation of a circuit."""
    if isinstance(law, PairResponse):
        return Shift(BITS, law.low, law.width + 1, law.thresholds)
    return AddedCoins(BITS, law.coins.thresholds, law.coins.weights)
