"""Split and mix: a sum modulo 2^w from messages that nobody can tell apart.

Every record splits its number into r shares that sum to it, all shares are shuffled, and the coordinator sees a heap of
n r numbers modulo 2^w of which it can say the sum. A vector is split and shuffled coordinate by coordinate.

*How many shares.* Ishai, Kushilevitz, Ostrovsky, Sahai 2006; Balle, Bell, Gascón, Nissim 2020 (and 1909.11225), section
5: for inputs of equal sum the heaps are within statistical distance 2^-s, on average over inputs if

    r >= (2 s + log2 q)/(log2 n - log2 e) + 1,     n >= 19, r >= 3,

and for the worst inputs with one share more, which makes a record's number uniform first. Here q = 2^w, and r is that
of the worst case. For 10^4 numbers of 32 bits and s = 40 it is 12, as in their abstract.

Sinh & Ramon 2025, D.2.1 and table 1, have r = O(log n + s), of the older analysis; here r falls with n.

Of n only those records count whose nodes do not help the coordinator: it knows the shares of the others.
"""

from __future__ import annotations

from math import ceil, e, log2

import numpy as np

from umpc.dp.exact_sampling import ShakeStream
from umpc.errors import TooFewRecords

LEAST_USERS = 19
"""Below it the theorem says nothing."""


def shares_needed(users: int, width: int, security: int) -> int:
    """r, of the worst case. users: honest records. width: w. security: s. Raises: TooFewRecords below 19 users."""
    if users < LEAST_USERS:
        raise TooFewRecords(
            f"shuffling hides nothing provably among {users} records; at least {LEAST_USERS} are needed"
        )
    return max(4, ceil((2 * security + width) / (log2(users) - log2(e)) + 2 - 1e-12))


def split(values: np.ndarray, shares: int, width: int, stream: ShakeStream) -> np.ndarray:
    """(d, n) uint64 below 2^w → (d, n r) uint64: each value's r shares, uniform but for their sum."""
    d, n = values.shape
    mask = np.uint64((1 << width) - 1)
    parts = np.empty((d, n, shares), dtype=np.uint64)
    parts[:, :, 1:] = stream.words(d * n * (shares - 1)).reshape(d, n, shares - 1) & mask
    parts[:, :, 0] = (values - parts[:, :, 1:].sum(axis=2, dtype=np.uint64)) & mask
    return parts.reshape(d, n * shares)


def mix(heap: np.ndarray, stream: ShakeStream) -> np.ndarray:
    """(d, m) uint64, every row in a uniform order of its own. stream: has `words(count)`, uniform uint64.

    A row whose words are not all different, odds below m^2/2^65, gets new ones: given that they differ, their order is
    exactly uniform. Left as it is, such a row would cost more distance than 2^-40 from 6,000 messages on.
    """
    mixed = np.empty_like(heap)
    for row, out in zip(heap, mixed, strict=True):
        out[:] = row[_uniform_order(len(row), stream)]
    return mixed


def _uniform_order(count: int, stream: ShakeStream) -> np.ndarray:
    while True:
        keys = stream.words(count)
        order = np.argsort(keys)
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order


def add_up(heap: np.ndarray, width: int) -> np.ndarray:
    """(d, m) uint64 → (d,) int64: each row's sum modulo 2^w, as a signed number."""
    total = heap.sum(axis=1, dtype=np.uint64) << np.uint64(64 - width)
    return total.view(np.int64) >> np.int64(64 - width)
