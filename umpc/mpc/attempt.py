"""An attempt over edges that several nodes share: E, the plans, and the chunks of work.

Everything follows from the attempt's joint seed (`study/attempt.py`), the same at every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.crypto.prg import FixedKeyHash, Stream, derive
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.garbled.pair_noise import PairNoise
from umpc.mpc.garbled.plan import GarbledPlan, GarbledProgram, garbled_program
from umpc.mpc.masked.committee_coins import CoinToss, committee_size, noise_plan
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.masked.plan import Plan, Program, pattern_of
from umpc.mpc.transfers.coins_from_transfers import TossPlan
from umpc.study.attempt import Attempt as BaseAttempt
from umpc.study.document import Study
from umpc.study.sizes import Member
from umpc.ustat.hypergraph import Cell, Hypergraph, Owners, expand, expand_two_sample


@dataclass(frozen=True)
class Chunk:
    """A range of the edges of a cell: the unit of dealing and of evaluation.

    noise: the "edges" are coins of sum `sum`, and the owners are the committee.
    """

    owners: Owners
    number: int
    start: int
    stop: int
    noise: bool = False
    sum: int = 0

    @property
    def count(self) -> int:
        return self.stop - self.start

    @property
    def parties(self) -> tuple[int, ...]:
        """The nodes that evaluate it, in party order."""
        return tuple(sorted(set(self.owners)))

    @property
    def place(self) -> Owners:
        """How its frames name the cell: noise belongs to none."""
        return () if self.noise else self.owners


def edges_of(study: Study, seed: bytes, classes: Sequence[tuple[int, int]]) -> Hypergraph:
    """E of a study: from the joint seed and the nodes' records, (first class, all others)."""
    words = Stream(derive(seed, "edges")).words
    if study.two_sample:
        return expand_two_sample(study.edges, classes, words)
    return expand(study.edges, [sum(records) for records in classes], words, study.degree)


class Attempt(BaseAttempt):
    """An attempt whose edges the nodes evaluate together.

    Args:
        members, openings: as for any attempt.
        ring: the ring that holds every sum with its noise.
        coins: the coins of each sum's noise, where a committee draws it; empty where every node
            adds noise of its own.
        pair_noise: the law of each sum, where every edge's value gets noise of its own and is
            released alone.
    """

    def __init__(
        self,
        study: Study,
        members: Sequence[Member],
        openings: Sequence[bytes],
        ring: Ring,
        coins: Sequence[CoinToss] = (),
        pair_noise: Sequence[PairNoise] = (),
    ):
        super().__init__(study, members, openings)
        self._sums_ring = ring
        self.coins = tuple(coins)
        self.pair_noise = tuple(pair_noise)

    @cached_property
    def program(self) -> Program | GarbledProgram:
        """The plans of all patterns of owners that occur in E."""
        patterns = {pattern_of(owners) for owners in self.hypergraph.shared_cells}
        kernels = self.study.parsed_kernels
        if self.study.backend == "garbled":
            return garbled_program(kernels, self._sums_ring, patterns, self.pair_noise)
        program = compile_program(kernels, self._sums_ring, patterns)
        if program.word_bits > self._sums_ring.bits:
            program = compile_program(kernels, RINGS[-1], patterns)
        return program

    @property
    def ring(self) -> Ring:
        return self.program.ring

    def plan(self, chunk: Chunk) -> Plan | GarbledPlan:
        """What the parties of a chunk compute."""
        return self.noise_plan if chunk.noise else self.program.plans[pattern_of(chunk.owners)]

    @cached_property
    def committee(self) -> tuple[int, ...]:
        """The nodes that draw the noise together, from the joint seed; none where every node adds its own."""
        if not self.coins:
            return ()
        nodes = len(self.members)
        order = np.argsort(Stream(derive(self.seed, "committee")).words(nodes), kind="stable")
        return tuple(sorted(map(int, order[: committee_size(nodes, self.study.max_colluding)])))

    @cached_property
    def noise_plan(self) -> Plan:
        return noise_plan(len(self.committee), self.ring)

    @cached_property
    def toss_plan(self) -> TossPlan | None:
        """The committee's coins where nothing is dealt; None where there is nothing to toss."""
        if self.study.preprocessing == "dealer" or not any(coins.count for coins in self.coins):
            return None
        return TossPlan(len(self.committee), self.ring, self.coins)

    def tosses(self, *nodes: int) -> bool:
        """Whether all of these nodes toss coins without a dealer."""
        return self.toss_plan is not None and set(nodes) <= set(self.committee)

    @cached_property
    def noise_chunks(self) -> tuple[Chunk, ...]:
        """The committee's coins as they are dealt for."""
        if not self.coins or self.study.preprocessing != "dealer":
            return ()
        size = self.noise_plan.chunk_edges
        ranges = [
            (number, start, min(start + size, coins.count))
            for number, coins in enumerate(self.coins)
            for start in range(0, coins.count, size)
        ]
        return tuple(
            Chunk(self.committee, place, start, stop, noise=True, sum=number)
            for place, (number, start, stop) in enumerate(ranges)
        )

    @property
    def needs_dealer(self) -> bool:
        return self.program.needs_dealer or bool(self.noise_chunks)

    @property
    def rounds(self) -> int:
        """Masked fields, openings, reveal; noise is drawn before."""
        return self.program.rounds + 1

    def peers(self, node: int) -> tuple[int, ...]:
        """The nodes with which a node exchanges messages: those with which it shares an edge, or draws noise."""
        draws = node in self.committee and (self.noise_chunks or self.toss_plan)
        others = set(self.committee) - {node} if draws else set()
        return tuple(sorted(others.union(self.hypergraph.neighbours(node))))

    @cached_property
    def hypergraph(self) -> Hypergraph:
        """E, expanded from the joint seed."""
        return edges_of(self.study, self.seed, [member.classes for member in self.members])

    def tree_hash(self) -> FixedKeyHash:
        """The GGM hash of this attempt (not thread-safe: one per thread)."""
        return FixedKeyHash(derive(self.id, "ggm"))

    def chunks(self) -> Iterator[Chunk]:
        """Noise, then all chunks of all shared cells in the order in which they are dealt and evaluated.

        Cells take turns, so every node has work; the order is the same everywhere, so bounded queues cannot deadlock.
        """
        yield from self.noise_chunks
        plans = self.program.plans
        shared = self.hypergraph.shared_cells.items()
        cells = [(owners, cell, plans[pattern_of(owners)].chunk_edges) for owners, cell in shared]
        number = 0
        while cells:
            for owners, cell, size in cells:
                yield Chunk(owners, number, number * size, min((number + 1) * size, cell.count))
            number += 1
            cells = [entry for entry in cells if number * entry[2] < entry[1].count]

    def chunks_ahead(self, window: int) -> list[int]:
        """How many of its chunks' material each node takes before anybody uses any, with at most `window` bytes held.

        The dealer deals to all in the common order and waits for the slowest: a node that waited for more than this
        could wait for ever, for a chunk that is dealt only after another node, whose window is full, has begun.
        """
        counts, held = [0] * len(self.members), [0] * len(self.members)
        for chunk in self.chunks():
            plan = self.plan(chunk)
            for party, node in enumerate(chunk.parties):
                held[node] += dealt_bytes(plan, party, chunk.count)
            if max(held) > window:
                break
            for node in chunk.parties:
                counts[node] += 1
        return counts

    def chunks_of(self, node: int) -> Iterator[Chunk]:
        return (chunk for chunk in self.chunks() if node in chunk.owners)

    def cells_of(self, node: int) -> dict[Owners, Cell]:
        """The cells of a node's edges, its own among them, in canonical order."""
        cells = self.hypergraph.cells
        return {owners: cells[owners] for owners in sorted(cells) if node in owners}

    def released_values(self, node: int) -> int:
        """How many numbers of each sum a node releases: one, or one for each of its edges."""
        return sum(cell.count for cell in self.cells_of(node).values()) if self.pair_noise else 1

    def chunk_seed(self, node_seed: bytes, chunk: Chunk) -> bytes:
        """The seed of one node's part of one chunk."""
        return derive(
            node_seed,
            "noise" if chunk.noise else "chunk",
            len(chunk.owners),
            *chunk.owners,
            chunk.number,
        )
