"""The edge set of a study, divided into cells by the owners of each edge's records.

Records are numbered through the nodes in the study's order. All edges whose records have the same
owners, argument by argument, form a cell (`cell_rows.py`) and run as one vectorised batch.

In a two-sample statistic every table holds its records of class 0 first. An edge is a record of
class 0 and a record of class 1, so the cells (u, v) and (v, u) are two different ones.

*Sorted edges.* Listed edges sorted into cells by the owners of their records.

The list is read twice: first for the size of each cell, then each edge goes to its place. So E
takes its final memory, 8 bytes a pair since four hold any number of a record, and a byte or two
more for each edge's cell for a while.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RangeError
from umpc.ustat.cell_rows import (
    Cell,
    CellRows,
    CompleteCell,
    ListedCells,
    Owners,
    RecordBlock,
    SampledCell,
)
from umpc.ustat.edge_blocks import MOST_INT32
from umpc.ustat.sampling import (
    Words,
    balanced,
    biregular,
    edge_count,
    matchings,
    pairings_of,
    two_sample_edge_count,
    uniform,
)

__all__ = ["Cell", "CompleteCell", "Owners", "RecordBlock", "SampledCell"]
"""Names of other modules that this one passes on."""
MAX_COMPLETE = 1 << 62
"""Edges of a complete edge set are numbered by int64, and are fewer than this."""


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """An edge set over the records of several nodes.

    Args:
        counts: the records of each node, in the study's order.
        degree: the records of an edge.
        cells: only those that have edges, in canonical order.
    """

    counts: tuple[int, ...]
    degree: int
    edge_count: int
    cells: Mapping[Owners, Cell]

    @cached_property
    def rows(self) -> CellRows:
        """The cells as rows of arrays."""
        if isinstance(self.cells, ListedCells):
            return self.cells.rows
        return CellRows.of(self.cells, self.degree)

    @cached_property
    def shared_cells(self) -> dict[Owners, Cell]:
        """The cells with at least two different owners, in canonical order."""
        return {owners: self.cells[owners] for owners in self.rows.names(self.rows.shared)}

    def cells_of(self, node: int) -> dict[Owners, Cell]:
        """The cells of a node's edges, its own cell among them, in canonical order."""
        return {owners: self.cells[owners] for owners in self.rows.names(self.rows.of_node(node))}

    @cached_property
    def _meetings(self) -> dict[int, dict[int, list[Owners]]]:
        """The results of `_met_by` so far. Among N nodes that all meet are about N² cells."""
        return {}

    def _met_by(self, node: int) -> dict[int, list[Owners]]:
        """Other node → the cells that both own."""
        if node not in self._meetings:
            met: dict[int, list[Owners]] = {}
            for owners in self.rows.names(self.rows.of_node(node)):
                for other in set(owners):
                    if other != node:
                        met.setdefault(other, []).append(owners)
            self._meetings[node] = met
        return self._meetings[node]

    def neighbours(self, node: int) -> tuple[int, ...]:
        """The other nodes that share an edge with this one, ascending."""
        return tuple(sorted(self._met_by(node)))

    def shared_records(self, node: int, other: int) -> NDArray[np.int64]:
        """The records of `node` in an edge with a record of another node: int64, ascending."""
        # Both have the same cells in common. A node asks about all its peers, so its own are known.
        one, two = (other, node) if other in self._meetings else (node, other)
        places = [
            (owners, slot)
            for owners in self._met_by(one).get(two, ())
            for slot in _slots(owners, node)
        ]
        if len(places) == 1:
            return self.cells[places[0][0]].records(places[0][1])
        shared = np.zeros(self.counts[node], dtype=np.bool_)
        for owners, slot in places:
            shared[self.cells[owners].records(slot)] = True
        return np.flatnonzero(shared)

    def degrees(self, node: int) -> NDArray[np.int64]:
        """The number of edges of each record of the node: (records,) int64."""
        degrees = np.zeros(self.counts[node], dtype=np.int64)
        for owners, cell in self.cells_of(node).items():
            for slot in _slots(owners, node):
                degrees += cell.occurrences(slot, self.counts[node])
        return degrees


def _slots(owners: Owners, node: int) -> list[int]:
    return [slot for slot, owner in enumerate(owners) if owner == node]


def expand(rule: str, counts: Sequence[int], words: Words, degree: int = 2) -> Hypergraph:
    """The edge set of a study. It is equal at every process that holds the joint seed.

    Args:
        rule: as `edge_count` reads it.
        counts: the records of each node.
        words: the joint seed's stream.
        degree: the records of an edge. They ascend within an edge, so an edge's owners do not
            descend.

    Raises: TooFewRecords, StudyError, or RangeError where all edges are too many to be numbered.
    """
    records = sum(counts)
    pairings = pairings_of(rule)
    count = edge_count(rule, records, degree)
    if count == comb(records, degree) and pairings is None:
        _check_countable(count, f"sets of {degree} of {records} records")
        return Hypergraph(tuple(counts), degree, count, _all_sets(counts, degree))
    if pairings:
        edges: NDArray[np.integer] = matchings(records, pairings, words)
    else:
        edges = balanced(records, count, words, degree)
    return _over_nodes(edges, counts)


def expand_drawn(
    count: int, most: int, counts: Sequence[int], words: Words, degree: int = 2
) -> Hypergraph:
    """An edge set of so many random edges; all sets where there are no more.

    Args: most: the most edges of a record. counts, words, degree: as in `expand`.

    Raises: RangeError where the edges are too many to be numbered.
    """
    records = sum(counts)
    if count == comb(records, degree):
        _check_countable(count, f"sets of {degree} of {records} records")
        return Hypergraph(tuple(counts), degree, count, _all_sets(counts, degree))
    return _over_nodes(uniform(records, count, most, words, degree), counts)


def _over_nodes(edges: NDArray[np.integer], counts: Sequence[int]) -> Hypergraph:
    """The cells of edges over records that are numbered through all nodes.

    Args: edges: (edges, k).
    """
    count, degree = edges.shape
    cells = sorted_by_owners(edges.T, [RecordNumbering.of(counts)] * degree)
    return Hypergraph(tuple(counts), degree, count, cells)


def expand_two_sample(
    rule: str, class_counts: Sequence[tuple[int, int]], words: Words
) -> Hypergraph:
    """The edge set of a two-sample study with public labels.

    An edge is a record of class 0 and a record of class 1.

    Args:
        rule: as `two_sample_edge_count` reads it.
        class_counts: each node's records of class 0 and of class 1; its table has them in this
            order.
        words: the joint seed's stream.

    Returns: cells under (node of the class-0 record, node of the class-1 record). The two nodes may
    come in any order and may be equal.
    Raises: TooFewRecords, StudyError, or RangeError where all edges are too many to be numbered.
    """
    counts = tuple(zeros + ones for zeros, ones in class_counts)
    zeros = [pair[0] for pair in class_counts]
    ones = [pair[1] for pair in class_counts]
    count = two_sample_edge_count(rule, sum(zeros), sum(ones))
    if count == sum(zeros) * sum(ones):
        _check_countable(count, f"pairs of {sum(zeros)} and {sum(ones)} records")
        return Hypergraph(counts, 2, count, _all_pairs(class_counts))
    edges = biregular(sum(zeros), sum(ones), count, words)
    # a table has its records of class 0 first
    numberings = [RecordNumbering.of(zeros), RecordNumbering.of(ones, before=zeros)]
    return Hypergraph(counts, 2, count, sorted_by_owners(edges.T, numberings))


def _check_countable(count: int, what: str) -> None:
    if count >= MAX_COMPLETE:
        raise RangeError(
            f"all {what} are {count} edges, more than can be numbered; "
            f'sample them, for example with edges = "2n"'
        )


def _all_sets(counts: Sequence[int], degree: int) -> dict[Owners, Cell]:
    cells: dict[Owners, Cell] = {}
    holders = [node for node, records in enumerate(counts) if records]
    for owners in combinations_with_replacement(holders, degree):
        blocks = (RecordBlock(0, counts[node], owners.count(node)) for node in sorted(set(owners)))
        cell = CompleteCell(tuple(blocks))
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


# --- sorted edges ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordNumbering:
    """Records of a slot, numbered through all nodes.

    node: (records,) the node of each, in the narrowest type since there is one entry per record.
    zero: (nodes,) int64, the number from which a node's table counts.
    """

    node: NDArray[np.integer]
    zero: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Sequence[int], before: Sequence[int] | None = None) -> RecordNumbering:
        """The numbering of so many records of each node.

        Args: before: how many other records come first in each node's table; None: none do.
        """
        nodes = np.arange(len(counts), dtype=np.min_scalar_type(len(counts)))
        zero = np.cumsum(counts, dtype=np.int64) - np.array(counts, dtype=np.int64)
        if before is not None:
            zero -= np.array(before, dtype=np.int64)
        return cls(np.repeat(nodes, counts), zero)


def sorted_by_owners(
    edges: NDArray[np.integer], numberings: Sequence[RecordNumbering]
) -> ListedCells:
    """The cells that have edges, under their owners, in canonical order.

    Edges keep their order within a cell.

    Args: edges: (k, edges). numberings: of each slot.
    """
    shape = tuple(len(numbering.zero) for numbering in numberings)
    # one number for the owners of each edge, as `np.ravel_multi_index` counts them
    code = np.zeros(edges.shape[1], dtype=np.min_scalar_type(prod(shape)))
    for numbering, nodes, records in zip(numberings, shape, edges, strict=True):
        code *= code.dtype.type(nodes)
        code += numbering.node.take(records).astype(code.dtype, copy=False)
    codes, sizes = np.unique(code, return_counts=True)
    owners = np.stack(np.unravel_index(codes.astype(np.int64), shape), axis=1)
    order = np.argsort(code, kind="stable")
    most = max(len(numbering.node) for numbering in numberings)
    placed = np.empty(edges.shape, dtype=np.int32 if most <= MOST_INT32 else np.int64)
    rows = zip(placed, edges, numberings, owners.T, strict=True)
    for row, records, numbering, of_slot in rows:
        row[:] = records.take(order)
        row -= np.repeat(numbering.zero[of_slot].astype(row.dtype), sizes)
    return ListedCells(CellRows(owners, sizes), shape, placed)
