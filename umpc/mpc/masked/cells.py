"""One node's part in the cells that are evaluated under masks which a dealer knows: `backend = "shared"`.

Nothing is set up between two nodes. Round 1 sends masked records (`fields.py`), once per link; then come the rounds of
each chunk (`evaluation.py`) with what the dealer dealt for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.attempt import Attempt, Chunk
from umpc.mpc.masked.evaluation import ChunkInputs, evaluate_chunk
from umpc.mpc.masked.fields import fields_frames, fields_messages, read_fields
from umpc.mpc.masked.masks import masked_wires, wire_masks
from umpc.mpc.masked.material import DealtPart, SeededPart
from umpc.mpc.masked.plan import RecordPlace


class SharedCells:
    """As `cells.Cells` says. seed: the dealer's for this node; its own where nothing is dealt."""

    def __init__(
        self,
        attempt: Attempt,
        node: int,
        columns: Mapping[str, np.ndarray],
        seed: bytes,
        drawn: Mapping[Chunk, np.ndarray],
    ):
        self.attempt, self.node, self.columns, self._seed = attempt, node, columns, seed
        self._drawn = dict(drawn)
        program, records = attempt.program, attempt.members[node].records
        self._masks = wire_masks(program, derive(seed, "masks"), records)
        self.masked = {node: masked_wires(program, columns, self._masks, records)}
        """Per node that has sent its records, and this one: per wire (records,) uint64."""

    def __repr__(self) -> str:
        return f"SharedCells({self.attempt.members[self.node].name}, <redacted>)"

    @staticmethod
    def set_up_shapes(attempt: Attempt, sender: int, receiver: int) -> list[Message]:
        return []

    @staticmethod
    def field_shapes(attempt: Attempt, sender: int, receiver: int) -> list[Message]:
        program, records = attempt.program, attempt.hypergraph.shared_records(sender, receiver)
        frames = fields_frames(program, len(records))
        return [
            Message("masked_fields", bytes(size), count, program.wire_bits)
            for _, count, size in frames
        ]

    def set_up(self, peer: int) -> None:
        return None

    def toss(self) -> None:
        return None

    def fields_for(self, peer: int) -> list[Message]:
        """The masked records that occur in an edge with the peer."""
        records = self.attempt.hypergraph.shared_records(self.node, peer)
        return fields_messages(self.attempt.program, self.masked[self.node], records)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Into a table indexed as the peer numbers its records. Raises: EncodingError where not exactly these came."""
        program, records = (
            self.attempt.program,
            self.attempt.hypergraph.shared_records(peer, self.node),
        )
        values = read_fields(program, messages)
        if any(len(sent) != len(records) for sent in values):
            raise EncodingError(f"{len(values[0])} masked records came, {len(records)} were due")
        table = [
            np.zeros(self.attempt.members[peer].records, dtype=np.uint64) for _ in program.wires
        ]
        for column, sent in zip(table, values, strict=True):
            column[records] = sent
        self.masked[peer] = table

    def is_ready(self, chunk: Chunk) -> bool:
        return (
            chunk.noise or not self.attempt.program.wires or set(chunk.owners) <= self.masked.keys()
        )

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[list[int]]:
        """Raises: EncodingError on malformed material."""
        plan, party = self.attempt.plan(chunk), chunk.parties.index(self.node)
        dealt = DealtPart.decode(plan, material, party, chunk.count)
        seeded = SeededPart.expand(
            plan, self.attempt.chunk_seed(self._seed, chunk), party, chunk.count
        )
        inputs = self._coin_inputs(chunk) if chunk.noise else self._inputs(chunk, party)
        return evaluate_chunk(party, plan, inputs, dealt, seeded, tree_hash)

    def _coin_inputs(self, chunk: Chunk) -> ChunkInputs:
        """This node's contribution to the coins of one sum."""
        coins = self.attempt.coins[chunk.sum].coins(self._drawn.pop(chunk), chunk.start, chunk.stop)
        return ChunkInputs({}, {}, {}, chunk.count, self._names(chunk), coins)

    def _names(self, chunk: Chunk) -> list[str]:
        return [self.attempt.members[node].name for node in chunk.parties]

    def _inputs(self, chunk: Chunk, party: int) -> ChunkInputs:
        """The masked values of the chunk's records, and what this node knows of its own."""
        plan = self.attempt.plan(chunk)
        index = self.attempt.hypergraph.cells[chunk.owners].edges(chunk.start, chunk.stop)
        places, masks = {}, {}
        for number, place in enumerate(plan.places):
            if isinstance(place, RecordPlace):
                owner, rows = chunk.owners[place.slot], index[place.slot]
                places[number] = self.masked[owner][place.wire][rows]
                if owner == self.node:
                    masks[number] = self._masks[place.wire][rows]
        slots = plan.own_slots(party)
        records = {
            slot: {name: column[index[slot]] for name, column in self.columns.items()}
            for slot in slots
        }
        return ChunkInputs(places, masks, records, chunk.count, self._names(chunk))
