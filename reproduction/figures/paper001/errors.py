"""Absolute errors, as in the paper: mean and standard deviation over runs, and their theory."""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, erfc, exp, pi, sqrt

import numpy as np

from reproduction.figures.figure import Measured


def of_runs(errors: Sequence[float], predicted_mse: float) -> Measured:
    """A batch's quantities. errors: each run's error, with its sign.

    `std` is that of the absolute error, as in the paper's bars.
    """
    absolute = np.abs(errors)
    spread = float(np.std(absolute, ddof=1)) if len(absolute) > 1 else 0.0
    root = float(np.sqrt(np.mean(absolute**2)))
    return {
        "absolute_error": absolute,
        "std": [spread],
        "rmse": [root],
        "predicted_rmse": [sqrt(predicted_mse)],
    }


def folded_normal(bias: float, variance: float) -> float:
    """E|X| of a normal variable: √(2/π)·σ without bias.

    Errors are nearly normal if a sum over many records dominates them. Products of two noises are
    not normal.
    """
    if variance <= 0:
        return abs(bias)
    sigma = sqrt(variance)
    return sigma * sqrt(2 / pi) * exp(-(bias**2) / (2 * variance)) + bias * erf(
        bias / (sigma * sqrt(2))
    )


def normal_and_laplace(sigma: float, scale: float) -> float:
    """E|X + Y| for a normal X and a Laplace Y: the mean of |x| + b·e^(−|x|/b) over x."""
    if sigma == 0:
        return scale
    ratio = sigma / scale / sqrt(2)
    if ratio < 5:
        tail = scale * exp(ratio**2) * erfc(ratio)
    else:
        tail = sigma * sqrt(2 / pi) * (1 / (2 * ratio**2))
    return sigma * sqrt(2 / pi) + tail
