"""The exact law of the number of equal pairs, of records that are uniform over cells.

With few cells all counts of all cells are visited. With more, the counts are independent Poisson
numbers, given that their sum is n. So with w(i) for a Poisson probability of mean n/cells,

    E y^pairs = [x^n] (Σ w(i)·x^i·y^(i(i − 1)/2))^cells / P(sum = n).

Both x and y run over roots of unity: the mean over x gives the coefficient, and one Fourier
transform over y gives the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, comb, exp, lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

LOST = 32.3
"""Numbers of pairs whose probability is below e^-LOST, which is 1e-14, lie outside the window."""
NOTHING = 1e-16
"""A cell's count of which all cells together have a smaller probability counts for nothing."""
MOST_TABLES = 1 << 20
"""Ways to spread the records over the cells, up to which they are all visited."""
MOST_PLACES = 1 << 20
"""The largest window of numbers of pairs."""
MOST_RECORDS = 10_000
MOST_WORK = 1 << 26
"""Multiplications up to which the transform is computed: about a quarter of a second."""
TILTS = 80
AT_ONCE = 1 << 18
"""Numbers of a block: 4 MiB."""


@dataclass(frozen=True)
class EqualPairs:
    """least: the smallest number of pairs. probabilities: from it on. rounding: more than the sum
    of some of them is wrong by.
    """

    least: int
    probabilities: Floats
    rounding: float


@lru_cache(maxsize=8)
def equal_pairs(records: int, cells: int) -> EqualPairs | None:
    """The law of the number of pairs of records in one cell; None where it takes too long.

    Args: records: at least 2. cells: at least 2.
    """
    if records > MOST_RECORDS:
        return None
    weights = _poisson(records / cells, records)
    likely = np.flatnonzero(np.exp(weights) * cells > NOTHING)
    weights = weights[: int(likely[-1]) + 1]
    low, high = _window(records, cells, weights)
    if high - low > MOST_PLACES:
        return None
    rounding = 100 * exp(-LOST) + NOTHING * cells * sqrt(records)
    if comb(records + cells - 1, cells - 1) <= MOST_TABLES:
        return EqualPairs(low, _visited(records, cells, low, high), rounding)
    places = 1 << (high - low + 1).bit_length()
    roots = ceil(10 * sqrt(records)) + 40
    if (places // 2 + 1) * roots * (len(weights) + 4 * cells.bit_length()) > MOST_WORK:
        return None
    times = np.arange(places // 2 + 1) * (2 * pi / places)
    rows = max(1, AT_ONCE // roots)
    blocks = np.split(times, range(rows, len(times), rows))
    found = [_characteristic(block, np.exp(weights), records, cells, roots) for block in blocks]
    law = np.fft.irfft((np.concatenate(found) * np.exp(-1j * times * low)).conj(), places)
    return EqualPairs(low, np.maximum(law[: high - low + 1], 0.0), rounding)


def _visited(records: int, cells: int, low: int, high: int) -> Floats:
    """The probabilities from `low` to `high` pairs, by all ways to spread the records."""
    left, pairs, logs = np.array([records]), np.zeros(1, dtype=np.int64), np.zeros(1)
    factorials = _log_factorials(records)
    for cell in range(cells):
        # a way for each count of this cell, and the last cell takes the rest
        many = left + 1 if cell < cells - 1 else np.ones_like(left)
        ways = np.repeat(np.arange(len(left)), many)
        counts = np.arange(len(ways)) - np.repeat(np.cumsum(many) - many, many)
        counts = counts if cell < cells - 1 else left
        left = left[ways] - counts
        pairs = pairs[ways] + counts * (counts - 1) // 2
        logs = logs[ways] - factorials[counts]
    shares = np.exp(logs + factorials[records] - records * log(cells))
    inside = (pairs >= low) & (pairs <= high)
    law = np.bincount(pairs[inside] - low, shares[inside], high - low + 1)
    return np.asarray(law, dtype=np.float64)


def _log_factorials(most: int) -> Floats:
    return np.array([lgamma(number + 1) for number in range(most + 1)])


def _poisson(mean: float, most: int) -> Floats:
    """Logarithms of Poisson probabilities from 0 to `most`."""
    found: Floats = np.arange(most + 1) * log(mean) - mean - _log_factorials(most)
    return found


def _window(records: int, cells: int, weights: Floats) -> tuple[int, int]:
    """The smallest and the largest number of pairs that count.

    Chernoff's bound of the Poisson numbers, divided by P(sum = n) > 1/(3·√n).
    """
    counts = np.arange(len(weights))
    pairs = counts * (counts - 1) / 2
    each, more = divmod(records, cells)
    least = more * comb(each + 1, 2) + (cells - more) * comb(each, 2)
    spread = sqrt(comb(records, 2) / cells) + 1
    low, high = float(least), float(comb(records, 2))
    for tilt in np.geomspace(1e-2, 1e2, TILTS) / spread:
        room = LOST + log(3 * sqrt(records))
        above = cells * float(np.logaddexp.reduce(weights + tilt * pairs))
        below = cells * float(np.logaddexp.reduce(weights - tilt * pairs))
        high = min(high, (above + room) / tilt)
        low = max(low, -(below + room) / tilt)
    return int(low), ceil(high)


def _characteristic(
    times: Floats, shares: Floats, records: int, cells: int, roots: int
) -> Complexes:
    """E exp(i·t·pairs) at these times."""
    counts = np.arange(len(shares))
    angles = np.arange(roots) * (2 * pi / roots)
    by_time = shares * np.exp(1j * np.outer(times, counts * (counts - 1) / 2))
    by_root = np.exp(1j * np.outer(counts, angles))
    tables = _power(by_time @ by_root, cells)
    given = roots * np.exp(_poisson(records, records)[-1])
    found: Complexes = tables @ np.exp(-1j * angles * records) / given
    return found


def _power(base: Complexes, exponent: int) -> Complexes:
    """base^exponent, by repeated squares."""
    found = np.ones_like(base)
    while exponent:
        if exponent & 1:
            found = found * base
        exponent >>= 1
        base = base * base
    return found
