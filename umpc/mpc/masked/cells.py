"""One node's part in cells that are evaluated under the dealer's masks: `backend = "shared"`.

Round 1 sends masked records (`fields.py`), once per link. The rounds of each chunk follow
(`evaluation.py`), with the dealer's material for it. Before all that, the members of a committee
that tosses coins by transfers set up channels for them (`committee_transfers.py`). Nothing else is
set up between two nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.arrays import WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, joined_chunks, require
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.fields import (
    fields_frames,
    fields_messages,
    read_fields,
)
from umpc.mpc.masked.masks import joined, masked_wires, wire_masks
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.mpc.transfers.message_shapes import link_shapes
from umpc.ustat.clear import Columns

if TYPE_CHECKING:
    from umpc.mpc.masked.tasks import OwnerBatch


class SharedCells:
    """The masked backend's `Cells` (see `backends.py`).

    seed: the dealer's seed for this node; the node's own where nothing is dealt. coin_seed: not
        used here, because `CommitteeTransfers` has it.
    """

    def __init__(
        self,
        attempt: SharedAttempt,
        node: int,
        columns: Columns,
        seed: bytes,
        contributions: Mapping[Chunk, WordArray],
        coin_seed: bytes = b"",
    ):
        self.attempt = attempt
        self.node = node
        self.columns = columns
        self._seed = seed
        self._contributions = dict(contributions)
        self._program = require(attempt.program, Program)
        records = attempt.members[node].records
        self._masks = wire_masks(self._program, derive(seed, "masks"), records)
        own = masked_wires(self._program, columns, self._masks, records)
        self.masked: dict[int, Sequence[WordArray]] = {node: own}
        """For each node whose records were read, this node included: per wire (records,) uint64."""

    def __repr__(self) -> str:
        return f"SharedCells({self.attempt.members[self.node].name}, <redacted>)"

    @staticmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The set-up between two members of a committee that tosses coins by transfers."""
        if not attempt.tosses(sender, receiver):
            return []
        return link_shapes(sender, receiver)

    @staticmethod
    def field_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The messages of round 1, with zero bytes in place of their content."""
        program = require(attempt.program, Program)
        records = attempt.hypergraph.shared_records(sender, receiver)
        return [
            Message("masked_fields", bytes(size), count, program.wire_bits)
            for _, count, size in fields_frames(program, len(records))
        ]

    def set_up(self, peer: int) -> Protocol[None] | None:
        """Nothing: `CommitteeTransfers` has the only rounds that go before the data."""
        return None

    def toss(self) -> Mesh[list[int]] | None:
        """Nothing: `CommitteeTransfers` tosses, and coins that are dealt for are chunks."""
        return None

    def fields_for(self, peer: int) -> list[Message]:
        """The masked records that occur in an edge with the peer."""
        records = self.attempt.hypergraph.shared_records(self.node, peer)
        return fields_messages(self._program, self.masked[self.node], records)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Take a peer's masked records.

        Raises: EncodingError where these are not exactly the shared records.
        """
        records = self.attempt.hypergraph.shared_records(peer, self.node)
        values = read_fields(self._program, messages)
        for sent in values:
            if len(sent) != len(records):
                raise EncodingError(f"{len(sent)} masked records came, {len(records)} were due")
        total = self.attempt.members[peer].records
        table = [np.zeros(total, dtype=np.uint64) for _ in self._program.wires]
        for column, sent in zip(table, values, strict=True):
            column[records] = sent
        self.masked[peer] = table

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether the masked records of all owners are here."""
        if chunk.noise or not self._program.wires:
            return True
        return all(owner in self.masked for owner in chunk.owners)

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[list[int]]:
        """The rounds of a chunk. Raises: EncodingError on malformed material."""
        return self.batch([chunk], [material]).alone(tree_hash)

    def batch(self, chunks: Sequence[Chunk], materials: Sequence[bytes]) -> OwnerBatch:
        """The work of chunks as a value, which another thread or process may compute.

        They have one plan and this node as the same party, and each has its own material and seed.
        A chunk of noise is alone.
        """
        from umpc.mpc.masked.tasks import OwnerBatch  # not at a coordinator, which asks for shapes

        plan = require(self.attempt.plan(chunks[0]), Plan)
        party = chunks[0].parties.index(self.node)
        return OwnerBatch(
            party,
            plan,
            self._inputs(plan, chunks, party),
            [self._names(chunk) for chunk in chunks],
            [chunk.count for chunk in chunks],
            materials,
            [self.attempt.chunk_seed(self._seed, chunk) for chunk in chunks],
            self.attempt.tree_key,
        )

    def _coin_inputs(self, chunk: Chunk) -> ChunkInputs:
        """This node's contribution to the coins of one sum, which is used once."""
        toss = self.attempt.coins[chunk.sum]
        coins = toss.coins(self._contributions.pop(chunk), chunk.start, chunk.stop)
        return ChunkInputs({}, {}, {}, chunk.count, self._names(chunk), coins)

    def _names(self, chunk: Chunk) -> list[str]:
        return [self.attempt.members[node].name for node in chunk.parties]

    def _inputs(self, plan: Plan, chunks: Sequence[Chunk], party: int) -> ChunkInputs:
        """The masked values of the chunks' records, and this node's masks and records.

        A chunk of noise has no records: its inputs are this node's contribution to the coins.
        """
        if chunks[0].noise:
            return self._coin_inputs(chunks[0])
        return self._edge_inputs(plan, chunks, party)

    def _edge_inputs(self, plan: Plan, chunks: Sequence[Chunk], party: int) -> ChunkInputs:
        """The inputs of these chunks' edges, behind each other."""
        cells = self.attempt.hypergraph.cells
        parts = joined_chunks(chunks)
        edges = [cells[owners].edges(start, stop) for owners, start, stop in parts]
        rows = [joined(list(slot)) for slot in zip(*edges, strict=True)]
        places = {}
        masks = {}
        for number, place in enumerate(plan.places):
            if not isinstance(place, RecordPlace):
                continue
            slot, wire = place.slot, place.wire
            if plan.pattern[slot] == party:
                places[number] = self.masked[self.node][wire].take(rows[slot])
                if plan.reads_masks:
                    masks[number] = self._masks[wire].take(rows[slot])
            else:
                places[number] = joined(
                    [
                        self.masked[owners[slot]][wire].take(index[slot])
                        for (owners, _, _), index in zip(parts, edges, strict=True)
                    ]
                )
        records = {
            slot: {name: column.take(rows[slot]) for name, column in self.columns.items()}
            for slot in plan.own_slots(party)
        }
        names = self._names(chunks[0]) if len(chunks) == 1 else ()
        return ChunkInputs(places, masks, records, len(rows[0]), names)
