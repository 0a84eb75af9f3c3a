"""Split and mix: a sum modulo 2^w from messages that nobody can tell apart.

Every record splits its number into r shares that add up to it. All shares are shuffled. The
coordinator sees a heap of n r numbers modulo 2^w, of which it can compute the sum. A vector is
split and shuffled coordinate by coordinate.

*The number of shares.* Ishai, Kushilevitz, Ostrovsky, Sahai 2006; Balle, Bell, Gascón, Nissim 2020
(and arXiv 1909.11225), section 5. For inputs of equal sum, the heaps are within statistical
distance 2^-s, on average over inputs, if

    r >= (2 s + log2 q)/(log2 n - log2 e) + 1,     n >= 19, r >= 3.

For the worst inputs one more share is enough, because it makes a record's number uniform first.
Here q = 2^w, and r is that of the worst case. For 10^4 numbers of 32 bits and s = 40 it is 12, as
in their abstract.

Sinh & Ramon 2025, D.2.1 and table 1, have r = O(log n + s) from the older analysis. Here r falls
with n.

Only the records of nodes that do not help the coordinator count for n, because the coordinator
knows the shares of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, e, log2
from typing import Protocol

import numpy as np

from umpc.errors import TooFewRecords
from umpc.mpc.arrays import Integers, Words

LEAST_USERS = 19
"""The theorem proves nothing for fewer users."""
LEAST_SHARES = 4
"""r >= 3 of the theorem, and one share more for the worst inputs."""


class WordStream(Protocol):
    """A stream of random words, such as `ShakeStream`."""

    def words(self, count: int, /) -> Words:
        """(count,) uint64, uniform and independent."""
        ...


def shares_needed(users: int, width: int, security: int) -> int:
    """r of the worst case.

    Args:
        users: the number of honest records.
        width: w, bits of a number.
        security: s, for a statistical distance of at most 2^-s.

    Raises:
        TooFewRecords: there are fewer than `LEAST_USERS` users.
    """
    if users < LEAST_USERS:
        raise TooFewRecords(
            f"shuffling hides nothing provably among {users} records; "
            f"at least {LEAST_USERS} are needed"
        )
    # Section 5, with 1e-12 against rounding upwards of an exact integer.
    needed = (2 * security + width) / (log2(users) - log2(e)) + 2 - 1e-12
    return max(LEAST_SHARES, ceil(needed))


def split(values: Words, shares: int, width: int, stream: WordStream) -> Words:
    """Each value's r shares. They are uniform except that they add up to the value.

    Args:
        values: (d, n) uint64 below 2^w.
        shares: r.
        width: w.
        stream: secret randomness.

    Returns: (d, n r) uint64 below 2^w.
    """
    d, n = values.shape
    mask = np.uint64((1 << width) - 1)
    parts = np.empty((d, n, shares), dtype=np.uint64)
    drawn = stream.words(d * n * (shares - 1)).reshape(d, n, shares - 1)
    parts[:, :, 1:] = drawn & mask
    parts[:, :, 0] = (values - parts[:, :, 1:].sum(axis=2, dtype=np.uint64)) & mask
    return parts.reshape(d, n * shares)


def mix(heap: Words, stream: WordStream) -> Words:
    """The heap with every row in a uniform order of its own, as in `mix_rows`: (d, m) uint64."""
    mixed = np.empty_like(heap)
    for row, out in zip(mix_rows(heap, stream), mixed, strict=True):
        out[:] = row
    return mixed


def mix_rows(rows: Iterable[Words], stream: WordStream) -> Iterator[Words]:
    """Each row in a uniform order of its own, one row at a time.

    A row whose words are not all different, with probability below m^2/2^65, gets new words. Given
    that the words differ, their order is exactly uniform. A row left as it is would cost more
    distance than 2^-40 from 6,000 messages on.

    Args:
        rows: each (m,) uint64.
        stream: secret randomness.
    """
    for row in rows:
        yield row[_uniform_order(len(row), stream)]


def _uniform_order(count: int, stream: WordStream) -> Integers:
    """A uniformly random order: (count,) int64."""
    while True:
        keys = stream.words(count)
        order = np.argsort(keys)
        ordered = keys[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order


def add_up(heap: Words, width: int) -> Integers:
    """Each row's sum modulo 2^w, as a signed number.

    Args:
        heap: (d, m) uint64.
        width: w.

    Returns: (d,) int64 in -2^(w-1) .. 2^(w-1) - 1.
    """
    unused = 64 - width
    total: Words = heap.sum(axis=1, dtype=np.uint64) << np.uint64(unused)
    signed: Integers = total.view(np.int64) >> np.int64(unused)
    return signed
