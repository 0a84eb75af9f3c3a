"""A = V' G V, its projection, and the randomiser of vectors."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tests.support.moments import GINI, SCHEMA, kendall_cells, make_cells, odds_of_one
from tests.support.paper_bounds import projection_variance
from umpc.errors import LocalProtocolError, StudyError
from umpc_papers.exact_sampling import ShakeStream, truth_threshold
from umpc_papers.local.factors import factor, project
from umpc_papers.local.quantisation import Bins
from umpc_papers.local.sphere import (
    bernoulli,
    collect,
    directions,
    mean_coordinate,
    scale,
    tell_side,
)

KENDALL_MATRIX = kendall_cells(3, 3).matrix


def test_vectors_give_the_kernel_back_and_the_form_is_its_sign():
    for matrix in (
        KENDALL_MATRIX,
        make_cells(GINI, Bins.equal(SCHEMA["x"], 7)).matrix,
        np.ones((3, 3)),
    ):
        factors = factor(matrix)
        assert np.allclose(factors.matrix, matrix) and np.allclose(
            factors.vectors, factors.vectors.T
        )
        assert np.allclose(np.linalg.matrix_power(factors.form, 3), factors.form)
        assert np.sum(factors.form**2) == pytest.approx(np.linalg.matrix_rank(matrix))
        assert (
            np.abs(matrix).max() - 1e-9
            <= factors.radius**2
            <= np.sqrt(len(matrix)) * np.abs(matrix).max() + 1e-9
        )


def test_a_zero_kernel_is_refused():
    with pytest.raises(StudyError, match="nothing to estimate"):
        factor(np.zeros((3, 3)))


def test_projections_are_right_on_average_with_the_stated_variance():
    exact, mean = factor(KENDALL_MATRIX), np.arange(1, 10) / 45
    drawn = [project(exact, 8, seed.to_bytes(32, "little")) for seed in range(400)]
    assert all(factors.dimension == 8 for factors in drawn)
    values = np.array([mean @ factors.matrix @ mean for factors in drawn])
    variance = projection_variance(exact, 8, mean)
    assert abs(values.mean() - mean @ KENDALL_MATRIX @ mean) < 5 * (variance / 400) ** 0.5
    assert values.var() == pytest.approx(variance, rel=0.35)
    with pytest.raises(StudyError, match="too few"):
        project(factor(np.diag([1.0] * 9 + [-1.0])), 2, bytes(32))


def test_a_bit_with_its_direction_is_an_unbiased_vector_of_fixed_second_moment():
    """Vectors of three norms. A mean of 0.7 times the right scale fails the same test."""
    vectors = np.array([[1.0, 0, 0, 0], [0.3, -0.4, 0, 0], [0, 0, 0, 0.1]])
    n, threshold = 40_000, truth_threshold(2, 2)
    gain = threshold / 2.0**64
    rho = scale(1.0, gain, 4)
    for cell in range(3):
        seed = bytes([cell]) * 32
        told = tell_side(vectors, np.full(n, cell), seed, threshold, ShakeStream(seed, "private"))
        drawn = np.concatenate([rows for _, rows in directions(seed, n, 4)]) * (
            rho * (1 - 2.0 * told[:, None])
        )
        error = 5 * rho / 2 / n**0.5
        assert np.abs(drawn.mean(axis=0) - vectors[cell]).max() < error
        assert np.abs(drawn.T @ drawn / n - rho**2 / 4 * np.eye(4)).max() < 0.05 * rho**2
        assert np.abs(0.7 * drawn.mean(axis=0) - vectors[0]).max() > error
        totals, own = collect(seed, 1 - 2.0 * told[None], np.eye(4))
        assert np.allclose(rho * totals[0] / n, drawn.mean(axis=0)) and own == pytest.approx(n)


def test_every_pair_of_cells_is_within_epsilon_and_some_is_near_it():
    """All odds, from the code that sends: cells of different norms, by public directions."""
    vectors, epsilon = (
        np.array([[1.0, 0, 0], [0.3, -0.4, 0], [-0.6, 0.8, 0], [0, 0, 0]]),
        Fraction(3, 2),
    )
    threshold, largest = truth_threshold(epsilon, 2), Fraction(0)
    turns = [int((1 - norm) / 2 * 2**53) << 11 for norm in np.linalg.norm(vectors, axis=1)]
    for seed in range(6):
        one = [
            odds_of_one(
                lambda s, c=cell, n=seed: tell_side(
                    vectors, np.array([c]), bytes([n]) * 32, threshold, s
                ),
                turns[cell],
                threshold,
            )
            for cell in range(4)
        ]
        assert one[3] == Fraction(1, 2)
        largest = max(
            largest,
            *(p / q for p in one for q in one),
            *((1 - p) / (1 - q) for p in one for q in one),
        )
    assert exp(epsilon) * (1 - 1e-12) < largest < exp(epsilon) * (1 + 1e-14)


def test_the_mean_coordinate_is_that_of_the_sphere():
    assert [mean_coordinate(d) for d in (1, 2, 3)] == pytest.approx([1, 2 / np.pi, 1 / 2])
    assert mean_coordinate(1000) == pytest.approx((2 / np.pi / 1000) ** 0.5, rel=1e-3)


def test_odds_are_checked():
    stream = ShakeStream(bytes(32), "odds")
    assert bernoulli(np.array([0.0, 1.0]), stream, np.array([0, 1, 1, 0])).tolist() == [0, 1, 1, 0]
    for odds in (-0.1, 1.1, np.nan):
        with pytest.raises(LocalProtocolError):
            bernoulli(np.array([odds]), stream, np.array([0]))
