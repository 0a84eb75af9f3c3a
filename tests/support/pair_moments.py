"""The moments of one fixed table without privacy, for kernels of degree 2.

They give the exact distance of the disjoint and the subsampled mean from the complete mean, which
arises because sets were drawn.

Paper: Lee 1990, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from umpc.errors import StudyError
from umpc_papers.central.terms import CompleteFamily, Terms, sums


@dataclass(frozen=True)
class PairMoments:
    """Moments of one table with a kernel of degree 2, in squared values of f.

    They are means of (f_S - U)(f_T - U) over pairs of sets {S, T}.

    Args:
        records: n.
        mean: U, in values.
        same: the mean for S = T.
        adjacent: the mean over S and T with one record in common.
        apart: the mean over S and T with no record in common.
    """

    records: int
    mean: float
    same: float
    adjacent: float
    apart: float

    def disjoint(self) -> float:
        """Mean squared distance of the mean over n // 2 disjoint random pairs from U."""
        taken = self.records // 2
        return self.same / taken + (1 - 1 / taken) * self.apart

    def subsampled(self, count: int) -> float:
        """Mean squared distance of the mean over `count` independent pairs from U."""
        return self.same / count

    def zetas(self) -> tuple[float, float]:
        """Estimates of Hoeffding's ζ_1 and ζ_2, with an error of O(1/n)."""
        return max(0.0, self.adjacent), self.same


def pair_moments(terms: Terms) -> PairMoments:
    """The moments of a table, from one pass over all pairs and a second one for the squares.

    Let N be the number of pairs. The sum over all S and T of (f_S-U)(f_T-U) is
    0 = N (same + 2(n-2) adjacent + C(n-2, 2) apart). Take for each record i the square of the sum
    of (f_S-U) over all S with i: these squares add up to N (2 same + 2(n-2) adjacent).

    Raises:
        StudyError: the degree is not 2, or there are fewer than four records.
    """
    if terms.degree != 2 or terms.records < 4:
        raise StudyError("moments of pairs need a kernel of two records and at least four records")
    n = terms.records
    family = CompleteFamily(n, 2)
    whole, at = sums(terms, family)
    pairs = family.count
    unit = float(terms.unit)
    mean = whole / pairs
    squares = sum(float(((terms.evaluate(sets) - mean) ** 2).sum()) for sets in family.chunks())
    same = squares / pairs
    around = float(((at - (n - 1) * mean) ** 2).sum()) / pairs
    adjacent = (around - 2 * same) / (2 * (n - 2))
    apart = -(same + 2 * (n - 2) * adjacent) / comb(n - 2, 2)
    same, adjacent, apart = (np.array([same, adjacent, apart]) * unit**2).tolist()
    return PairMoments(n, mean * unit, same, adjacent, apart)
