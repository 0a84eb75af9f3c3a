"""The chunks of an attempt over shared edges, in the order in which they are dealt and evaluated.

The order follows from E and the plans, so it is the same at every process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from umpc.mpc.chunks import Chunk, ChunkPlan, ChunkProgram, pattern_of
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.masked.plan import Plan
from umpc.mpc.waves import in_batches, small_cells
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.ustat.hypergraph import Hypergraph, Owners


class ChunkedAttempt(Attempt, ABC):
    """An attempt whose shared edges are cut into chunks. Args: as in `Attempt`."""

    def __init__(
        self,
        study: Study,
        members: Sequence[Member],
        openings: Sequence[bytes],
    ):
        super().__init__(study, members, openings)
        self._ahead: dict[int, list[int]] = {}

    @property
    @abstractmethod
    def hypergraph(self) -> Hypergraph:
        """E."""

    @property
    @abstractmethod
    def program(self) -> ChunkProgram:
        """The plans of all patterns of owners that occur in E."""

    @property
    @abstractmethod
    def noise_plan(self) -> Plan:
        """The plan of the committee's coins where material is dealt for them."""

    @property
    @abstractmethod
    def noise_chunks(self) -> tuple[Chunk, ...]:
        """The chunks of the committee's coins, where material is dealt for them."""

    @abstractmethod
    def plan(self, chunk: Chunk) -> ChunkPlan:
        """The computation of the parties of a chunk."""

    def chunks(self) -> Iterator[Chunk]:
        """All chunks, in the order in which they are dealt and evaluated.

        Noise comes first, then small cells, wave by wave (`waves.py`), then the other shared cells.
        These take turns, so every node has work. The order is equal everywhere, so bounded queues
        cannot deadlock.
        """
        yield from self.noise_chunks
        yield from self._chunks_in(self.hypergraph.rows.shared)

    def _chunks_in(self, shared: NDArray[np.intp]) -> Iterator[Chunk]:
        """The chunks of some shared cells, in the common order. Args: shared: their rows."""
        rows = self.hypergraph.rows
        waves, places = self._small_cells
        small = shared[waves[shared] > 0]
        small = small[np.argsort(places[small])]
        facts = (rows.counts[small].tolist(), waves[small].tolist())
        for owners, count, wave in zip(rows.names(small), *facts, strict=True):
            yield Chunk(owners, 0, 0, count, wave=wave)
        cells = self._large_cells_in(shared)
        number = 0
        while cells:
            for owners, count, size in cells:
                yield Chunk(owners, number, number * size, min((number + 1) * size, count))
            number += 1
            cells = [cell for cell in cells if number * cell[2] < cell[1]]

    def _large_cells_in(self, shared: NDArray[np.intp]) -> list[tuple[Owners, int, int]]:
        """The owners, edges and edges of a full chunk of each cell that belongs to no wave."""
        rows = self.hypergraph.rows
        waves, _ = self._small_cells
        large = shared[waves[shared] == 0]
        counts = rows.counts[large].tolist()
        return [
            (owners, count, self.program.plans[pattern_of(owners)].chunk_edges)
            for owners, count in zip(rows.names(large), counts, strict=True)
        ]

    @cached_property
    def _small_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each cell its wave, or 0, and its place among those that are computed together."""
        return small_cells(self.hypergraph.rows, self.program)

    def batches(self, node: int | None = None) -> Iterator[tuple[Chunk, ...]]:
        """The chunks of a node, or all at the dealer: those of a tuple are computed together."""
        chunks = self.chunks() if node is None else self.chunks_of(node)
        return in_batches(chunks, self.plan, node)

    def chunk_groups(self) -> Iterator[tuple[Chunk, int]]:
        """One of many chunks of equal cost, and their number.

        They have as many edges, and their numbers take as many bytes in a frame.
        """
        for chunk in self.noise_chunks:
            yield chunk, 1
        for owners, cell in self.hypergraph.shared_cells.items():
            size = self.program.plans[pattern_of(owners)].chunk_edges
            whole, rest = divmod(cell.count, size)
            first, end = 0, 1
            while first < whole:
                count = min(end, whole) - first
                yield Chunk(owners, first, first * size, (first + 1) * size), count
                # a frame's number takes one more byte from each power of 128 on
                first, end = end, max(end << 7, 1 << 7)
            if rest:
                yield Chunk(owners, whole, whole * size, cell.count), 1

    @property
    def dealt_at_most(self) -> int:
        """A bound on the bytes that the dealer sends to one node, without a look at each cell."""
        plans = self.program.plans.values()
        bits = max((plan.dealt_bits(p) for plan in plans for p in plan.everybody), default=0)
        # A chunk ends with a whole byte, and has at least one edge.
        edges = self.hypergraph.edge_count * (bits // 8 + 2)
        plan = self.noise_plan if self.noise_chunks else None
        coins = (
            max(dealt_bytes(plan, party, chunk.count) for party in plan.everybody)
            for chunk in self.noise_chunks
            if plan is not None
        )
        return edges + sum(coins)

    def chunks_ahead(self, window: int) -> list[int]:
        """For each node the number of chunks whose material it takes before anybody uses any.

        A node then holds at most `window` bytes of material. The dealer deals to all in the common
        order and waits for the slowest. A node that waited for more than this could wait for ever:
        the chunk might be dealt only after another node, whose window is full, has begun.
        """
        if window not in self._ahead:
            self._ahead[window] = self._count_ahead(window)
        return self._ahead[window]

    def _count_ahead(self, window: int) -> list[int]:
        counts = [0] * len(self.members)
        held = [0] * len(self.members)
        for chunk in self.chunks():
            plan = self.plan(chunk)
            parties = chunk.parties
            for party, node in enumerate(parties):
                held[node] += dealt_bytes(plan, party, chunk.count)
            if any(held[node] > window for node in parties):
                break
            for node in parties:
                counts[node] += 1
        return counts

    def chunks_of(self, node: int) -> Iterator[Chunk]:
        """The chunks in which a node takes part, in the common order."""
        yield from (chunk for chunk in self.noise_chunks if node in chunk.owners)
        yield from self._chunks_in(self.hypergraph.rows.shared_of_node(node))
