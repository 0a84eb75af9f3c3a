"""Gradient descent on released gradients, the AUC of a model, and the fit without privacy.

Everything here is post-processing of released numbers, or computes on records in the clear, as only
a public table or a demo has them.

Weights are per scale of a coordinate: w_i belongs to (x_i − c_i)/s_i. A study needs them per unit
of the field, as short exact numbers, because a comparison costs a key of as many levels as the
score has bits (`exact_weights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from umpc.protocols.vector.losses import LOSSES, Coordinate
from umpc.ustat.schema import Schema

SCORE_BITS = 24
"""Bits of the largest difference of two scores, in steps of their grid."""
SIGMAS = 2
"""A gradient that is longer than noise alone by this many standard deviations is seen."""
Floats = NDArray[np.float64]


@dataclass
class Descent:
    """Steps of size rate/√t against the released gradients.

    Args:
        loss: its name. weights: where it starts, per scale.
        rate: the first step's length, in gradients.
        patience: it stops after so many steps in a row whose gradient is not seen through the
            noise; 0 never stops.
    """

    loss: str
    weights: Floats
    rate: float
    patience: int = 0
    steps: int = field(default=0, init=False)
    unseen: int = field(default=0, init=False)

    def take(self, gradient: Floats, noise_std: Floats) -> None:
        """One step. Args: the kernels' means per scale, and the noise's standard deviation."""
        self.steps += 1
        seen = is_seen(gradient, noise_std)
        self.unseen = 0 if seen else self.unseen + 1
        downhill = -LOSSES[self.loss].direction * gradient
        self.weights = self.weights + self.rate / sqrt(self.steps) * downhill

    @property
    def is_over(self) -> bool:
        """Whether the noise hides what is left of the gradient."""
        return 0 < self.patience <= self.unseen


def is_seen(gradient: Floats, noise_std: Floats) -> bool:
    """Whether a noisy vector is longer than noise alone would be.

    The squared length of noise has mean Σσ² and variance 2Σσ⁴.
    """
    square = float((gradient**2).sum())
    mean = float((noise_std**2).sum())
    return square > mean + SIGMAS * sqrt(2 * float((noise_std**4).sum()))


def first_weights(loss: str, count: int) -> Floats:
    """Where a descent begins: 0 for a hinge; for `contrastive`, whose gradient is 0 there, equal
    weights of length 1.
    """
    start = 0.0 if LOSSES[loss].least_gate >= 0 else 1 / sqrt(count)
    return np.full(count, start)


def exact_weights(
    weights: Floats, coordinates: Sequence[Coordinate], schema: Schema
) -> tuple[Fraction, ...]:
    """The weights per unit of each field, on a grid on which scores have `SCORE_BITS` bits."""
    fields = [schema[each.name] for each in coordinates]
    per_step = [
        Fraction(float(weight)) / each.scale
        for weight, each in zip(weights, coordinates, strict=True)
    ]
    widths = [each.upper_units - each.lower_units for each in fields]
    widest = sum(abs(weight) * width for weight, width in zip(per_step, widths, strict=True))
    if not widest:
        return tuple(Fraction(0) for _ in fields)
    grid = Fraction(2) ** (_log2(widest) - SCORE_BITS)
    rounded = [round(weight / grid) * grid for weight in per_step]
    return tuple(weight / each.resolution for weight, each in zip(rounded, fields, strict=True))


def _log2(value: Fraction) -> int:
    """About log2, from above."""
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def auc_of(scores: Floats, is_first: NDArray[np.bool_]) -> float:
    """The share of pairs of both classes that the scores put in order; ties count half."""
    first, second = scores[is_first], np.sort(scores[~is_first])
    below = np.searchsorted(second, first, side="left")
    above = np.searchsorted(second, first, side="right")
    return float((below + above).sum() / (2 * len(first) * len(second)))


def hinge_gradient(points: Floats, is_first: NDArray[np.bool_], weights: Floats) -> Floats:
    """The mean of [d < 1]·(x − y) over all pairs of both classes, in O(n log n).

    Args: points: (records, coordinates), per scale.
    """
    first, second = points[is_first], points[~is_first]
    scores = second @ weights
    order = np.argsort(scores)
    tails = np.zeros((len(second) + 1, points.shape[1]))
    tails[:-1] = np.cumsum(second[order][::-1], axis=0)[::-1]
    # the y of which s(y) > s(x) − 1
    start = np.searchsorted(scores[order], first @ weights - 1, side="right")
    counts = len(second) - start
    whole = (counts[:, None] * first - tails[start]).sum(axis=0)
    return np.asarray(whole / (len(first) * len(second)), dtype=np.float64)


def fit_without_privacy(
    points: Floats, is_first: NDArray[np.bool_], steps: int = 300, rate: float = 1.0
) -> Floats:
    """The weights that `auc_hinge` finds on all pairs of pooled records, without noise."""
    weights = np.zeros(points.shape[1])
    for step in range(1, steps + 1):
        weights = weights + rate / sqrt(step) * hinge_gradient(points, is_first, weights)
    return weights
