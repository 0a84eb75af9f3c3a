"""One node's part in cells that are evaluated under the dealer's masks: `backend = "shared"`.

Round 1 sends masked records (`fields.py`), once per link. The rounds of each chunk follow
(`evaluation.py`), with the dealer's material for it. Before all that, the members of a committee
that tosses coins by transfers set up channels for them (`committee_transfers.py`). Nothing else is
set up between two nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.arrays import WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, require
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.evaluation import evaluate_chunk
from umpc.mpc.masked.fields import fields_frames, fields_messages, read_fields
from umpc.mpc.masked.masks import masked_wires, wire_masks
from umpc.mpc.masked.material import DealtPart, SeededPart
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.mpc.transfers.committee_links import link_shapes
from umpc.ustat.clear import Columns


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
        """For each node whose records are here, this node included: per wire (records,) uint64."""

    def __repr__(self) -> str:
        return f"SharedCells({self.attempt.members[self.node].name}, <redacted>)"

    @staticmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The set-up between two members of a committee that tosses coins by transfers."""
        return link_shapes(sender, receiver) if attempt.tosses(sender, receiver) else []

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
        """Put a peer's masked records into a table that is indexed by the peer's record numbers.

        Raises: EncodingError where these are not exactly the shared records.
        """
        records = self.attempt.hypergraph.shared_records(peer, self.node)
        values = read_fields(self._program, messages)
        if any(len(sent) != len(records) for sent in values):
            raise EncodingError(f"{len(values[0])} masked records came, {len(records)} were due")
        total = self.attempt.members[peer].records
        table = [np.zeros(total, dtype=np.uint64) for _ in self._program.wires]
        for column, sent in zip(table, values, strict=True):
            column[records] = sent
        self.masked[peer] = table

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether the masked records of all owners are here."""
        if chunk.noise or not self._program.wires:
            return True
        return set(chunk.owners) <= self.masked.keys()

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[list[int]]:
        """The rounds of a chunk. Raises: EncodingError on malformed material."""
        plan = require(self.attempt.plan(chunk), Plan)
        party = chunk.parties.index(self.node)
        chunk_seed = self.attempt.chunk_seed(self._seed, chunk)
        dealt = DealtPart.decode(plan, material, party, chunk.count)
        seeded = SeededPart.expand(plan, chunk_seed, party, chunk.count)
        inputs = self._inputs(plan, chunk, party)
        return evaluate_chunk(party, plan, inputs, dealt, seeded, tree_hash)

    def _coin_inputs(self, chunk: Chunk) -> ChunkInputs:
        """This node's contribution to the coins of one sum, which is used once."""
        toss = self.attempt.coins[chunk.sum]
        coins = toss.coins(self._contributions.pop(chunk), chunk.start, chunk.stop)
        return ChunkInputs({}, {}, {}, chunk.count, self._names(chunk), coins)

    def _names(self, chunk: Chunk) -> list[str]:
        return [self.attempt.members[node].name for node in chunk.parties]

    def _inputs(self, plan: Plan, chunk: Chunk, party: int) -> ChunkInputs:
        """The masked values of the chunk's records, and this node's masks and records.

        A chunk of noise has no records: its inputs are this node's contribution to the coins.
        """
        if chunk.noise:
            return self._coin_inputs(chunk)
        index = self.attempt.hypergraph.cells[chunk.owners].edges(chunk.start, chunk.stop)
        places = {}
        masks = {}
        for number, place in enumerate(plan.places):
            if isinstance(place, RecordPlace):
                owner = chunk.owners[place.slot]
                rows = index[place.slot]
                places[number] = self.masked[owner][place.wire][rows]
                if owner == self.node:
                    masks[number] = self._masks[place.wire][rows]
        records = {
            slot: {name: column[index[slot]] for name, column in self.columns.items()}
            for slot in plan.own_slots(party)
        }
        return ChunkInputs(places, masks, records, chunk.count, self._names(chunk))
