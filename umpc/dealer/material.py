"""The dealer's part of one attempt: correlated randomness, chunk by chunk, for all owners.

The dealer knows masks and never sees anything that is computed from data. Material is generated
when it is sent, bound to (attempt, cell, chunk), used once, and kept nowhere. Small chunks are
computed together, and each of them has its own seeds and frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from umpc.crypto.prg import SEED_BYTES, derive
from umpc.mpc.arrays import WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, joined_chunks, require
from umpc.mpc.masked.edge_layout import joined, wire_masks
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.mpc.masked.tasks import DealTask
from umpc.protocols.base.protocol import Dealing
from umpc.study.messages import Frame

Material: TypeAlias = list[tuple[int, Frame]]
"""(node, frame) for each owner of a chunk."""


class MaterialDealer:
    """One attempt of the masked backend.

    Args: entropy: number of bytes → uniform bytes; one seed per node is drawn from it.
    Raises: LocalProtocolError where the study's backend takes no material.
    """

    def __init__(self, attempt: SharedAttempt, entropy: Callable[[int], bytes]):
        self.attempt = attempt
        program = require(attempt.program, Program)
        self._seeds = [entropy(SEED_BYTES) for _ in attempt.members]
        self._masks = [
            wire_masks(program, derive(seed, "masks"), member.records)
            for seed, member in zip(self._seeds, attempt.members, strict=True)
        ]

    def __repr__(self) -> str:
        return f"MaterialDealer(attempt {self.attempt.id.hex()[:8]}, <redacted>)"

    def seed_frame(self, node: int) -> Frame:
        """The seed from which a node expands its masks and its part of every chunk."""
        return Frame("node_seed", (), 0, 1, 8 * SEED_BYTES, self._seeds[node])

    def deal_one(self, chunk: Chunk) -> Iterator[tuple[int, Frame]]:
        """The material of one chunk: (node, frame) for each owner.

        Chunks are dealt in the attempt's order.
        """
        (payloads,) = self.task(chunk).payloads()
        yield from self.frames(chunk, payloads)

    def task(self, *chunks: Chunk) -> DealTask:
        """The computation of chunks as a value, which another thread or process may do.

        Args: chunks: one, or several with the same plan.
        """
        plan = require(self.attempt.plan(chunks[0]), Plan)
        masks = self._record_masks(plan, chunks)
        seeds = [
            self.attempt.chunk_seeds([self._seeds[node] for node in chunk.parties], chunk)
            for chunk in chunks
        ]
        by_party = list(zip(*seeds, strict=True))
        counts = [chunk.count for chunk in chunks]
        return DealTask(plan, masks, by_party, counts, self.attempt.tree_key)

    def frames(self, chunk: Chunk, payloads: Sequence[bytes]) -> Iterator[tuple[int, Frame]]:
        """The frames of a chunk. Args: payloads: the result of its task."""
        plan = self.attempt.plan(chunk)
        for party, (node, payload) in enumerate(zip(chunk.parties, payloads, strict=True)):
            width = plan.dealt_bits(party)
            yield (
                node,
                Frame("material", chunk.place, chunk.number, chunk.count, width, payload),
            )

    def _record_masks(self, plan: Plan, chunks: Sequence[Chunk]) -> dict[int, WordArray]:
        """The masks of each place of a record, in the chunks' edges; noise has no records."""
        if chunks[0].noise:
            return {}
        cells = self.attempt.hypergraph.cells
        parts = joined_chunks(chunks)
        edges = [cells[owners].edges(start, stop) for owners, start, stop in parts]
        return {
            number: joined(
                [
                    self._masks[owners[place.slot]][place.wire].take(index[place.slot])
                    for (owners, _, _), index in zip(parts, edges, strict=True)
                ]
            )
            for number, place in enumerate(plan.places)
            if isinstance(place, RecordPlace)
        }


def dealt(session: Dealing, batch: Sequence[Chunk]) -> list[Material]:
    """The material of each chunk of a batch.

    It is computed together, unless another kind of session deals chunk by chunk.
    """
    if len(batch) == 1 or not isinstance(session, MaterialDealer):
        return [list(session.deal_one(chunk)) for chunk in batch]
    payloads = session.task(*batch).payloads()
    return [list(session.frames(*each)) for each in zip(batch, payloads, strict=True)]
