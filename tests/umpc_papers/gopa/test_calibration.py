"""GOPA's calibration: ρ equals that of the library's complete graph, and epsilon is reached."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reproduction.baselines.gopa import Gopa
from reproduction.baselines.textbook import calibrate_gaussian
from umpc.errors import InvalidEpsilon, StudyError
from umpc_papers.gopa.calibration import (
    RATIO,
    PairwiseNoise,
    calibrate_pairwise,
    rho_for_own_one,
)

ONE, DELTA = Fraction(1), Fraction(1, 10**9)
STEPS = 1 << 24


def complete(noise: PairwiseNoise) -> Gopa:
    """This noise in the library, which takes any graph and finds its flows in floating point."""
    edges = tuple((i, j) for i in range(noise.nodes) for j in range(i))
    colluding = frozenset(range(noise.nodes - noise.honest))
    own, pairwise = Fraction(noise.own), Fraction(noise.pairwise)
    return Gopa(
        Fraction(0), Fraction(noise.steps), ONE, noise.nodes, edges, own, pairwise, colluding
    )


@pytest.mark.parametrize(("nodes", "honest"), [(2, 1), (2, 2), (5, 2), (8, 7), (12, 12)])
@pytest.mark.parametrize("steps", [1, 50, STEPS])
def test_rho_is_the_librarys(nodes, honest, steps):
    """Our ρ may also be smaller.

    Where the library's solver finds a flow of 10^-12 instead of none, it also allows for rounding.
    """
    noise = PairwiseNoise(steps, nodes, honest, 1 << 30)
    library = float(complete(noise).rho)
    assert float(noise.rho) <= library * (1 + 1e-6)
    if steps == STEPS or honest <= 2:
        assert float(noise.rho) == pytest.approx(library, rel=1e-5)


@pytest.mark.parametrize(("nodes", "honest"), [(2, 1), (3, 2), (6, 6), (64, 40)])
def test_rho_is_not_below_the_normal_laws_and_near_it_for_fine_steps(nodes, honest):
    noise = PairwiseNoise(STEPS, nodes, honest, 1 << 30)
    laplacian = honest * np.eye(honest) - np.ones((honest, honest))
    covariance = noise.own * np.eye(honest) + noise.pairwise * laplacian
    normal = STEPS**2 / 2 * np.linalg.inv(covariance).diagonal().max()
    assert normal * (1 - 1e-9) <= float(noise.rho) <= normal * (1 + 1e-3)
    central = STEPS**2 / (2 * honest * noise.own)
    assert central <= float(noise.rho) <= central * (1 + 2 / RATIO + 1e-3)


@pytest.mark.parametrize("honest", [1, 2, 3, 5])
@pytest.mark.parametrize("steps", [1, 7, 100])
def test_every_change_has_integers_that_prove_it(honest, steps):
    """The proof, literally: for each v the rounded flow moves the messages as v does."""
    flow = Fraction(RATIO, 1 + RATIO * honest)
    for change in range(-steps, steps + 1):
        along = round(change * flow)
        shifts = [change - (honest - 1) * along] + [along] * (honest - 1)
        moved = np.array(shifts) + np.array([(honest - 1) * along] + [-along] * (honest - 1))
        assert moved.tolist() == [change] + [0] * (honest - 1)
        rho = (Fraction((honest - 1) * along**2, RATIO) + sum(t**2 for t in shifts)) / 2
        assert rho <= rho_for_own_one(steps, honest)


@pytest.mark.parametrize(("nodes", "honest"), [(2, 1), (4, 3), (10, 5), (64, 64)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(8)])
def test_calibration_reaches_epsilon_with_nearly_the_least_noise(nodes, honest, epsilon):
    """The variance is near nodes/honest times a curator's, and not below what epsilon needs."""
    noise = calibrate_pairwise(epsilon, DELTA, STEPS, nodes, honest)
    assert epsilon * Fraction(999, 1000) < noise.epsilon(DELTA) <= epsilon
    assert replace(noise, own=noise.own * 99 // 100).epsilon(DELTA) > epsilon
    (curator,) = calibrate_gaussian(epsilon, DELTA, (STEPS,))
    assert noise.std**2 == pytest.approx(curator.variance * nodes / honest, rel=2e-3)
    assert noise.pairwise == RATIO * noise.own


def test_the_tail_is_that_of_all_parts_of_one_message():
    noise = PairwiseNoise(1, 5, 2, 1000)
    std = (1000 + 4 * 1000 * RATIO) ** 0.5
    assert 9 * std < noise.tail_bound() < 10 * std and noise.tail_bound(1) < 2 * std
    assert (
        noise.own_law.variance == 1000
        and noise.pair_law.variance == 1000 * RATIO
        and noise.std == 5000**0.5
    )


@pytest.mark.parametrize(
    "change", [{"steps": 0}, {"own": 0}, {"own": 1.5}, {"honest": 0}, {"honest": 6}, {"nodes": 1}]
)
def test_what_is_no_noise_is_refused(change):
    with pytest.raises(StudyError):
        replace(PairwiseNoise(1, 5, 2, 1000), **change)


def test_no_delta_is_refused():
    for delta in (Fraction(0), 1e-9):
        with pytest.raises(InvalidEpsilon):
            calibrate_pairwise(ONE, delta, STEPS, 2, 1)
