"""Small cells in waves, and the chunks of a wave in batches that are computed together.

In a study of many nodes most cells have few edges. Their chunks come first in the common order, by
pattern and then by owners, and the order is cut into waves: no node has more than WAVE_CHUNKS full
chunks' worth of edges in a wave. A batch is a part of one wave: chunks with the same plan in which
the node is the same party. Each chunk keeps its own seeds, material and messages.

A batch sends its messages of a round before it waits for any of that round, and it waits for those
of all its chunks. No node can wait for ever. A node goes on to another wave, or to a large chunk,
only when all its chunks of the wave are done. Suppose that nodes wait, and take the first wave or
large chunk in the common order that some node has not begun. All nodes have begun all before it. So
there every owner sends its round 1, hence every owner gets round 1 and sends round 2, and so on:
they end, and the node goes on. Within a wave a node waits for its material only. The dealer deals
in the common order, and a node takes its material out of its window as it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from umpc.mpc.chunks import Chunk, ChunkPlan, ChunkProgram, pattern_of
from umpc.ustat.cell_rows import CellRows

WAVE_CHUNKS = 8
"""The most edges of a node in a wave, in full chunks; a chunk takes at most about a megabyte."""
PARTS = 1 << 20
"""Parts of a full chunk, in which cells are counted."""


def small_cells(
    cells: CellRows, program: ChunkProgram
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells whose chunks are computed together.

    Returns: for each cell its wave, from 1, or 0 if it is not one of them; and its place among
    those that are.
    """
    waves, places = np.zeros((2, len(cells.counts)), dtype=np.int64)
    if not program.small_cell:
        return waves, places
    patterns, kinds = cells.kinds
    sizes = np.array(
        [program.plans[each].chunk_edges if any(each) else 0 for each in patterns], dtype=np.int64
    )
    most = np.minimum(program.small_cell, sizes // 2)
    shared = cells.shared
    small = shared[cells.counts[shared] <= most[kinds[shared]]]
    small = small[np.argsort(kinds[small], kind="stable")]
    places[small] = np.arange(len(small))
    parts = -(-cells.counts[small] * PARTS // sizes[kinds[small]])
    waves[small] = _waves(cells, small, parts)
    return waves, places


def _waves(cells: CellRows, small: NDArray[np.intp], parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The waves of small cells. Args: small: in their common order. parts: the size of each."""
    most = WAVE_CHUNKS * PARTS
    owners, first = cells.owners[small], cells.first_places[small]
    held_by_all = np.bincount(owners[first], np.broadcast_to(parts[:, None], first.shape)[first])
    if held_by_all.max(initial=0) <= most:
        return np.ones(len(small), dtype=np.int64)
    waves = []
    wave = 1
    held: dict[int, int] = {}
    for name, size in zip(cells.names(small), parts.tolist(), strict=True):
        parties = set(name)
        if any(held.get(node, 0) + size > most for node in parties):
            wave += 1
            held = {}
        for node in parties:
            held[node] = held.get(node, 0) + size
        waves.append(wave)
    return np.array(waves, dtype=np.int64)


def in_batches(
    chunks: Iterable[Chunk],
    plan_of: Callable[[Chunk], ChunkPlan],
    node: int | None = None,
) -> Iterator[tuple[Chunk, ...]]:
    """Chunks that are computed together; a chunk of no wave is alone.

    A batch has at most the edges of a full chunk. Every chunk comes in some batch once. The
    dealer's batches keep the common order.

    Args:
        chunks: in the common order.
        node: who computes them; None: the dealer, which has no part in them.
    """
    growing: dict[object, list[Chunk]] = {}
    room: dict[object, int] = {}
    place: object = None
    for chunk in chunks:
        here = (chunk.wave, pattern_of(chunk.owners)) if chunk.wave else None
        if here is None or here != place:
            yield from map(tuple, growing.values())
            growing.clear()
            place = here
        if here is None:
            yield (chunk,)
            continue
        party = 0 if node is None else chunk.parties.index(node)
        if party in growing and room[party] < chunk.count:
            yield tuple(growing.pop(party))
        if party not in growing:
            growing[party] = []
            room[party] = plan_of(chunk).chunk_edges
        growing[party].append(chunk)
        room[party] -= chunk.count
    yield from map(tuple, growing.values())
