"""Edges block by block: lists that may be read again, so that a whole E need not exist twice.

The two graphs with equal degrees are lists of whole turns: in a turn both ends of the edges run
through all vertices in order, so a block is copied from the numbering in a few slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import lcm
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 15
"""Edges that are listed at once; all that is computed of them stays in a cache."""
MOST_INT32 = (1 << 31) - 1

EdgeBlocks: TypeAlias = Callable[[], Iterator[NDArray[np.integer]]]
"""Lists edges, (k, edges of the block) integers each; the same edges at every call."""


def in_blocks(edges: NDArray[np.integer]) -> EdgeBlocks:
    """Edges that are there as a whole. Args: edges: (k, n)."""

    def blocks() -> Iterator[NDArray[np.integer]]:
        return (edges[:, start:stop] for start, stop in _ranges(edges.shape[1]))

    return blocks


def circulant_blocks(order: NDArray[np.integer], count: int) -> EdgeBlocks:
    """The edges of `circulant` between numbered records, each pair ascending.

    Args: order: (records,) the record at each vertex, a permutation.
    """
    records = len(order)
    order = narrowed(order)
    cycle = np.concatenate([order, order])
    in_turns = count // records * records
    first_offset = _first_offset(records, count)

    def ends(start: int, stop: int) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]:
        for first, last in _cut(start, min(stop, in_turns), records):
            turn, place = divmod(first, records)
            other = place + turn + first_offset
            yield cycle[place : place + last - first], cycle[other : other + last - first]
        if stop > in_turns:
            one, another = order[circulant(records, count, max(start, in_turns), stop)]
            yield one, another

    def blocks() -> Iterator[NDArray[np.integer]]:
        for start, stop in _ranges(count):
            block = np.empty((2, stop - start), dtype=order.dtype)
            filled = 0
            for one, other in ends(start, stop):
                part = slice(filled, filled + len(one))
                np.minimum(one, other, out=block[0, part])
                np.maximum(one, other, out=block[1, part])
                filled = part.stop
            yield block

    return blocks


def biregular_blocks(numberings: Sequence[NDArray[np.integer]], count: int) -> EdgeBlocks:
    """The edges of `biregular_pattern` between numbered records.

    Args: numberings: for each class, (its records,) the record at each vertex.
    """
    sides = [narrowed(each) for each in numberings]

    def blocks() -> Iterator[NDArray[np.integer]]:
        for start, stop in _ranges(count):
            pattern = biregular_pattern(len(sides[0]), len(sides[1]), stop, start)
            columns = zip(sides, pattern.T, strict=True)
            yield np.stack([side.take(of_side) for side, of_side in columns])

    return blocks


def circulant(
    records: int, count: int, start: int = 0, stop: int | None = None
) -> NDArray[np.int64]:
    """A graph on 0..n − 1 with `count` edges and degrees that differ by at most 1.

    The edges {p, p + j mod n} of one offset j < n/2 give every vertex two edges; offset n/2 gives
    it one. Whole offsets come first. The rest comes from the cycle of offset 1, its even places
    before its odd ones. So the rest is a matching first, and second edges come only when every
    vertex has one.

    Args: start, stop: the range of edges that is returned; by default all.

    Returns: (2, stop − start) int64.
    """
    whole = count // records
    edges = np.arange(start, count if stop is None else stop)
    turn = edges // records
    first = edges - turn * records
    of_rest = slice(max(whole * records - start, 0), None)
    turn += _first_offset(records, count)
    if whole == (records - 1) // 2:
        # the rest, if there is one, is part of the matching of offset n/2
        turn[of_rest] = records // 2
    else:
        even = (records + 1) // 2
        place = first[of_rest]
        first[of_rest] = np.where(place < even, 2 * place, 2 * (place - even) + 1)
        turn[of_rest] = 1
    second = first + turn
    # reduce modulo n
    np.subtract(second, records, out=second, where=second >= records)
    return np.stack([first, second])


def _first_offset(records: int, count: int) -> int:
    """The offset of the first turn: offset 1 is left for a rest that does not end all pairs."""
    whole, rest = divmod(count, records)
    return 2 if rest and whole < (records - 1) // 2 else 1


def biregular_pattern(zeros: int, ones: int, count: int, start: int = 0) -> NDArray[np.int64]:
    """A bipartite graph whose degrees inside either class differ by at most 1.

    Edge i is (x, y) = (i mod n₀, i + ⌊i/L⌋ mod n₁), L = lcm(n₀, n₁).

    The edges are distinct. By the Chinese remainder theorem, the L edges of round r = ⌊i/L⌋ are
    exactly the pairs with y − x ≡ r mod gcd(n₀, n₁). There are n₀n₁/L = gcd(n₀, n₁) rounds.

    The degrees are equal up to 1. x runs through 0..n₀ − 1 again and again. A whole round takes
    every y equally often, and the last round r takes them in turn from r on.

    Args: start: the number of the first edge that is returned.

    Returns: (count - start, 2) int64, distinct rows.
    """
    index = np.arange(start, count)
    shifted = index + index // lcm(zeros, ones)
    # numpy divides by one number several times faster than it takes a remainder
    index -= index // zeros * zeros
    shifted -= shifted // ones * ones
    return np.column_stack([index, shifted])


def narrowed(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """A permutation of 0..n − 1 as int32, or as int64 where that does not hold n."""
    return numbers.astype(np.int32 if len(numbers) <= MOST_INT32 else np.int64, copy=False)


def _ranges(count: int) -> Iterator[tuple[int, int]]:
    """The ranges of all blocks: at least one, which is empty where there are no edges."""
    return ((start, min(start + BLOCK, count)) for start in range(0, max(count, 1), BLOCK))


def _cut(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """A range, cut at the multiples of a number."""
    while start < stop:
        end = min(stop, (start // size + 1) * size)
        yield start, end
        start = end
