"""Composition: exact where possible, never below the truth of small cases, and monotonic."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from reproduction.baselines.accounting import compose, compositions
from reproduction.baselines.curves import discrete_laplace_curve, pure_curve
from reproduction.baselines.events import (
    ApproximateEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    SkellamEvent,
)
from reproduction.baselines.losses import ROUNDED_CELLS, loss_epsilon
from tests.support.statistical import hockey_stick
from umpc.dp.composition import renyi_epsilon
from umpc.dp.events import PureEvent
from umpc.dp.skellam import DistributedSkellam
from umpc.errors import InvalidEpsilon, StudyError

DELTA = Fraction(1, 10**6)
EPSILONS = st.fractions(Fraction(1, 20), 2, max_denominator=20)
DELTAS = st.integers(2, 12).map(lambda digits: Fraction(1, 10**digits))
FINITE = st.one_of(
    EPSILONS.map(PureEvent),
    EPSILONS.map(ExponentialEvent),
    st.builds(LaplaceEvent, st.fractions(Fraction(1, 2), 20, max_denominator=4), st.integers(1, 6)),
    st.builds(
        ApproximateEvent, EPSILONS, st.sampled_from([Fraction(1, 10**9), Fraction(1, 10**4)])
    ),
)
NOISY = st.one_of(
    st.builds(
        lambda v, s: GaussianEvent((v,), (s,)),
        st.fractions(5, 500, max_denominator=3),
        st.integers(1, 4),
    ),
    st.builds(
        lambda v, s: SkellamEvent((v,), (s,)),
        st.fractions(5, 500, max_denominator=3),
        st.integers(1, 4),
    ),
)
"""Scales at which the truth fits a table."""


# --- the truth of small cases ---------------------------------------------------------------------


def pair(event: Event, part: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The worst two output laws of one event, and the mass that tells them apart outright.

    An exponential mechanism has no worst pair: `part` names one of its possible pairs.
    """
    match event:
        case ExponentialEvent(
            epsilon
        ):  # two outputs, of losses t and t - epsilon; the law that makes E_Q e^L = 1
            t = part * float(epsilon)
            p = np.array(
                [math.expm1(float(epsilon) - t) * math.exp(t) / math.expm1(float(epsilon)), 0]
            )
            p[1] = 1 - p[0]
            return p, p * np.exp([-t, float(epsilon) - t]), 0.0
        case PureEvent(epsilon) | ApproximateEvent(epsilon, _):
            odds, failure = math.exp(epsilon), float(getattr(event, "delta", 0))
            p = np.array([odds, 1]) / (1 + odds) * (1 - failure)
            return p, p[::-1], failure
        case LaplaceEvent(scale, s):
            x = np.arange(-int(40 * scale) - 20, int(40 * scale) + 20 + s)
            laws = (
                np.tanh(0.5 / float(scale)) * np.exp(-abs(x - centre) / float(scale))
                for centre in (0, s)
            )
            here, there = (
                np.bincount(np.clip(x, 0, s), law) for law in laws
            )  # the ratio is constant outside 0..s
            return here, there, 0.0
        case GaussianEvent((v,), (s,)):
            table = np.exp(
                -(np.arange(-int(9 * v**0.5) - 9, int(9 * v**0.5) + 10) ** 2) / (2 * float(v))
            )
            table /= table.sum()
        case SkellamEvent((v,), (s,)):
            table = special.ive(
                abs(np.arange(-int(9 * v**0.5) - 20, int(9 * v**0.5) + 21)).astype(float), float(v)
            )
    return np.pad(table, (0, s)), np.pad(table, (s, 0)), 0.0


def true_delta(events: list[Event], epsilon: Fraction) -> float:
    """The delta of the product of the worst pairs: what no accountant may undercut."""
    deltas = []
    for part in (
        (0.1, 0.5, 0.9) if any(isinstance(event, ExponentialEvent) for event in events) else (0,)
    ):
        p, q, kept = np.ones(1), np.ones(1), 1.0
        for event in events:
            here, there, failure = pair(event, part)
            p, q, kept = np.outer(p, here).ravel(), np.outer(q, there).ravel(), kept * (1 - failure)
        deltas.append(1 - kept + hockey_stick(p, q, float(epsilon)))
    return max(deltas)


@settings(max_examples=40)
@given(events=st.lists(FINITE, min_size=1, max_size=3), delta=DELTAS)
def test_no_theorem_is_below_the_exact_composition(events, delta):
    for name, epsilon in compositions(events, delta).items():
        assert true_delta(events, epsilon) <= delta * (1 + Fraction(1, 10**6)) + Fraction(
            1, 10**13
        ), name


@settings(max_examples=30)
@given(noisy=NOISY, finite=st.lists(FINITE, max_size=1), delta=DELTAS)
def test_nor_with_gaussian_or_skellam_noise(noisy, finite, delta):
    events = [noisy, *finite]
    for name, epsilon in compositions(events, delta).items():
        assert true_delta(events, epsilon) <= delta * (1 + Fraction(1, 10**6)) + Fraction(
            1, 10**13
        ), name


@pytest.mark.parametrize("k", [1, 2, 5, 10])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(2)], ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 100), DELTA], ids=float)
def test_equal_pure_events_compose_optimally(k, epsilon, delta):
    """Kairouz, Oh and Viswanath 2015: no smaller epsilon is true of k randomised responses."""
    events = [PureEvent(epsilon)] * k
    ours = loss_epsilon(events, delta)
    assert compose(events, delta) <= ours <= k * epsilon
    assert true_delta(events, ours) <= delta * (1 + Fraction(1, 10**9))
    assert ours == 0 or true_delta(events, ours - Fraction(1, 10**6)) > delta


@pytest.mark.parametrize("k", [10, 30, 100])
def test_the_staircase_of_the_optimal_theorem(k):
    """Its epsilons are (k - 2i) eps, each with delta_i; ours is at most the first that fits."""
    eps = 0.1
    for i in range(k // 2 + 1):
        terms = [
            math.comb(k, j) * (math.exp((k - j) * eps) - math.exp((k - 2 * i + j) * eps))
            for j in range(i)
        ]
        delta_i = sum(terms) / (1 + math.exp(eps)) ** k
        if 0 < delta_i < 0.5:
            ours = loss_epsilon(
                [PureEvent(Fraction(1, 10))] * k, Fraction(delta_i) * (1 + Fraction(1, 10**9))
            )
            assert float(ours) == pytest.approx((k - 2 * i) * eps, abs=1e-6)


@pytest.mark.parametrize("s", [1, 2, 7, 50])
@pytest.mark.parametrize("order", [2, 3, 10])
def test_the_divergence_of_discrete_laplace_is_its_sum(s, order):
    log_ratio = Fraction(1, 9)
    x = np.arange(-3000, 3000)
    p, q = (np.tanh(1 / 18) * np.exp(-abs(x - centre) / 9) for centre in (0, s))
    exact = special.logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)
    assert float(discrete_laplace_curve(log_ratio, s)(order)) == pytest.approx(exact, rel=1e-9)
    assert discrete_laplace_curve(log_ratio, s)(order) <= pure_curve(s * log_ratio)(order) * (
        1 + 1e-12
    )


# --- properties -----------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    events=st.lists(st.one_of(FINITE, NOISY), min_size=1, max_size=6),
    more=st.one_of(FINITE, NOISY),
    delta=DELTAS,
)
def test_one_event_more_never_costs_less(events, more, delta):
    """Up to the rounding of losses, which an event may change by a step each."""
    before, after = compositions(events, delta), compositions([*events, more], delta)
    slack = (
        sum((getattr(e, "epsilon", 0) for e in [*events, more]), Fraction(0))
        * len(events)
        / ROUNDED_CELLS
    )
    for name in after.keys() & before.keys():
        allowed = Fraction(1, 2**38) + (slack if name == "losses" else 0)
        if not (isinstance(more, ApproximateEvent) and name == "losses"):
            assert after[name] >= before[name] - allowed, name


@settings(max_examples=25)
@given(
    events=st.lists(st.one_of(FINITE, NOISY), min_size=1, max_size=6),
    delta=DELTAS,
    seed=st.randoms(),
)
def test_order_does_not_matter_and_more_delta_costs_less(events, delta, seed):
    shuffled = list(events)
    seed.shuffle(shuffled)
    bounds = compositions(events, delta)
    assert compositions(shuffled, delta) == pytest.approx(bounds)
    for name, epsilon in compositions(events, delta * 2).items():
        assert name not in bounds or epsilon <= bounds[name] + Fraction(1, 2**38)


@given(epsilons=st.lists(EPSILONS, max_size=20))
def test_without_delta_epsilons_add_exactly(epsilons):
    assert compose([PureEvent(e) for e in epsilons]) == sum(epsilons, Fraction(0))


def test_every_theorem_has_its_place():
    """Basic is least for few events, losses for many equal ones, Rényi for noise."""

    def best(events: list[Event]) -> str:
        bounds = compositions(events, DELTA)
        return min(bounds, key=bounds.__getitem__)

    assert compositions([PureEvent(Fraction(1))], DELTA).keys() == {
        "basic",
        "advanced",
        "renyi",
        "losses",
    }
    assert best([PureEvent(Fraction(1, 10))] * 100) == "losses"
    assert best([ExponentialEvent(Fraction(1, 10))] * 100) == "renyi"
    assert best([GaussianEvent((Fraction(100),), (1,))] * 3) in {"basic", "renyi"}
    assert best([PureEvent(Fraction(1, 7000))] * 70_000) in {"advanced", "renyi"}


def test_a_gaussian_beside_pure_events():
    gaussian = GaussianEvent((Fraction(100), Fraction(400)), (1, 2))
    alone = compose([gaussian], DELTA)
    assert gaussian.rho == Fraction(1, 100)
    assert alone < compose([gaussian, PureEvent(Fraction(1, 10))], DELTA) <= alone + Fraction(1, 10)


def test_the_noise_of_honest_nodes_composes():
    noise = DistributedSkellam(Fraction(1), DELTA, (3, 4), nodes=2, honest=2)
    event = SkellamEvent(noise.honest_variances, noise.sensitivities)
    assert compose([event], DELTA) <= 1 < compose([event] * 2, DELTA)


def test_the_delta_of_approximate_events_is_spent_first():
    events = [ApproximateEvent(Fraction(1), Fraction(1, 1000))] * 2
    assert compositions(events, Fraction(2, 1000))["basic"] == 2
    assert 2 - Fraction(1, 1000) < compose(events, Fraction(2, 1000)) <= 2
    for delta in (Fraction(1, 1000), Fraction(0)):
        with pytest.raises(InvalidEpsilon, match="larger delta"):
            compose(events, delta)


def test_tiny_ratios_keep_their_digits():
    """A sensitivity of 2^40 units, and one of 2^120: the same noise in finer units costs the
    same."""
    coarse, fine, finest = (
        renyi_epsilon(discrete_laplace_curve(Fraction(1, 10) / s, s), DELTA)
        for s in (2**40, 2**80, 2**120)
    )
    assert coarse == pytest.approx(fine, rel=1e-9) and fine == pytest.approx(finest, rel=1e-9)
    assert loss_epsilon([LaplaceEvent(Fraction(10 * 2**80), 2**80)] * 20, DELTA) < 2


def test_nothing_costs_nothing():
    assert compose([]) == compose([], DELTA) == 0


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [Fraction(-1, 10), Fraction(1), 2])
def test_delta_out_of_range_is_refused(delta):
    with pytest.raises(InvalidEpsilon):
        compose([PureEvent(Fraction(1))], delta)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PureEvent(0.5),
        lambda: PureEvent(Fraction(0)),
        lambda: ApproximateEvent(Fraction(1), Fraction(0)),
        lambda: LaplaceEvent(0.5, 1),
        lambda: GaussianEvent((Fraction(0),), (1,)),
        lambda: SkellamEvent((1.5,), (1,)),
        lambda: ExponentialEvent(-1),
    ],
)
def test_events_are_exact(make):
    with pytest.raises(InvalidEpsilon):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceEvent(Fraction(1), 0),
        lambda: LaplaceEvent(Fraction(1), 1.5),
        lambda: GaussianEvent((), ()),
        lambda: SkellamEvent((Fraction(1),), (1, 2)),
    ],
)
def test_events_have_whole_sensitivities(make):
    with pytest.raises(StudyError):
        make()


def test_events_are_equal_by_value():
    assert len({*itertools.repeat(LaplaceEvent(2, 1), 3), LaplaceEvent(Fraction(2), 1)}) == 1
