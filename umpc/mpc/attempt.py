"""An attempt over edges that several nodes share: E, the plans, and who meets whom.

Everything follows from the attempt's joint seed (`study/attempt.py`), the same at every process.
Circuits and transfers are loaded where a study needs them: a command starts sooner without.

*Chunk order.* The chunks of an attempt over shared edges, in the order in which they are dealt and
evaluated.

The order follows from E and the plans, so it is the same at every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import FixedKeyHash, Stream, derive, derive_each
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.chunks import (
    AFTER,
    Chunk,
    ChunkPlan,
    ChunkProgram,
    in_batches,
    pattern_of,
    require,
    small_cells,
)
from umpc.mpc.masked.compiler import FEW_EDGES, compile_program
from umpc.mpc.masked.material import CoinToss, committee_size, dealt_bytes, noise_plan
from umpc.mpc.masked.plan import Plan
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes
from umpc.ustat.cell_rows import Cell, Owners
from umpc.ustat.hypergraph import Hypergraph, expand, expand_drawn, expand_two_sample
from umpc.ustat.sampling import UNBALANCED

if TYPE_CHECKING:
    from umpc.mpc.garbled.kernel_to_circuit import PairNoise
    from umpc.mpc.transfers.message_shapes import TossPlan
    from umpc.mpc.triples.plan import TriplesProgram

ALL_PAIRS = 64
"""Up to so many nodes every two of them share a zero share."""
REACH = 16
"""Neighbours of a node on either side, where zero shares are not between all pairs."""


def edges_of(study: Study, seed: bytes, classes: Sequence[tuple[int, int]]) -> Hypergraph:
    """E of a study, from the joint seed and each node's records: (first class, all others)."""
    # spec/edges.py, `edges_of`: every node derives the same E
    words = Stream(derive(seed, "edges")).words
    if study.two_sample:
        return expand_two_sample(study.edges, classes, words)
    # numbers of records are public; values are not
    counts = [sum(records) for records in classes]
    if study.sampling in UNBALANCED:
        sizes = Sizes(study, sum(counts))
        return expand_drawn(sizes.edges, sizes.max_degree, counts, words, study.degree)
    return expand(study.edges, counts, words, study.degree)


class SharedAttempt(Attempt):
    """An attempt whose edges the nodes evaluate together.

    Args:
        members, openings: as for any attempt.
        ring: the ring that holds every sum with its noise.
        coins: the coins of each sum's noise, where a committee draws it; empty where every node
            adds noise of its own.
        coins_dealt: whether the coins are made of the dealer's material; else of transfers between
            all members of the committee, and then they depend on no dealer.
        pair_noise: the law of each sum, where every edge's value gets noise of its own and is
            released alone.
        sums: the number of sums of which every node gets a share; by default one for each kernel.
    """

    def __init__(
        self,
        study: Study,
        members: Sequence[Member],
        openings: Sequence[bytes],
        ring: Ring,
        coins: Sequence[CoinToss] = (),
        pair_noise: Sequence[PairNoise] = (),
        *,
        sums: int | None = None,
        coins_dealt: bool = False,
    ):
        super().__init__(study, members, openings)
        self._sums_ring = ring
        self.sums = len(study.kernels) if sums is None else sums
        self.coins = tuple(coins)
        self.coins_dealt = coins_dealt
        self.pair_noise = tuple(pair_noise)
        self.costs: dict[bool, Cost] = {}
        """Its costs, without and with a preparation, if somebody has asked for them."""
        self._ahead: dict[int, list[int]] = {}

    @cached_property
    def program(self) -> ChunkProgram:
        """The plans of all patterns of owners that occur in E."""
        patterns = self.hypergraph.rows.shared_patterns
        kernels = self.study.parsed_kernels
        if self.study.backend == "garbled":
            from umpc.mpc.garbled.plan import garbled_program

            return garbled_program(kernels, self._sums_ring, patterns, self.pair_noise)
        if self.study.backend == "triples":
            from umpc.mpc.triples.plan import triples_program

            return triples_program(kernels, self._sums_ring, patterns)
        # keys for few edges save a round
        few = self.sizes.edges <= FEW_EDGES
        program = compile_program(kernels, self._sums_ring, patterns, few=few)
        # a masked product must not wrap in the ring
        if program.word_bits > self._sums_ring.bits:
            program = compile_program(kernels, RINGS[-1], patterns, few=few)
        return program

    @property
    def ring(self) -> Ring:
        """The ring of the sums."""
        return self.program.ring

    def plan(self, chunk: Chunk) -> ChunkPlan:
        """The computation of the parties of a chunk."""
        if chunk.noise:
            return self.noise_plan
        plan = self.program.plans[pattern_of(chunk.owners)]
        if not chunk.part:
            return plan
        from umpc.mpc.triples.plan import TriplesPlan

        return require(plan, TriplesPlan).only(chunk.part)

    @property
    def makes_ahead(self) -> bool:
        """Whether the owners can make material before the data: triples of random bits."""
        return self._triples is not None

    @property
    def _triples(self) -> TriplesProgram | None:
        """The program, if the owners make triples."""
        if self.study.backend != "triples":
            return None
        from umpc.mpc.triples.plan import TriplesProgram

        return require(self.program, TriplesProgram)

    @cached_property
    def committee(self) -> tuple[int, ...]:
        """The nodes that draw the noise together, from the joint seed.

        It is empty where every node adds its own noise.
        """
        if not self.coins:
            return ()
        nodes = len(self.members)
        # Sinh & Ramon 2025, M_HF: members from the joint seed
        order = np.argsort(Stream(derive(self.seed, "committee")).words(nodes), kind="stable")
        # an honest member but for 2^-40, which counts as δ
        size = committee_size(nodes, self.study.max_colluding)
        return tuple(sorted(int(node) for node in order[:size]))

    @cached_property
    def noise_plan(self) -> Plan:
        """The plan of the committee's coins where material is dealt for them."""
        return noise_plan(len(self.committee), self.ring)

    @cached_property
    def toss_plan(self) -> TossPlan | None:
        """The plan of the committee's coins from transfers; None where there are none."""
        if self.coins_dealt or not any(coins.count for coins in self.coins):
            return None
        from umpc.mpc.transfers.message_shapes import TossPlan

        return TossPlan(len(self.committee), self.ring, self.coins)

    def tosses(self, *nodes: int) -> bool:
        """Whether all of these nodes toss coins by transfers."""
        return self.toss_plan is not None and set(nodes) <= set(self.committee)

    @cached_property
    def noise_chunks(self) -> tuple[Chunk, ...]:
        """The chunks of the committee's coins, where material is dealt for them."""
        if not self.coins or not self.coins_dealt:
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
        """Whether a dealer must send material."""
        return self.program.needs_dealer or bool(self.noise_chunks)

    def transfer_peers(self, node: int) -> tuple[int, ...]:
        """The peers with which a node sets up oblivious transfers before the data."""
        peers = self.peers(node)
        if self.study.backend == "garbled":
            return peers
        return tuple(peer for peer in peers if self.needs_transfers(node, peer))

    def needs_transfers(self, node: int, peer: int) -> bool:
        """Whether two nodes set up transfers for coins, or for edges by triples."""
        return self.tosses(node, peer) or frozenset((node, peer)) in self._joined

    @cached_property
    def _joined(self) -> frozenset[frozenset[int]]:
        """The pairs of nodes that evaluate gates together by triples."""
        if self._triples is None:
            return frozenset()
        plans = self._triples.plans
        found = set()
        for owners in self.hypergraph.shared_cells:
            parties = sorted(set(owners))
            for one, other in plans[pattern_of(owners)].pairs:
                # parties whose records decide a gate together
                found.add(frozenset((parties[one], parties[other])))
        return frozenset(found)

    @property
    def rounds(self) -> int:
        """The rounds on data: masked fields, openings, reveal. Noise is drawn before."""
        return self.program.rounds + 1

    @property
    def rounds_if_prepared(self) -> int:
        """The rounds on data of a study that was prepared ahead."""
        if self._triples is None:
            return self.rounds
        return self._triples.rounds_of(AFTER) + 1

    def peers(self, node: int) -> tuple[int, ...]:
        """The nodes with which a node exchanges messages: they share an edge, or draw noise."""
        others = set(self.hypergraph.neighbours(node))
        if node in self.committee and (self.noise_chunks or self.toss_plan):
            # committee members meet even without a shared edge
            others |= set(self.committee) - {node}
        return tuple(sorted(others))

    def zero_share_peers(self, node: int) -> tuple[int, ...]:
        """The nodes with which a node agrees on zero shares: all others, or its neighbours.

        If t = N - 1 nodes may collude, they know all masks of a node anyway. Its own noise, or its
        share of the committee's, then suffices. More than ALL_PAIRS nodes then stand in a circle
        that the joint seed orders, and each has REACH neighbours on either side: those outside see
        sums over connected nodes only.
        """
        count = len(self.members)
        # Bonawitz et al. 2017: masks between all pairs
        if count <= ALL_PAIRS or self.study.max_colluding < count - 1:
            return tuple(other for other in range(count) if other != node)
        # spec/zero_shares.py, `neighbours`
        place = int(np.flatnonzero(self._circle == node)[0])
        steps = [step for step in range(-REACH, REACH + 1) if step]
        return tuple(sorted(int(self._circle[(place + step) % count]) for step in steps))

    @cached_property
    def _circle(self) -> NDArray[np.intp]:
        words = Stream(derive(self.seed, "zero shares")).words(len(self.members))
        return np.argsort(words, kind="stable")

    @cached_property
    def hypergraph(self) -> Hypergraph:
        """E, expanded from the joint seed."""
        return edges_of(self.study, self.seed, [member.classes for member in self.members])

    def tree_hash(self) -> FixedKeyHash:
        """The GGM hash of this attempt. It is not thread-safe: make one for each thread."""
        return FixedKeyHash(self.tree_key)

    @property
    def tree_key(self) -> bytes:
        """The key of that hash, which is public."""
        # public: one permutation for each attempt
        return derive(self.id, "ggm")

    def cells_of(self, node: int) -> dict[Owners, Cell]:
        """The cells of a node's edges, its own cell among them, in canonical order."""
        return self.hypergraph.cells_of(node)

    def released_values(self, node: int) -> int:
        """The number of values of each sum that a node releases: one, or one for each edge."""
        if not self.pair_noise:
            return 1
        return sum(cell.count for cell in self.cells_of(node).values())

    def chunk_seed(self, node_seed: bytes, chunk: Chunk) -> bytes:
        """The seed of one node's part of one chunk."""
        return self.chunk_seeds([node_seed], chunk)[0]

    def chunk_seeds(self, node_seeds: Sequence[bytes], chunk: Chunk) -> list[bytes]:
        """The seeds of these nodes' parts of one chunk."""
        # spec/masked_dealing.py, `chunk_seed`
        kind = "noise" if chunk.noise else "chunk"
        return derive_each(node_seeds, kind, len(chunk.owners), *chunk.owners, chunk.number)

    # --- chunks ----------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Chunk]:
        """All chunks, in the order in which they are dealt and evaluated.

        Noise comes first, then small cells, wave by wave (`chunks.py`), then the other shared
        cells. These take turns, so every node has work. The order is equal everywhere, so bounded
        queues cannot deadlock.
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
