"""Edges of graphs with equal degrees, and of larger sets with degrees as equal as possible.

*Levelling.* Edges of three and more records: random, distinct, with degrees as equal as possible.

A random set of distinct edges comes first. Then records that occur too often give places to records
that occur too seldom. Such a step is always possible (`_sure_step`), so the search ends for every
number of records, edges and records of an edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, lcm

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.cell_rows import every_subset
from umpc.ustat.text import Words, below, random_order

BLOCK = 1 << 15
"""Edges that are made at once; all that is computed of them stays in a cache."""
MOST_INT32 = (1 << 31) - 1


def circulant_edges(order: NDArray[np.integer], count: int) -> NDArray[np.integer]:
    """The edges of `circulant` between numbered records, each pair ascending: (2, count).

    Args: order: (records,) the record at each vertex, a permutation.
    """
    order = narrowed(order)
    edges = np.empty((2, count), dtype=order.dtype)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        one, other = order[circulant(len(order), count, start, stop)]
        np.minimum(one, other, out=edges[0, start:stop])
        np.maximum(one, other, out=edges[1, start:stop])
    return edges


def biregular_edges(numberings: Sequence[NDArray[np.integer]], count: int) -> NDArray[np.integer]:
    """The edges of `biregular_pattern` between numbered records: (2, count).

    Args: numberings: for each class, (its records,) the record at each vertex.
    """
    zeros, ones = (narrowed(each) for each in numberings)
    edges = np.empty((2, count), dtype=np.result_type(zeros, ones))
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        pattern = biregular_pattern(len(zeros), len(ones), stop, start)
        edges[0, start:stop] = zeros[pattern[:, 0]]
        edges[1, start:stop] = ones[pattern[:, 1]]
    return edges


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
    whole, rest = divmod(count, records)
    edges = np.arange(start, count if stop is None else stop)
    turn = edges // records
    first = edges - turn * records
    of_rest = slice(max(whole * records - start, 0), None)
    # offset 1 is left for a rest that does not end all pairs
    turn += 2 if rest and whole < (records - 1) // 2 else 1
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


# --- levelling ------------------------------------------------------------------------------------

_LISTED = 1 << 12
"""Edges are drawn from a list of all edges where there are at most this many of them, or at most
four times as many as are asked for."""


def random_edges(records: int, count: int, words: Words, degree: int) -> NDArray[np.int64]:
    """A uniformly random set of `count` edges: (count, degree) int64, rows ascending."""
    total = comb(records, degree)
    if total <= max(_LISTED, 4 * count):
        return every_subset(records, degree)[random_order(total, words)[:count]]
    edges = np.empty((0, degree), dtype=np.int64)
    while (missing := count - len(edges)) > 0:
        # a few more than are missing, since some repeat a record or an edge
        places = (missing + missing // 4 + 16) * degree
        drawn = np.sort(below(records, words(places)).reshape(-1, degree), axis=1)
        edges = np.concatenate([edges, drawn[~_repeats_a_record(drawn)]])
        _, first = np.unique(edge_keys(edges, records), return_index=True)
        edges = edges[np.sort(first)]
    return edges[:count]


def level(edges: NDArray[np.int64], records: int, words: Words) -> NDArray[np.int64]:
    """Change edges in place until every record is in as many as it should be; return them.

    A record should be in ⌊k|E|/n⌋ edges, and a random few in one more. In each step, a record with
    too many edges gives one place to a record with too few. Every step lowers the total deviation
    by 2.

    Args: edges: (count, k) int64, distinct sets of records.
    """
    each, extra = divmod(edges.size, records)
    target = np.full(records, each)
    target[random_order(records, words)[:extra]] += 1
    keys = edge_keys(edges, records)
    while (surplus := np.bincount(edges.ravel(), minlength=records) - target).any():
        givers = np.repeat(np.arange(records), np.maximum(surplus, 0))
        takers = np.repeat(np.arange(records), np.maximum(-surplus, 0))
        takers = takers[random_order(len(takers), words)]
        # many steps at once, at random places
        place = _random_places(edges, givers, surplus > 0, words)
        if not carry_out(edges, keys, place, takers, records):
            # none of them was possible: one step that is
            place = _sure_step(edges, keys, int(givers[0]), int(takers[0]), records)
            carry_out(edges, keys, place[below(len(place), words(1))], takers[:1], records)
    return edges


def complement(edges: NDArray[np.integer], records: int, degree: int) -> NDArray[np.int64]:
    """All edges that are not in the set: (edges, degree) int64, rows ascending."""
    every = every_subset(records, degree)
    return every[~_contains(np.sort(edge_keys(edges, records)), edge_keys(every, records))]


def edge_keys(edges: NDArray[np.integer], records: int) -> NDArray[np.int64]:
    """One number per set of records: (edges,) int64. Their order is that of the ascending rows."""
    ascending = np.sort(edges, axis=1)
    keys = np.zeros(len(edges), dtype=np.int64)
    for column in range(edges.shape[1]):
        keys = keys * records + ascending[:, column]
    return keys


def _random_places(
    edges: NDArray[np.int64],
    wanted: NDArray[np.int64],
    among: NDArray[np.bool_],
    words: Words,
) -> NDArray[np.int64]:
    """For each wanted record one of the places that hold it, at random.

    A place is the number edge·k + column.

    Args: among: (records,) whether a record is wanted.
    """
    places = np.flatnonzero(among[edges.ravel()])
    holds = edges.ravel()[places]
    order = np.argsort(holds, kind="stable")
    start, stop = (np.searchsorted(holds[order], wanted, side=side) for side in ("left", "right"))
    chosen: NDArray[np.int64] = places[order[start + below(stop - start, words(len(wanted)))]]
    return chosen


def carry_out(
    edges: NDArray[np.int64],
    keys: NDArray[np.int64],
    place: NDArray[np.int64],
    takers: NDArray[np.int64],
    records: int,
) -> int:
    """Put the takers into these places where all edges then stay sets of records, and distinct.

    At most one step changes an edge, and no two steps lead to the same edge.

    Args: edges, keys: changed in place.
    Returns: the number of steps taken.
    """
    edge, column = np.divmod(place, edges.shape[1])
    proposed = edges[edge]
    proposed[np.arange(len(edge)), column] = takers
    new = edge_keys(proposed, records)
    sound = ~_repeats_a_record(proposed) & ~_contains(np.sort(keys), new)
    sound = _first_of_each(new, _first_of_each(edge, sound))
    edges[edge[sound]] = proposed[sound]
    keys[edge[sound]] = new[sound]
    return int(sound.sum())


def _sure_step(
    edges: NDArray[np.int64], keys: NDArray[np.int64], giver: int, taker: int, records: int
) -> NDArray[np.int64]:
    """All places at which the taker can follow the giver; there is at least one.

    Putting the taker for the giver pairs all possible edges that hold only the giver with all that
    hold only the taker. In E, edges of the first kind outnumber those of the second. So some edge
    of the first kind has a partner outside E.
    """
    edge = np.flatnonzero((edges == giver).any(axis=1) & ~(edges == taker).any(axis=1))
    proposed = np.where(edges[edge] == giver, taker, edges[edge])
    edge = edge[~_contains(np.sort(keys), edge_keys(proposed, records))]
    places: NDArray[np.int64] = edge * edges.shape[1] + (edges[edge] == giver).argmax(axis=1)
    return places


def _first_of_each(values: NDArray[np.int64], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which entries are the first of their value among the marked ones: (len(values),) bool."""
    marked = np.flatnonzero(among)
    _, first = np.unique(values[marked], return_index=True)
    firsts = np.zeros(len(values), dtype=np.bool_)
    firsts[marked[first]] = True
    return firsts


def _repeats_a_record(edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    ascending = np.sort(edges, axis=1)
    repeats: NDArray[np.bool_] = (ascending[:, 1:] == ascending[:, :-1]).any(axis=1)
    return repeats


def _contains(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the wanted keys are among the keys, which ascend: (len(wanted),) bool."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=np.bool_)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.equal(keys[position], wanted)
