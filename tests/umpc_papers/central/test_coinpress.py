"""CoinPress, and the naive, all-tuples and subsampled estimates: laws, predictions, ε."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.curated import (
    GINI,
    PRODUCT,
    SeededBits,
    accept_law,
    accept_moments,
    audited,
    columns,
    draws,
    laplace_cdf,
    random_columns,
)
from tests.support.pair_moments import pair_moments
from umpc.errors import InvalidEpsilon, StudyError
from umpc_papers.central.adaptations import (
    PrivateTuples,
    all_tuples,
    clipped_mean,
    naive,
    subsampled,
)
from umpc_papers.central.coinpress import CoinPress
from umpc_papers.central.laplace import laplace
from umpc_papers.central.terms import CompleteFamily, kernel_terms, total

ONE, SPREAD = Fraction(1), Fraction(1)
WIDE = CoinPress(Fraction(-1000), Fraction(1000), Fraction(4), Fraction(1, 2), ONE)
NEAR = np.random.default_rng(1).integers(120, 124, 500)
"""Terms close together in a wide range."""


def clipped(found: np.ndarray):
    return lambda low, high: clipped_mean(found, low, high)


# --- the private mean --------------------------------------------------------------------------


def test_narrowing_leaves_the_noise_of_the_last_interval():
    share = Fraction(1, len(NEAR))
    plan = WIDE.plan(share)
    assert sum(step.epsilon for step in plan) == WIDE.epsilon
    assert plan[-1].clip < plan[0].clip / 20
    found = draws(lambda bits: WIDE.mean(clipped(NEAR), share, bits), 1200, "coinpress")
    accept_law(found - NEAR.mean(), laplace_cdf, WIDE.noise_variance(share) ** 0.5)


def test_it_beats_one_step_in_a_wide_range_and_not_in_a_narrow_one():
    share = Fraction(1, 500)
    assert WIDE.noise_variance(share) < replace(WIDE, steps=1).noise_variance(share) / 300
    narrow = replace(WIDE, low=Fraction(-1), high=Fraction(1))
    assert narrow.noise_variance(share) > replace(narrow, steps=1).noise_variance(share)


def test_clipping_is_exact_and_terms_far_away_reach_no_further():
    found = np.array([-5, 0, 1, 7])
    assert clipped_mean(found, Fraction(-1, 2), Fraction(3, 2)) == Fraction(2, 4)
    assert (
        clipped_mean(found, Fraction(1, 3), Fraction(1, 2))
        == (2 * Fraction(1, 3) + 2 * Fraction(1, 2)) / 4
    )
    assert clipped_mean(found, Fraction(-5), Fraction(7)) == Fraction(3, 4)


def test_answers_are_multiples_of_the_grid():
    assert (
        WIDE.mean(clipped(NEAR), Fraction(1, 500), SeededBits("grid")) / WIDE.grid
    ).denominator == 1


def test_the_loss_of_all_steps_is_at_most_epsilon():
    """One of two terms jumps. The audit detects a run with four times the budget."""
    few = replace(WIDE, low=Fraction(0), high=Fraction(8), steps=2)
    first, second = np.array([8, 0]), np.array([8, 8])
    loss = []
    for p in (few, replace(few, epsilon=Fraction(4))):
        views = [lambda b, p=p, t=t: p.mean(clipped(t), Fraction(1, 2), b) for t in (first, second)]
        loss.append(audited(*views, 500, f"coin {p.epsilon}"))
    assert loss[0] <= 1 < loss[1], loss


# --- U-statistics ------------------------------------------------------------------------------


def exact_mean(kernel, table) -> float:
    terms = kernel_terms(kernel, table)
    family = CompleteFamily(terms.records, terms.degree)
    return float(total(terms, family) * terms.unit / family.count)


@pytest.mark.parametrize("family", ["disjoint", "all", "subsampled"])
def test_the_error_on_a_table_is_what_was_predicted(family):
    """The error is the variance of drawing the sets (0 for all sets) plus the noise.

    Nothing is clipped, because the widths are ample.
    """
    table, n, count = random_columns(60, 1), 60, 400
    protocol = PrivateTuples(
        GINI, Fraction(8), SPREAD, family, count if family == "subsampled" else 0
    )
    moments = pair_moments(kernel_terms(GINI, table))
    drawn = {"disjoint": moments.disjoint(), "all": 0.0, "subsampled": moments.subsampled(count)}[
        family
    ]
    found = draws(lambda bits: protocol.estimate(table, bits), 500, family)
    accept_moments(found, exact_mean(GINI, table), drawn + protocol.noise_variance(n))
    assert protocol.event.epsilon == 8


def test_the_error_towards_the_parameter_is_what_was_predicted():
    """Every run has a new table of independent records, uniform on 0 .. 3."""
    f = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    zetas, rng = (float(f.mean(axis=1).var()), float(f.var())), np.random.default_rng(2)
    protocols = naive(GINI, Fraction(4), SPREAD), subsampled(GINI, Fraction(4), SPREAD, 300)
    for protocol in protocols:
        found = draws(
            lambda bits, p=protocol: p.estimate(columns(rng.integers(0, 4, 40)), bits),
            500,
            protocol.family,
        )
        accept_moments(found, f.mean(), protocol.mse(40, zetas))
    assert all_tuples(GINI, Fraction(4), SPREAD).mse(40, zetas) < protocols[0].mse(40, zetas)


def test_the_loss_over_all_tuples_is_at_most_epsilon():
    tables = columns([3, 3, 3, 3, 0]), columns([3, 3, 3, 3, 3])
    quiet, loud = (
        all_tuples(PRODUCT, epsilon, Fraction(5), steps=2) for epsilon in (ONE, Fraction(6))
    )
    loss = []
    for p in (quiet, loud):
        loss.append(
            audited(
                *(lambda b, p=p, t=t: p.estimate(t, b) for t in tables), 250, f"all {p.epsilon}"
            )
        )
    assert loss[0] <= 1 < loss[1], loss


@pytest.mark.parametrize("family", ["disjoint", "subsampled"])
def test_the_loss_over_drawn_tuples_is_at_most_epsilon(family):
    tables = columns([3, 3, 3, 0]), columns([3, 3, 3, 3])
    protocol = PrivateTuples(
        PRODUCT, ONE, Fraction(5), family, 6 if family == "subsampled" else 0, steps=2
    )
    assert audited(*(lambda b, t=t: protocol.estimate(t, b) for t in tables), 300, family) <= 1
    loud = replace(protocol, epsilon=Fraction(60))
    assert audited(*(lambda b, t=t: loud.estimate(t, b) for t in tables), 300, f"loud {family}") > 1


def test_noise_for_a_smaller_share_than_the_families_loses_more_than_epsilon():
    """Power for the share: the noise is for 1/M, as if sets were independent.

    A record is in half of the sets.
    """
    tables = [kernel_terms(PRODUCT, columns([3, 3, 3, last])) for last in (0, 3)]
    family = CompleteFamily(4, 2)
    exact = [Fraction(total(terms, family), 6) for terms in tables]
    assert exact[1] - exact[0] == Fraction(1, 2) * 9
    wrong = [lambda b, value=value: laplace(value, Fraction(9, 6), ONE, b) for value in exact]
    assert audited(*wrong, 500, "share") > 1


@pytest.mark.parametrize(
    "change",
    [
        {"low": Fraction(2000)},
        {"term_width": Fraction(0)},
        {"mean_width": Fraction(-1)},
        {"steps": 0},
        {"steps": True},
        {"last": ONE},
        {"failure": Fraction(0)},
        {"grid": Fraction(0)},
        {"grid": 0.5},
    ],
)
def test_coinpress_refuses(change):
    with pytest.raises(StudyError):
        replace(WIDE, **change)


@pytest.mark.parametrize(
    "arguments",
    [(0.5, "all"), (0, "all"), (-1, "all"), (1, "some"), (1, "subsampled"), (1, "all", 7)],
)
def test_tuples_refuse(arguments):
    spread, *rest = arguments
    with pytest.raises(StudyError):
        PrivateTuples(GINI, ONE, spread, *rest)
    with pytest.raises(InvalidEpsilon):
        naive(GINI, 1.0, SPREAD)
