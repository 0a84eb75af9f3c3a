"""One attempt at a study: the joint seed and all that follows from it, the same at every process.

Commit and reveal (docs/protocol.md, step agree): every node commits to 32 random bytes, sees everybody's commitment,
opens its own, and checks all openings. The joint seed is the hash of all openings, so it is uniform as long as one
node is honest, and nobody chooses it. The attempt's identity covers study, commitments, record counts, key agreement
and seed; peers and dealer refuse anything of another attempt.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from umpc.errors import LocalProtocolError, RangeError, RemoteProtocolError
from umpc.mpc.compiler import compile_program
from umpc.mpc.garbled_plan import GarbledPlan, GarbledProgram, garbled_program
from umpc.mpc.material import dealt_bytes
from umpc.mpc.noise import CoinToss, committee_size, noise_plan
from umpc.mpc.plan import Plan, Program, pattern_of
from umpc.mpc.prg import SEED_BYTES, FixedKeyHash, Stream, derive, digest
from umpc.mpc.ring import RINGS, Ring, smallest_ring
from umpc.study import Study
from umpc.ustat.hypergraph import Hypergraph, Owners, expand, expand_two_sample
from umpc.ustat.sampling import edge_count, max_degree, two_sample_edge_count, two_sample_max_degree

if TYPE_CHECKING:
    from umpc.mpc.messages import Released


@dataclass(frozen=True)
class Member:
    """What a node says when it accepts a study: how many records it has, a commitment, an X25519 key.

    first_class: how many of the records are of the first class, where the study has public labels.
    """

    name: str
    records: int
    commitment: bytes
    public_key: bytes
    first_class: int = 0

    @property
    def classes(self) -> tuple[int, int]:
        """Records of the first and of the second class."""
        return self.first_class, self.records - self.first_class


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


def commit(study_hash: bytes, node: str, opening: bytes) -> bytes:
    """The commitment of a node to its part of the joint seed."""
    return digest(b"umpc commitment 1", study_hash, node.encode(), opening)


MAX_RECORDS = 1 << 26
"""Records of all nodes together."""
MAX_SAMPLED = 1 << 26
"""Edges that are listed one by one; all sets of records are never listed, so "all" has no such limit."""
MAX_SAMPLED_LARGER = 1 << 23
"""The same for edges of three and more records, whose drawing takes far more memory."""
MAX_CELLS = 1 << 16
"""Groups of owners of a complete set of edges."""


@dataclass(frozen=True)
class Sizes:
    """What follows from a study and the number of records: known before anybody has the joint seed."""

    study: Study
    records: int
    first_class: int = 0
    holders: int = 1
    """Nodes that have records."""

    @classmethod
    def of(cls, study: Study, members: Iterable[Member | Released]) -> Sizes:
        members = tuple(members)
        counts, firsts = [member.records for member in members], [member.first_class for member in members]
        return cls(study, sum(counts), sum(firsts), sum(count > 0 for count in counts))

    @cached_property
    def sets(self) -> int:
        """How many sets of records there are to choose E from."""
        if self.study.two_sample:
            return self.first_class * (self.records - self.first_class)
        return comb(self.records, self.study.degree)

    @cached_property
    def edges(self) -> int:
        """|E|. Raises: TooFewRecords, StudyError, RangeError where a list of E would not fit memory."""
        rule, study = self.study.edges, self.study
        if study.two_sample:
            count = two_sample_edge_count(rule, self.first_class, self.records - self.first_class)
        else:
            count = edge_count(rule, self.records, study.degree)
        if self.records > MAX_RECORDS:
            raise RangeError(f"the nodes have {self.records} records together, at most {MAX_RECORDS} are possible")
        most = MAX_SAMPLED if study.degree <= 2 else MAX_SAMPLED_LARGER
        if most < count < self.sets:
            raise RangeError(f"edges = {count}, at most {most} can be sampled; ask for fewer, or for all")
        cells = comb(self.holders + study.degree - 1, study.degree)
        if count == self.sets and cells > MAX_CELLS:
            raise RangeError(
                f"all sets of {study.degree} records of {self.holders} nodes have {cells} different groups of owners, "
                f"at most {MAX_CELLS} are possible; ask for a number of edges instead of all"
            )
        if len(study.nodes) ** study.degree >= 1 << 63:
            raise RangeError(f"{len(study.nodes)} nodes are too many for edges of {study.degree} records")
        return count

    @cached_property
    def max_degree(self) -> int:
        """δ_max: in how many edges a record may be."""
        if self.study.two_sample:
            return two_sample_max_degree(self.edges, self.first_class, self.records - self.first_class)
        return max_degree(self.edges, self.records, self.study.degree)

    @property
    def sensitivities(self) -> tuple[int, ...]:
        """δ_max·Δf in units of each kernel: what replacing one record changes in its sum, at most."""
        return tuple(self.max_degree * kernel.sensitivity_units for kernel in self.study.parsed_kernels)

    def ring(self, noise_tails: Sequence[int]) -> Ring:
        """The ring that holds every sum and its noise (but for a probability of 2^-64). Raises: RangeError."""
        kernels = zip(self.study.parsed_kernels, noise_tails, strict=True)
        return smallest_ring(max(self.edges * kernel.magnitude_units + tail for kernel, tail in kernels))


def edges_of(study: Study, seed: bytes, classes: Sequence[tuple[int, int]]) -> Hypergraph:
    """E of a study: from the joint seed and the nodes' records, (first class, all others)."""
    words = Stream(derive(seed, "edges")).words
    if study.two_sample:
        return expand_two_sample(study.edges, classes, words)
    return expand(study.edges, [sum(records) for records in classes], words, study.degree)


class Attempt:
    """The agreed facts of one attempt.

    Args:
        members: in the study's order.
        openings: in the same order.
        noise_tails: a bound of each sum's noise in units, for the ring.
        coins: of each sum's noise, where a committee draws it; empty where every node adds its own.

    Raises: RemoteProtocolError naming the node whose opening does not fit its commitment.
    """

    def __init__(
        self,
        study: Study,
        members: Sequence[Member],
        openings: Sequence[bytes],
        noise_tails: Sequence[int],
        coins: Sequence[CoinToss] = (),
    ):
        names = [node.name for node in study.nodes]
        if [member.name for member in members] != names or len(openings) != len(names):
            raise LocalProtocolError(f"the agreement names {[m.name for m in members]}, the study {names}")
        for member, opening in zip(members, openings, strict=True):
            expected = commit(study.hash, member.name, opening)
            if len(opening) != SEED_BYTES or not hmac.compare_digest(expected, member.commitment):
                raise RemoteProtocolError(
                    f"the seed opening of {member.name} does not fit its commitment; nothing was computed, run again",
                    culprit=member.name,
                    step="agree",
                )
        self.study = study
        self.members = tuple(members)
        self.seed = digest(b"umpc joint seed 1", *openings)
        self.id = digest(b"umpc attempt 1", study.hash, *(_encode(m) for m in members), self.seed)
        self.sizes = Sizes.of(study, members)
        self._sums_ring = self.sizes.ring(noise_tails)
        self.coins = tuple(coins)

    @cached_property
    def program(self) -> Program | GarbledProgram:
        """The plans of all patterns of owners that occur in E."""
        patterns = {pattern_of(owners) for owners in self.hypergraph.shared_cells}
        kernels = self.study.parsed_kernels
        if self.study.backend == "garbled":
            return garbled_program(kernels, self._sums_ring, patterns)
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
    def noise_chunks(self) -> tuple[Chunk, ...]:
        size = self.noise_plan.chunk_edges if self.coins else 0
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
        others = set(self.committee) - {node} if node in self.committee and self.noise_chunks else set()
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

    def chunk_seed(self, node_seed: bytes, chunk: Chunk) -> bytes:
        """The seed of one node's part of one chunk."""
        return derive(node_seed, "noise" if chunk.noise else "chunk", len(chunk.owners), *chunk.owners, chunk.number)


def _encode(member: Member) -> bytes:
    counts = (member.records.to_bytes(8, "little"), member.first_class.to_bytes(8, "little"))
    return digest(member.name.encode(), *counts, member.commitment, member.public_key)
