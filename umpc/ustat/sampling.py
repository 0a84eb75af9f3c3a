"""Edge sets drawn from a joint seed: which pairs the statistic averages over.

`balanced` does what BalancedSamp of Sinh & Ramon 2025, appendix F, is for: distinct edges, no record in more than
⌈k|E|/n⌉ of them, so that one record changes the sum by at most ⌈k|E|/n⌉·Δf. Two constructions, both indifferent to how
records are numbered, so that every edge is equally likely:

- pairs: a fixed graph with degrees as equal as possible, its vertices numbered by a random permutation. Linear time, no
  search. The estimate's variance depends on E only through how many pairs of edges share a record, which equal degrees
  fix, so no other balanced way of drawing E is more accurate (docs/decisions/0006).
- larger edges: the k|E| places of the edges are dealt to the records in one shuffle, and the few edges that repeat a
  record or another edge are mended by swaps, which leave every degree as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np

from umpc.errors import LocalProtocolError, RangeError, StudyError, TooFewRecords

Words = Callable[[int], np.ndarray]
"""Number of words → (words,) uint64, uniform; from the joint seed's stream, the same at every process."""

_RULE = re.compile(r"0*[1-9][0-9]{0,17}n?")
_ROUNDS = 50
_SWEEPS = 200
_RESTARTS = 1000


def edge_count(rule: str, records: int, degree: int = 2) -> int:
    """|E| for a study's rule: "all", a multiple of n such as "2n", or a number.

    Raises: TooFewRecords, or StudyError where the rule is unreadable or asks for more edges than exist.
    """
    if records < degree:
        raise TooFewRecords(
            f"a statistic of degree {degree} needs at least {degree} records in all, the nodes have {records} together"
        )
    total = comb(records, degree)
    number, of_n = read_rule(rule)
    if number is None:
        return total
    count = number * (records if of_n else 1)
    if count > total and of_n:
        return total
    if count > total:
        raise StudyError(
            f"edges = {count}, but {records} records have only {total} sets of {degree}; ask for fewer or all"
        )
    return count


def read_rule(rule: str) -> tuple[int | None, bool]:
    """A study's rule as a number (None: all) and whether it counts multiples of n. Raises: StudyError."""
    if rule == "all":
        return None, False
    if not _RULE.fullmatch(rule):
        raise StudyError(f'edges must be "all", a multiple of n such as "2n", or a positive number; got {rule[:40]!r}')
    return int(rule.removesuffix("n")), rule.endswith("n")


def max_degree(count: int, records: int, degree: int = 2) -> int:
    """δ_max of a balanced edge set: ⌈k|E|/n⌉."""
    return -(-degree * count // records)


def balanced(records: int, count: int, words: Words, degree: int = 2) -> np.ndarray:
    """Distinct edges with degrees as equal as possible.

    Returns: (count, degree) int64, each row ascending, in no particular order.
    """
    if records**degree >= 1 << 63:
        raise RangeError(f"{records} records are too many for edges of {degree}; at most 2^{63 // degree}")
    if degree == 2:
        order = np.argsort(words(records), kind="stable")
        return np.sort(order[_circulant(records, count)], axis=1)
    total = comb(records, degree)
    if 2 * count > total:
        return _complement(balanced(records, total - count, words, degree), records, degree)
    for _ in range(_RESTARTS):
        edges = _mend(_deal_places(records, count, words, degree), records, words)
        if edges is not None:
            return edges
    raise LocalProtocolError(f"no balanced set of {count} edges over {records} records was found")


def _circulant(records: int, count: int) -> np.ndarray:
    """A graph on 0..n−1 with so many edges and degrees that differ by at most 1: (count, 2) int64.

    Edges {p, p + j mod n} of one offset j < n/2 give every vertex two edges; offset n/2 gives it one. Whole offsets
    first. The rest comes from the cycle of offset 1, its even places before its odd ones: a matching first, and then,
    when every vertex has an edge, second ones.
    """
    whole, rest = divmod(count, records)
    places = np.arange(records)
    offsets = (records - 1) // 2
    if whole == offsets:  # the rest, if there is one, is part of the matching of offset n/2
        last = np.column_stack([places[:rest], places[:rest] + records // 2])
        first_offset = 1
    else:
        partial = np.concatenate([places[::2], places[1::2]])[:rest]
        last = np.column_stack([partial, partial + 1])
        first_offset = 2 if rest else 1
    jumps = np.repeat(np.arange(first_offset, first_offset + whole), records)
    start = np.tile(places, whole)
    return np.concatenate([np.column_stack([start, start + jumps]), last]) % records


def _deal_places(records: int, count: int, words: Words, degree: int) -> np.ndarray:
    """Every record ⌊k|E|/n⌋ times and a random few once more, shuffled into the places of the edges."""
    rounds, extra = divmod(degree * count, records)
    lucky = np.argsort(words(records), kind="stable")[:extra]
    places = np.concatenate([np.tile(np.arange(records), rounds), lucky])
    return places[np.argsort(words(len(places)), kind="stable")].reshape(count, degree)


def _mend(edges: np.ndarray, records: int, words: Words) -> np.ndarray | None:
    """Swap single places between a faulty edge and a random other one until no edge is faulty.

    A swap is carried out only if it gives two sound edges that no edge equals, so sound edges stay sound and only the
    faulty ones are looked at again. Keys of edges that were swapped away stay in the list of taken keys until the
    next round, which costs a few chances and saves sorting all edges after every sweep.
    """
    for _ in range(_ROUNDS):
        keys, order = _sorted_keys(edges, records)
        faulty, added = _faulty(edges, keys, order), np.empty(0, dtype=np.int64)
        if len(faulty) == 0:
            return np.sort(edges[order], axis=1)
        for _ in range(_SWEEPS):
            before = len(faulty)
            faulty, new = _swap(edges, (keys, added), faulty, records, words)
            added = np.sort(np.concatenate([added, new]))
            if len(faulty) == 0 or len(faulty) == before:
                break
    return None


def _swap(
    edges: np.ndarray, taken: tuple[np.ndarray, ...], faulty: np.ndarray, records: int, words: Words
) -> tuple[np.ndarray, np.ndarray]:
    """One proposal per faulty edge; the good ones are carried out: (edges that are still faulty, new keys)."""
    degree = edges.shape[1]
    partner = below(len(edges), words(len(faulty)))
    place, other = (below(degree, words(len(faulty))) for _ in range(2))
    _, first = np.unique(partner, return_index=True)
    usable = np.zeros(len(faulty), dtype=bool)
    usable[first] = True
    usable &= ~np.isin(partner, faulty)
    mended, partner, place, other = (array[usable] for array in (faulty, partner, place, other))

    mine, theirs = edges[mended].copy(), edges[partner].copy()
    row = np.arange(len(mended))
    mine[row, place], theirs[row, other] = edges[partner, other], edges[mended, place]
    proposed = np.concatenate([mine, theirs])
    new_keys = edge_keys(proposed, records)
    _, index, counts = np.unique(new_keys, return_inverse=True, return_counts=True)
    sound = ~_repeats_a_record(proposed) & (counts[index] == 1)
    for keys in taken:
        sound &= ~_contains(keys, new_keys)
    accepted = sound[: len(row)] & sound[len(row) :]
    edges[mended[accepted]], edges[partner[accepted]] = mine[accepted], theirs[accepted]
    return np.setdiff1d(faulty, mended[accepted], assume_unique=True), new_keys[np.tile(accepted, 2)]


def _sorted_keys(edges: np.ndarray, records: int) -> tuple[np.ndarray, np.ndarray]:
    keys = edge_keys(edges, records)
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def _faulty(edges: np.ndarray, keys: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Indices of edges that repeat a record, or repeat an earlier edge."""
    repeated = np.zeros(len(edges), dtype=bool)
    repeated[order[1:]] = keys[1:] == keys[:-1]
    return np.flatnonzero(repeated | _repeats_a_record(edges))


def _repeats_a_record(edges: np.ndarray) -> np.ndarray:
    ascending = np.sort(edges, axis=1)
    return (ascending[:, 1:] == ascending[:, :-1]).any(axis=1)


def _contains(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if len(keys) == 0:
        return np.zeros(len(wanted), dtype=bool)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[position] == wanted


def _complement(edges: np.ndarray, records: int, degree: int) -> np.ndarray:
    """All edges that are not in the set; degrees stay as equal as they were."""
    every = np.array(list(combinations(range(records), degree)), dtype=np.int64)
    if len(edges) == 0:
        return every
    return every[~_contains(edge_keys(edges, records), edge_keys(every, records))]


def edge_keys(edges: np.ndarray, records: int) -> np.ndarray:
    """One number per set of records: (edges,) int64; ordered as the ascending rows are."""
    ascending = np.sort(edges, axis=1)
    keys = np.zeros(len(edges), dtype=np.int64)
    for column in range(edges.shape[1]):
        keys = keys * records + ascending[:, column]
    return keys


def below(bound: int, words: np.ndarray) -> np.ndarray:
    """Uniform integers in [0, bound) from 64-bit words, bound ≤ 2^32; each off by less than 2^-32 in probability.

    Multiply and shift (Lemire 2019) on the upper half of each word.
    """
    return ((words >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)
