"""The bounds of theorem 3, as the paper has them and as its proof gives them.

Paper: Bell et al. 2020, appendix B.1. With v = C n alpha for each class, m the smaller class, s = sqrt(a):

    MSE(pairs in order) <= C n- n+ alpha^2 ( 2 n + (4a + 1) m + c sqrt(2 n C alpha)/(s - 1) ),   c = 21,

and for the variant that takes discarded nodes as zero ( 2 n + (8a + 2) m + sqrt(2 C alpha n)/(s - 1) ).

*Where 21 is wrong.* For a true count h and a discarded node, the proof has E(h^2, discarded) <= 4 v, from odds of at
most v/(h - sqrt v)^2. But a node is discarded below h^ < c = 2 sqrt(a v), so these odds are at most v/(v + (h - c)^2)
(Cantelli) and h^2 times that is at most c^2 + v = (4a + 1) v; a two-point law reaches it at h = c + v/c. For a = 1 that
is 5 v. The proof's 4 + 1 becomes 4a + 2, and 21 = 4·5 + 1 becomes 4 (4a + 2) + 1 = 16a + 9. The variant is not touched.
C is that of the counts' true variance here: see `hadamard` for lemma 5.
"""

from __future__ import annotations

from math import sqrt


def theorem_3(
    negatives: int,
    positives: int,
    levels: int,
    variance_per_record: float,
    constant: float,
    as_printed: bool = False,
) -> float:
    """Bound of the AUC's MSE, discarded nodes taken as half; for independent levels (alpha times it with `users`).

    Args: variance_per_record: C alpha. constant: a > 1. as_printed: with the paper's 21.
    """
    root = sqrt(constant)
    factor = 21.0 if as_printed else 16 * constant + 9
    return _bound(
        negatives, positives, levels, variance_per_record, 4 * constant + 1, factor / (root - 1)
    )


def theorem_3_zero(
    negatives: int, positives: int, levels: int, variance_per_record: float, constant: float
) -> float:
    """The same for the variant that takes discarded nodes as zero."""
    return _bound(
        negatives,
        positives,
        levels,
        variance_per_record,
        8 * constant + 2,
        1 / (sqrt(constant) - 1),
    )


def _bound(
    minus: int, plus: int, levels: int, per_record: float, of_smaller: float, of_root: float
) -> float:
    n, smaller = minus + plus, min(minus, plus)
    inside = 2 * n + of_smaller * smaller + of_root * sqrt(2 * n * per_record)
    return per_record * levels * inside / (minus * plus)


def best_constant(
    negatives: int, positives: int, variance_per_record: float, variant: str
) -> float:
    """The a > 1 that makes the printed bound least: s (s-1)^2 = 21 sqrt(2 n C alpha)/(8 m); sqrt(..)/(16 m) for zero.

    The paper approximates the root by 1 + sqrt of the right side; here it is found by bisection.
    """
    root = sqrt(2 * (negatives + positives) * variance_per_record) / min(negatives, positives)
    right = root * (21 / 8 if variant == "half" else 1 / 16)
    low, high = 1.0, 2.0 + right
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * (middle - 1) ** 2 < right else (low, middle)
    return high**2


def best_constant_approximate(
    negatives: int, positives: int, variance_per_record: float, variant: str
) -> float:
    """Corollaries 4 and 5: (1 + sqrt(right side))^2."""
    root = sqrt(2 * (negatives + positives) * variance_per_record) / min(negatives, positives)
    return (1 + sqrt(root * (21 / 8 if variant == "half" else 1 / 16))) ** 2
