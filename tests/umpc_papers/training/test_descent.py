"""Descent on released gradients, the AUC, exact weights, and the fit without privacy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.studies import generator
from umpc.protocols.vector.losses import Coordinate
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.training.descent import (
    SCORE_BITS,
    Descent,
    auc_of,
    exact_weights,
    first_weights,
    fit_without_privacy,
    hinge_gradient,
    is_seen,
)


def records(count: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = generator("descent")
    is_first = np.arange(count) % 3 == 0
    return rng.normal(size=(count, 2)) + is_first[:, None] * np.array([1.0, -0.5]), is_first


def test_the_auc_and_the_gradient_are_those_of_all_pairs():
    points, is_first = records()
    scores = np.round(points[:, 0], 1)  # with ties
    first, second = scores[is_first], scores[~is_first]
    pairs = np.sign(first[:, None] - second[None])
    assert auc_of(scores, is_first) == pytest.approx(((pairs + 1) / 2).mean())
    weights = np.array([0.4, -0.9])
    x, y = points[is_first], points[~is_first]
    difference = x[:, None] - y[None]
    gate = (difference @ weights < 1)[..., None]
    assert hinge_gradient(points, is_first, weights) == pytest.approx(
        (gate * difference).mean(axis=(0, 1))
    )


def test_a_descent_on_exact_gradients_finds_the_direction_of_the_classes():
    points, is_first = records()
    descent = Descent("auc_hinge", first_weights("auc_hinge", 2), rate=1.0, patience=2)
    while descent.steps < 100:
        descent.take(hinge_gradient(points, is_first, descent.weights), np.zeros(2))
    assert descent.weights == pytest.approx(fit_without_privacy(points, is_first, 100))
    assert auc_of(points @ descent.weights, is_first) > 0.75 and not descent.is_over


def test_a_descent_ends_where_the_noise_hides_the_gradient():
    noise = np.array([1.0, 1.0])
    seen, hidden = np.array([3.0, 3.0]), np.array([1.0, 1.0])
    assert is_seen(seen, noise) and not is_seen(hidden, noise)
    descent = Descent("auc_hinge", np.zeros(2), rate=0.1, patience=2)
    for gradient, over in ((hidden, False), (seen, False), (hidden, False), (hidden, True)):
        descent.take(gradient, noise)
        assert descent.is_over == over
    never = Descent("auc_hinge", np.zeros(2), rate=0.1)
    never.take(hidden, noise)
    assert not never.is_over


def test_contrastive_goes_against_its_gradient_and_does_not_begin_at_zero():
    start = first_weights("contrastive", 4)
    assert np.linalg.norm(start) == pytest.approx(1) and not first_weights("auc_hinge", 4).any()
    descent = Descent("contrastive", start, rate=0.5)
    descent.take(np.ones(4), np.zeros(4))
    assert (descent.weights < start).all()


def test_exact_weights_are_near_and_keep_scores_short():
    fields = [
        FieldSchema("a", Fraction(0), Fraction(100), Fraction(1)),
        FieldSchema("b", Fraction(-10), Fraction(10), Fraction(1, 100)),
    ]
    coordinates = (Coordinate("a", 50, Fraction(20)), Coordinate("b", 0, Fraction(300)))
    for weights in (np.array([0.5, -1.25]), np.array([1e-7, 3e-6])):
        exact = exact_weights(weights, coordinates, Schema(fields))
        due = weights / [20, 3]
        assert [float(weight) for weight in exact] == pytest.approx(list(due), rel=1e-3)
        steps = [weight * field.resolution for weight, field in zip(exact, fields, strict=True)]
        grid = max(weight.denominator for weight in steps)
        widest = abs(steps[0]) * 100 + abs(steps[1]) * 2000
        assert widest * grid < 2 ** (SCORE_BITS + 1)
    assert exact_weights(np.zeros(2), coordinates, Schema(fields)) == (0, 0)
