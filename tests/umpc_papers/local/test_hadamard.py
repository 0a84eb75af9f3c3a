"""The frequency oracle: its transform, all odds of a record, and the variance of lemma 5."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tests.support.moments import odds_of_one
from tests.support.paper_bounds import count_variance, lemma_5
from umpc_papers.exact_sampling import ShakeStream, truth_threshold
from umpc_papers.local.hadamard import signs, tally, tell, transform

VALUES = np.array([0, 0, 0, 1, 1, 3, 6])
GAIN = truth_threshold(Fraction(1), 2) / 2.0**64


def matrix(size: int) -> np.ndarray:
    """(-1)^<j,q>, bit by bit."""
    return np.array([[(-1) ** bin(j & q).count("1") for q in range(size)] for j in range(size)])


def test_the_transform_is_the_hadamard_matrix():
    tallies = np.array([3.0, -1, 0, 5, 2, 2, -7, 1])
    assert np.array_equal(transform(tallies), matrix(8) @ tallies) and transform(
        np.array([4.0])
    ).tolist() == [4]
    j, q = np.indices((8, 8)).reshape(2, -1)
    assert np.array_equal(1 - 2 * signs(j, q), matrix(8).reshape(-1))
    assert signs(np.array([2**20 - 1]), np.array([2**19 + 1])).tolist() == [0]


def test_counts_are_unbiased_and_have_the_variance_of_all_outcomes():
    """One record's contribution over all indices and answers.

    It has the stated mean and variance, and values have no covariance.
    """
    for value in (0, 5):
        outcomes, odds = [], []
        for index in range(8):
            truth = 1 - 2 * int(signs(np.array([index]), np.array([value]))[0])
            for told in (truth, -truth):
                outcomes.append(told * matrix(8)[index] / GAIN)
                odds.append((1 + GAIN * told * truth) / 2 / 8)
        mean = np.array(odds) @ np.array(outcomes)
        spread = (np.array(outcomes).T * np.array(odds)) @ np.array(outcomes) - np.outer(mean, mean)
        assert np.allclose(mean, np.eye(8)[value])
        assert np.allclose(spread, np.diag([count_variance(1, GAIN, q == value) for q in range(8)]))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(3)])
def test_every_pair_of_values_is_within_epsilon_and_some_is_near_it(epsilon):
    """All odds, from the code that sends: values by indices."""
    threshold = truth_threshold(epsilon, 2)
    ratios = []
    for index in range(8):
        one = [
            odds_of_one(
                lambda s, v=value, j=index: tell(np.array([j]), np.array([v]), threshold, s),
                threshold,
            )
            for value in range(8)
        ]
        ratios += [p / q for p in one for q in one] + [(1 - p) / (1 - q) for p in one for q in one]
    assert exp(epsilon) * (1 - 1e-12) < max(ratios) < exp(epsilon) * (1 + 1e-14)


def test_lemma_5_is_too_small_by_the_records_of_other_values():
    assert count_variance(100, GAIN) - lemma_5(100, 1.0) == pytest.approx(100)
    assert count_variance(100, GAIN) / lemma_5(100, 1.0) == pytest.approx(1.27, abs=0.01)


def test_counts_of_drawn_answers_are_near():
    values, n = np.tile(VALUES, 3000), 21_000
    stream = ShakeStream(bytes(32), "tally")
    index = stream.below(8, n)
    counts = (
        transform(tally(index, tell(index, values, truth_threshold(Fraction(1), 2), stream), 8))
        / GAIN
    )
    limit = 5 * count_variance(n, GAIN) ** 0.5
    assert np.abs(counts - np.bincount(values, minlength=8)).max() < limit
