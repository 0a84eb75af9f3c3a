"""Edges by their owners.

Records are numbered through the nodes in the study's order. All edges whose records have the same owners, argument by
argument, form a cell and run as one vectorised batch. A cell hands out its edges range by range, so a complete edge set
never exists in memory.

In a two-sample statistic every table holds its records of class 0 first, an edge is a record of class 0 and one of
class 1, and so the cells (u, v) and (v, u) are two different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from math import comb, prod
from typing import NamedTuple, Protocol

import numpy as np

from umpc.errors import RangeError
from umpc.ustat.combinations import binomials, unrank
from umpc.ustat.sampling import (
    Words,
    balanced,
    biregular,
    edge_count,
    matchings,
    pairings_of,
    two_sample_edge_count,
)

Owners = tuple[int, ...]
"""The node of each record of an edge, in the order of the kernel's arguments."""

MAX_COMPLETE = 1 << 62
"""Edges of a complete edge set are numbered by int64."""


class Cell(Protocol):
    """The edges with the same owners. A slot is an argument of the kernel: 0..k − 1."""

    @property
    def count(self) -> int: ...

    def edges(self, start: int, stop: int) -> np.ndarray:
        """(k, stop − start) int64; row i: numbers of records inside the table of the i-th owner."""
        ...

    def records(self, slot: int) -> np.ndarray:
        """The records that occur in this slot: int64, ascending, distinct."""
        ...

    def occurrences(self, slot: int, records: int) -> np.ndarray:
        """How often each record of the owner's table occurs in this slot: (records,) int64."""
        ...


@dataclass(frozen=True, eq=False)
class SampledCell:
    """Edges that are listed one by one. columns: (k, count) int64."""

    columns: np.ndarray

    @property
    def count(self) -> int:
        return self.columns.shape[1]

    def edges(self, start: int, stop: int) -> np.ndarray:
        return self.columns[:, start:stop]

    def records(self, slot: int) -> np.ndarray:
        return np.flatnonzero(np.bincount(self.columns[slot]))

    def occurrences(self, slot: int, records: int) -> np.ndarray:
        return np.bincount(self.columns[slot], minlength=records)


class RecordBlock(NamedTuple):
    """All sets of `taken` records out of the `size` records of a table from `first` on."""

    first: int
    size: int
    taken: int

    @property
    def count(self) -> int:
        return comb(self.size, self.taken)


@dataclass(frozen=True)
class CompleteCell:
    """All edges that take one set from each block, by number: mixed radix, then the number of the set in its block.

    blocks: in the order of the slots, which they share out among them. Fewer than 2^62 edges.
    """

    blocks: tuple[RecordBlock, ...]

    @cached_property
    def count(self) -> int:
        return prod(block.count for block in self.blocks)

    def edges(self, start: int, stop: int) -> np.ndarray:
        numbers = np.arange(start, stop)
        parts: list[np.ndarray] = []
        for position in range(len(self.blocks) - 1, -1, -1):
            block, own = self.blocks[position], numbers
            if position > 0:
                numbers, own = np.divmod(numbers, block.count)
            parts.append(unrank(own, block.size, block.taken) + block.first)
        return np.concatenate(parts[::-1])

    def records(self, slot: int) -> np.ndarray:
        block, place = self._find(slot)
        first = block.first + place
        return np.arange(first, first + block.size - block.taken + 1 if self.count else first)

    def occurrences(self, slot: int, records: int) -> np.ndarray:
        """Record j is the place-th of C(j, place)·C(size − 1 − j, taken − 1 − place) sets of its block."""
        found = np.zeros(records, dtype=np.int64)
        if self.count:
            block, place = self._find(slot)
            below, above = (
                binomials(block.size, place),
                binomials(block.size, block.taken - 1 - place)[::-1],
            )
            found[block.first : block.first + block.size] = (
                below * above * (self.count // block.count)
            )
        return found

    def _find(self, slot: int) -> tuple[RecordBlock, int]:
        """The block of a slot, and the slot's place in it."""
        for block in self.blocks:
            if slot < block.taken:
                return block, slot
            slot -= block.taken
        raise IndexError("an edge has no such slot")


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """An edge set over the records of several nodes.

    counts: records of each node, in the study's order. degree: records of an edge. cells: only those that have edges,
    in canonical order.
    """

    counts: tuple[int, ...]
    degree: int
    edge_count: int
    cells: dict[Owners, Cell]

    @cached_property
    def shared_cells(self) -> dict[Owners, Cell]:
        """The cells with at least two different owners, in canonical order."""
        return {owners: self.cells[owners] for owners in sorted(self.cells) if len(set(owners)) > 1}

    @cached_property
    def _meetings(self) -> dict[int, dict[int, list[Owners]]]:
        """node → other node → the cells of both. Among N nodes that all meet, cells are as many as N²."""
        meetings: dict[int, dict[int, list[Owners]]] = {}
        for owners in self.shared_cells:
            for node, other in permutations(sorted(set(owners)), 2):
                meetings.setdefault(node, {}).setdefault(other, []).append(owners)
        return meetings

    def neighbours(self, node: int) -> tuple[int, ...]:
        """The other nodes that share an edge with this one, ascending."""
        return tuple(sorted(self._meetings.get(node, {})))

    def shared_records(self, node: int, other: int) -> np.ndarray:
        """The records of `node` that are in an edge together with a record of another node: int64, ascending."""
        shared = np.zeros(self.counts[node], dtype=bool)
        for owners in self._meetings.get(node, {}).get(other, ()):
            for slot in _slots(owners, node):
                shared[self.shared_cells[owners].records(slot)] = True
        return np.flatnonzero(shared)

    def degrees(self, node: int) -> np.ndarray:
        """In how many edges each record of the node is: (records,) int64."""
        degrees = np.zeros(self.counts[node], dtype=np.int64)
        for owners, cell in self.cells.items():
            for slot in _slots(owners, node):
                degrees += cell.occurrences(slot, self.counts[node])
        return degrees


def _slots(owners: Owners, node: int) -> list[int]:
    return [slot for slot, owner in enumerate(owners) if owner == node]


def expand(rule: str, counts: Sequence[int], words: Words, degree: int = 2) -> Hypergraph:
    """The edge set of a study: the same at every process that holds the joint seed.

    Args:
        rule: as `edge_count` reads it.
        counts: records of each node.
        words: the joint seed's stream.
        degree: records of an edge. Those of one edge ascend, so an edge's owners do not descend.

    Raises: TooFewRecords, StudyError, or RangeError where all edges are too many to be numbered.
    """
    records, pairings = sum(counts), pairings_of(rule)
    count = edge_count(rule, records, degree)
    if count == comb(records, degree) and pairings is None:
        _check_countable(count, f"sets of {degree} of {records} records")
        cells = _all_sets(counts, degree)
    else:
        node, first = _numbering(counts)
        drawn = (
            matchings(records, pairings, words)
            if pairings
            else balanced(records, count, words, degree)
        )
        edges = np.ascontiguousarray(drawn.T)
        owners = node[edges]
        cells = _by_owners(owners, edges - first[owners], len(counts))
    return Hypergraph(tuple(counts), degree, count, cells)


def expand_two_sample(
    rule: str, class_counts: Sequence[tuple[int, int]], words: Words
) -> Hypergraph:
    """The edge set of a two-sample study with public labels: pairs of a class-0 and a class-1 record.

    Args:
        rule: as `two_sample_edge_count` reads it.
        class_counts: each node's records of class 0 and of class 1; its table has them in this order.
        words: the joint seed's stream.

    Returns: cells under (node of the class-0 record, node of the class-1 record), in any order; equal inside a node.
    Raises: TooFewRecords, StudyError, or RangeError where all edges are too many to be numbered.
    """
    counts = tuple(zeros + ones for zeros, ones in class_counts)
    zeros, ones = ([pair[label] for pair in class_counts] for label in (0, 1))
    count = two_sample_edge_count(rule, sum(zeros), sum(ones))
    if count == sum(zeros) * sum(ones):
        _check_countable(count, f"pairs of {sum(zeros)} and {sum(ones)} records")
        cells = _all_pairs(class_counts)
    else:
        edges = np.ascontiguousarray(biregular(sum(zeros), sum(ones), count, words).T)
        (zero_node, zero_first), (one_node, one_first) = _numbering(zeros), _numbering(ones)
        owners = np.stack([zero_node[edges[0]], one_node[edges[1]]])
        rows = edges - np.stack([zero_first[owners[0]], (one_first - np.array(zeros))[owners[1]]])
        cells = _by_owners(owners, rows, len(counts))
    return Hypergraph(counts, 2, count, cells)


def _check_countable(count: int, what: str) -> None:
    if count >= MAX_COMPLETE:
        raise RangeError(
            f'all {what} are {count} edges, more than can be numbered; sample them, edges = "2n" for one'
        )


def _all_sets(counts: Sequence[int], degree: int) -> dict[Owners, Cell]:
    cells: dict[Owners, Cell] = {}
    holders = [node for node, records in enumerate(counts) if records]
    for owners in combinations_with_replacement(holders, degree):
        cell = CompleteCell(
            tuple(RecordBlock(0, counts[node], owners.count(node)) for node in sorted(set(owners)))
        )
        if cell.count:
            cells[owners] = cell
    return cells


def _all_pairs(class_counts: Sequence[tuple[int, int]]) -> dict[Owners, Cell]:
    cells: dict[Owners, Cell] = {}
    for u, (zeros, _) in enumerate(class_counts):
        for v, (before, ones) in enumerate(class_counts):
            cell = CompleteCell((RecordBlock(0, zeros, 1), RecordBlock(before, ones, 1)))
            if cell.count:
                cells[u, v] = cell
    return cells


def _numbering(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The node of each record, numbered through the nodes, and the number of each node's first record."""
    nodes = np.arange(len(counts), dtype=np.min_scalar_type(len(counts)))
    return np.repeat(nodes, counts), np.concatenate([[0], np.cumsum(counts)[:-1]])


def _by_owners(owners: np.ndarray, rows: np.ndarray, nodes: int) -> dict[Owners, Cell]:
    """Splits edges into cells. owners, rows: (k, edges) int64, nodes and numbers of records inside their tables."""
    shape = (nodes,) * len(owners)
    code = np.ravel_multi_index(tuple(owners), shape).astype(
        np.min_scalar_type(prod(shape))
    )  # 16 bits sort fastest
    order = np.argsort(code, kind="stable")
    code = code[order]
    starts = (
        np.concatenate([[0], np.flatnonzero(np.diff(code)) + 1])
        if len(code)
        else np.empty(0, dtype=np.int64)
    )
    found = zip(*np.unravel_index(code[starts].astype(np.int64), shape), strict=True)
    rows = rows[:, order]
    stops = [*starts[1:], len(code)]
    return {
        tuple(map(int, owners)): SampledCell(rows[:, start:stop])
        for owners, start, stop in zip(found, starts, stops, strict=False)
    }
