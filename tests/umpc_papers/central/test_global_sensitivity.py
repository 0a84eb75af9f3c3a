"""The complete U-statistic with Laplace noise: its law, its prediction, its ε."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.support.curated import (
    CONSTANT,
    KENDALL,
    PRODUCT,
    TRIPLE,
    SeededBits,
    accept_moments,
    audited,
    columns,
    draws,
    random_columns,
)
from tests.support.statistical import WRONG_SCALES, accept, reject
from umpc.errors import InvalidEpsilon
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.terms import CompleteFamily, kernel_terms, total

EPSILON = Fraction(1)


def test_the_sum_has_discrete_laplace_noise_of_its_sensitivity():
    protocol, table, bits = (
        GlobalSensitivity(KENDALL, EPSILON),
        random_columns(6, 1),
        SeededBits("global"),
    )
    exact = total(kernel_terms(KENDALL, table), CompleteFamily(6, 2))
    noise = [int(protocol.estimate(table, bits) * 15) - exact for _ in range(1500)]
    assert protocol.sensitivity(6) == 5 * 2
    accept(noise, stats.dlaplace(1 / 10).cdf, -400, 400, bits)
    for wrong in map(float, WRONG_SCALES):
        reject(noise, stats.dlaplace(1 / (10 * wrong)).cdf, -400, 400, bits)


@pytest.mark.parametrize("kernel", [PRODUCT, TRIPLE])
def test_the_predicted_error_is_the_measured_one(kernel):
    protocol, table = GlobalSensitivity(kernel, EPSILON), random_columns(6, 2)
    family = CompleteFamily(6, kernel.degree)
    exact = float(total(kernel_terms(kernel, table), family) * kernel.unit / family.count)
    found = draws(lambda bits: protocol.estimate(table, bits), 1500, kernel.text)
    accept_moments(found, exact, protocol.noise_variance(6))
    width = float(kernel.interval.width)
    assert np.isclose(protocol.noise_variance(6), 2 * (kernel.degree * width / 6) ** 2, rtol=0.01)


def test_its_loss_on_the_worst_neighbours_is_at_most_epsilon():
    """All pairs of one record move from one end of the range to the other."""
    first, second = columns([3, 3, 3, 3, 3, 0]), columns([3, 3, 3, 3, 3, 3])
    protocol, loud = GlobalSensitivity(PRODUCT, EPSILON), GlobalSensitivity(PRODUCT, 3 * EPSILON)
    runs = []
    for p in (protocol, loud):
        runs.append(
            audited(
                *(lambda b, p=p, t=t: p.estimate(t, b) for t in (first, second)),
                600,
                f"{p.epsilon}",
            )
        )
    assert runs[0] <= 1 < runs[1] <= 3, runs
    assert protocol.event.epsilon == 1


def test_a_constant_needs_no_noise():
    protocol = GlobalSensitivity(CONSTANT, EPSILON)
    assert protocol.estimate(columns([0, 1, 2]), SeededBits("constant")) == 2
    assert protocol.noise_variance(5) == 0 and protocol.mse(5, 0.25) == 0.25


def test_epsilon_is_exact():
    with pytest.raises(InvalidEpsilon):
        GlobalSensitivity(KENDALL, 0.5)
