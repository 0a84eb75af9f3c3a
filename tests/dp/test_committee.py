"""umpc.dp.committee: a committee's coins against the exact law, digit by digit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpc.dp.calibration import DiscreteLaplace
from umpc.dp.committee import MOST_DIGITS, PRECISION, CommitteeLaplace
from umpc.errors import InvalidEpsilon, LocalProtocolError

LAWS = [
    (Fraction(1), 1),
    (Fraction(1), 2),
    (Fraction(1, 3), 5),
    (Fraction(7, 2), 3),
    (Fraction(5), 1),
]


def coin_law(law: CommitteeLaplace, thresholds: Sequence[int] = ()) -> dict[int, float]:
    """The exact law of the weighted coins, by the law's thresholds or by these."""
    masses = {0: 1.0}
    for threshold, weight in zip(thresholds or law.thresholds, law.weights, strict=True):
        chance, moved = threshold / 2**PRECISION, {}
        for value, mass in masses.items():
            moved[value] = moved.get(value, 0.0) + mass * (1 - chance)
            moved[value + weight] = moved.get(value + weight, 0.0) + mass * chance
        masses = moved
    return masses


@pytest.mark.parametrize(("epsilon", "sensitivity"), LAWS)
def test_the_coins_sum_to_the_discrete_laplace_law(epsilon, sensitivity):
    law = CommitteeLaplace(epsilon, sensitivity)
    exact = DiscreteLaplace(epsilon / sensitivity)
    masses = coin_law(law)
    assert max(masses) == law.tail_bound() == -min(masses)
    distance = sum(abs(mass - exact.pmf(value)) for value, mass in masses.items()) / 2
    assert distance < 1e-12 + float(law.distance)
    variance = sum(mass * value**2 for value, mass in masses.items())
    assert variance == pytest.approx(law.variance, rel=1e-9)


def cost_of(masses: dict[int, float], epsilon: float, shift: int) -> float:
    """The least δ at this ε between the law and the law moved by the shift, both ways."""
    values = range(min(masses) - shift, max(masses) + shift + 1)
    pairs = [(masses.get(value, 0.0), masses.get(value - shift, 0.0)) for value in values]
    ups = sum(max(0.0, one - exp(epsilon) * other) for one, other in pairs)
    downs = sum(max(0.0, other - exp(epsilon) * one) for one, other in pairs)
    return max(ups, downs)


def cost_if_turned(law: CommitteeLaplace, turned: set[int]) -> float:
    """The least δ at ε = 1 if a member that lies turns these coins."""
    thresholds = [
        2**PRECISION - threshold if place in turned else threshold
        for place, threshold in enumerate(law.thresholds)
    ]
    return cost_of(coin_law(law, thresholds), 1.0, law.sensitivity)


def worst_turn(law: CommitteeLaplace) -> float:
    """The most that turning coins costs: the best set of a search that turns one at a time."""
    turned: set[int] = set()
    cost = cost_if_turned(law, turned)
    improved = True
    while improved:
        improved = False
        for place in range(len(law.thresholds)):
            changed = turned ^ {place}
            if (found := cost_if_turned(law, changed)) > cost + 1e-12:
                turned, cost, improved = changed, found, True
    return cost


@pytest.mark.parametrize(
    ("sensitivity", "one", "several"),
    [(1, 0.35, 0.41), (4, 0.19, 0.31), (20, 0.21, 0.29), (64, 0.19, 0.29)],
)
def test_turned_coins_cost_what_the_documents_say(sensitivity, one, several):
    """docs/privacy.md says what a member that lies can do at ε = 1."""
    law = CommitteeLaplace(Fraction(1), sensitivity)
    assert law.delta < Fraction(1, 10**16)
    found = max(cost_if_turned(law, {turned}) for turned in range(law.digits))
    assert found == pytest.approx(one, abs=0.006)
    assert worst_turn(law) == pytest.approx(several, abs=0.006)
    assert cost_if_turned(law, set()) < 1e-12


@pytest.mark.parametrize(("sensitivity", "worst"), [(1, 0.56), (4, 0.30), (20, 0.26), (64, 0.29)])
def test_a_known_coin_costs_what_the_documents_say(sensitivity, worst):
    """docs/privacy.md says what one coin costs at ε = 1 that a liar surely reads."""
    law = CommitteeLaplace(Fraction(1), sensitivity)
    found = []
    for place, threshold in enumerate(law.thresholds):
        chance = threshold / 2**PRECISION
        cost = 0.0
        for fell, odds in ((0, 1 - chance), (2**PRECISION, chance)):
            known = [*law.thresholds[:place], fell, *law.thresholds[place + 1 :]]
            cost += odds * cost_of(coin_law(law, known), 1.0, sensitivity)
        found.append(cost)
    assert max(found) == pytest.approx(worst, abs=0.006)


@pytest.mark.parametrize(("epsilon", "sensitivity"), LAWS)
def test_another_scale_is_another_law(epsilon, sensitivity):
    """The comparison above would notice: half the noise is far away."""
    masses, exact = (
        coin_law(CommitteeLaplace(2 * epsilon, sensitivity)),
        DiscreteLaplace(epsilon / sensitivity),
    )
    assert sum(abs(mass - exact.pmf(value)) for value, mass in masses.items()) / 2 > 0.01


@given(st.fractions(Fraction(1, 10**9), Fraction(40)), st.integers(1, 10**6))
def test_thresholds_are_the_floors_of_the_odds(epsilon, sensitivity):
    law = CommitteeLaplace(epsilon, sensitivity)
    assert len(law.thresholds) == len(law.weights) == 2 * law.digits
    for digit, threshold in enumerate(law.thresholds[: law.digits]):
        expected = 2**PRECISION / (1 + exp(min(700, float(law.log_ratio) * 2**digit)))
        assert 0 <= threshold < 2 ** (PRECISION - 1)
        assert abs(threshold - expected) <= 1 + expected * 1e-9
    assert law.log_ratio * 2**law.digits >= PRECISION * log(2) * (1 - 1e-12)
    assert law.digits == 0 or law.log_ratio * 2 ** (law.digits - 1) < PRECISION * log(2) * (
        1 + 1e-12
    )


def test_a_public_sum_gets_no_noise():
    law = CommitteeLaplace(Fraction(1), 0)
    assert (law.digits, law.thresholds, law.std, law.delta, law.tail_bound()) == (0, (), 0.0, 0, 0)


def test_delta_counts_every_coin_and_both_tails():
    law = CommitteeLaplace(Fraction(1), 8)
    assert law.distance == Fraction(2 * (law.digits + 1), 2**64)
    assert float(law.delta) == pytest.approx((1 + exp(1)) * float(law.distance))
    assert CommitteeLaplace(Fraction(10**6), 8).delta == 1


def test_noise_beyond_the_ring_is_refused():
    widest = Fraction(45, 2**MOST_DIGITS)
    assert CommitteeLaplace(widest, 1).digits == MOST_DIGITS
    with pytest.raises(InvalidEpsilon, match="larger epsilon"):
        CommitteeLaplace(widest / 4, 1)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), [(Fraction(0), 1), (Fraction(-1), 1), (Fraction(1), -1)]
)
def test_no_law_is_no_law(epsilon, sensitivity):
    with pytest.raises(LocalProtocolError):
        CommitteeLaplace(epsilon, sensitivity)
