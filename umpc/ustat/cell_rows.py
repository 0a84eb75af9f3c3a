"""The cells of an edge set as rows of arrays: N nodes that all meet have about N²/2 of them.

Each process of a study looks through all cells: for those of its node, for the patterns of owners
that need a plan, and for small cells (`umpc/mpc/chunks.py`). In arrays that takes microseconds.

*Cells.* Cells: the edges whose records have the same owners, listed one by one or numbered.

A cell hands out its edges range by range, so a complete edge set never exists in memory. A slot is
an argument of the kernel: 0..k − 1.

*Combinations.* All subsets of a given size, by number. They make a complete edge set a range of
integers.

The combinatorial number system (Knuth, The Art of Computer Programming 4A, 7.2.1.3, theorem L):
every number r below C(n, c) is C(b_1, 1) + … + C(b_c, c) for exactly one b_1 < … < b_c < n. The
numbers ascend in colexicographic order of the subsets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, prod
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray


class Cell(Protocol):
    """The edges with the same owners, argument by argument."""

    @property
    def count(self) -> int:
        """The number of edges."""
        ...

    def edges(self, start: int, stop: int) -> NDArray[np.int64]:
        """The edges from `start` up to `stop`.

        Returns: (k, stop − start) int64; row i: numbers of records inside the table of the i-th
        owner.
        """
        ...

    def records(self, slot: int) -> NDArray[np.int64]:
        """The records that occur in this slot: int64, ascending, distinct."""
        ...

    def occurrences(self, slot: int, records: int) -> NDArray[np.int64]:
        """How often each record of the owner's table occurs in this slot: (records,) int64."""
        ...


AT_ONCE = 1 << 17
"""Edges that are widened at once."""


@dataclass(frozen=True, eq=False)
class SampledCell:
    """Edges that are listed one by one. columns: (k, count) int32 or int64, without a copy."""

    columns: NDArray[np.integer]

    @property
    def count(self) -> int:
        return int(self.columns.shape[1])

    def edges(self, start: int, stop: int) -> NDArray[np.int64]:
        return self.columns[:, start:stop].astype(np.int64, copy=False)

    def records(self, slot: int) -> NDArray[np.int64]:
        column = self.columns[slot]
        is_there = np.zeros(int(column.max(initial=-1)) + 1, dtype=np.bool_)
        for start in range(0, self.count, AT_ONCE):
            is_there[column[start : start + AT_ONCE]] = True
        return np.flatnonzero(is_there)

    def occurrences(self, slot: int, records: int) -> NDArray[np.int64]:
        found = np.zeros(records, dtype=np.int64)
        at_once = max(AT_ONCE, records)
        for start in range(0, self.count, at_once):
            found += np.bincount(self.columns[slot, start : start + at_once], minlength=records)
        return found


@dataclass(frozen=True)
class RecordBlock:
    """All sets of `taken` records out of the `size` records of a table from `first` on."""

    first: int
    size: int
    taken: int

    @property
    def count(self) -> int:
        """The number of sets."""
        return comb(self.size, self.taken)


@dataclass(frozen=True)
class CompleteCell:
    """All edges that take one set from each block.

    An edge's number is in mixed radix: one digit for each block, the number of the set in its
    block. There are fewer than 2^62 edges.

    Args: blocks: in the order of the slots, which they share out among them.
    """

    blocks: tuple[RecordBlock, ...]

    @cached_property
    def count(self) -> int:
        return prod(block.count for block in self.blocks)

    def edges(self, start: int, stop: int) -> NDArray[np.int64]:
        numbers = np.arange(start, stop)
        parts: list[NDArray[np.int64]] = []
        for position in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[position]
            digit = numbers
            if position > 0:
                numbers, digit = np.divmod(numbers, block.count)
            parts.append(unrank(digit, block.size, block.taken) + block.first)
        return np.concatenate(parts[::-1])

    def records(self, slot: int) -> NDArray[np.int64]:
        block, place = self._find(slot)
        first = block.first + place
        stop = first + block.size - block.taken + 1 if self.count else first
        return np.arange(first, stop)

    def occurrences(self, slot: int, records: int) -> NDArray[np.int64]:
        """How often each record of the owner's table occurs in this slot: (records,) int64.

        Record j is the place-th of C(j, place)·C(size − 1 − j, taken − 1 − place) sets of its
        block, j and place counted from 0.
        """
        found = np.zeros(records, dtype=np.int64)
        if self.count:
            block, place = self._find(slot)
            smaller = binomials(block.size, place)
            larger = binomials(block.size, block.taken - 1 - place)[::-1]
            others = self.count // block.count
            found[block.first : block.first + block.size] = smaller * larger * others
        return found

    def _find(self, slot: int) -> tuple[RecordBlock, int]:
        """The block of a slot, and the slot's place in it."""
        for block in self.blocks:
            if slot < block.taken:
                return block, slot
            slot -= block.taken
        raise IndexError("an edge has no such slot")


Owners: TypeAlias = tuple[int, ...]
"""The node of each record of an edge, in the order of the kernel's arguments."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """The cells of an edge set, one a row, in canonical order.

    Args:
        owners: (cells, k) int64, which ascend row by row.
        counts: (cells,) int64, the edges of each.
    """

    owners: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, cells: Mapping[Owners, Cell], degree: int) -> CellRows:
        """The rows of cells in any order. Args: degree: the records of an edge."""
        names = sorted(cells)
        owners = np.array(names, dtype=np.int64).reshape(len(names), degree)
        return cls(owners, np.array([cells[name].count for name in names], dtype=np.int64))

    def names(self, rows: NDArray[np.intp]) -> list[Owners]:
        """The owners of each of these cells."""
        return list(map(tuple, self.owners[rows].tolist()))

    def of_node(self, node: int) -> NDArray[np.intp]:
        """The rows of the cells that a node has a part in, ascending."""
        nodes, rows = self._by_node
        start, stop = nodes.searchsorted((node, node + 1))
        return rows[start:stop]

    @cached_property
    def _by_node(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Each owner of each cell: the node, ascending, and the row, ascending for each node."""
        rows, _ = self.first_places.nonzero()
        nodes = self.owners[self.first_places]
        order = nodes.argsort(kind="stable")
        return nodes[order], rows[order]

    def shared_of_node(self, node: int) -> NDArray[np.intp]:
        """The rows of the node's cells that it shares, ascending."""
        rows = self.of_node(node)
        return rows[self._is_shared[rows]]

    @cached_property
    def _is_shared(self) -> NDArray[np.bool_]:
        """Whether a cell has at least two different owners."""
        owned: NDArray[np.intp] = self.first_places.sum(axis=1)
        return owned > 1

    @cached_property
    def shared(self) -> NDArray[np.intp]:
        """The rows of such cells, ascending."""
        return self._is_shared.nonzero()[0]

    @cached_property
    def first_places(self) -> NDArray[np.bool_]:
        """Where a row names a node for the first time: (cells, k)."""
        first = np.ones(self.owners.shape, dtype=np.bool_)
        for slot, column in enumerate(self.owners.T):
            for before in self.owners.T[:slot]:
                first[:, slot] &= column != before
        return first

    @cached_property
    def kinds(self) -> tuple[list[Owners], NDArray[np.intp]]:
        """The patterns of owners that occur, ascending, and for each cell the place of its own.

        A pattern has for each slot its owner's place among the cell's owners, in their order.
        """
        degree = self.owners.shape[1]
        code = np.zeros(len(self.owners), dtype=np.int64)
        for column in self.owners.T:
            code *= degree
            for slot, other in enumerate(self.owners.T):
                code += self.first_places[:, slot] & (other < column)
        codes = sorted(set(code.tolist()))
        slots = range(degree)[::-1]
        patterns = [tuple(each // degree**slot % degree for slot in slots) for each in codes]
        return patterns, np.searchsorted(codes, code)

    @property
    def shared_patterns(self) -> set[Owners]:
        """The patterns of the cells with at least two different owners."""
        return {pattern for pattern in self.kinds[0] if any(pattern)}


class ListedCells(Mapping[Owners, SampledCell]):
    """Cells of listed edges under their owners, in canonical order. Each is made when asked for.

    Args:
        rows: the cells.
        shape: the number of nodes, for each slot.
        columns: (k, edges), the edges of all cells one after the other.
    """

    def __init__(self, rows: CellRows, shape: Sequence[int], columns: NDArray[np.integer]):
        self.rows = rows
        self._shape = tuple(shape)
        self._columns = columns
        self._made: dict[Owners, SampledCell] = {}

    @cached_property
    def _codes(self) -> list[int]:
        """One number for the owners of each cell, ascending."""
        codes: list[int] = np.ravel_multi_index(tuple(self.rows.owners.T), self._shape).tolist()
        return codes

    @cached_property
    def _stops(self) -> list[int]:
        """The end of each cell's columns."""
        stops: list[int] = np.cumsum(self.rows.counts).tolist()
        return stops

    def __len__(self) -> int:
        return len(self.rows.counts)

    def __iter__(self) -> Iterator[Owners]:
        return iter(map(tuple, self.rows.owners.tolist()))

    def __getitem__(self, owners: Owners) -> SampledCell:
        made = self._made.get(owners)
        if made is None:
            row = self._row_of(owners)
            start = self._stops[row - 1] if row else 0
            cell = SampledCell(self._columns[:, start : self._stops[row]])
            made = self._made.setdefault(owners, cell)  # another thread may have made it
        return made

    def _row_of(self, owners: Owners) -> int:
        """The row of a cell. Raises: KeyError where no edge has these owners."""
        code = 0
        for owner, nodes in zip(owners, self._shape, strict=True):
            if not 0 <= owner < nodes:
                raise KeyError(owners)
            code = code * nodes + owner
        row = bisect_left(self._codes, code)
        if row == len(self._codes) or self._codes[row] != code:
            raise KeyError(owners)
        return row


# --- combinations ---------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def binomials(size: int, taken: int) -> NDArray[np.int64]:
    """C(b, taken) for b = 0..size − 1: (size,) int64, read-only.

    The numbers are exact while C(size, taken) < 2^63.
    """
    table: NDArray[np.int64]
    if taken == 0:
        table = np.broadcast_to(np.int64(1), size)  # one number, whatever the size
    else:
        table = np.zeros(size, dtype=np.int64)
        # C(b, c) is the sum of C(a, c − 1) over a < b
        np.cumsum(binomials(size, taken - 1)[:-1], out=table[1:])
    table.setflags(write=False)
    return table


def unrank(numbers: NDArray[np.int64], size: int, taken: int) -> NDArray[np.int64]:
    """The subsets of 0..size − 1 with these numbers.

    Args: numbers: (n,) int64 in 0 .. C(size, taken) − 1.
    Returns: (taken, n) int64, each column ascending.
    """
    subsets = np.empty((taken, len(numbers)), dtype=np.int64)
    for place in range(taken - 1, 0, -1):
        # theorem L: the largest b with C(b, place + 1) ≤ r
        table = binomials(size, place + 1)
        subsets[place] = np.searchsorted(table, numbers, side="right") - 1
        numbers = numbers - table[subsets[place]]
    subsets[0] = numbers
    return subsets


def every_subset(size: int, taken: int) -> NDArray[np.int64]:
    """All subsets, by number: (C(size, taken), taken) int64, each row ascending."""
    return np.ascontiguousarray(unrank(np.arange(comb(size, taken)), size, taken).T)
