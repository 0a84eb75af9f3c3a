"""Edges by their owners.

Records are numbered through the nodes in the study's order. All edges with the same set of owning nodes form
a cell and run as one vectorised batch. A cell hands out its edges range by range, so the
complete graph never exists in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from umpc.ustat.sampling import Words, balanced, edge_count, max_degree

Owners = tuple[int, int]
"""The two owning nodes of a pair, ascending; equal for a pair inside one node."""


class Cell(Protocol):
    """The edges between two nodes, or inside one."""

    count: int

    def edges(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Record numbers inside the first and the second owner's table: two (stop − start,) int64."""
        ...

    def records(self, side: int) -> np.ndarray:
        """The records of the first (0) or second (1) owner that occur in an edge, ascending."""
        ...


@dataclass(frozen=True)
class SampledCell:
    first: np.ndarray
    second: np.ndarray

    @property
    def count(self) -> int:
        return len(self.first)

    def edges(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        return self.first[start:stop], self.second[start:stop]

    def records(self, side: int) -> np.ndarray:
        return np.unique((self.first, self.second)[side])


@dataclass(frozen=True)
class GridCell:
    """All pairs between two nodes, row by row."""

    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns

    def edges(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        return np.divmod(np.arange(start, stop), self.columns)

    def records(self, side: int) -> np.ndarray:
        return np.arange((self.rows, self.columns)[side])


@dataclass(frozen=True)
class TriangleCell:
    """All pairs inside one node, row by row."""

    size: int

    @property
    def count(self) -> int:
        return self.size * (self.size - 1) // 2

    def edges(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(self.size)
        starts = rows * (2 * self.size - rows - 1) // 2
        index = np.arange(start, stop)
        row = np.searchsorted(starts, index, side="right") - 1
        row = np.minimum(row, max(self.size - 2, 0))
        return row, index - starts[row] + row + 1

    def records(self, side: int) -> np.ndarray:
        return np.arange(self.size)


@dataclass(frozen=True)
class Hypergraph:
    """An edge set over the records of several nodes.

    counts: records of each node, in the study's order. cells: only those that have edges.
    """

    counts: tuple[int, ...]
    edge_count: int
    max_degree: int
    cells: dict[Owners, Cell]

    @property
    def shared_cells(self) -> dict[Owners, Cell]:
        """The cells with two owners, in canonical order."""
        return {owners: cell for owners, cell in self.cells.items() if owners[0] != owners[1]}

    def degrees(self, node: int) -> np.ndarray:
        """In how many edges each record of a node is: (records,) int64."""
        degrees = np.zeros(self.counts[node], dtype=np.int64)
        for owners, cell in self.cells.items():
            for side in (0, 1):
                if owners[side] == node:
                    degrees += _occurrences(cell, side, self.counts[node])
        return degrees


def _occurrences(cell: Cell, side: int, records: int) -> np.ndarray:
    match cell:
        case GridCell(rows, columns):
            return np.full(records, columns if side == 0 else rows)
        case TriangleCell(size):
            return np.arange(size)[::-1] if side == 0 else np.arange(size)
        case _:
            return np.bincount(cell.edges(0, cell.count)[side], minlength=records)


def expand(rule: str, counts: Sequence[int], words: Words) -> Hypergraph:
    """The edge set of a study: the same at every process that holds the joint seed.

    Args:
        rule: as `edge_count` reads it.
        counts: records of each node.
        words: the joint seed's stream.
    """
    records = sum(counts)
    count = edge_count(rule, records)
    limit = max_degree(count, records)
    if count == records * (records - 1) // 2:
        cells = _complete_cells(counts)
    else:
        cells = _sampled_cells(balanced(records, count, words), counts)
    return Hypergraph(tuple(counts), count, limit, cells)


def _complete_cells(counts: Sequence[int]) -> dict[Owners, Cell]:
    cells: dict[Owners, Cell] = {}
    for u, rows in enumerate(counts):
        for v in range(u, len(counts)):
            cell: Cell = TriangleCell(rows) if u == v else GridCell(rows, counts[v])
            if cell.count:
                cells[u, v] = cell
    return cells


def _sampled_cells(edges: np.ndarray, counts: Sequence[int]) -> dict[Owners, Cell]:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    owners = np.searchsorted(offsets, edges, side="right") - 1
    local = edges - offsets[owners]
    code = owners[:, 0] * len(counts) + owners[:, 1]
    order = np.argsort(code, kind="stable")
    codes, starts = np.unique(code[order], return_index=True)
    cells: dict[Owners, Cell] = {}
    for value, part in zip(codes, np.split(order, starts[1:]), strict=True):
        cells[divmod(int(value), len(counts))] = SampledCell(local[part, 0], local[part, 1])
    return cells
