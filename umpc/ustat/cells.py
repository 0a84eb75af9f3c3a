"""Cells: the edges whose records have the same owners, listed one by one or numbered.

A cell hands out its edges range by range, so a complete edge set never exists in memory. A slot is
an argument of the kernel: 0..k − 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.combinations import binomials, unrank


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
FEW = 64
"""Edges of a cell that plain Python goes through sooner than numpy."""


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
        if self.count <= FEW:
            return np.array(sorted(set(column.tolist())), dtype=np.int64)
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
