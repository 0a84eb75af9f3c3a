"""umpc.dp.composition: no composition is below the truth, also where releases are chosen late.

The oracle is independent of the code: exact laws of the privacy loss on a lattice, by numpy.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from umpc.dp.composition import (
    ADVANCED,
    BASIC,
    COMPOSITIONS,
    ORDERS,
    ZCDP,
    Composition,
    concentrated_epsilon,
    concentrated_rho,
    rho_of,
    rho_of_pure,
    skellam_curve,
    total_weight,
)
from umpc.dp.events import (
    ApproximateEvent,
    ConcentratedEvent,
    Event,
    FailureEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SkellamEvent,
    decode_events,
    encode_events,
)
from umpc.errors import EncodingError, InvalidEpsilon

SEED = 20261123
LATTICE = 20
"""Privacy losses are multiples of 1/20."""


def composition(name: str, delta: Fraction) -> Composition:
    return Composition(name, Fraction(0) if name == BASIC else delta)


# --- the truth of releases whose parameters are fixed ---------------------------------------------


def losses(event: Event) -> np.ndarray:
    """P(loss = i/LATTICE) for i from -top to top, of the worst pair that the event allows."""
    epsilon = float(event.epsilon)
    top = round(epsilon * LATTICE)
    law = np.zeros(2 * top + 1)
    if isinstance(event, LaplaceEvent):
        per_step = round(float(1 / event.scale) * LATTICE)
        s = event.sensitivity
        ratio = math.exp(-1 / float(event.scale))
        head = 1 / (1 + ratio)
        law[-1], law[0] = head, head * ratio**s
        for x in range(1, s):
            law[top + (s - 2 * x) * per_step] += (1 - ratio) / (1 + ratio) * ratio**x
    else:
        law[-1] = math.exp(epsilon) / (1 + math.exp(epsilon))
        law[0] = 1 - law[-1]
    return law


def true_delta(events: list[Event], epsilon: float) -> float:
    """The δ of all events together at this ε, exactly but for the rounding of doubles."""
    law, kept = np.ones(1), 1.0
    for event in events:
        law = np.convolve(law, losses(event))
        kept *= 1 - float(getattr(event, "delta", 0))
    loss = (np.arange(len(law)) - len(law) // 2) / LATTICE
    return 1 - kept + kept * float(law @ np.maximum(0, -np.expm1(epsilon - loss)))


def drawn_events(rng: random.Random) -> list[Event]:
    """Some random events whose losses are on the lattice."""
    most = rng.choice([3, 30, 120])
    kinds = [
        lambda: PureEvent(Fraction(rng.choice([1, 1, 2, 5]), LATTICE)),
        lambda: LaplaceEvent(Fraction(LATTICE, rng.randint(1, 3)), rng.randint(1, 6)),
        lambda: ApproximateEvent(
            Fraction(rng.choice([1, 4]), LATTICE), Fraction(1, 10 ** rng.choice([4, 9]))
        ),
    ]
    return [rng.choice(kinds)() for _ in range(rng.randint(1, most))]


def composed(name: str, events: list[Event], delta: Fraction) -> tuple[Fraction, Fraction]:
    """(ε, δ) that the composition promises for studies of one event each."""
    rule = composition(name, delta)
    weights = [rule.weigh(e.epsilon, getattr(e, "delta", Fraction(0)), (e,)) for e in events]
    weight = total_weight(weights)
    return rule.epsilon(weight), weight.delta + rule.delta


def test_no_composition_is_below_the_truth():
    rng = random.Random(SEED)
    gains = dict.fromkeys(COMPOSITIONS, 0)
    for _ in range(30):
        events, delta = drawn_events(rng), Fraction(1, 10 ** rng.choice([2, 6, 9]))
        basic, _ = composed(BASIC, events, delta)
        for name in COMPOSITIONS:
            epsilon, promised = composed(name, events, delta)
            assert true_delta(events, float(epsilon)) <= float(promised) * (1 + 1e-9) + 1e-12
            assert epsilon <= basic
            gains[name] += epsilon < basic
    assert gains[ZCDP] >= gains[ADVANCED] > 3, (gains, SEED)


def test_the_oracle_finds_a_promise_that_is_too_small():
    """Two thirds of the promised ε are false for many equal releases, so the tests can fail."""
    events: list[Event] = [PureEvent(Fraction(1, LATTICE))] * 200
    for name in (ADVANCED, ZCDP):
        epsilon, promised = composed(name, events, Fraction(1, 10**6))
        assert true_delta(events, float(epsilon) * 2 / 3) > float(promised)


# --- releases that are chosen by what was seen ----------------------------------------------------


def worst_delta(choices: tuple[int, ...], allowed, epsilon: float) -> float:
    """The largest δ at ε of all ways to choose the next release by the losses so far.

    Each release is randomised response of choices[i]/LATTICE. It is allowed if `allowed` says so of
    the numbers of each choice with it.
    """

    @cache
    def value(counts: tuple[int, ...], loss: int) -> float:
        best = max(0.0, -math.expm1(epsilon - loss / LATTICE))
        for i, step in enumerate(choices):
            more = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            if allowed(more):
                odds = math.exp(step / LATTICE)
                up, down = value(more, loss + step), value(more, loss - step)
                best = max(best, (odds * up + down) / (1 + odds))
        return best

    return value((0,) * len(choices), 0)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_who_chooses_the_next_release_late_gains_nothing(name):
    """The filter holds against the best of all strategies, computed by dynamic programming.

    A filter that lets releases pass until twice the site's ε is caught by the same computation.
    """
    delta, choices = Fraction(1, 20), (6, 12)
    rule = composition(name, delta)

    def filter_at(limit: Fraction):
        def allowed(counts: tuple[int, ...]) -> bool:
            weights = [
                rule.weigh(Fraction(step, LATTICE), Fraction(0))
                for step, times in zip(choices, counts, strict=True)
                for _ in range(times)
            ]
            return rule.epsilon(total_weight(weights)) <= limit

        return cache(allowed)

    limit = Fraction(9, 5)
    assert worst_delta(choices, filter_at(limit), float(limit)) <= float(rule.delta) + 1e-12
    assert worst_delta(choices, filter_at(limit * 2), float(limit)) > float(rule.delta)


# --- the parts ------------------------------------------------------------------------------------


def test_rho_of_a_pure_release_bounds_all_orders_and_no_less_does():
    for epsilon in (Fraction(1, 100), Fraction(1, 2), Fraction(3)):
        rho = float(rho_of_pure(epsilon))
        assert rho <= float(epsilon) ** 2 / 2
        orders = np.concatenate([1 + np.geomspace(1e-6, 1, 50), np.geomspace(2, 1e4, 50)])
        half = orders - 0.5
        divergence = (
            np.logaddexp(half * float(epsilon), -half * float(epsilon))
            - np.logaddexp(float(epsilon) / 2, -float(epsilon) / 2)
        ) / (orders - 1)
        assert np.all(divergence <= rho * orders * (1 + 1e-6))
        assert np.max(divergence / orders) > rho * 0.999


def test_rho_of_skellam_noise_bounds_its_curve_and_is_reached():
    for mu, s in itertools.product((Fraction(1, 2), Fraction(30), Fraction(900)), (1, 5, 9)):
        rho = rho_of(SkellamEvent((mu,), (s,)))
        ratios = [float(skellam_curve((mu,), (s,))(order)) / order for order in ORDERS]
        assert max(ratios) <= float(rho) * (1 + 1e-12)
        assert max(ratios) > float(rho) * 0.5


def test_concentrated_rho_is_nearly_the_largest():
    delta = Fraction(1, 10**6)
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(8)):
        rho = concentrated_rho(epsilon, delta)
        assert concentrated_epsilon(rho, delta) <= epsilon
        assert concentrated_epsilon(rho * Fraction(1001, 1000), delta) > epsilon


def test_the_figure_of_the_policy_page():
    """ "With ε = 5 in all and δ' = 1e-9, 249 studies of ε = 0.05 fit instead of 100." """
    rho, delta = rho_of_pure(Fraction(1, 20)), Fraction(1, 10**9)
    assert concentrated_epsilon(249 * rho, delta) <= 5 < concentrated_epsilon(250 * rho, delta)


def test_gaussian_noise_costs_no_delta_of_the_studies_in_zcdp_and_ends_the_use_of_basic():
    delta = Fraction(1, 10**6)
    rule = Composition(ZCDP, delta)
    gaussian = rule.weigh(Fraction(1), delta, (ConcentratedEvent(Fraction(1, 60)),))
    assert gaussian.delta == 0 and not gaussian.plain
    alone = rule.weigh(Fraction(1), Fraction(0), (PureEvent(Fraction(1)),))
    assert rule.epsilon(alone) == 1
    assert rule.epsilon(alone + gaussian) > 2
    assert rule.epsilon(gaussian) == concentrated_epsilon(Fraction(1, 60), delta)


def test_several_sums_cost_less_than_their_epsilon_together():
    rule = Composition(ZCDP, Fraction(1, 10**6))
    thirds = (LaplaceEvent(Fraction(30), 1),) * 3
    whole = rule.weigh(Fraction(1, 10), Fraction(0))
    assert rule.weigh(Fraction(1, 10), Fraction(0), thirds).rho < whole.rho / 2


def test_events_as_text():
    events = (
        PureEvent(Fraction(1, 3)),
        ApproximateEvent(Fraction(1), Fraction(1, 10**9)),
        FailureEvent(Fraction(1, 1 << 40)),
        LaplaceEvent(Fraction(7, 2), 5),
        GaussianEvent((Fraction(1), Fraction(5, 2)), (1, 0)),
        ConcentratedEvent(Fraction(1, 60)),
        SkellamEvent((Fraction(9),), (2,)),
        PureEvent(Fraction(1, 3)),
    )
    text = encode_events(events)
    assert text.startswith("2 × pure 1/3\napproximate 1 1/1000000000\n")
    assert sorted(map(repr, decode_events(text))) == sorted(map(repr, events))
    assert encode_events(()) == "" and decode_events("") == ()
    for wrong in ("pure", "pure 1/0", "cubic 1", "laplace 1 x", "2 x pure 1", "skellam 1 1,2,x"):
        with pytest.raises(EncodingError, match="an event such as"):
            decode_events(wrong)


def test_a_composition_that_cannot_be():
    for name, delta in (("gaussian", 1), (BASIC, Fraction(1, 9)), (ZCDP, 0), (ADVANCED, 1)):
        with pytest.raises(InvalidEpsilon, match=r"under \[budget\]"):
            Composition(name, Fraction(delta))
