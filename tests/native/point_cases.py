"""Point keys and sums whose bytes must not depend on what computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from umpc.crypto.field import P
from umpc.crypto.prg import FixedKeyHash, Stream, derive
from umpc.mpc.fss.point import add_up_in_numpy, generate_in_numpy
from umpc.native import points

SEED = bytes(range(32))
KEY = derive(SEED, "tree")[:16]
HASH = FixedKeyHash(KEY)
SUBTREE_CELLS = 8 * 512
CELLS = (2, 8, 9, 16, 17, 100, 512, 1000, SUBTREE_CELLS, SUBTREE_CELLS + 1, 3 * SUBTREE_CELLS + 70)
ROWS = ((7, 1), (12, 4), (64, 8), (63, 7), (1000, 40), (1023, 33), (10_001, 73), (12_297, 4099))
"""Cells, and those of a row."""
COUNTS = (0, 1, 31, 33, 255, 257)
ALPHAS = (None, 0, 1, P - 1, 0x0123456789ABCDEF)
"""Plain keys, and authenticated ones."""


def inputs(cells: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, numbers, and roots; the first numbers are at the corners."""
    stream = Stream(derive(SEED, "points", cells))
    places, numbers = (stream.words(count) % np.uint64(cells) for _ in range(2))
    corners = np.array([0, cells - 1, 1, cells // 2], dtype=np.uint64)[:count]
    numbers[: len(corners)] = corners
    return places, numbers, stream.words(4 * count).reshape(2, count, 2)


def same(ours, theirs) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


class PointFunctions(NamedTuple):
    """The functions that make point keys and sums on one machine."""

    generate: Callable[..., Any]
    add_up: Callable[..., Any]


OURS = PointFunctions(points.generate, points.add_up)


def differences(
    kinds: Iterable[str],
    cells: int,
    count: int,
    path: PointFunctions = OURS,
    alpha: int | None = None,
    row: int | None = None,
) -> Iterator[str]:
    """Yield each kind and each result that is not numpy's.

    Args: alpha: for authenticated keys. row: cells of a row; default: all.
    """
    places, numbers, roots = inputs(cells, count)
    keys = generate_in_numpy(cells, places, roots, HASH, alpha)
    arrays = keys.corrections, keys.leaves
    due = [add_up_in_numpy(party, keys, numbers, roots[party], HASH, row) for party in (0, 1)]
    for kind in kinds:
        if not same(arrays, path.generate(KEY, cells, places, roots, kind, alpha)):
            yield f"{kind}, {cells} cells, {count} people: keys"
        for party in (0, 1):
            ours = path.add_up(KEY, party, cells, *arrays, numbers, roots[party], kind, row)
            if not np.array_equal(due[party], ours):
                yield f"{kind}, {cells} cells, {count} people: share of party {party}"
