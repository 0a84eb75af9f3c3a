"""The AUC by the generic protocol of Bell et al. 2020, section 3: randomised response over k bins.

Their AUC (equation 7) is, up to C(n,2)/(n⁺n⁻), the mean over all pairs of

    f((s,y), (s',y')) = [s > s', y > y'] + [s < s', y < y'],      ties of s half (docs/papers.md).

Classes are public in the paper's experiments, so a record randomises only its score. For two
records of one class f is 0, whatever they tell. For a positive i and a negative j it is A = [s >
s'] + [s = s']/2 between their bins. Its unbiased estimate is g^-2 (e_i − b)'A(e_j − b)
(`umpc_papers.local.bell_ldp`). So the sum over all pairs, divided by n⁺n⁻, is

    AUC^ = V'A W / (n⁺n⁻),

where V is the sum over positives of (e_told − b)/g, and W the same over negatives. No pair of a
record with itself is among these, so nothing is taken out. V and W are independent. Their means are
the true histograms v and w, and their covariances are S and T, hence

    Var V'AW = v'A T A'v + w'A'S A w + tr(A T A'S),

    S = D − a1' − 1a',   a = (1−g)/(kg) v + n (1−g)²/(2k²g²) 1,   D = diag(p/g² − v),
    p = g v + n (1−g)/k 1,

from diag − pp' summed over records. A is a sum over lower bins, so all of this costs O(k), and k
may be 2^20.

A told histogram has this law: a binomial part of each bin's records tells the truth, and each other
record tells a uniform bin. With private classes a cell is a bin and a class (2k cells), and the
protocol is `BellLdp` itself: `private_classes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from reproduction.figures.paper001.scores import Scores, score_field
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import find_statistic
from umpc_papers.exact_sampling import truth_threshold
from umpc_papers.local.bell_ldp import BellLdp
from umpc_papers.local.quantisation import Bins, Quantiser

LABEL = FieldSchema("label", Fraction(0), Fraction(1), Fraction(1))


@dataclass(frozen=True)
class GenericAuc:
    """The generic protocol. epsilon: > 0, for each record's score. bins: k."""

    epsilon: Fraction
    bins: int

    @cached_property
    def truth(self) -> float:
        """g: the probability that a record tells the truth. Otherwise it tells a uniform bin."""
        return truth_threshold(self.epsilon, self.bins) / 2.0**64

    def draw_told(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(k,) float64: a random histogram that a class with these counts tells."""
        truthful = rng.binomial(counts.astype(np.int64), self.truth)
        others = rng.integers(self.bins, size=int(counts.sum() - truthful.sum()))
        return (truthful + np.bincount(others, minlength=self.bins)).astype(float)

    def estimate(self, negatives: np.ndarray, positives: np.ndarray) -> float:
        """The estimate of the AUC from the histogram that each class told."""
        minus, plus = (
            told - told.sum() * (1 - self.truth) / self.bins for told in (negatives, positives)
        )
        return float(plus @ _below(minus)) / (self.truth**2 * negatives.sum() * positives.sum())

    def expected(self, negatives: np.ndarray, positives: np.ndarray) -> float:
        """The AUC of the bins."""
        return float(positives @ _below(negatives)) / (negatives.sum() * positives.sum())

    def variance(self, negatives: np.ndarray, positives: np.ndarray) -> float:
        """The estimate's variance for these true counts: see above."""
        (t, a), (s, b) = self._covariance(negatives), self._covariance(positives)
        total = _quadratic(t, a, _above(positives)) + _quadratic(s, b, _below(negatives))
        ones = np.ones(self.bins)
        of_ones, of_a = _below(ones), _below(a)
        total += (
            s @ (_below(t) - t / 4) - 2 * s @ (of_a * of_ones) - 2 * t @ (_above(b) * _above(ones))
        )
        total += 2 * ((of_ones @ b) * of_a.sum() + of_ones.sum() * (b @ of_a))
        return float(total) / (negatives.sum() * positives.sum()) ** 2

    def _covariance(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """D's diagonal, and a."""
        g, k, n = self.truth, self.bins, counts.sum()
        told = g * counts + n * (1 - g) / k
        return told / g**2 - counts, (1 - g) / (k * g) * counts + n * ((1 - g) / (k * g)) ** 2 / 2


def _below(counts: np.ndarray) -> np.ndarray:
    """A·counts: the number of records below each bin, and half of the bin's own."""
    return np.cumsum(counts) - counts / 2


def _above(counts: np.ndarray) -> np.ndarray:
    """A'·counts: the number above each bin, and half of the bin's own."""
    return counts.sum() - np.cumsum(counts) + counts / 2


def _quadratic(diagonal: np.ndarray, a: np.ndarray, z: np.ndarray) -> float:
    """z'(D − a1' − 1a')z."""
    return float(diagonal @ z**2 - 2 * (a @ z) * z.sum())


def private_classes(epsilon: Fraction, bins: int) -> BellLdp:
    """The protocol for records that randomise bin and class together: 2k cells, all pairs."""
    schema = Schema([score_field(), LABEL])
    kernel = Kernel(find_statistic("auc_private").expressions(["score", "label"])[0], schema)
    return BellLdp(
        epsilon, Quantiser(kernel, (Bins.equal(score_field(), bins), Bins.equal(LABEL, 2)))
    )


def labelled(scores: Scores) -> tuple[dict[str, np.ndarray], float]:
    """The records of both classes, and C(n,2)/(n⁺n⁻).

    The mean over all pairs times this factor is the AUC.
    """
    minus, plus = scores.sizes
    columns = {
        "score": np.concatenate([scores.negatives, scores.positives]),
        "label": np.repeat(np.array([0, 1], dtype=np.int64), [minus, plus]),
    }
    n = minus + plus
    return columns, n * (n - 1) / 2 / (minus * plus)
