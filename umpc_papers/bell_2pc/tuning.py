"""The number of pairings with the least predicted error over a table like the sites' own.

Paper: Bell et al. 2020, section 5 and appendix C.1. P pairings have P times fewer of the sampling's
errors, and P² times the noise variance of a pair, hence P times that of the mean. The paper says
that P should be a small constant, and that P = 1 is best where ε is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.sizes import Sizes

PAIRINGS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
"""The numbers of pairings that are tried; between two classes, pairs of each record of the larger
one."""

Predict = Callable[[Study], float]
"""The mean squared error of a study over the table. Raises: StudyError where it cannot run."""


def best_pairings(study: Study, sizes: Sizes, predict: Predict) -> Study:
    """The study with the edges of the least error. Its own come first."""
    return min([study, *_with_other_edges(study, sizes)], key=lambda each: _error(each, predict))


def optimal_pairings(
    records: int, epsilon: float, zeta_1: float, zeta_2: float, width: float = 1.0
) -> float:
    """The P that makes theorem 5's error least, as a real number of at least 1.

    The error is 2/(Pn)·[2(P − 1)(1 − 1/(n − 1))ζ₁ + (1 + (P − 1)/(n − 1))ζ₂ + 2P²w²/ε²]. Terms
    without P aside it is c/P + 4Pw²/(nε²), so P² = (ζ₂(n − 2) − 2ζ₁(n − 2))/(n − 1)·ε²/(2w²).

    Args: width: w, the length of the kernel's range.
    """
    rest = (zeta_2 - 2 * zeta_1) * (records - 2) / (records - 1)
    return max(1.0, sqrt(max(0.0, rest) / 2) * epsilon / width)


def _with_other_edges(study: Study, sizes: Sizes) -> Iterator[Study]:
    for number in PAIRINGS:
        if not study.two_sample:
            yield study.replaced(edges=f"{number}p")
        elif number <= min(sizes.classes):
            yield study.replaced(edges=str(number * max(sizes.classes)))


def _error(study: Study, predict: Predict) -> float:
    try:
        return predict(study)
    except StudyError:
        return float("inf")
