"""Listed edges sorted into cells by the owners of their records.

The list is read twice: first for the size of each cell, then each edge goes to its place. So E
takes its final memory, 8 bytes a pair since four hold any number of a record, and a byte or two
more for each edge's cell for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.cell_rows import CellRows, ListedCells
from umpc.ustat.edge_blocks import MOST_INT32, EdgeBlocks

COUNTED = 1 << 16
"""Up to so many combinations of owners, edges are counted in one array."""
FEW_CELLS = 64
"""Up to so many cells of a block, each is copied as a slice."""


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
    blocks: EdgeBlocks, count: int, numberings: Sequence[RecordNumbering]
) -> ListedCells:
    """The cells that have edges, under their owners, in canonical order.

    Edges keep their order within a cell.

    Args: count: the number of edges. numberings: of each slot.
    """
    shape = tuple(len(numbering.zero) for numbering in numberings)
    code = _codes(blocks, count, numberings, shape)
    codes, sizes = _sizes(code, prod(shape))
    owners = np.stack(np.unravel_index(codes, shape), axis=1)
    most = max(len(numbering.node) for numbering in numberings)
    kind = np.dtype(np.int32 if most <= MOST_INT32 else np.int64)
    zeros = [
        numbering.zero[of_slot].astype(kind)
        for numbering, of_slot in zip(numberings, owners.T, strict=True)
    ]
    placed = np.empty((len(shape), count), dtype=kind)
    stops = np.cumsum(sizes)
    free = stops - sizes
    start = 0
    for edges in blocks():
        stop = start + edges.shape[1]
        _place(edges, code[start:stop], codes, zeros, free, placed)
        start = stop
    return ListedCells(CellRows(owners, sizes), shape, placed)


def _codes(
    blocks: EdgeBlocks, count: int, numberings: Sequence[RecordNumbering], shape: tuple[int, ...]
) -> NDArray[np.unsignedinteger]:
    """One number for the owners of each edge, as `np.ravel_multi_index` counts them."""
    code = np.empty(count, dtype=np.min_scalar_type(prod(shape)))
    start = 0
    for edges in blocks():
        part = code[start : start + edges.shape[1]]
        part[:] = 0
        for numbering, nodes, records in zip(numberings, shape, edges, strict=True):
            part *= part.dtype.type(nodes)
            part += numbering.node.take(records).astype(part.dtype, copy=False)
        start += len(part)
    return code


def _sizes(
    code: NDArray[np.unsignedinteger], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct codes below `most`, ascending, and the number of edges of each."""
    if most > COUNTED:
        codes, sizes = np.unique(code, return_counts=True)
        return codes.astype(np.int64), sizes
    at_once = max(COUNTED, most)
    counted = np.zeros(most, dtype=np.int64)
    for start in range(0, len(code), at_once):
        counted += np.bincount(code[start : start + at_once], minlength=most)
    codes = np.flatnonzero(counted)
    return codes, counted[codes]


def _place(
    edges: NDArray[np.integer],
    code: NDArray[np.unsignedinteger],
    codes: NDArray[np.int64],
    zeros: Sequence[NDArray[np.integer]],
    free: NDArray[np.int64],
    placed: NDArray[np.integer],
) -> None:
    """Put the edges of a block at the next free places of their cells.

    Args:
        codes: all distinct codes, ascending.
        zeros: of each slot, the number from which each cell's records are counted.
        free: the next free place of each cell; it moves on.
    """
    order = np.argsort(code, kind="stable")
    ascending = code[order]
    firsts = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    firsts = np.concatenate([np.zeros(min(1, len(code)), dtype=np.int64), firsts])
    sizes = np.diff(firsts, append=len(code))
    cells = np.searchsorted(codes, ascending[firsts])
    for row, records, zero in zip(placed, edges, zeros, strict=True):
        numbers = records.take(order).astype(placed.dtype, copy=False)
        numbers -= np.repeat(zero[cells], sizes)
        _copy(numbers, row, free[cells], firsts, sizes)
    free[cells] += sizes


def _copy(
    numbers: NDArray[np.integer],
    row: NDArray[np.integer],
    targets: NDArray[np.int64],
    firsts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> None:
    """Copy runs of numbers to their targets in a row."""
    if len(sizes) > FEW_CELLS:
        row[np.repeat(targets - firsts, sizes) + np.arange(len(numbers))] = numbers
        return
    for target, first, size in zip(targets.tolist(), firsts.tolist(), sizes.tolist(), strict=True):
        row[target : target + size] = numbers[first : first + size]
