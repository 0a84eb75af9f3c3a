"""GOPA: its noise cancels, and its ρ is that of the honest graph, connected or not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reproduction.baselines.gopa import Gopa, calibrate_gopa
from tests.audit.auditor import loss_bound
from tests.support.curated import SeededBits, accept_law, draws
from umpc.errors import InvalidEpsilon, StudyError

ZERO, ONE = Fraction(0), Fraction(1)
GRID, DELTA = Fraction(1, 1024), Fraction(1, 10**5)
RING = tuple((i, (i + 1) % 8) for i in range(8))
CHORDS = tuple((i, i + 4) for i in range(4))
EDGES = (*RING, *CHORDS)
PLAIN = Gopa(ZERO, ONE, GRID, 8, EDGES, Fraction(10**6), Fraction(10**8))


def covariance(gopa: Gopa) -> np.ndarray:
    """The covariance of the honest messages, in steps²."""
    place = {party: number for number, party in enumerate(gopa.honest)}
    incidence = np.zeros((len(place), len(gopa.honest_edges)))
    for number, (i, j) in enumerate(gopa.honest_edges):
        incidence[place[i], number], incidence[place[j], number] = 1, -1
    return float(gopa.own) * np.eye(len(place)) + float(gopa.pairwise) * incidence @ incidence.T


def normal_rho(gopa: Gopa) -> float:
    """v²/2 max of the diagonal of the inverse: exact for normal noise in the reals."""
    return float(1 / gopa.grid) ** 2 / 2 * np.linalg.inv(covariance(gopa)).diagonal().max()


# --- accuracy -------------------------------------------------------------------------------------


def test_the_mean_has_the_noise_of_the_own_parts_only():
    values = [Fraction(i, 8) for i in range(8)]
    found = draws(lambda bits: PLAIN.estimate(values, bits), 1000, "gopa")
    accept_law(found - 7 / 16, stats.norm.cdf, PLAIN.noise_variance**0.5)


def test_messages_have_the_covariance_that_the_proof_is_about():
    bits = SeededBits("messages")
    small = replace(PLAIN, own=Fraction(9), pairwise=Fraction(100))
    found = np.array([small.messages([Fraction(1, 2)] * 8, bits) for _ in range(500)]) - 512
    assert np.abs(np.cov(found.T) - covariance(small)).max() < 6 * 309 * np.sqrt(2 / 500)


def test_values_are_clipped_to_the_range():
    quiet = replace(PLAIN, own=Fraction(1, 100), pairwise=Fraction(1, 100))
    assert (
        abs(
            quiet.estimate([Fraction(100)] * 4 + [Fraction(-100)] * 4, SeededBits("clip"))
            - Fraction(1, 2)
        )
        < GRID
    )


# --- privacy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"colluding": frozenset({0, 4})},
        {"colluding": frozenset({0, 2, 4, 6})},
        {"edges": ()},
        {"pairwise": Fraction(10**6)},
        {"edges": RING},
    ],
)
def test_rho_is_never_below_the_normal_laws_and_near_it(change):
    gopa = replace(PLAIN, **change)
    assert normal_rho(gopa) <= float(gopa.rho) * (1 + 1e-12)
    assert float(gopa.rho) < 1.1 * normal_rho(gopa)


def test_rho_is_set_by_the_honest_graphs_connectivity():
    """Connected, it is nearly that of a trusted curator; without chords and two parties, a part of
    three is left."""
    assert PLAIN.central_rho < PLAIN.rho < PLAIN.central_rho * Fraction(11, 10)
    broken = replace(PLAIN, edges=RING, colluding=frozenset({0, 4}))
    alone = replace(PLAIN, edges=())
    assert np.isclose(float(broken.rho), 2 * float(broken.central_rho), rtol=0.1)
    assert np.isclose(float(alone.rho), 8 * float(alone.central_rho), rtol=0.01)


def test_rho_bounds_every_smaller_change_too():
    """Exact flows for each change, rounded: all below the bound for the greatest."""
    inverse = np.linalg.inv(covariance(PLAIN))
    assert all(step**2 / 2 * inverse.diagonal().max() <= PLAIN.rho for step in (1, 10, 1024))


def test_calibration_reaches_epsilon_and_no_less():
    gopa = calibrate_gopa(ZERO, ONE, GRID, 8, EDGES, ONE, DELTA, Fraction(100), frozenset({3}))
    assert 0.99 < gopa.epsilon(DELTA) <= 1
    assert (
        replace(
            gopa, own=gopa.own * Fraction(7, 10), pairwise=gopa.pairwise * Fraction(7, 10)
        ).epsilon(DELTA)
        > 1
    )


def test_its_loss_is_at_most_epsilon_and_more_where_colluders_cut_the_graph():
    """24 in a ring with chords; then party 0 has one neighbour, who colludes: what is left of it
    has lost its cover."""
    delta, edges = Fraction(1, 100), tuple((i, (i + j) % 24) for i in range(24) for j in (1, 5))
    whole = calibrate_gopa(ZERO, ONE, GRID, 24, edges, ONE, delta, Fraction(100))
    assert audit(whole, 120) <= 1
    cut = replace(
        whole, edges=tuple(e for e in edges if 0 not in e or e == (0, 1)), colluding=frozenset({1})
    )
    alone = replace(whole, parties=1, edges=())
    assert np.isclose(float(cut.rho), float(alone.rho), rtol=1e-3) and cut.epsilon(delta) > 2
    assert 1 < audit(alone, 600) <= cut.epsilon(delta)


def audit(gopa: Gopa, runs: int) -> float:
    """Party 0 moves from 0 to 1; all messages are seen, and scored by the direction that tells
    most."""
    direction = np.linalg.inv(covariance(gopa))[0]
    scores = []
    for value in (ZERO, ONE):
        bits, others = SeededBits(f"audit {gopa.parties} {value}"), [ZERO] * (gopa.parties - 1)
        found = np.array([gopa.messages([value, *others], bits) for _ in range(runs)], dtype=float)
        scores.append(found @ direction)
    return loss_bound(*scores, [1024 * direction[0] * part for part in (0.0, 0.5, 1.0)], 0.01)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"low": ONE},
        {"grid": ZERO},
        {"own": ZERO},
        {"pairwise": ZERO},
        {"own": 0.5},
        {"parties": 0},
        {"edges": ((0, 8),)},
        {"edges": ((1, 1),)},
        {"edges": ((0, 1), (1, 0))},
        {"colluding": frozenset({8})},
        {"colluding": frozenset(range(8))},
    ],
)
def test_gopa_refuses(change):
    with pytest.raises(StudyError):
        replace(PLAIN, **change)


def test_gopa_refuses_other_arguments():
    with pytest.raises(StudyError):
        PLAIN.messages([ZERO] * 7, SeededBits("unused"))
    with pytest.raises(InvalidEpsilon):
        PLAIN.epsilon(ZERO)
    with pytest.raises(InvalidEpsilon):
        calibrate_gopa(ZERO, ONE, GRID, 8, EDGES, 1.0, DELTA, ONE)
