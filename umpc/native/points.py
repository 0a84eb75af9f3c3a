"""Point keys compiled: generation, and expansion that rotates and adds without storing a vector.

`mpc/fss/point.py` says what each function computes, and stays the reference: every function gives
its bytes. Callers take it where `CHOSEN` names a kind. A call holds no lock of Python.
"""

from __future__ import annotations

import numpy as np

from umpc.native import CHOSEN, call, check_array, checked_key

__all__ = ["CHOSEN", "add_up", "generate"]

LEAF_CELLS = 8
MOST_CELLS = 1 << 20
"""The numbers of native/kernel.c."""


def leaf_count(cells: int) -> int:
    """The leaves that hold the first cells."""
    return -(-cells // LEAF_CELLS)


def levels(cells: int) -> int:
    """Levels of the tree above its leaves."""
    return (leaf_count(cells) - 1).bit_length()


def generate(
    key: bytes,
    cells: int,
    places: np.ndarray,
    roots: np.ndarray,
    kind: str | None = None,
    alpha: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The keys of these cells: corrections (levels, n, 2) and leaves (n, 8) or (n, 16) uint64.

    Args:
        key: 16 bytes, the key of the tree's hash.
        places: (n,) uint64. roots: (2, n, 2) uint64.
        kind: one of `kinds()`; default: `CHOSEN`.
        alpha: for authenticated keys, in [0, p).

    Raises: ValueError for anything else.
    """
    count, depth = len(places), _checked(key, cells)
    check_array("places", places, np.uint64, (count,))
    check_array("roots", roots, np.uint64, (2, count, 2))
    paired = alpha is not None
    corrections = np.empty((depth, count, 2), dtype=np.uint64)
    leaves = np.empty((count, LEAF_CELLS << paired), dtype=np.uint64)
    addresses = [array.ctypes.data for array in (places, roots, corrections, leaves)]
    call("umpc_generate_points", kind, key, paired, alpha or 0, depth, count, *addresses)
    return corrections, leaves


def add_up(
    key: bytes,
    party: int,
    cells: int,
    corrections: np.ndarray,
    leaves: np.ndarray,
    numbers: np.ndarray,
    roots: np.ndarray,
    kind: str | None = None,
    row: int | None = None,
) -> np.ndarray:
    """A party's share of the sum of all vectors, each rotated by its number.

    Args:
        row: cells of a row, a divisor of `cells`; default: all cells.
        leaves: (n, 8) or (n, 16) uint64, of which the width says the kind of keys.
        numbers: (n,) uint64, below `cells`. roots: (n, 2) uint64. Others: as of `generate`.

    Returns: (cells,) uint64, or (2, cells) of authenticated keys.

    Raises: ValueError for anything else.
    """
    count, depth = len(numbers), _checked(key, cells)
    if party not in (0, 1):
        raise ValueError(f"a party is 0 or 1, got {party}")
    paired = leaves.shape[1:] == (2 * LEAF_CELLS,)
    check_array("corrections", corrections, np.uint64, (depth, count, 2))
    check_array("leaves", leaves, np.uint64, (count, LEAF_CELLS << paired))
    check_array("numbers", numbers, np.uint64, (count,))
    check_array("roots", roots, np.uint64, (count, 2))
    # the kernel writes where a number says
    if count and int(numbers.max()) >= cells:
        raise ValueError(f"numbers are below {cells}")
    row = row or cells
    if row < 1 or cells % row:
        raise ValueError(f"{cells} cells have no rows of {row}")
    table = np.zeros(cells << 2 * paired, dtype=np.uint64)
    addresses = [array.ctypes.data for array in (corrections, leaves, numbers, roots, table)]
    counts = depth, cells, row, count
    call("umpc_add_points", kind, key, paired, party, *counts, *addresses)
    return table[: 2 * cells].reshape(cells, 2).T if paired else table


def _checked(key: bytes, cells: int) -> int:
    """The levels of a tree. Raises: ValueError."""
    checked_key(key)
    if not 1 <= cells <= MOST_CELLS:
        raise ValueError(f"a table has up to {MOST_CELLS} cells, got {cells}")
    return levels(cells)
