"""The noise of each sum, and the attempt in a ring that holds sums and noise.

Every process derives both for itself. `mpc` knows no noise and `dp` knows no shares; they meet
here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb
from weakref import WeakValueDictionary

from umpc.crypto.ring import Ring, smallest_ring
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.committee import CommitteeBinomial, CommitteeLaplace
from umpc.dp.distributed_gaussian import GaussianShare
from umpc.dp.events import (
    ApproximateEvent,
    Event,
    FailureEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
)
from umpc.dp.skellam import DistributedSkellam, SkellamShare
from umpc.errors import RangeError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.masked.material import FAILURE_BITS, CoinToss, committee_size
from umpc.protocols.u_mpc.settings import Law
from umpc.study.document import Study
from umpc.study.parts import changed_at_once
from umpc.study.settings import edge_change, edge_interval
from umpc.study.sizes import Member, Sizes
from umpc.ustat.estimators import PAIR_MEDIAN
from umpc.ustat.sampling import pairings_of

NodeNoise = DistributedLaplace | SkellamShare | GaussianShare
"""Noise that every node adds itself."""
CommitteeNoise = CommitteeLaplace | CommitteeBinomial
"""Noise that a committee draws under shares."""
SumNoise = DistributedLaplace | SkellamShare | CommitteeNoise

MAX_CELLS = 1 << 16
"""The most groups of owners of a complete set of edges."""


def noise_of_sums(sizes: Sizes) -> tuple[SumNoise, ...]:
    """The noise of each sum: its part of ε (and of δ) against replacing one record.

    The parts add up to the study's ε and δ (basic composition: the sums are released together).
    Strata share one part, because they change together by no more than one sum may.
    Skellam noise is calibrated for all sums at once, whatever the parts are.
    """
    study = sizes.study
    # basic composition: ε_i for each sum
    parts = list(zip(study.epsilons, sizes.sensitivities, strict=True))
    if study.noise == "in_mpc":
        # Dwork et al. 2006: one draw, from biased coins
        return tuple(_committee_laplace(*part) for part in parts)
    if study.noise == "binomial":
        # δ is divided as ε is
        share = study.exact_delta / study.exact_epsilon
        return tuple(
            CommitteeBinomial(epsilon, epsilon * share, sensitivity)
            for epsilon, sensitivity in parts
        )
    nodes = len(study.nodes)
    if study.noise == "skellam":
        epsilon, delta = study.exact_epsilon, study.exact_delta
        # one joint budget for the vector of sums
        return _skellam(epsilon, delta, sizes.sensitivities, nodes, study.honest)
    return tuple(
        # Balle et al. 2020: h = N − t nodes' parts suffice
        DistributedLaplace(epsilon, sensitivity, nodes, study.honest)
        for epsilon, sensitivity in parts
    )


@lru_cache(maxsize=16)
def _committee_laplace(epsilon: Fraction, sensitivity: int) -> CommitteeLaplace:
    """A committee's noise: its thresholds take a search each, and a study asks for them often."""
    return CommitteeLaplace(epsilon, sensitivity)


@lru_cache(maxsize=16)
def _skellam(
    epsilon: Fraction, delta: Fraction, sensitivities: tuple[int, ...], nodes: int, honest: int
) -> tuple[SkellamShare, ...]:
    """Skellam noise of all sums: its calibration is a search, and a study asks for it often."""
    return DistributedSkellam(epsilon, delta, sensitivities, nodes, honest).sums


def delta_of_sums(sizes: Sizes, laws: Sequence[Law]) -> Fraction:
    """δ of a study: its own, of finite bits, of a committee of liars, and of false proofs.

    Args: laws: of the noise of each released number.
    """
    study = sizes.study
    # δ of finite bits of each threshold
    bits = sum((law.delta for law in laws if isinstance(law, CommitteeLaplace)), Fraction(0))
    draws = any(isinstance(law, CommitteeNoise) for law in laws)
    all_nodes = committee_size(len(study.nodes), study.max_colluding) == len(study.nodes)
    # Sinh & Ramon 2025, M_HF: all members collude
    dishonest = Fraction(1, 1 << FAILURE_BITS) if draws and not all_nodes else Fraction(0)
    unproved = study.settings.delta_of_proofs(study.adversary, len(study.nodes), sizes.records)
    return min(Fraction(1), study.exact_delta + bits + dishonest + unproved)


def least_delta_of_bits(study: Study) -> Fraction:
    """The δ of finite bits of noise in a committee, at least: where a record is in one edge."""
    if study.noise != "in_mpc":
        return Fraction(0)
    parts = zip(study.parsed_kernels, study.epsilons, strict=True)
    # a record in one edge: the least that it may change
    changes = [(edge_change(each, study.edge_grade) / each.unit, part) for each, part in parts]
    return sum((_committee_laplace(part, ceil(most)).delta for most, part in changes), Fraction(0))


def events_of_sums(sizes: Sizes) -> tuple[Event, ...]:
    """The noise of all sums as events, with the committee's own δ."""
    laws = noise_of_sums(sizes)
    events: list[Event] = []
    own = Fraction(0)
    # strata: one event for sums of one part of ε
    for group in sizes.study.sums_sharing_epsilon:
        event = _event_of([laws[place] for place in group], sizes.study)
        events += [event] if event else []
        own += event.delta if isinstance(event, ApproximateEvent) else 0
    variances = tuple(law.honest_variance for law in laws if isinstance(law, SkellamShare))
    if any(variances):
        events.append(SkellamEvent(variances, tuple(sizes.sensitivities)))
        own += sizes.study.exact_delta
    dishonest = delta_of_sums(sizes, laws) - own
    if dishonest > 0:
        events.append(FailureEvent(dishonest))
    return tuple(events)


def _event_of(laws: Sequence[SumNoise], study: Study) -> Event | None:
    """The noise of sums that share one part of ε; None for public sums and for Skellam noise."""
    noisy = [law for law in laws if not isinstance(law, SkellamShare) and law.sensitivity]
    if not noisy:
        return None
    epsilon = noisy[0].epsilon
    if len(laws) > 1:  # a record changes the sums of so many strata
        # several strata change together
        is_cells = study.estimator == PAIR_MEDIAN
        epsilon *= 2 if is_cells else changed_at_once(study.degree, len(laws))
    if isinstance(noisy[0], CommitteeNoise):
        own = sum((law.delta for law in noisy if isinstance(law, CommitteeNoise)), Fraction(0))
        return ApproximateEvent(epsilon, own)
    if len(laws) > 1:
        return PureEvent(epsilon)
    sensitivity = noisy[0].sensitivity
    # exact law of the noise, for tighter composition
    return LaplaceEvent(sensitivity / epsilon, sensitivity)


def ring_for(sizes: Sizes, tails: Sequence[int]) -> Ring:
    """The ring that holds every sum and its noise, but for a probability of 2^-64.

    Args: tails: a bound of each sum's noise in units, but for that probability.

    Raises: RangeError.
    """
    kernels = zip(sizes.study.parsed_kernels, tails, strict=True)
    adversary = sizes.study.edge_grade
    return smallest_ring(
        max(
            # |Σ f| ≤ |E| · max |f|, and noise but for 2^-64
            sizes.edges * ceil(edge_interval(kernel, adversary).magnitude / kernel.unit) + tail
            for kernel, tail in kernels
        )
    )


def shared_attempt(
    study: Study,
    members: Sequence[Member],
    openings: Sequence[bytes],
    noise: Callable[[Sizes], Sequence[Law]],
    sums: int,
) -> SharedAttempt:
    """The attempt of these members and openings, with the committee's coins if it draws any.

    Nodes of one process that have the very same objects share one attempt, with E and the plans,
    while one of them uses it. All of it is public, and nothing changes it.

    Args: noise, sums: as of `UMpc`.
    Raises: RemoteProtocolError, RangeError where the edges cannot be listed.
    """
    # The attempt keeps these objects, so no other object has their identities while it is known.
    key = id(study), id(members), id(openings)
    is_kept = isinstance(members, tuple) and isinstance(openings, tuple)
    if is_kept and (known := _attempts.get(key)) is not None:
        return known
    sizes = Sizes.of(study, members)
    check_edges(sizes)
    laws = noise(sizes)
    ring = ring_for(sizes, [law.tail_bound() for law in laws])
    coins, dealt = coins_of(laws) * (sums // len(laws)), study.coins == "dealt"
    made = SharedAttempt(study, members, openings, ring, coins, sums=sums, coins_dealt=dealt)
    if is_kept:
        _attempts[key] = made
    return made


_attempts: WeakValueDictionary[tuple[int, int, int], SharedAttempt] = WeakValueDictionary()


def coins_of(laws: Sequence[Law]) -> list[CoinToss]:
    """The coins of each sum's noise, where a committee draws it."""
    # spec/noise.py, `committee_law`
    return [
        CoinToss(law.thresholds, law.weights, law.offset)
        for law in laws
        if isinstance(law, CommitteeNoise)
    ]


def check_edges(sizes: Sizes) -> None:
    """Whether the edges can be listed, cell by cell. Raises: as Sizes.edges, RangeError."""
    study = sizes.study
    count = sizes.edges
    cells = comb(sizes.holders + study.degree - 1, study.degree)
    # complete sets have a cell for every group of owners
    if count == sizes.sets and pairings_of(study.edges) is None and cells > MAX_CELLS:
        raise RangeError(
            f"all sets of {study.degree} records of {sizes.holders} nodes have {cells} different "
            f"groups of owners, at most {MAX_CELLS} are possible; ask for a number of edges "
            f"instead of all"
        )
