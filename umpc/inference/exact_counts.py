"""Exact null laws of rank statistics without ties, as probabilities of each count.

All recursions add positive numbers only, so they lose no digits.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@lru_cache(maxsize=8)
def inversions(records: int) -> Floats:
    """The number of discordant pairs if both columns are independent (Kendall 1938).

    Returns: (C(n, 2) + 1,) float64.
    """
    law = np.ones(1)
    for size in range(2, records + 1):
        # the next record is discordant with 0 to size − 1 of the earlier ones, equally likely
        longer = np.zeros(len(law) + size - 1)
        for shift in range(size):
            longer[shift : shift + len(law)] += law
        law = longer / size
    return law


@lru_cache(maxsize=8)
def mann_whitney(first: int, second: int) -> Floats:
    """The number of pairs whose record of the first class is larger (Mann & Whitney 1947).

    Returns: (first·second + 1,) float64.
    """
    # rows[n]: the law for m records of the first class and n of the second
    rows = [np.ones(1) for _ in range(second + 1)]
    for m in range(1, first + 1):
        longer = [np.ones(1)]
        for n in range(1, second + 1):
            law = np.zeros(m * n + 1)
            # the largest record is of the first class, and beats all n, or of the second class
            law[n : n + len(rows[n])] += rows[n] * (m / (m + n))
            law[: len(longer[n - 1])] += longer[n - 1] * (n / (m + n))
            longer.append(law)
        rows = longer
    return rows[second]


@lru_cache(maxsize=8)
def signed_pairs(records: int) -> Floats:
    """The number of pairs with a positive sum, under symmetry about 0 (Wilcoxon 1945, Tukey 1949).

    A pair's sum has the sign of its larger number, so the record of rank r decides r − 1 pairs.

    Returns: (C(n, 2) + 1,) float64.
    """
    law = np.ones(1)
    for others in range(1, records):
        longer = np.zeros(len(law) + others)
        longer[: len(law)] += law / 2
        longer[others:] += law / 2
        law = longer
    # the record of rank 1 decides no pair
    return law
