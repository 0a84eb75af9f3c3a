"""umpc.dp.distributed_gaussian: nodes' shares of one joint discrete Gaussian noise."""

from __future__ import annotations

from fractions import Fraction
from math import exp, pi

import numpy as np
import pytest

from reproduction.baselines.textbook import calibrate_gaussian
from tests.support.studies import Entropy
from umpc.dp.composition import gaussian_curve, renyi_epsilon
from umpc.dp.distributed_gaussian import (
    LEAST_SHARE,
    TAU_PER_NODE,
    GaussianShare,
    joint_gaussian,
    parameter_per_square,
    rho_of,
)
from umpc.errors import InvalidEpsilon, StudyError

EPSILON, DELTA = Fraction(3), Fraction(1, 10**6)


def gaussian_law(parameter: float, reach: int = 60) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * parameter))
    return weights / weights.sum()


def test_a_sum_of_shares_is_a_discrete_gaussian_but_for_the_factor_of_the_proof():
    for parameter in (0.3, 0.5, 1.0):
        for honest in (2, 3, 5):
            law = gaussian_law(parameter)
            whole = law
            for _ in range(honest - 1):
                whole = np.convolve(whole, law)
            middle = len(whole) // 2
            near = slice(middle - 5, middle + 6)
            other = gaussian_law(parameter * honest, middle)[near]
            tau = 10 * (honest - 1) * exp(-(pi**2) * parameter)
            worst = np.abs(np.log(whole[near] / other)).max()
            assert 1e-12 < worst <= tau, (parameter, honest)
    assert 10 * exp(-(pi**2) * LEAST_SHARE) < TAU_PER_NODE


def test_the_noise_of_the_honest_nodes_has_the_parameter_of_the_joint_sensitivity():
    scales = (Fraction(1000), Fraction(5, 2) * 1000, Fraction(0))
    for square, honest, releases in ((1, 1, 1), (1, 3, 8), (3, 2, 4)):
        laws = joint_gaussian(EPSILON, DELTA, scales, square, 4, honest, releases)
        one = float(calibrate_gaussian(EPSILON, DELTA, (1,))[0].parameter)
        for law, scale in zip(laws, scales, strict=True):
            due = one * square * releases * float(scale) ** 2
            assert float(law.parameter) == pytest.approx(due, rel=1e-4)
            assert law.variance == pytest.approx(due * 4 / honest, rel=1e-4)
            assert law.share.parameter * honest == law.parameter
        assert laws[2].draw(lambda bits: 0) == 0 == laws[2].tail_bound()
        assert laws[0].tail_bound() > 8 * laws[0].std


def test_a_share_is_never_too_narrow_for_the_proof():
    (law,) = joint_gaussian(Fraction(10**6), DELTA, (Fraction(1),), 1, 4, 3)
    assert law.share.parameter == LEAST_SHARE


def test_the_first_releases_have_less_than_the_whole_epsilon():
    k = parameter_per_square(EPSILON, DELTA, 7, 1, 2, 8)
    rhos = [rho_of(k, 7, 1, 2, done) for done in (1, 4, 8)]
    found = [float(renyi_epsilon(gaussian_curve(rho), DELTA)) for rho in rhos]
    assert found == sorted(found) and found[-1] == pytest.approx(3, abs=1e-3) and found[-1] <= 3
    assert found[0] > 3 / 8  # composed in ε alone, a step would have to be quieter
    assert rho_of(Fraction(4), 7, 1, 3, 8) > rho_of(Fraction(4), 7, 1, 1, 8) == 1


def test_draws_of_all_shares_have_the_stated_variance():
    law = GaussianShare(Fraction(300), 3, 2)
    entropy = Entropy("gaussian shares")
    bits = lambda count: int.from_bytes(entropy((count + 7) // 8), "little") >> (-count % 8)  # noqa: E731
    sums = np.array([sum(law.draw(bits) for _ in range(3)) for _ in range(120)], dtype=float)
    # the variance of a normal sample's variance is 2σ⁴/n
    assert abs((sums**2).mean() / law.variance - 1) < 5.5 * (2 / len(sums)) ** 0.5
    assert law.variance == 450


def test_bad_arguments_are_refused():
    for scales, square, releases in (((), 1, 1), ((Fraction(-1),), 1, 1)):
        with pytest.raises(StudyError, match="a vector takes scales"):
            joint_gaussian(EPSILON, DELTA, scales, square, 2, 1, releases)
    with pytest.raises(StudyError, match="a vector takes scales"):
        joint_gaussian(EPSILON, DELTA, (Fraction(1),), 0, 2, 1)
    with pytest.raises(StudyError):
        joint_gaussian(EPSILON, DELTA, (Fraction(1),), 1, 2, 3)
    with pytest.raises(InvalidEpsilon):
        joint_gaussian(EPSILON, Fraction(0), (Fraction(1),), 1, 2, 1)
