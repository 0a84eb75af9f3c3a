"""The cells of a large sampled E without its edges, for predictions.

E is drawn from a seed that nobody has before the run. Each set of records is equally likely in it,
so a cell has |E| times its share of all sets, but for a few. A record in d edges meets no record of
a peer with about the probability (1 − p)^d, where p is the peer's part of a set's other records.
Both are the means over all seeds, so a large E is not drawn for a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError
from umpc.study.sizes import ClassCounts, Sizes
from umpc.ustat.hypergraph import Cell, Hypergraph, Owners, expand, expand_two_sample

MOST_DRAWN = 1 << 16
"""A larger E is not drawn for a plan."""
LEAST_A_CELL = 256
"""The edges of a cell, on average, from which a cell's number is near its mean."""


@dataclass(frozen=True)
class ExpectedCell:
    """A cell of which only the number of edges is known. tables: each owner's records, by slot."""

    count: int
    tables: tuple[NDArray[np.int64], ...]

    def edges(self, start: int, stop: int) -> NDArray[np.int64]:
        """Raises: LocalProtocolError, because the cell has no edges."""
        raise LocalProtocolError("a planned cell has no edges")

    def records(self, slot: int) -> NDArray[np.int64]:
        return self.tables[slot]

    def occurrences(self, slot: int, records: int) -> NDArray[np.int64]:
        """Raises: LocalProtocolError, because the cell has no edges."""
        raise LocalProtocolError("a planned cell has no edges")


def is_expected(sizes: Sizes) -> bool:
    """Whether E is sampled, and too large to be drawn for a plan."""
    if not MOST_DRAWN < sizes.edges < sizes.sets:
        return False
    groups = int(sizes.holders**sizes.study.degree)
    return sizes.edges >= LEAST_A_CELL * groups


def expected_hypergraph(sizes: Sizes, classes: Sequence[ClassCounts]) -> Hypergraph:
    """The cells of a sampled E. Args: classes: each node's records of the two classes."""
    study = sizes.study
    if study.two_sample:
        every = expand_two_sample("all", classes, _no_words)
    else:
        every = expand("all", [sum(both) for both in classes], _no_words, study.degree)
    met = _Met(sizes, classes)
    cells: dict[Owners, Cell] = {}
    for owners, count in _shares(every, sizes.edges):
        tables = tuple(
            met.first(every.cells[owners].records(slot), slot, owners[slot], set(owners))
            for slot in range(len(owners))
        )
        cells[owners] = ExpectedCell(count, tables)
    counts = tuple(every.counts)
    if study.two_sample:
        return Hypergraph(counts, every.degree, sizes.edges, cells)
    return ExpectedHypergraph(counts, every.degree, sizes.edges, cells, met)


@dataclass(frozen=True)
class _Met:
    """The number of records that meet a peer's, in the mean over all E.

    classes: each node's records of the two classes.
    """

    sizes: Sizes
    classes: Sequence[ClassCounts]

    def first(
        self, records: NDArray[np.int64], slot: int, owner: int, owners: Iterable[int]
    ) -> NDArray[np.int64]:
        """The first of an owner's records, as many as meet a record of the largest other owner."""
        parts = [self._part(slot, peer) for peer in owners if peer != owner]
        missed = (1 - max(parts, default=1.0)) ** self._others(slot)
        return records[: ceil(len(records) * (1 - missed))]

    def _part(self, slot: int, peer: int) -> float:
        """A peer's part of the records that another record of a set is one of."""
        if self.sizes.study.two_sample:
            return self.classes[peer][1 - slot] / self.sizes.classes[1 - slot]
        return sum(self.classes[peer]) / (self.sizes.records - 1)

    def _others(self, slot: int) -> float:
        """How many other records a record is in an edge with, on average."""
        if self.sizes.study.two_sample:
            return self.sizes.edges / self.sizes.classes[slot]
        degree = self.sizes.study.degree
        return (degree - 1) * degree * self.sizes.edges / self.sizes.records


@dataclass(frozen=True)
class ExpectedHypergraph(Hypergraph):
    """A sampled E of which only numbers are known."""

    met: _Met

    def shared_records(self, node: int, other: int) -> NDArray[np.int64]:
        return self.met.first(np.arange(self.counts[node]), 0, node, (other,))


def _shares(every: Hypergraph, edges: int) -> Iterator[tuple[Owners, int]]:
    """Whole numbers of edges in proportion to the cells, which add up to all edges."""
    before, given = 0, 0
    for owners, cell in sorted(every.cells.items()):
        before += cell.count
        upto = round(Fraction(before * edges, every.edge_count))
        if upto > given:
            yield owners, upto - given
        given = upto


def _no_words(count: int) -> NDArray[np.uint64]:
    raise LocalProtocolError("a complete set of edges needs no words")
