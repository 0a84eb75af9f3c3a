"""One node's part in cells that are evaluated under the dealer's masks: `backend = "shared"`.

Round 1 sends masked records, once per link. The rounds of each chunk follow
(`evaluation.py`), with the dealer's material for it. Before all that, the members of a committee
that tosses coins by transfers set up channels for them. Nothing else is
set up between two nodes.

*Fields.* Round 1: every owner sends its masked records to each node with which it shares an edge.

Each record is sent once. Reveals: values under masks that only their owner and the dealer know,
which are uniform to everybody else.

*Committee transfers.* The transfers of one committee member, which need no seed and no material of
the dealer's.

They come from a seed of the member's own, which the dealer never sees. So they go on while the
dealer still deals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.ring import pack, packed_size, unpack
from umpc.crypto.rounds import Mesh, Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.arrays import IndexArray, WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.cells import Cells
from umpc.mpc.chunks import Chunk, joined_chunks, require
from umpc.mpc.masked.edge_layout import WireValues, joined, masked_wires, wire_masks
from umpc.mpc.masked.material import ChunkInputs
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.mpc.transfers.channels import Channels
from umpc.mpc.transfers.coins_from_transfers import toss
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.message_shapes import link_shapes

if TYPE_CHECKING:
    from umpc.mpc.masked.tasks import OwnerBatch


class SharedCells(Cells):
    """The masked backend's cells. `CommitteeTransfers` sets up and tosses, in their place.

    seed: the dealer's seed for this node; the node's own where nothing is dealt. coin_seed: not
        used here, because `CommitteeTransfers` has it. Coins that are dealt for are chunks.
    """

    def _begin(self) -> None:
        self._program = require(self.attempt.program, Program)
        records = self.attempt.members[self.node].records
        # the node's masks follow from the dealer's seed
        self._masks = wire_masks(self._program, derive(self._seed, "masks"), records)
        # Sinh & Ramon 2025, 3.1, step 1, masked in place of shared: x̂ = x + r
        own = masked_wires(self._program, self.columns, self._masks, records)
        self.masked: dict[int, Sequence[WordArray]] = {self.node: own}
        """For each node whose records were read, this node included: per wire (records,) uint64."""

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
            # each node with which it shares edges gets only those records
            Message("masked_fields", bytes(size), count, program.wire_bits)
            for _, count, size in fields_frames(program, len(records))
        ]

    def fields_for(self, peer: int) -> list[Message]:
        """The masked records that occur in an edge with the peer."""
        records = self.attempt.hypergraph.shared_records(self.node, peer)
        return fields_messages(self._program, self.masked[self.node], records)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Take a peer's masked records.

        Raises: EncodingError where these are not exactly the shared records.
        """
        records = self.attempt.hypergraph.shared_records(peer, self.node)
        # E is public, so the receiver knows which records are due
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
        # x̂ of every owner is needed before the first opening
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
        # one plan, and this node in one place of it
        party = chunks[0].parties.index(self.node)
        return OwnerBatch(
            party,
            plan,
            self._inputs(plan, chunks, party),
            [self._names(chunk) for chunk in chunks],
            [chunk.count for chunk in chunks],
            materials,
            # spec/masked_dealing.py, `chunk_seed`: never two uses of one mask
            [self.attempt.chunk_seed(self._seed, chunk) for chunk in chunks],
            self.attempt.tree_key,
        )

    def _coin_inputs(self, chunk: Chunk) -> ChunkInputs:
        """This node's contribution to the coins of one sum, which is used once."""
        toss = self.attempt.coins[chunk.sum]
        # popped: random words serve one coin each
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
        # the edges' records inside each owner's table
        edges = [cells[owners].edges(start, stop) for owners, start, stop in parts]
        rows = [joined(list(slot)) for slot in zip(*edges, strict=True)]
        places = {}
        masks = {}
        for number, place in enumerate(plan.places):
            if not isinstance(place, RecordPlace):
                continue
            slot, wire = place.slot, place.wire
            # own record: x̂ and, for factors of a term, its mask
            if plan.pattern[slot] == party:
                places[number] = self.masked[self.node][wire].take(rows[slot])
                if plan.reads_masks:
                    masks[number] = self._masks[wire].take(rows[slot])
            else:
                # another owner's record: x̂ only
                places[number] = joined(
                    [
                        self.masked[owners[slot]][wire].take(index[slot])
                        for (owners, _, _), index in zip(parts, edges, strict=True)
                    ]
                )
        records = {
            # own values in the clear never leave this process
            slot: {name: column.take(rows[slot]) for name, column in self.columns.items()}
            for slot in plan.own_slots(party)
        }
        names = self._names(chunks[0]) if len(chunks) == 1 else ()
        return ChunkInputs(places, masks, records, len(rows[0]), names)


# --- fields ---------------------------------------------------------------------------------------

FIELDS_BYTES = 1_000_000
"""The most bytes of masked fields that go into one message."""


def fields_frames(program: Program, records: int) -> Iterator[tuple[int, int, int]]:
    """The cut of round 1 into messages: (number, records, bytes) of each.

    There is no message where no wire is sent masked.
    """
    if not program.wires:
        return
    step = _most_records(program)
    for number, start in enumerate(range(0, records, step)):
        count = min(step, records - start)
        yield number, count, sum(packed_size(count, wire.width) for wire in program.wires)


def _most_records(program: Program) -> int:
    """The records of a full message, so many that it ends with a whole byte."""
    return FIELDS_BYTES * 8 // program.wire_bits // 8 * 8


def fields_messages(program: Program, masked: WireValues, records: IndexArray) -> list[Message]:
    """The masked wires of these records, wire after wire, in as few messages as fit."""
    start = 0
    messages = []
    for _, count, _ in fields_frames(program, len(records)):
        part = records[start : start + count]
        wires = (
            # wire after wire, each in its own width
            pack(values[part], wire.width)
            for wire, values in zip(program.wires, masked, strict=True)
        )
        messages.append(Message("masked_fields", b"".join(wires), count, program.wire_bits))
        start += count
    return messages


def read_fields(program: Program, messages: Sequence[Message]) -> list[WordArray]:
    """Another owner's masked wires: for each wire (records sent,) uint64. Raises: EncodingError."""
    values: list[list[WordArray]] = [[] for _ in program.wires]
    for message in messages:
        start = 0
        for wire, parts in zip(program.wires, values, strict=True):
            stop = start + packed_size(message.count, wire.width)
            parts.append(unpack(message.payload[start:stop], message.count, wire.width))
            start = stop
        # exact lengths: no byte of a message is ignored
        if start != len(message.payload):
            raise EncodingError(
                f"{message!r} must take {start} bytes, and it has {len(message.payload)}"
            )
    return [np.concatenate(parts) if parts else np.empty(0, np.uint64) for parts in values]


# --- committee transfers --------------------------------------------------------------------------


class CommitteeTransfers:
    """Channels to the other members, and the committee's coins over them.

    Args:
        node: a member of the attempt's committee.
        coin_seed: 32 uniform bytes of this node's own, for this attempt alone.
    """

    def __init__(self, attempt: SharedAttempt, node: int, coin_seed: bytes):
        committee = attempt.committee
        names = [attempt.members[member].name for member in committee]
        self._attempt = attempt
        self._coin_seed = coin_seed
        # seed of the node's own: the dealer never sees it
        self._links = Channels(committee.index(node), names, attempt.id, coin_seed)

    def __repr__(self) -> str:
        return "CommitteeTransfers(<redacted>)"

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The rounds that make the channel to another node; None where the two toss no coins."""
        if not self.has_channel(peer):
            return None
        return self._links.set_up(self._attempt.committee.index(peer))

    def has_channel(self, peer: int) -> bool:
        """Whether this node tosses coins with another node."""
        return self._attempt.tosses(peer)

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """This node's end of the channel to another node, after the set-up."""
        return self._links.channel(self._attempt.committee.index(peer))

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel to another node that was made before, in place of `set_up`."""
        self._links.take_up(self._attempt.committee.index(peer), channel)

    def toss(self) -> Mesh[list[int]] | None:
        """This member's part in the committee's coins, after all set-ups.

        Coins that are made of the dealer's material are chunks like others.
        """
        plan = self._attempt.toss_plan
        if plan is None:
            return None
        # spec/coins.py, `toss`
        return toss(plan, self._links.seat(), derive(self._coin_seed, "toss"))
