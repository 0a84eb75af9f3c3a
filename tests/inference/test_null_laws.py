"""Null laws: against scipy, against enumeration, and convolved with the law of the noise."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from umpc.inference.hypotheses import HYPOTHESES, DrawnRecords, kendall_law, mann_whitney_law
from umpc.inference.null_laws import (
    ChiSquareLaw,
    CountLaw,
    NormalLaw,
    TauStarLaw,
    chi_square_above,
    inversions,
    mann_whitney,
    p_value,
)
from umpc.ustat.error_law import ErrorLaw, Noise
from umpc.ustat.statistics import LIBRARY

FEW = np.array([-0.3, 0.0, 0.1, 0.5, 2.0])


def test_counts_are_those_of_all_permutations():
    orders = list(permutations(range(6)))
    found = [sum(a > b for i, a in enumerate(o) for b in o[i + 1 :]) for o in orders]
    assert inversions(6) == pytest.approx(np.bincount(found) / len(orders))
    found = [sum(a > b for a in o[:2] for b in o[2:]) for o in orders]
    assert mann_whitney(2, 4) == pytest.approx(np.bincount(found) / len(orders))


def test_tails_include_the_value_itself_on_both_sides():
    law = CountLaw(np.array([0.25, 0.5, 0.25]), -1.0, 1.0)
    assert law.at_least(np.array([-1.0, 0.0, 0.1, 1.0, 1.1])).tolist() == [1, 0.75, 0.25, 0.25, 0]
    assert law.at_most(np.array([-1.1, -1.0, 0.0, 0.9, 1.0])).tolist() == [0, 0.25, 0.75, 0.75, 1]


def test_continuous_laws_are_scipys():
    assert NormalLaw(0.1, 0.5).at_least(FEW) == pytest.approx(stats.norm.sf(FEW, 0.1, 0.5))
    assert NormalLaw(0.0, 0.0).at_least(FEW).tolist() == [1, 1, 0, 0, 0]
    for degrees in (1, 2, 7, 300):
        at = stats.chi2.isf([0.9, 0.5, 0.01, 1e-9], degrees)
        assert chi_square_above(at, degrees) == pytest.approx(stats.chi2.sf(at, degrees))
    law = ChiSquareLaw(900, 0.1)
    assert law.at_least(np.array([6.0])) == pytest.approx(stats.chi2.sf(960, 900), abs=0.01)


def test_the_limit_of_tau_star_has_its_moments_and_is_seen_in_simulation():
    law = TauStarLaw(1.0)
    places = np.linspace(-5, 30, 200_001)
    above = law.at_least(places)
    masses = -np.diff(above)
    middle = (places[1:] + places[:-1]) / 2
    assert masses @ middle == pytest.approx(0.0, abs=1e-3)
    assert masses @ middle**2 == pytest.approx(1.0, rel=1e-3)
    weights = 36 / np.pi**4 / np.outer(np.arange(1, 9) ** 2, np.arange(1, 9) ** 2).ravel()
    draws = np.random.default_rng(1).chisquare(1, (10_000, len(weights))) - 1
    sample = draws @ weights / np.sqrt(8 / 25)
    for value in (0.0, 1.0, 2.0, 4.0):
        share = (sample >= value).mean()
        assert abs(law.at_least(np.array([value]))[0] - share) < 5 * np.sqrt(share / 10_000)


def test_ties_make_the_normal_law_narrower_by_public_numbers_alone():
    free = kendall_law(DrawnRecords(500, None, (1e6, 1e6)))
    exact = float(LIBRARY["kendall_tau"].null_variance(500)) ** 0.5
    assert free.std == pytest.approx(exact, rel=1e-6)
    binary = kendall_law(DrawnRecords(500, None, (1e6, 2.0)))
    assert binary.std == pytest.approx(exact * 0.75**0.5, rel=0.01)
    assert isinstance(kendall_law(DrawnRecords(20, None, (5.0, 9.0))), NormalLaw)
    tied = mann_whitney_law(DrawnRecords(500, (200, 300), (2.0,)))
    fair = np.repeat([0, 1], 250)
    rng = np.random.default_rng(2)
    mixed = rng.permuted(np.tile(fair, (4000, 1)), axis=1)
    seen = mixed[:, :200].mean(axis=1) - mixed[:, 200:].mean(axis=1)
    assert np.std(seen) / 2 == pytest.approx(tied.std, rel=0.05)


def test_a_p_value_is_the_convolution_with_the_noise():
    law = CountLaw(np.array([0.25, 0.5, 0.25]), -1.0, 1.0)
    nothing = ErrorLaw([Noise(0.0)], [1.0])
    assert p_value(law, nothing, 1.0, "greater") == 0.25
    assert p_value(law, nothing, 0.0, "two-sided") == 1.0
    # discrete Laplace on the law's own grid: P(e) = (1 − r)/(1 + r)·r^|e|
    ratio = 0.4
    errors = np.arange(-60, 61)
    masses = (1 - ratio) / (1 + ratio) * ratio ** np.abs(errors)
    std = float(np.sqrt(masses @ errors**2))
    noise = ErrorLaw([Noise(std, 1.0)], [1.0])
    for seen in (0.0, 1.0, 3.0, 6.0):
        exact = sum(
            mass * chance
            for error, mass in zip(errors, masses, strict=True)
            for count, chance in zip((-1, 0, 1), law.probabilities, strict=True)
            if count + error >= seen
        )
        found = p_value(law, noise, seen, "greater")
        assert 0.999 * exact <= found <= 1.02 * exact + 1e-6
        assert p_value(law, noise, -seen, "less") == pytest.approx(found, rel=1e-3)
    wrong = ErrorLaw([Noise(0.7 * std, 1.0)], [1.0])
    assert p_value(law, wrong, 3.0, "greater") < 0.8 * p_value(law, noise, 3.0, "greater")


def test_every_hypothesis_is_of_a_statistic_with_as_many_sums():
    for name, hypothesis in HYPOTHESES.items():
        columns = [each.rstrip(".") for each in LIBRARY[name].arguments]
        parameters = {"cells": 4} if name == "uniformity" else {}
        assert len(LIBRARY[name].expressions(columns, parameters)) == len(hypothesis.weights), name
