"""Uniform numbers from the joint seed's stream, equal at every process that holds the seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = Callable[[int], NDArray[np.uint64]]
"""Number of words → (words,) uint64, uniform, from the joint seed's stream."""


def below(bound: int | NDArray[np.integer], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Uniform integers in [0, bound) from 64-bit words, by multiply and shift (Lemire 2019).

    Only the upper half of each word is used, so each probability is off by less than 2^-32.

    Args:
        bound: 0 < bound ≤ 2^32, one number or one for each word.
        words: (n,) uint64.

    Returns: (n,) int64.
    """
    upper_half = words >> np.uint64(32)
    product = upper_half * np.asarray(bound, dtype=np.uint64)
    return (product >> np.uint64(32)).astype(np.int64)


def secret_order(size: int, words: Words) -> NDArray[np.int64]:
    """A permutation of 0..size − 1, exactly uniform: (size,) int64. It takes `size` words or more.

    Each word gives its lower bits to its place, and all are sorted as they are, which is a small
    part of the work of an argsort. Places whose words are otherwise equal are ordered by further
    words.
    """
    bits = np.uint64(max(1, (size - 1).bit_length()))
    keys = words(size) >> bits
    keys <<= bits
    keys |= np.arange(size, dtype=np.uint64)
    keys.sort()
    order = (keys & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64)
    keys >>= bits
    for start, stop in _runs(keys):
        order[start:stop] = order[start:stop][secret_order(stop - start, words)]
    return order


def _runs(ascending: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """The parts of an ascending array in which a number occurs more than once."""
    equal = np.flatnonzero(ascending[1:] == ascending[:-1])
    if not len(equal):
        return []
    is_first = np.diff(equal, prepend=-2) > 1
    starts, stops = equal[is_first], equal[np.append(is_first[1:], True)] + 2
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def random_order(size: int, words: Words) -> NDArray[np.int64]:
    """A random permutation of 0..size − 1: (size,) int64. It takes `size` words.

    Equal words keep their order. There are hardly ever any, and numpy's usual sorting is several
    times as fast where there are none.
    """
    drawn = words(size)
    order = np.argsort(drawn)
    ascending = drawn[order]
    if (ascending[1:] == ascending[:-1]).any():
        order = np.argsort(drawn, kind="stable")
    return order.astype(np.int64, copy=False)
