"""Exact laws for few records: over all permutations, and the largest over all shares of a label.

The laws of Spearman's rho and of tau* have no short recursion, so all permutations of up to
`FEW` records are visited: 40,320, in less than a second.

*Exact counts.* Exact null laws of rank statistics without ties, as probabilities of each count.

All recursions add positive numbers only, so they lose no digits.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import lgamma

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEW = 8
"""Up to so many records, all permutations are visited."""


@lru_cache(maxsize=FEW)
def rank_products(records: int) -> Floats:
    """Spearman's rho of independent columns without ties (Hoeffding 1948, section 9).

    The statistic is 3·d/(n(n − 1)(n − 2)) with a whole number d, from −(n³ − n)/3 to (n³ − n)/3:
    d = Σ r·s − Σ sign·sign over pairs, for sums of signs r = 2·rank − n − 1 and s of each record.

    Returns: the probability of each d, (2·(n³ − n)/3 + 1,) float64.
    """
    orders = _permutations(records)
    centred = 2 * np.arange(records) - records + 1
    products = (2 * orders - records + 1) @ centred
    rises = [np.sign(orders[:, b : b + 1] - orders[:, :b]).sum(axis=1) for b in range(1, records)]
    found = products - 2 * np.sum(rises, axis=0)
    most = (records**3 - records) // 3
    return np.bincount(found + most, minlength=2 * most + 1) / len(orders)


@lru_cache(maxsize=FEW)
def concordant_fours(records: int) -> Floats:
    """The number of sets of four that both columns split into the same halves, if independent.

    Returns: the probability of each number, float64.
    """
    counts = count_concordant_fours(_permutations(records))
    return np.bincount(counts) / len(counts)


def count_concordant_fours(orders: Ints) -> Ints:
    """The sets of four that are split in the same halves by rank and by place.

    A set counts at its second place b. The other place of its half, before b, and two places after
    b, whose values are both above those of the half, or both below.

    Args: orders: (runs, n) permutations of 0 … n − 1. Returns: (runs,) int64.
    """
    records = orders.shape[1]
    there = orders[:, :, None] == np.arange(records)
    later = np.cumsum(there[:, ::-1], axis=1)[:, ::-1] - there
    below = np.cumsum(later, axis=2) - later
    above = later.sum(axis=2, keepdims=True) - below - later
    found = np.zeros(len(orders), dtype=np.int64)
    for b in range(1, records):
        own, before = orders[:, b : b + 1], orders[:, :b]
        many_above = np.take_along_axis(above[:, b], np.maximum(own, before), axis=1)
        many_below = np.take_along_axis(below[:, b], np.minimum(own, before), axis=1)
        pairs = many_above * (many_above - 1) + many_below * (many_below - 1)
        found += pairs.sum(axis=1) // 2
    return found


@lru_cache(maxsize=8)
def most_of_two_values(records: int, first: int | None = None) -> Floats:
    """The largest tails of two independent columns of two values, over all shares of both.

    With r and s records of the second value, and a of both, the statistic is t = a·n − r·s. For
    given r and s, a is hypergeometric (Fisher 1935). The tail is the largest P(statistic >= t)
    over all s, and over all r unless r is `first`. It holds for −t on the other side, too.

    Returns: the tail at each whole t from −n²/4 on, float64.
    """
    n, half = records, records**2 // 4
    tails = np.zeros(2 * half + 1)
    logs = np.array([lgamma(number + 1) for number in range(n + 1)])
    counts = np.arange(n + 1)
    s, a = counts[:, None], counts[None, :]
    for r in range(n + 1) if first is None else (first,):
        is_there = (a <= r) & (a <= s) & (r - a <= n - s)
        fixed = logs[r] + logs[n - r] + logs[s] + logs[n - s] - logs[n]
        parts = (a, r - a, s - a, n - r - s + a)
        chances = fixed - sum(logs[np.clip(part, 0, n)] for part in parts)
        shares = np.where(is_there, np.exp(chances), 0.0)
        above = np.minimum(1.0, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1])
        np.maximum.at(tails, (a * n - r * s)[is_there] + half, above[is_there])
    # a tail is that of the next value that occurs
    return np.maximum.accumulate(tails[::-1])[::-1]


@lru_cache(maxsize=8)
def most_of_a_label(records: int) -> Floats:
    """The largest tails of a column without ties and an independent label, over its shares.

    With r records of the label, u of whose pairs with others are in order, the statistic is
    t = 2·u − r·(n − r). The tail is the largest P(statistic >= t) over all r.

    Returns: the tail at each whole t from −n²/4 on, float64.
    """
    half = records**2 // 4
    tails = np.zeros(2 * half + 1)
    for r in range(records + 1):
        pairs = r * (records - r)
        above = np.cumsum(mann_whitney(r, records - r)[::-1])[::-1]
        np.maximum.at(tails, 2 * np.arange(pairs + 1) - pairs + half, above)
    return np.minimum(1.0, np.maximum.accumulate(tails[::-1])[::-1])


def _permutations(records: int) -> Ints:
    return np.array(list(permutations(range(records))), dtype=np.int64)


# --- exact counts ---------------------------------------------------------------------------------


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
