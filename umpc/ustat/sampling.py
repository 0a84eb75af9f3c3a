"""Edge sets drawn from a joint seed: which sets of records the statistic averages over.

`balanced` does what BalancedSamp of Sinh & Ramon 2025, appendix F, is for: distinct edges, no record in more than
⌈k|E|/n⌉ of them, so that one record changes the sum by at most ⌈k|E|/n⌉·Δf. All constructions are indifferent to how
records are numbered, so that every edge is equally likely:

- single records: a random subset.
- pairs: a fixed graph with degrees as equal as possible, its vertices numbered by a random permutation. Linear time, no
  search. The estimate's variance depends on E only through how many pairs of edges share a record, which equal degrees
  fix, so no other balanced way of drawing E is more accurate (docs/decisions/0006).
- larger edges: distinct random edges, in which records that occur too often then give places to records that occur too
  seldom. Such a step is always possible (`_sure_step`), so the search ends for every n, |E| and k.
- two samples, `biregular`: as for pairs, with a numbering of either class (docs/decisions/0007).

`matchings` are the pairs of Bell et al. 2020, section 5: P random pairings of all records. A pair may come twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import comb, lcm

import numpy as np

from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.ustat.combinations import every_subset

Words = Callable[[int], np.ndarray]
"""Number of words → (words,) uint64, uniform; from the joint seed's stream, the same at every process."""

_RULE = re.compile(r"0*[1-9][0-9]{0,17}[np]?")
_LISTED = 1 << 12
"""Edge sets are drawn from a list of all edges where there are this many, or few compared with those asked for."""


def edge_count(rule: str, records: int, degree: int = 2) -> int:
    """|E| for a study's rule: "all", a multiple of n such as "2n", pairings of all records such as "1p", or a number.

    Raises: TooFewRecords, or StudyError where the rule is unreadable or asks for more edges than exist.
    """
    if records < degree:
        raise TooFewRecords(
            f"a statistic of degree {degree} needs at least {degree} records in all, the nodes have {records} together"
        )
    total = comb(records, degree)
    if (pairings := pairings_of(rule)) is not None:
        if degree != 2:
            raise StudyError(
                f'edges = "{rule}" pairs the records, and the statistic is over {degree}; ask for "2n"'
            )
        return pairings * (records // 2)
    return _count(rule, records, total, f"{records} records have only {total} sets of {degree}")


def two_sample_edge_count(rule: str, zeros: int, ones: int) -> int:
    """|E| where an edge is a record of class 0 and one of class 1; a multiple counts the records of both classes.

    Raises: TooFewRecords, or StudyError where the rule is unreadable or asks for more edges than exist.
    """
    if min(zeros, ones) < 1:
        raise TooFewRecords(
            f"a two-sample statistic needs at least 1 record of either class, "
            f"the nodes have {zeros} of class 0 and {ones} of class 1 together"
        )
    total = zeros * ones
    if pairings_of(rule) is not None:
        raise StudyError(
            f'edges = "{rule}" pairs all records, and this statistic those of two classes; ask for "2n"'
        )
    return _count(
        rule,
        zeros + ones,
        total,
        f"{zeros} records of class 0 and {ones} of class 1 have only {total} pairs",
    )


def _count(rule: str, records: int, total: int, there_are: str) -> int:
    number, unit = read_rule(rule)
    if number is None:
        return total
    count = number * (records if unit == "n" else 1)
    if count > total and not unit:
        raise StudyError(f"edges = {count}, but {there_are}; ask for fewer or all")
    return min(count, total)


def read_rule(rule: str) -> tuple[int | None, str]:
    """A study's rule: a number (None: all) and what it counts, "n" records, "p" pairings, "" edges.

    Raises: StudyError.
    """
    if rule == "all":
        return None, ""
    if not _RULE.fullmatch(rule):
        raise StudyError(
            f'edges must be "all", a multiple of n such as "2n", pairings of all records such as "1p", or a positive '
            f"number; got {rule[:40]!r}"
        )
    number = rule.rstrip("np")
    return int(number), rule[len(number) :]


def pairings_of(rule: str) -> int | None:
    """P, of a rule that asks for pairings of all records; else None."""
    number, unit = read_rule(rule)
    return number if unit == "p" else None


def max_degree(count: int, records: int, degree: int = 2) -> int:
    """δ_max of a balanced edge set: ⌈k|E|/n⌉."""
    return -(-degree * count // records)


def two_sample_max_degree(count: int, zeros: int, ones: int) -> int:
    """δ_max of a biregular edge set: ⌈|E|/n⌉ of the smaller class."""
    return -(-count // min(zeros, ones))


def balanced(records: int, count: int, words: Words, degree: int = 2) -> np.ndarray:
    """Distinct edges with degrees as equal as possible.

    Returns: (count, degree) int64, each row ascending, in no particular order.
    """
    if degree == 1:
        return np.argsort(words(records), kind="stable")[:count, None]
    if records**degree > 1 << 63:
        raise RangeError(
            f"{records} records are too many for edges of {degree}; at most 2^{63 // degree}"
        )
    order = np.argsort(words(records), kind="stable")
    if degree == 2:
        one, other = (order[places] for places in _circulant(records, count))
        return np.stack([np.minimum(one, other), np.maximum(one, other)]).T
    total = comb(records, degree)
    if (
        2 * count > total
    ):  # degrees of the complement differ as little; a sparse set is levelled in fewer steps
        return _complement(balanced(records, total - count, words, degree), records, degree)
    return np.sort(order[_level(_distinct(records, count, words, degree), records, words)], axis=1)


def matchings(records: int, pairings: int, words: Words) -> np.ndarray:
    """P independent, uniformly random pairings; of an odd number of records each leaves one out.

    Returns: (P·⌊n/2⌋, 2) int64, each row ascending; a pair of several pairings is there several times.
    """
    pairs = records // 2
    edges = np.empty((pairings * pairs, 2), dtype=np.int64)
    for start in range(0, len(edges), pairs):
        edges[start : start + pairs] = np.argsort(words(records), kind="stable")[
            : 2 * pairs
        ].reshape(-1, 2)
    return np.sort(edges, axis=1)


def biregular(zeros: int, ones: int, count: int, words: Words) -> np.ndarray:
    """Distinct pairs of a class-0 and a class-1 record, degrees inside either class as equal as possible.

    Returns: (count, 2) int64, numbers of records inside their class, in no particular order.
    """
    pattern = _biregular(zeros, ones, count)
    numbering = [np.argsort(words(size), kind="stable") for size in (zeros, ones)]
    return np.column_stack([numbering[side][pattern[:, side]] for side in (0, 1)])


def _biregular(zeros: int, ones: int, count: int) -> np.ndarray:
    """A bipartite graph whose degrees inside either class differ by at most 1: (count, 2) int64, distinct.

    Edge i is (x, y) = (i mod n₀, i + ⌊i/L⌋ mod n₁), L = lcm(n₀, n₁). Distinct: by the Chinese remainder theorem, the L
    edges of round r = ⌊i/L⌋ are exactly the pairs with y − x ≡ r mod gcd(n₀, n₁), and there are n₀n₁/L = gcd(n₀, n₁)
    rounds. Degrees: x runs through 0..n₀ − 1 again and again. A whole round takes every y equally often, and the last
    one takes them in turn from r on.
    """
    index = np.arange(count)
    return np.column_stack([index % zeros, (index + index // lcm(zeros, ones)) % ones])


def _circulant(records: int, count: int) -> np.ndarray:
    """A graph on 0..n−1 with so many edges and degrees that differ by at most 1: (2, count) int64.

    Edges {p, p + j mod n} of one offset j < n/2 give every vertex two edges; offset n/2 gives it one. Whole offsets
    first. The rest comes from the cycle of offset 1, its even places before its odd ones: a matching first, and then,
    when every vertex has an edge, second ones.
    """
    whole, rest = divmod(count, records)
    places = np.arange(records)
    offsets = (records - 1) // 2
    if whole == offsets:  # the rest, if there is one, is part of the matching of offset n/2
        last, offset, first_offset = places[:rest], records // 2, 1
    else:
        last, offset = np.concatenate([places[::2], places[1::2]])[:rest], 1
        first_offset = 2 if rest else 1
    start = np.concatenate([np.tile(places, whole), last])
    end = start + offset
    offsets = np.arange(first_offset, first_offset + whole)
    np.add(places, offsets[:, None], out=end[: whole * records].reshape(whole, records))
    np.subtract(end, records, out=end, where=end >= records)
    return np.stack([start, end])


def _distinct(records: int, count: int, words: Words, degree: int) -> np.ndarray:
    """A uniformly random set of so many edges: (count, degree) int64, rows ascending."""
    total = comb(records, degree)
    if total <= max(_LISTED, 4 * count):
        return every_subset(records, degree)[np.argsort(words(total), kind="stable")[:count]]
    edges = np.empty((0, degree), dtype=np.int64)
    while (missing := count - len(edges)) > 0:
        drawn = np.sort(
            below(records, words((missing + missing // 4 + 16) * degree)).reshape(-1, degree),
            axis=1,
        )
        edges = np.concatenate([edges, drawn[~_repeats_a_record(drawn)]])
        _, first = np.unique(edge_keys(edges, records), return_index=True)
        edges = edges[np.sort(first)]
    return edges[:count]


def _level(edges: np.ndarray, records: int, words: Words) -> np.ndarray:
    """Steps that each give one place of a record with too many edges to one with too few, until all have their number.

    That number is ⌊k|E|/n⌋, and one more for a random few. Every step takes the total deviation down by 2.
    """
    each, extra = divmod(edges.size, records)
    target = np.full(records, each)
    target[np.argsort(words(records), kind="stable")[:extra]] += 1
    keys = edge_keys(edges, records)
    while (surplus := np.bincount(edges.ravel(), minlength=records) - target).any():
        givers = np.repeat(np.arange(records), np.maximum(surplus, 0))
        takers = np.repeat(np.arange(records), np.maximum(-surplus, 0))
        takers = takers[np.argsort(words(len(takers)), kind="stable")]
        place = _random_places(edges, givers, surplus > 0, words)
        if not _carry_out(edges, keys, place, takers, records):
            place = _sure_step(edges, keys, int(givers[0]), int(takers[0]), records)
            _carry_out(edges, keys, place[below(len(place), words(1))], takers[:1], records)
    return edges


def _random_places(
    edges: np.ndarray, wanted: np.ndarray, among: np.ndarray, words: Words
) -> np.ndarray:
    """For each wanted record one of the places (edge·k + column) that hold it; among: (records,) the wanted ones."""
    places = np.flatnonzero(among[edges.ravel()])
    holds = edges.ravel()[places]
    order = np.argsort(holds, kind="stable")
    start, stop = (np.searchsorted(holds[order], wanted, side=side) for side in ("left", "right"))
    return places[order[start + below(stop - start, words(len(wanted)))]]


def _carry_out(
    edges: np.ndarray, keys: np.ndarray, place: np.ndarray, takers: np.ndarray, records: int
) -> int:
    """Puts the takers into these places where this leaves all edges sound and distinct: the number of steps taken.

    edges, keys: changed in place. One step per edge at a time, and no two that lead to the same edge.
    """
    edge, column = np.divmod(place, edges.shape[1])
    proposed = edges[edge]
    proposed[np.arange(len(edge)), column] = takers
    new = edge_keys(proposed, records)
    sound = ~_repeats_a_record(proposed) & ~_contains(np.sort(keys), new)
    sound = _first_of_each(new, _first_of_each(edge, sound))
    edges[edge[sound]], keys[edge[sound]] = proposed[sound], new[sound]
    return int(sound.sum())


def _sure_step(
    edges: np.ndarray, keys: np.ndarray, giver: int, taker: int, records: int
) -> np.ndarray:
    """All places at which the taker can follow the giver; at least one.

    Edges that hold the giver and not the taker outnumber those that hold the taker and not the giver, and putting the
    one for the other pairs all possible edges of the two kinds: so some edge of the first kind has a partner outside E.
    """
    edge = np.flatnonzero((edges == giver).any(axis=1) & ~(edges == taker).any(axis=1))
    proposed = np.where(edges[edge] == giver, taker, edges[edge])
    edge = edge[~_contains(np.sort(keys), edge_keys(proposed, records))]
    return edge * edges.shape[1] + (edges[edge] == giver).argmax(axis=1)


def _first_of_each(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Which entries are the first of their value among the marked ones: (len(values),) bool."""
    marked = np.flatnonzero(among)
    _, first = np.unique(values[marked], return_index=True)
    firsts = np.zeros(len(values), dtype=bool)
    firsts[marked[first]] = True
    return firsts


def _repeats_a_record(edges: np.ndarray) -> np.ndarray:
    ascending = np.sort(edges, axis=1)
    return (ascending[:, 1:] == ascending[:, :-1]).any(axis=1)


def _contains(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which of the wanted keys are among these, which ascend: (len(wanted),) bool."""
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=bool)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[position] == wanted


def _complement(edges: np.ndarray, records: int, degree: int) -> np.ndarray:
    """All edges that are not in the set."""
    every = every_subset(records, degree)
    return every[~_contains(np.sort(edge_keys(edges, records)), edge_keys(every, records))]


def edge_keys(edges: np.ndarray, records: int) -> np.ndarray:
    """One number per set of records: (edges,) int64; ordered as the ascending rows are."""
    ascending = np.sort(edges, axis=1)
    keys = np.zeros(len(edges), dtype=np.int64)
    for column in range(edges.shape[1]):
        keys = keys * records + ascending[:, column]
    return keys


def below(bound: int | np.ndarray, words: np.ndarray) -> np.ndarray:
    """Uniform integers in [0, bound) from 64-bit words, 0 < bound ≤ 2^32; each off by less than 2^-32 in probability.

    Multiply and shift (Lemire 2019) on the upper half of each word.
    """
    return ((words >> np.uint64(32)) * np.asarray(bound, dtype=np.uint64) >> np.uint64(32)).astype(
        np.int64
    )
