"""One attempt at a study: the joint seed and all that follows from it, the same at every process.

Commit and reveal (docs/protocol.md, step agree): every node commits to 32 random bytes, sees everybody's commitment,
opens its own, and checks all openings. The joint seed is the hash of all openings, so it is uniform as long as one
node is honest, and nobody chooses it. The attempt's identity covers study, commitments, record counts, key agreement
and seed; peers and dealer refuse anything of another attempt.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

from umpc.errors import LocalProtocolError, RangeError, RemoteProtocolError
from umpc.mpc.plan import PairPlan, compile_pair
from umpc.mpc.prg import SEED_BYTES, FixedKeyHash, Stream, derive, digest
from umpc.mpc.ring import Ring, smallest_ring
from umpc.study import Study
from umpc.ustat.hypergraph import Hypergraph, Owners, expand
from umpc.ustat.sampling import edge_count, max_degree


@dataclass(frozen=True)
class Member:
    """What a node says when it accepts a study: how many records it has, a commitment, an X25519 key."""

    name: str
    records: int
    commitment: bytes
    public_key: bytes


@dataclass(frozen=True)
class Chunk:
    """A range of the edges of a cell: the unit of dealing and of evaluation."""

    owners: Owners
    number: int
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start


def commit(study_hash: bytes, node: str, opening: bytes) -> bytes:
    """The commitment of a node to its part of the joint seed."""
    return digest(b"umpc commitment 1", study_hash, node.encode(), opening)


MAX_RECORDS = 1 << 26
"""Records of all nodes together."""
MAX_SAMPLED = 1 << 26
"""Pairs that are listed one by one; all pairs of the records are never listed, so "all" has no such limit."""


@dataclass(frozen=True)
class Sizes:
    """What follows from a study and the number of records: known before anybody has the joint seed."""

    study: Study
    records: int

    @cached_property
    def edges(self) -> int:
        """|E|. Raises: TooFewRecords, StudyError, RangeError where a list of E would not fit memory."""
        count = edge_count(self.study.edges, self.records)
        if self.records > MAX_RECORDS:
            raise RangeError(f"the nodes have {self.records} records together, at most {MAX_RECORDS} are possible")
        if count > MAX_SAMPLED and count < comb(self.records, 2):
            raise RangeError(f"edges = {count}, at most {MAX_SAMPLED} can be sampled; ask for fewer, or for all")
        return count

    @cached_property
    def max_degree(self) -> int:
        """δ_max: in how many edges a record may be."""
        return max_degree(self.edges, self.records)

    @property
    def sensitivity(self) -> int:
        """δ_max·Δf in units of the kernel: what replacing one record changes in the sum, at most."""
        return self.max_degree * self.study.parsed_kernel.sensitivity_units

    def ring(self, noise_tail: int) -> Ring:
        """The ring that holds the sum and its noise (but for a probability of 2^-64). Raises: RangeError."""
        return smallest_ring(self.edges * self.study.parsed_kernel.magnitude_units + noise_tail)


def edges_of(study: Study, seed: bytes, counts: Sequence[int]) -> Hypergraph:
    """E of a study: from the joint seed and the nodes' record counts."""
    return expand(study.edges, counts, Stream(derive(seed, "edges")).words)


class Attempt:
    """The agreed facts of one attempt.

    Args:
        members: in the study's order.
        openings: in the same order.
        noise_tail: a bound of the noise in units, for the ring.

    Raises: RemoteProtocolError naming the node whose opening does not fit its commitment.
    """

    def __init__(self, study: Study, members: Sequence[Member], openings: Sequence[bytes], noise_tail: int):
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
        self.sizes = Sizes(study, sum(member.records for member in members))
        self.ring = self.sizes.ring(noise_tail)

    @cached_property
    def plan(self) -> PairPlan:
        return compile_pair(self.study.parsed_kernel, self.ring)

    @cached_property
    def hypergraph(self) -> Hypergraph:
        """E, expanded from the joint seed."""
        return edges_of(self.study, self.seed, [member.records for member in self.members])

    def tree_hash(self) -> FixedKeyHash:
        """The GGM hash of this attempt (not thread-safe: one per thread)."""
        return FixedKeyHash(derive(self.id, "ggm"))

    def chunks(self) -> Iterator[Chunk]:
        """All chunks of all shared cells in the order in which they are dealt and evaluated.

        Cells take turns, so every node has work; the order is the same everywhere, so bounded queues cannot deadlock.
        """
        cells = self.hypergraph.shared_cells
        size = self.plan.chunk_edges
        longest = max((cell.count for cell in cells.values()), default=0)
        for number in range(-(-longest // size)):
            for owners, cell in cells.items():
                if number * size < cell.count:
                    yield Chunk(owners, number, number * size, min((number + 1) * size, cell.count))

    def chunks_of(self, node: int) -> Iterator[Chunk]:
        return (chunk for chunk in self.chunks() if node in chunk.owners)


def _encode(member: Member) -> bytes:
    return digest(member.name.encode(), member.records.to_bytes(8, "little"), member.commitment, member.public_key)
