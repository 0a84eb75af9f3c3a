"""A chunk of edges, and what the plans of every backend say about it.

All backends and the attempt import this module, and it imports none of them. So the folders of
`umpc/mpc` do not depend on each other in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeVar

from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import RingArray
from umpc.ustat.hypergraph import Owners

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
    wave: the wave of small cells to which it belongs, from 1; 0: it is computed alone (`waves.py`).
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

    @property
    def everybody(self) -> tuple[int, ...]:
        """All parties, in order."""
        ...

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
        ...

    @property
    def addressed(self) -> bool:
        """Whether a party's messages differ from peer to peer.

        The rounds of a chunk are then a `Mesh` over the parties, and a `Protocol` otherwise.
        """
        ...

    def shape_to(self, round: int, sender: int, receiver: int, count: int) -> Message:
        """One party's message to another in a round, from 1, with zero bytes as content."""
        ...


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
        """The most edges of a cell that is computed together with others (`waves.py`); 0: none."""
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
