"""Errors in Bell et al. 2020: equation 9 and the approximation of theorem 1.

Other errors of that paper have their tests at the code: `tests/umpc_papers/local`,
`tests/umpc_papers/bell_2pc`.
"""

from __future__ import annotations

from math import exp, expm1, log

import numpy as np
import pytest

from tests.support.paper_bounds import theorem_1, theorem_1_small_epsilon
from umpc_papers.local.factors import factor

RECORDS = 4_521
"""The bank data's."""


def printed_law(cells: int, epsilon: float) -> tuple[float, float]:
    """Equation 9: 1 − β for the true cell, β/k for each other one."""
    beta = cells / (cells + expm1(epsilon))
    return 1 - beta, beta / cells


@pytest.mark.parametrize("cells", [2, 6, 64])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_equation_9_is_no_law(cells, epsilon):
    """(9): the chances sum to 1 − β/k, and their ratio is e^ε − 1. The true cell lacks β/k."""
    truth, other = printed_law(cells, epsilon)
    assert truth + (cells - 1) * other == pytest.approx(1 - other)
    assert truth / other == pytest.approx(expm1(epsilon))
    right = truth + other
    assert right + (cells - 1) * other == pytest.approx(1)
    assert right / other == pytest.approx(exp(epsilon))


def test_equation_9_loses_a_quarter_and_favours_lies():
    """At ε = 1 and k = 2 the chances sum to 0.73. Below ε = ln 2 a lie is likelier than truth."""
    truth, other = printed_law(2, 1.0)
    assert truth + other == pytest.approx(0.7311, abs=1e-4)
    truth, other = printed_law(64, log(2) - 0.01)
    assert truth < other


def terms(cells: int, epsilon: float) -> tuple[float, float]:
    """Both terms of theorem 1, with its own β."""
    gain = 1 + cells / expm1(epsilon)
    beta = 1 - 1 / gain
    first = gain**2 / RECORDS
    return first, (1 + beta) ** 2 * gain**4 / (2 * RECORDS * (RECORDS - 1))


def test_theorem_1_at_64_cells():
    """Its terms at ε = 1 are 0.324 and 0.204: the second is 63 % of the first."""
    first, second = terms(64, 1.0)
    assert (first, second) == pytest.approx((0.3236, 0.2040), abs=1e-4)
    assert theorem_1(RECORDS, expm1(1) / (expm1(1) + 64)) == pytest.approx(first + second)


def test_the_factor_four_is_a_limit():
    """The paper drops (1 + β)²: it is 3.90 at 64 cells and ε = 1, and tends to 4 as ε falls."""
    factors = []
    for epsilon in (1.0, 0.1, 0.01):
        gain = 1 + 64 / expm1(epsilon)
        factors.append((2 - 1 / gain) ** 2)
    assert factors == pytest.approx([3.896, 3.993, 3.9994], abs=1e-3)
    first, second = terms(64, 0.001)
    assert theorem_1_small_epsilon(RECORDS, 64, 0.001) == pytest.approx(first + second, rel=2e-3)


def test_gamma_2_of_kendalls_kernel():
    """Sinh & Ramon, D.1.3: "γ₂(A) <= O(t·L)"; of 8 x 8 bins it is at most 2 + √2 = 3.414."""
    sign = np.sign(np.subtract.outer(np.arange(8), np.arange(8))).astype(float)
    bound = factor(np.kron(sign, sign)).radius ** 2
    print(f"γ₂ <= {bound:.4f}")
    assert bound == pytest.approx(2 + 2**0.5)
    assert bound < 64**0.5


@pytest.mark.parametrize(("bins", "reach"), [(8, 0.25), (10, 0.5), (16, 0.75)])
def test_the_bias_of_the_kernel_at_the_middles(bins, reach):
    """[|x − y| < c] on uniform records: at the middles of k bins it is off by −(1 − c)/k."""
    steps = np.arange(bins)
    at_middles = np.mean(np.abs(steps[:, None] - steps) < reach * bins)
    assert at_middles - (2 * reach - reach**2) == pytest.approx(-(1 - reach) / bins)
