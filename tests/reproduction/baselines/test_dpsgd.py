"""A private ranking: clipped gradients, their noise, the cost of batches, the bound on the loss."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reproduction.baselines.amplification import MOST_ORDER, sampled_gaussian_curve
from reproduction.baselines.dpsgd import (
    STEPS,
    PairwiseSgd,
    calibrate_noise,
    clipped_gradients,
    pairwise_risk,
)
from tests.support.curated import SeededBits, accept_law, audited, draws
from umpc.errors import InvalidEpsilon, StudyError

ONE, DELTA = Fraction(1), Fraction(1, 10**5)
SGD = PairwiseSgd(60, 20, 5, ONE, Fraction(2), Fraction(2), pairs=3)


def made(records: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two features in the unit disc of diameter 1, so that no gradient is clipped, and noisy
    labels."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.35, 0.35, (records, 2))
    return x, (x @ [2.0, -1.0] + rng.normal(0, 0.1, records) > 0).astype(int)


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_gradients_are_those_of_the_loss(loss):
    """Against differences of the risk over all pairs; truncation to the grid is the only error."""
    x, y = made(12, 1)
    theta = np.array([0.3, -0.2])
    i, j = np.triu_indices(12, 1)
    found = (
        clipped_gradients(theta, x[i] - x[j], np.sign(y[i] - y[j]), Fraction(4), loss).mean(axis=0)
        * 4
        / STEPS
    )
    for axis in range(2):
        step = np.eye(2)[axis] * 1e-6
        slope = (
            pairwise_risk(theta + step, x, y, loss) - pairwise_risk(theta - step, x, y, loss)
        ) / 2e-6
        assert abs(found[axis] - slope) < 1e-5


def test_no_gradient_is_longer_than_clip_whatever_comes():
    rng = np.random.default_rng(2)
    differences = np.concatenate(
        [rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-9, 200, (50, 1)), np.zeros((1, 3))]
    )
    differences = np.nan_to_num(np.concatenate([differences, [[1e308, -1e308, 1e308]]]))
    with np.errstate(over="ignore", invalid="ignore"):
        found = clipped_gradients(
            np.array([1.0, -1, 1]), differences, np.ones(52), Fraction(1, 3), "hinge"
        )
    assert max(sum(int(g) ** 2 for g in row) for row in found) <= STEPS**2
    assert found.any()


def test_a_record_moves_the_sum_by_no_more_than_the_sensitivity():
    """Same bits, one record replaced: the pairs are the same, and 2δc is nearly reached."""
    x, y = made(60, 3)
    x = x * 100
    moved, farthest = x.copy(), 0.0
    sgd = replace(SGD, noise=Fraction(1, 1 << 40), batch=60)
    for other in (-x[0] * 50, x[0] * 0, np.array([1e300, np.nan])):
        moved[0] = other
        for number in range(20):
            sums = [
                sgd.noisy_gradient(
                    np.zeros(2), np.nan_to_num(table), y, SeededBits(f"pairs {number}")
                )
                * sgd.edges
                for table in (x, moved)
            ]
            farthest = max(farthest, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.5 * sgd.sensitivity / STEPS < farthest <= sgd.sensitivity / STEPS
    assert sgd.sensitivity == 2 * 3 * STEPS


def test_the_noise_on_a_gradient_is_the_predicted_one():
    x, y = np.zeros((60, 1)), np.arange(60)
    found = draws(lambda bits: SGD.noisy_gradient(np.zeros(1), x, y, bits)[0], 1000, "gradient")
    accept_law(found, stats.norm.cdf, SGD.gradient_noise())


def test_a_noisy_gradient_is_unbiased():
    x, y = made(60, 4)
    quiet = replace(SGD, noise=Fraction(1, 100))
    bits, theta = SeededBits("unbiased"), np.array([0.5, 0.5])
    found = np.array([quiet.noisy_gradient(theta, x, y, bits) for _ in range(400)])
    i, j = np.triu_indices(60, 1)
    exact = (
        clipped_gradients(theta, x[i] - x[j], np.sign(y[i] - y[j]), ONE, "logistic").mean(axis=0)
        / STEPS
    )
    assert (np.abs(found.mean(axis=0) - exact) < 6 * found.std(axis=0) / 20).all()
    assert not (np.abs(found.mean(axis=0) - 1.3 * exact) < 6 * found.std(axis=0) / 20).all()


# --- what is learnt -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_excess_risk_is_within_its_bound(loss):
    x, y = made(200, 5)
    sgd = PairwiseSgd(200, 200, 150, ONE, Fraction(4), Fraction(4), pairs=4, loss=loss)
    theta = sgd.fit(x, y, SeededBits(f"fit {loss}"))
    turns = np.linspace(0, 2 * np.pi, 60)
    least = min(
        pairwise_risk(r * np.array([np.cos(t), np.sin(t)]), x, y, loss)
        for t in turns
        for r in (1, 2, 3, 4)
    )
    start = pairwise_risk(np.zeros(2), x, y, loss)
    excess = pairwise_risk(theta, x, y, loss) - least
    assert excess <= sgd.excess_bound(2) and excess < 0.6 * (start - least), (
        excess,
        sgd.excess_bound(2),
        start - least,
    )
    assert np.linalg.norm(theta) <= 4


# --- privacy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("z", "part"),
    [(4, Fraction(1, 10)), (1, Fraction(1, 20)), (20, Fraction(1, 2)), (2, Fraction(1, 3))],
)
def test_the_curve_of_a_batch_is_above_exact_mixtures(z, part):
    """Normal mixtures of A, B, B' at distance 1/z on a line: R bounds all, and is near the worst at
    small orders."""
    curve, g, d = sampled_gaussian_curve(Fraction(1, 2 * z * z), part), float(part), 1 / z
    x = np.linspace(-14, 15, 58_001)
    normal = lambda m: stats.norm.pdf(x, m)  # noqa: E731
    for order in (2, 3, 8, 24):
        worst = 0.0
        for b, b_prime in ((d, 0), (0, d), (d / 2, -d / 2), (-d, 0)):
            p, q = ((1 - g) * normal(0) + g * normal(m) for m in (b, b_prime))
            worst = max(
                worst, float(np.log(np.trapezoid(p * (p / q) ** (order - 1), x)) / (order - 1))
            )
        bound = float(curve(order))
        assert worst <= bound * (1 + 1e-6), (order, worst, bound)
        assert order > 2 or bound < 1.3 * worst
    assert np.isclose(float(curve(MOST_ORDER + 1)), (MOST_ORDER + 1) * d * d / 2)


def test_a_tiny_rho_is_not_lost_in_rounding():
    """Where the sums cancel beyond the working precision, the plain curve is left."""
    for rho in (Fraction(1, 10**12), Fraction(1, 10**60)):
        curve = sampled_gaussian_curve(rho, Fraction(1, 10))
        assert all(
            0 <= float(curve(order)) <= order * float(rho) for order in (2, 5, 40, MOST_ORDER)
        )


def test_moments_of_the_discrete_law_are_those_of_the_normal():
    """Step 3 of the proof, at a small σ where rounding would show: integer shifts, integer
    powers."""
    x = np.arange(-40, 41)
    law = np.exp(-(x**2) / (2 * 1.7))
    law /= law.sum()
    shifted = lambda u: np.exp((2 * x * u - u * u) / (2 * 1.7))  # noqa: E731
    for u, v, i, k in ((1, 0, 2, 0), (1, 2, 2, 1), (-1, 1, 1, 3)):
        exact = (law * shifted(u) ** i * shifted(v) ** k).sum()
        assert np.isclose(exact, np.exp(((i * u + k * v) ** 2 - i * u * u - k * v * v) / (2 * 1.7)))


def test_calibration_reaches_epsilon_and_batches_save_noise():
    small, whole = (calibrate_noise(ONE, DELTA, 1000, batch, 50) for batch in (50, 1000))
    assert small < whole / 5
    for z, batch in ((small, 50), (whole, 1000)):
        sgd = PairwiseSgd(1000, batch, 50, ONE, z, ONE)
        assert (
            0.99 < sgd.epsilon(DELTA) <= 1 < replace(sgd, noise=z * Fraction(7, 10)).epsilon(DELTA)
        )


def test_the_loss_of_a_step_is_at_most_epsilon_and_more_with_a_sixth_of_the_noise():
    """One feature, one pair for each of two records, of which one jumps across the other."""
    y = np.array([0, 1])
    tables = [np.array([[0.0], [value]]) for value in (-9.0, 9.0)]
    delta = Fraction(1, 100)
    right = PairwiseSgd(2, 2, 1, ONE, calibrate_noise(ONE, delta, 2, 2, 1), ONE, loss="hinge")
    loss = []
    for sgd in (right, replace(right, noise=right.noise / 6)):
        views = [lambda b, t=t, s=sgd: s.noisy_gradient(np.zeros(1), t, y, b)[0] for t in tables]
        loss.append(audited(*views, 400, f"sgd {sgd.noise}", float(delta)))
    assert loss[0] <= 1 < loss[1], loss


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"records": 10},
        {"batch": 1},
        {"pairs": 20},
        {"pairs": 0},
        {"steps": 0},
        {"clip": Fraction(0)},
        {"clip": 0.5},
        {"noise": Fraction(0)},
        {"radius": Fraction(-1)},
        {"rate": Fraction(0)},
        {"loss": "square"},
    ],
)
def test_sgd_refuses(change):
    with pytest.raises(StudyError):
        replace(SGD, **change)


def test_sgd_refuses_other_arguments():
    with pytest.raises(StudyError):
        SGD.fit(np.zeros((5, 2)), np.zeros(5), SeededBits("unused"))
    with pytest.raises(InvalidEpsilon):
        SGD.epsilon(Fraction(0))
    with pytest.raises(InvalidEpsilon):
        calibrate_noise(1.0, DELTA, 10, 5, 1)
    for rho, part in ((ONE, Fraction(0)), (ONE, Fraction(2)), (Fraction(0), ONE)):
        with pytest.raises(StudyError):
            sampled_gaussian_curve(rho, part)
