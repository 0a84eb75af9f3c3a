"""The error of the grid where nodes may lie, at ε = 1: that of the plan, in 200 runs.

α = 0.001. Noise is the sum of what four nodes draw, each enough alone, as all others may collude.
These bounds must find a noise of 0.7 and of 1.3 times the scale.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.protocols.grid.test_verified import verified_study
from tests.support.statistical import WRONG_SCALES
from tests.support.studies import Entropy, clear_sums, compiled_once, graph_of, random_tables
from umpc.simulation import simulate
from umpc.study.document import Study

RUNS, NODES, ALPHA = 200, 4, 1e-3
TABLES = random_tables((9, 12, 5, 14), "records of the error", high=7)


def study_at(epsilon: Fraction) -> Study:
    return verified_study(nodes=NODES, epsilon=str(epsilon), max_colluding=NODES - 1)


def squared_ratio(study: Study, label: str) -> float:
    """The mean squared error of all runs, over the square of what the plan says at ε = 1."""
    planned = simulate(study_at(Fraction(1)), TABLES, Entropy(label)).report.noise_std
    entropy, errors = Entropy(label), []
    for _ in range(RUNS):
        report = simulate(study, TABLES, entropy).report
        (total,) = clear_sums(study, TABLES, graph_of(study, report))
        errors.append(report.estimate - total / report.edges)
    return float(np.mean(np.square(errors))) / planned**2


@pytest.fixture(scope="module")
def law() -> np.ndarray:
    """Provide ratios of sums of Laplace draws, which differ little from those over integers.

    Shape (20,000,).
    """
    rng = np.random.default_rng(20)
    drawn = [rng.laplace(size=(2_000, RUNS, NODES)).sum(axis=2) for _ in range(10)]
    return np.square(np.concatenate(drawn)).mean(axis=1) / (2 * NODES)


def bounds(law: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(law, (ALPHA / 2, 1 - ALPHA / 2))
    return float(low), float(high)


def test_the_mean_squared_error_is_the_planned_one(law):
    with compiled_once():
        found = squared_ratio(study_at(Fraction(1)), "error at 1")
    low, high = bounds(law)
    print(f"mean squared error over the plan's: {found:.3f}, between {low:.3f} and {high:.3f}")
    assert low < found < high


@pytest.mark.parametrize("scale", WRONG_SCALES)
def test_power_a_wrong_scale_is_found(scale, law):
    """In these runs, and in most others: at least 5 of 6."""
    with compiled_once():
        found = squared_ratio(study_at(1 / scale), f"error at {scale}")
    low, high = bounds(law)
    ratios = float(scale) ** 2 * law
    power = np.mean((ratios < low) | (ratios > high))
    print(f"scale {scale}: {found:.3f}, power {power:.3f}")
    assert not low < found < high
    assert power > 5 / 6
