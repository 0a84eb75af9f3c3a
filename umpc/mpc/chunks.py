"""A chunk of edges, and what the plans of every backend say about it.

All backends and the attempt import this module, and it imports none of them. So the folders of
`umpc/mpc` do not depend on each other in a circle.

*Waves.* Small cells in waves, and the chunks of a wave in batches that are computed together.

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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import RingArray
from umpc.ustat.cell_rows import CellRows, Owners

Kind = TypeVar("Kind")

Pattern: TypeAlias = tuple[int, ...]
"""The party that owns each record of an edge; parties are numbered in the order of their nodes."""

ChunkShares: TypeAlias = list[int] | RingArray
"""A node's share of each sum over a chunk, as ring elements.

Where every edge is a result of its own, this is (sums, n) of the ring: one share for each edge.
"""


CELLS_REMEMBERED = 1 << 13
"""Cells whose parties a process remembers: those of about a hundred nodes that all meet."""

AHEAD, AFTER = "ahead", "after"
"""The parts of a chunk that is prepared: its rounds before the data, and those on the data."""


@dataclass(frozen=True)
class Chunk:
    """A range of the edges of a cell: the unit of dealing and of evaluation.

    noise: whether the "edges" are coins of sum `sum`; the owners are then the committee.
    part: AHEAD or AFTER where the rounds before the data are done in another run; else all rounds.
    wave: the wave of small cells to which it belongs, from 1; 0: it is computed alone.
    """

    owners: Owners
    number: int
    start: int
    stop: int
    noise: bool = False
    sum: int = 0
    part: str = ""
    wave: int = field(default=0, compare=False)

    @property
    def count(self) -> int:
        """The number of edges."""
        return self.stop - self.start

    @property
    def parties(self) -> tuple[int, ...]:
        """The nodes that evaluate the chunk, in party order."""
        return parties_of(self.owners)

    @property
    def place(self) -> Owners:
        """The cell's name in the chunk's frames; noise belongs to no cell."""
        return () if self.noise else self.owners


class ChunkPlan(Protocol):
    """The public facts that every backend's plan states about a chunk of n edges."""

    @property
    def parties(self) -> int:
        """The number of parties."""
        ...

    @cached_property
    def everybody(self) -> tuple[int, ...]:
        """All parties, in order."""
        return tuple(range(self.parties))

    @property
    def chunk_edges(self) -> int:
        """The number of edges in a full chunk."""
        ...

    @property
    def rounds(self) -> int:
        """The number of rounds after round 1, which sends records."""
        ...

    def dealt_bits(self, party: int) -> int:
        """Bits an edge that the dealer sends to a party."""
        return 0

    @property
    def addressed(self) -> bool:
        """Whether a party's messages differ from peer to peer.

        The rounds of a chunk are then a `Mesh` over the parties, and a `Protocol` otherwise.
        """
        return False

    def shape(self, round: int, party: int, count: int) -> Message:
        """A party's message of a round, from 1, with zero bytes in place of its content."""
        raise LocalProtocolError("messages of this plan differ from peer to peer; ask `shape_to`")

    def shape_to(self, round: int, sender: int, receiver: int, count: int) -> Message:
        """One party's message to another in a round, from 1, with zero bytes as content."""
        return self.shape(round, sender, count)


class ChunkProgram(Protocol):
    """The plans of all patterns that occur in E."""

    @property
    def ring(self) -> Ring:
        """The ring of the sums."""
        ...

    @property
    def plans(self) -> Mapping[Pattern, ChunkPlan]:
        """The plan of each pattern."""
        ...

    @property
    def needs_dealer(self) -> bool:
        """Whether a dealer must send material."""
        ...

    @property
    def rounds(self) -> int:
        """The number of rounds before the reveal."""
        ...

    @property
    def chunks_in_flight(self) -> int:
        """The most chunks of a node that may wait for a peer's message, but for those of waves."""
        ...

    @property
    def small_cell(self) -> int:
        """The most edges of a cell that is computed together with others; 0: none."""
        ...

    @property
    def window(self) -> int | None:
        """The most bytes that a node may be ahead of a peer on a link; None: no limit."""
        ...


@lru_cache(maxsize=CELLS_REMEMBERED)
def parties_of(owners: Owners) -> tuple[int, ...]:
    """The nodes that own records of a cell, in party order."""
    return tuple(sorted(set(owners)))


@lru_cache(maxsize=CELLS_REMEMBERED)
def pattern_of(owners: Owners) -> Pattern:
    """The pattern of a cell, from the nodes that own its records."""
    parties = parties_of(owners)
    return tuple(parties.index(owner) for owner in owners)


def joined_chunks(chunks: Sequence[Chunk]) -> list[tuple[Owners, int, int]]:
    """The owners, start and stop of the edges of chunks, those that follow each other as one."""
    found: list[tuple[Owners, int, int]] = []
    for chunk in chunks:
        if found and found[-1][0] == chunk.owners and found[-1][2] == chunk.start:
            owners, start, _ = found.pop()
            found.append((owners, start, chunk.stop))
        else:
            found.append((chunk.owners, chunk.start, chunk.stop))
    return found


def require(value: object, kind: type[Kind]) -> Kind:
    """The plan or program itself, which must be of the caller's backend.

    Raises: LocalProtocolError where it belongs to another backend.
    """
    if isinstance(value, kind):
        return value
    raise LocalProtocolError(
        f"this backend computes with a {kind.__name__}, and it got a {type(value).__name__}"
    )


# --- waves ----------------------------------------------------------------------------------------

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
    # pattern by pattern, in the canonical order of owners
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
    # nobody has more than a wave holds
    if held_by_all.max(initial=0) <= most:
        return np.ones(len(small), dtype=np.int64)
    waves = []
    wave = 1
    held: dict[int, int] = {}
    for name, size in zip(cells.names(small), parts.tolist(), strict=True):
        parties = set(name)
        # every node cuts waves alike: E is public
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
        # only chunks of one plan and wave go together
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
