"""All subsets of a given size, by number. They make a complete edge set a range of integers.

The combinatorial number system (Knuth, The Art of Computer Programming 4A, 7.2.1.3, theorem L):
every number r below C(n, c) is C(b_1, 1) + … + C(b_c, c) for exactly one b_1 < … < b_c < n. The
numbers ascend in colexicographic order of the subsets.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=32)
def binomials(size: int, taken: int) -> NDArray[np.int64]:
    """C(b, taken) for b = 0..size − 1: (size,) int64, read-only.

    The numbers are exact while C(size, taken) < 2^63.
    """
    table: NDArray[np.int64]
    if taken == 0:
        table = np.broadcast_to(np.int64(1), size)  # one number, whatever the size
    else:
        table = np.zeros(size, dtype=np.int64)
        # C(b, c) is the sum of C(a, c − 1) over a < b
        np.cumsum(binomials(size, taken - 1)[:-1], out=table[1:])
    table.setflags(write=False)
    return table


def unrank(numbers: NDArray[np.int64], size: int, taken: int) -> NDArray[np.int64]:
    """The subsets of 0..size − 1 with these numbers.

    Args: numbers: (n,) int64 in 0 .. C(size, taken) − 1.
    Returns: (taken, n) int64, each column ascending.
    """
    subsets = np.empty((taken, len(numbers)), dtype=np.int64)
    for place in range(taken - 1, 0, -1):
        # theorem L: the largest b with C(b, place + 1) ≤ r
        table = binomials(size, place + 1)
        subsets[place] = np.searchsorted(table, numbers, side="right") - 1
        numbers = numbers - table[subsets[place]]
    subsets[0] = numbers
    return subsets


def every_subset(size: int, taken: int) -> NDArray[np.int64]:
    """All subsets, by number: (C(size, taken), taken) int64, each row ascending."""
    return np.ascontiguousarray(unrank(np.arange(comb(size, taken)), size, taken).T)
