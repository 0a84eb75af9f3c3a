"""A private linear ranking: stochastic gradient descent on a loss over pairs of records.

    F(θ) = mean over pairs {i, j} of φ(sign(y_i - y_j) θ·(x_i - x_j)), 0 for ties;
    φ(m) = log(1 + e^{-m}) or max(0, 1 - m)

Each of T steps draws a batch of b of n records and a balanced set of pairs inside the batch, in
which every record is in at most δ pairs (`umpc/ustat/sampling.py`). It clips each pair's gradient
to length c, adds discrete Gaussian noise to their sum, and moves θ against it. θ stays in the ball
of radius R. The average of all θ is returned.

The sensitivity of a step. A record is in at most δ pairs of a batch, and these follow from random
bits, not from data. Replacing the record changes only those pairs' gradients, each from one vector
of length <= c to another: the sum moves by at most 2δc. (Clipping per record instead, the mean over
all its partners, would also move the partners' gradients.) So a step is ρ-zCDP on its batch with
ρ = (2δc)²/(2σ²) = 1/(2z²) for noise σ = z 2δc on every coordinate. T steps, each on a secret random
batch, cost T times the curve of `amplification`. θ may depend on all earlier releases (adaptive).

Exact where privacy is decided. Gradients are floating point, then truncated to integers in steps of
c/`STEPS`. Their squared length is compared in integers, and a longer gradient counts as 0. Noise is
a discrete Gaussian on integers. From there on everything is post-processing.

Theory: `excess_bound`. For F convex, gradients at most c long before clipping, and a start at 0,
the average's E F - min F over the ball is at most R²/(2γT) + γG²/2 with
G² = c² + p (noise variance of one coordinate of the mean gradient), which is R G/√T at the best γ.

Paper: Bellet 2021 (slides), DP-SGD; Bassily, Smith, Thakurta 2014; Bell et al. 2020, section 6
(pairwise losses as future work); Shamir, Zhang 2013. Departures: Rényi accounting, and batches of
pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reproduction.baselines.amplification import sampled_gaussian_curve
from reproduction.baselines.curves import total_curve
from umpc.dp.composition import Curve, least_scale, renyi_epsilon, satisfies
from umpc.dp.distributed_gaussian import discrete_gaussians
from umpc.dp.events import check_delta, check_epsilon, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.ustat.sampling import balanced, max_degree
from umpc_papers.central.terms import permutation, words

STEPS = 1 << 20
"""The length c in steps of the gradients' grid."""

LOSSES = ("logistic", "hinge")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairwiseSgd:
    """(epsilon(delta), delta)-DP for every delta, replace-one.

    Args:
        records: n, public.
        batch: b, 2 <= b <= n.
        steps: T.
        clip: c > 0, longest gradient of a pair; exact.
        noise: z > 0, σ in units of the sensitivity 2δc; exact.
        radius: R > 0 of the ball that θ stays in; exact.
        pairs: d >= 1 pairs for each record of a batch; b d/2 in all.
        rate: γ > 0, exact. None stands for R/(G√T).
        loss: one of `LOSSES`.

    Raises:
        StudyError: a parameter is not exact or out of range.
    """

    records: int
    batch: int
    steps: int
    clip: Fraction
    noise: Fraction
    radius: Fraction
    pairs: int = 1
    rate: Fraction | None = None
    loss: str = "logistic"

    def __post_init__(self) -> None:
        whole = (self.records, self.batch, self.steps, self.pairs)
        if not all(is_integer(number) and number >= 1 for number in whole):
            raise StudyError("records, batch, steps and pairs must be integers above 0")
        if not (
            2 <= self.batch <= self.records
            and self.pairs < self.batch
            and self.batch * self.pairs >= 2
        ):
            raise StudyError(
                "a batch has at least 2 and at most all records, and its records have fewer pairs "
                "than there are records in it"
            )
        numbers = (self.clip, self.noise, self.radius, *([] if self.rate is None else [self.rate]))
        if not all(is_exact(number) and number > 0 for number in numbers):
            raise StudyError("clip, noise, radius and rate must be exact numbers above 0")
        if self.loss not in LOSSES:
            raise StudyError(f"the loss must be one of {', '.join(LOSSES)}, but {self.loss!r} came")

    def fit(self, features: Floats, scores: Floats, bits: RandomBits) -> Floats:
        """The averaged θ: (p,) float64.

        Args:
            features: (n, p) float64; an entry that is not a finite number counts as 0.
            scores: (n,) numbers; a record of a higher score should be ranked higher.
            bits: the source of randomness.

        Reveals: θ. The noisy gradients could be shown too, at the same epsilon.

        Raises:
            StudyError: the shapes do not fit.
        """
        if features.ndim != 2 or len(features) != self.records or scores.shape != (self.records,):
            raise StudyError(f"expected {self.records} rows of features and as many scores")
        x = np.nan_to_num(np.asarray(features, dtype=np.float64), posinf=0.0, neginf=0.0)
        theta = np.zeros(x.shape[1])
        total = np.zeros(x.shape[1])
        rate = float(self.rate) if self.rate else self.best_rate(x.shape[1])
        for _ in range(self.steps):
            total += theta
            theta = self._inside(theta - rate * self.noisy_gradient(theta, x, scores, bits))
        return total / self.steps

    def noisy_gradient(self, theta: Floats, x: Floats, y: Floats, bits: RandomBits) -> Floats:
        """Noisy mean gradient of one batch's pairs.

        Returns:
            (p,) float64, multiples of clip/(STEPS x pairs of a batch).
        """
        chosen = permutation(self.records, bits)[: self.batch]
        edges = balanced(self.batch, self.edges, lambda count: words(count, bits))
        first, second = chosen[edges].T
        found = clipped_gradients(
            theta, x[first] - x[second], np.sign(y[first] - y[second]), self.clip, self.loss
        )
        noisy = [int(g) + discrete_gaussians(self.parameter, 1, bits)[0] for g in found.sum(axis=0)]
        return np.array([float(Fraction(g) * self.clip / (STEPS * self.edges)) for g in noisy])

    def _inside(self, theta: Floats) -> Floats:
        length = float(np.linalg.norm(theta))
        return theta if length <= self.radius else theta * (float(self.radius) / length)

    @property
    def edges(self) -> int:
        """Pairs of a batch."""
        return self.batch * self.pairs // 2

    @property
    def sensitivity(self) -> int:
        """2δc, the most by which the sum of a batch's gradients moves, in steps of the grid."""
        return 2 * max_degree(self.edges, self.batch) * STEPS

    @property
    def parameter(self) -> Fraction:
        """σ² of every coordinate of the sum, in steps of the grid, squared."""
        return (self.noise * self.sensitivity) ** 2

    def epsilon(self, delta: Fraction) -> Fraction:
        """The epsilon of all steps together with this delta, rounded up."""
        return renyi_epsilon(
            _curve(self.noise**2, self.batch, self.records, self.steps), check_delta(delta)
        )

    def gradient_noise(self) -> float:
        """Standard deviation of the noise on a coordinate of the mean gradient."""
        return math.sqrt(self.parameter) * float(self.clip) / (STEPS * self.edges)

    def gradient_bound(self, dimension: int) -> float:
        """G: root mean squared length of a noisy gradient, at most."""
        return math.sqrt(float(self.clip) ** 2 + dimension * self.gradient_noise() ** 2)

    def best_rate(self, dimension: int) -> float:
        """γ = R/(G√T)."""
        return float(self.radius) / (self.gradient_bound(dimension) * math.sqrt(self.steps))

    def excess_bound(self, dimension: int) -> float:
        """A bound of E F(average) - min F over the ball, truncation included.

        It holds where no gradient is clipped.
        """
        rate = float(self.rate) if self.rate else self.best_rate(dimension)
        start = float(self.radius) ** 2 / (2 * rate * self.steps)
        truncated = 2 * float(self.radius) * math.sqrt(dimension) * float(self.clip) / STEPS
        return start + rate * self.gradient_bound(dimension) ** 2 / 2 + truncated


def calibrate_noise(
    epsilon: Fraction, delta: Fraction, records: int, batch: int, steps: int
) -> Fraction:
    """Nearly the least z for which that many steps are (epsilon, delta)-DP."""
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    square = least_scale(
        lambda z2: satisfies(_curve(z2, batch, records, steps), epsilon, delta), Fraction(1)
    )
    return Fraction(math.isqrt(math.ceil(square * (1 << 40))) + 1, 1 << 20)


def _curve(square: Fraction, batch: int, records: int, steps: int) -> Curve:
    """The curve of T steps with noise z² = `square` on batches of b of n records."""
    one = sampled_gaussian_curve(1 / (2 * square), Fraction(batch, records))
    return total_curve([(one, steps)])


def clipped_gradients(
    theta: Floats, differences: Floats, order: Floats, clip: Fraction, loss: str
) -> NDArray[np.int64]:
    """The gradient of each pair's loss by θ, cut to length `clip`.

    Args:
        theta: θ, (p,) float64.
        differences: x_i - x_j, (pairs, p) float64.
        order: sign(y_i - y_j), (pairs,).
        clip: c, the longest gradient.
        loss: one of `LOSSES`.

    Returns:
        (pairs, p) int64, in steps of clip/STEPS.
    """
    signed = differences * order[:, None]
    margin = signed @ theta
    gradients = signed * _slopes(margin, loss)[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        length = np.sqrt((gradients**2).sum(axis=1))
        factor = np.minimum(1.0, float(clip) / length) * ((STEPS - 1) / float(clip))
        scaled = gradients * factor[:, None]
    cut: NDArray[np.int64] = np.trunc(np.nan_to_num(np.clip(scaled, -STEPS, STEPS))).astype(
        np.int64
    )
    cut[(cut**2).sum(axis=1) > STEPS**2] = 0
    return cut


def _slopes(margin: Floats, loss: str) -> Floats:
    """φ' at each margin m: -1/(1 + e^m), or -1 below 1 for the hinge loss."""
    if loss == "hinge":
        return np.where(margin < 1, -1.0, 0.0)
    return -0.5 * (1 - np.tanh(margin / 2))


def pairwise_risk(theta: Floats, features: Floats, scores: Floats, loss: str) -> float:
    """F(θ) over all pairs, in the clear: the objective."""
    i, j = np.triu_indices(len(features), 1)
    order = np.sign(scores[i] - scores[j])
    margin = order * ((features[i] - features[j]) @ theta)
    found = np.maximum(0, 1 - margin) if loss == "hinge" else np.logaddexp(0, -margin)
    return float(np.where(order == 0, 0.0, found).mean())
