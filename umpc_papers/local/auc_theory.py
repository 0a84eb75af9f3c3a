"""Bounds on the mean squared error of the locally private AUC: as printed and as proved.

Paper: Bell et al. 2020, appendix B.1. With v = C n alpha for each class, m the smaller class and
s = sqrt(a), theorem 3 bounds the mean squared error by

    MSE(pairs in order) <= C n- n+ alpha^2 ( 2 n + (4a + 1) m + c sqrt(2 n C alpha)/(s - 1) ),

where c = 21. The variant that counts discarded nodes as zero has, in place of the last bracket,

    2 n + (8a + 2) m + sqrt(2 C alpha n)/(s - 1).

*The constant 21 is wrong.* For a true count h and a discarded node, the proof takes
E(h^2, discarded) <= 4 v, from a probability of at most v/(h - sqrt v)^2. But a node is discarded
below h^ < c = 2 sqrt(a v). The probability is therefore at most v/(v + (h - c)^2) (Cantelli), and
h^2 times it is at most c^2 + v = (4a + 1) v. A two-point law reaches this value at h = c + v/c.
For a = 1 it is 5 v. The proof's 4 + 1 becomes 4a + 2, and 21 = 4·5 + 1 becomes
4 (4a + 2) + 1 = 16a + 9. The error does not touch the zero variant.

Here C is that of the counts' true variance. `hadamard` explains the difference from lemma 5.
"""

from __future__ import annotations

from math import sqrt

PRINTED_FACTOR = 21.0
"""The constant c of theorem 3 as the paper prints it."""


def theorem_3(
    negatives: int,
    positives: int,
    levels: int,
    variance_per_record: float,
    constant: float,
    as_printed: bool = False,
) -> float:
    """Bound on the AUC's mean squared error when discarded nodes count as half.

    It holds for independent levels. With the `users` split the bound is alpha times larger.

    Args:
        variance_per_record: C alpha.
        constant: a > 1.
        as_printed: whether to use the paper's 21 instead of the corrected constant.
    """
    root = sqrt(constant)
    factor = PRINTED_FACTOR if as_printed else 16 * constant + 9
    return _bound(
        negatives,
        positives,
        levels,
        variance_per_record,
        smaller_factor=4 * constant + 1,
        root_factor=factor / (root - 1),
    )


def theorem_3_zero(
    negatives: int, positives: int, levels: int, variance_per_record: float, constant: float
) -> float:
    """Bound on the AUC's mean squared error when discarded nodes count as zero."""
    return _bound(
        negatives,
        positives,
        levels,
        variance_per_record,
        smaller_factor=8 * constant + 2,
        root_factor=1 / (sqrt(constant) - 1),
    )


def _bound(
    minus: int,
    plus: int,
    levels: int,
    per_record: float,
    smaller_factor: float,
    root_factor: float,
) -> float:
    """Theorem 3 with given factors of m and of sqrt(2 n C alpha), divided by (n- n+)^2."""
    n = minus + plus
    smaller = min(minus, plus)
    inside = 2 * n + smaller_factor * smaller + root_factor * sqrt(2 * n * per_record)
    return per_record * levels * inside / (minus * plus)


def best_constant(
    negatives: int, positives: int, variance_per_record: float, variant: str
) -> float:
    """The a > 1 that minimises the printed bound.

    With s = sqrt(a) it solves s (s-1)^2 = 21 sqrt(2 n C alpha)/(8 m), or for the zero variant
    s (s-1)^2 = sqrt(2 n C alpha)/(16 m). The paper approximates the root by 1 + sqrt(right side).
    This function finds it by bisection.
    """
    right = _right_side(negatives, positives, variance_per_record, variant)
    low = 1.0
    high = 2.0 + right
    for _ in range(80):
        middle = (low + high) / 2
        if middle * (middle - 1) ** 2 < right:
            low = middle
        else:
            high = middle
    return high**2


def best_constant_approximate(
    negatives: int, positives: int, variance_per_record: float, variant: str
) -> float:
    """Corollaries 4 and 5: the approximation (1 + sqrt(right side))^2 of `best_constant`."""
    return (1 + sqrt(_right_side(negatives, positives, variance_per_record, variant))) ** 2


def _right_side(negatives: int, positives: int, variance_per_record: float, variant: str) -> float:
    """The right side of the equation for s = sqrt(a)."""
    root = sqrt(2 * (negatives + positives) * variance_per_record) / min(negatives, positives)
    return root * (PRINTED_FACTOR / 8 if variant == "half" else 1 / 16)
