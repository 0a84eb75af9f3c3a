"""Edges sorted into cells by the owners of their records, in C.

`umpc/ustat/sorted_edges.py` computes the same in numpy, which is the reference. Records are numbers
of int32, and an edge's combination of owners is one byte.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError
from umpc.native.choice import CHOSEN
from umpc.native.library import LIBRARY

COMBINATIONS = 256
"""Combinations of owners that a byte numbers."""

IS_COMPILED = LIBRARY is not None and CHOSEN is not None
"""Whether this process computes them so."""


def count_owners(
    edges: NDArray[np.int32],
    nodes: Sequence[NDArray[np.uint8]],
    shape: Sequence[int],
    codes: NDArray[np.uint8],
    sizes: NDArray[np.uint64],
) -> None:
    """Number the owners of each edge, and count the edges of each number.

    Args:
        edges: (slots, n), rows contiguous.
        nodes: for each slot (records,) the node of each record.
        shape: for each slot the number of nodes; at most COMBINATIONS combinations.
        codes: (n,) contiguous; it is written.
        sizes: (COMBINATIONS,); the edges of each number are added to it.

    Raises: LocalProtocolError where a record has a number beyond its table.
    """
    _check(edges, len(nodes), codes)
    failed = _library().umpc_count_owners(
        *edges.shape,
        _addresses([*edges]),
        _addresses(nodes),
        _sizes([len(of_slot) for of_slot in nodes]),
        _sizes(shape),
        codes.ctypes.data,
        sizes.ctypes.data,
    )
    if failed:
        raise LocalProtocolError("an edge has a record that is in no node's table")


def place_edges(
    edges: NDArray[np.int32],
    codes: NDArray[np.uint8],
    zeros: NDArray[np.int32],
    free: NDArray[np.uint64],
    placed: NDArray[np.int32],
) -> None:
    """Put each edge at the next free place of its cell.

    Args:
        edges, codes: as of `count_owners`.
        zeros: (COMBINATIONS, slots), the number from which each cell's records are counted.
        free: (COMBINATIONS,) the next free place of each cell; it moves on.
        placed: (slots, all edges) contiguous; it is written.

    Raises: LocalProtocolError where there is no free place.
    """
    _check(edges, len(placed), codes)
    failed = _library().umpc_place_edges(
        *edges.shape,
        _addresses([*edges]),
        codes.ctypes.data,
        zeros.ctypes.data,
        free.ctypes.data,
        placed.shape[1],
        _addresses([*placed]),
    )
    if failed:
        raise LocalProtocolError("edges were listed twice, and differ")


def _library() -> ctypes.CDLL:
    if LIBRARY is None:
        raise LocalProtocolError("there is no compiled library, so numpy must sort the edges")
    return LIBRARY


def _check(edges: NDArray[np.int32], slots: int, codes: NDArray[np.uint8]) -> None:
    if edges.dtype != np.int32 or edges.shape != (slots, len(codes)):
        raise LocalProtocolError(
            f"({slots}, {len(codes)}) int32 was expected, and {edges.shape} {edges.dtype} came"
        )
    if edges.shape[1] > 1 and edges.strides[1] != edges.itemsize:
        raise LocalProtocolError("a row of edges must be contiguous")


def _addresses(arrays: Sequence[NDArray[np.integer]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def _sizes(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_size_t]:
    return (ctypes.c_size_t * len(numbers))(*numbers)
