"""One node's side of one link between two nodes: the garbler's, and the evaluator's.

`cells.py` says how they talk to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from umpc.crypto.prg import SEED_BYTES, FixedKeyHash, Stream, derive
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, IndexArray, IntArray, WordArray
from umpc.mpc.chunks import Chunk, ChunkShares
from umpc.mpc.garbled.circuits import LABEL_BITS, InputBit
from umpc.mpc.garbled.garbling import GarbledEdges, active_labels, evaluate, garble, sum_shares
from umpc.mpc.garbled.gates import GateHash
from umpc.mpc.garbled.piece_tables import (
    Places,
    bits_of_wires,
    combined,
    make_tables,
    read_tables,
)
from umpc.mpc.garbled.plan import (
    COINS,
    EVALUATOR,
    GARBLER,
    LABELS,
    GarbledPlan,
    NodePair,
    WireBlock,
)
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender, fresh_delta
from umpc.mpc.transfers.message_shapes import extend_message
from umpc.ustat.cell_rows import Owners
from umpc.ustat.clear import Columns

NO_LABELS = np.empty((0, 2), dtype=np.uint64)

End = TypeVar("End", CorrelatedSender, CorrelatedReceiver)
"""A side's end of the channel of transfers: the garbler sends, the evaluator receives."""


class Side(Generic[End]):
    """One node's side of one link.

    peer: the other node's name, for errors.
    seed: 32 uniform bytes of this node's own, for this link alone.
    session: names link and attempt, the same for both.
    """

    def __init__(
        self, link: NodePair, node: int, peer: str, columns: Columns, seed: bytes, session: bytes
    ):
        self.link = link
        self.peer = peer
        self._seed = seed
        self._session = session
        self._node = node
        self._sender = link.garbler + link.evaluator - node
        self._own = link.blocks(node)
        self._theirs = link.blocks(self._sender)
        self._bits = record_bits(self._own, columns)
        public_key = derive(bytes(SEED_BYTES), "garbled gates", session)
        # π's key is public, one for each link and attempt
        self._hash = GateHash(public_key)
        self._row_hash = FixedKeyHash(derive(bytes(SEED_BYTES), "rows of tables", session))
        self._row_keys: dict[Owners, list[WordArray]] = {}
        self._columns = columns
        self._channel: End | None = None
        self._own_labels: WordArray | None = None
        self._their_labels: WordArray | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(link with {self.peer}, <redacted>)"

    def set_up(self) -> Protocol[None]:
        """The oblivious transfers' set-up. Raises: RemoteProtocolError."""
        # Naor & Pinkas 2001; Roy 2022: base transfers and trees
        self._channel = yield from self._open()

    def take_up(self, channel: End) -> None:
        """Use a channel that was made before the attempt, in place of `set_up`, once.

        Its fork for this attempt has streams and a session of its own.
        """
        if self._channel is not None:
            raise LocalProtocolError(f"the channel to {self.peer} was set up before")
        # same Δ, another session: no hash is asked for twice
        self._channel = channel.fork("attempt", self._session.hex(), session=self._session)

    @property
    def channel(self) -> End:
        """This side's end of the channel. Raises: LocalProtocolError before the set-up."""
        if self._channel is None:
            raise LocalProtocolError(f"nothing is set up with {self.peer}")
        return self._channel

    def fork(self, *labels: str | int) -> End:
        """This side's end of a channel of the same Δ. No label may be used twice."""
        return self.channel.fork(*labels)

    @property
    def complete(self) -> bool:
        """Whether the labels of both nodes' records are here."""
        return self._own_labels is not None and self._their_labels is not None

    def fields(self) -> list[Message]:
        """Round 1, once: a second call would make other labels, or another batch."""
        if self._own_labels is not None:
            raise LocalProtocolError(f"the labels for {self.peer} were made before")
        return self._make_fields()

    def receive(self, messages: Sequence[Message]) -> None:
        """Round 1 from the peer. Raises: RemoteProtocolError where other messages were due."""
        due = self.link.field_shapes(self._sender)
        if self._their_labels is not None or len(messages) != len(due):
            raise RemoteProtocolError(
                f"{self.peer} sent {len(messages)} message(s) of labels, {len(due)} were due, once",
                culprit=self.peer,
                step=due[0].step if due else LABELS,
            )
        for message, shape in zip(messages, due, strict=True):
            # public shapes: another message names its sender
            check_reply(message, shape, self.peer)
        slices = self.link.parts(self._sender)
        read: list[WordArray] = [self._read(*pair) for pair in zip(messages, slices, strict=True)]
        self._their_labels = np.concatenate([*read, NO_LABELS])

    def labels(
        self, chunk: Chunk, index: IndexArray, plan: GarbledPlan, coins: WordArray
    ) -> WordArray:
        """This side's labels of the input wires of a chunk's edges: (inputs, n, 2).

        index: (2, n), the edges' records. coins: (random bits · n, 2), the labels of those bits.
        """
        inputs = len(self.link.circuit.inputs)
        if inputs and len(plan.coin_wires) == inputs and self.complete:
            return coins.reshape(inputs, -1, 2)
        labels = np.empty((inputs, index.shape[1], 2), dtype=np.uint64)
        for own in (True, False):
            block = self._block(chunk, own=own)
            # a record's labels serve all its edges
            table = self._labels_of(block, own=own)
            places = np.searchsorted(block.records, index[block.slot])
            labels[list(block.wires)] = table[: len(block.wires), places]
        if plan.coin_wires:
            labels[list(plan.coin_wires)] = coins.reshape(len(plan.coin_wires), -1, 2)
        return labels

    def own_bits(self, plan: GarbledPlan, chunk: Chunk) -> BitArray:
        """This side's part of a chunk's random bits: (bits · n,) uint8."""
        seed = derive(self._seed, "coins", *chunk.owners, chunk.number)
        return Stream(seed).bits(plan.coin_count(chunk.count))

    def row_keys(
        self, plan: GarbledPlan, chunk: Chunk, places: Places, *, own: bool
    ) -> list[WordArray]:
        """The keys by which the evaluator's records choose rows: a piece's (records, 2).

        own: whether the records are this side's.
        """
        block = self._block(chunk, own=own)
        if chunk.owners not in self._row_keys:
            table = self._labels_of(block, own=own)
            row = {bit: number for number, bit in enumerate(block.carried)}
            numbers = [
                [row[InputBit(block.slot, each.piece.field, bit)] for bit in each.piece.bits]
                for each in plan.pieces
            ]
            # K of each piece, once for all edges of a record
            self._row_keys[chunk.owners] = [combined(table[each]) for each in numbers]
        records = np.searchsorted(block.records, places.records)
        return [keys[records] for keys in self._row_keys[chunk.owners]]

    def places(self, chunk: Chunk, index: IndexArray) -> Places:
        """The places of a chunk's pads. index: (2, n), the edges' records."""
        return Places.of(index[chunk.owners.index(self.link.evaluator)])

    def coin_channel(self, chunk: Chunk) -> End:
        """The channel of a chunk's coins."""
        return self.fork("coins", *chunk.owners, chunk.number)

    def piece_values(self, plan: GarbledPlan, chunk: Chunk, index: IndexArray) -> list[IntArray]:
        """This side's own value of each piece, for each edge: (n,) int64."""
        records = index[self._block(chunk, own=True).slot]
        return [
            each.piece.rows_of(self._columns[each.piece.field][records]) for each in plan.pieces
        ]

    def _block(self, chunk: Chunk, *, own: bool) -> WireBlock:
        """One node's records in the chunk's cell."""
        blocks = self._own if own else self._theirs
        (block,) = (each for each in blocks if each.owners == chunk.owners)
        return block

    def _labels_of(self, block: WireBlock, *, own: bool) -> WordArray:
        """The labels of one node's records: (bits, records, 2)."""
        known = self._own_labels if own else self._their_labels
        if known is None:
            raise LocalProtocolError(f"the labels of the link with {self.peer} are not here")
        return known[block.bits].reshape(len(block.carried), len(block.records), 2)

    def protocol(self, plan: GarbledPlan, chunk: Chunk, index: IndexArray) -> Protocol[ChunkShares]:
        """The rounds of a chunk; its result is this side's shares."""
        raise NotImplementedError

    def _open(self) -> Protocol[End]:
        """The set-up of the channel."""
        raise NotImplementedError

    def _make_fields(self) -> list[Message]:
        """Make this side's own labels, and the messages of round 1."""
        raise NotImplementedError

    def _read(self, message: Message, part: slice) -> WordArray:
        """The peer's labels in one message of round 1."""
        raise NotImplementedError


class GarblingSide(Side[CorrelatedSender]):
    """The garbler's side. Its labels are those of bit 0, whoever's record it is."""

    @cached_property
    def delta(self) -> WordArray:
        """Δ: uniform, lsb 1. It never leaves the garbler."""
        return fresh_delta(derive(self._seed, "delta"))

    def _open(self) -> Protocol[CorrelatedSender]:
        seed = derive(self._seed, "set-up")
        return (yield from open_sender(seed, self.delta, self._session, self.peer))

    def take_up(self, channel: CorrelatedSender) -> None:
        """Use a channel, and its Δ. Args: as in Side."""
        super().take_up(channel)
        self.delta = channel.delta

    def _make_fields(self) -> list[Message]:
        # labels of bit 0 for its own records
        self._own_labels = fresh_labels(derive(self._seed, "labels"), len(self._bits))
        # L ⊕ b·Δ: one of two uniform labels, so b stays hidden
        active = active_labels(self._own_labels, self._bits, self.delta)
        parts = (active[part] for part in self.link.parts(self._node))
        return [
            Message(LABELS, part.astype("<u8").tobytes(), len(part), LABEL_BITS) for part in parts
        ]

    def _read(self, message: Message, part: slice) -> WordArray:
        # Ishai et al. 2003: q_j is the label of bit 0 of the evaluator
        return self.channel.extend(message, part.stop - part.start).blocks

    def protocol(self, plan: GarbledPlan, chunk: Chunk, index: IndexArray) -> Protocol[ChunkShares]:
        """Garble the chunk's edges and send them."""
        first_edge = self.link.first_edge(chunk.owners) + chunk.start
        coins = NO_LABELS
        if plan.pieces:
            # pieces of comparisons, before gates read them
            coins = yield from self._looked_up(plan, chunk, index, first_edge)
        elif plan.coin_wires:
            coins = yield from self._coins(plan, chunk, self.own_bits(plan, chunk))
        # labels of 0 of all inputs, whoever owns them
        labels = self.labels(chunk, index, plan, coins)
        garbled, shares = garble(
            self.link.circuit, plan.ring, self.delta, labels, first_edge, self._hash
        )
        result: ChunkShares = shares if plan.noisy else sum_shares(shares)
        message = plan.garbled(garbled.encode(), chunk.count)
        del garbled, shares, labels, coins
        (reply,) = yield message
        check_reply(reply, plan.shape(plan.rounds, EVALUATOR, chunk.count), self.peer)
        return result

    def _looked_up(
        self, plan: GarbledPlan, chunk: Chunk, index: IndexArray, first_edge: int
    ) -> Protocol[WordArray]:
        """Labels of 0 of the bits that both look up, after the tables are sent."""
        theirs = self._block(chunk, own=False)
        places = self.places(chunk, index)
        stream = Stream(derive(self._seed, "rows", *chunk.owners, chunk.number))
        # r: hides the bits that the evaluator looks up
        masks = stream.bits(2 * len(plan.pieces) * chunk.count).reshape(-1, chunk.count)
        # Couteau 2018; Rathee et al. 2020: tables of pieces
        tables = make_tables(
            plan.pieces,
            self.row_keys(plan, chunk, places, own=False),
            self.piece_values(plan, chunk, index),
            masks,
            places,
            self.delta,
            self._row_hash,
            first_edge,
            is_first=theirs.slot == 1,
        )
        (reply,) = yield plan.tables(tables, chunk.count)
        check_reply(reply, plan.shape(1, EVALUATOR, chunk.count), self.peer)
        return (yield from self._coins(plan, chunk, bits_of_wires(plan.pieces, masks)))

    def _coins(self, plan: GarbledPlan, chunk: Chunk, own_bits: BitArray) -> Protocol[WordArray]:
        """Labels of 0 of bits that the evaluator chooses: those of the transfers, turned.

        own_bits: (bits · n,), this side's part: random, or the masks of tables.
        """
        channel = self.coin_channel(chunk)
        (reply,) = yield silence(COINS, plan.choices_round)
        due = plan.shape(plan.choices_round, EVALUATOR, chunk.count)
        check_reply(reply, due, self.peer)
        count = plan.coin_count(chunk.count)
        # turned: the wire carries r_G ⊕ r_E
        return channel.extend(extend_message(reply.payload, 1), count, turned=own_bits).blocks


class EvaluatingSide(Side[CorrelatedReceiver]):
    """The evaluator's side. Its labels are the active ones."""

    def _open(self) -> Protocol[CorrelatedReceiver]:
        seed = derive(self._seed, "set-up")
        return (yield from open_receiver(seed, self._session, self.peer))

    def _make_fields(self) -> list[Message]:
        messages = []
        labels = [NO_LABELS]
        for part in self.link.parts(self._node):
            batch, message = self.channel.extend(self._bits[part])
            labels.append(batch.blocks)
            messages.append(message)
        self._own_labels = np.concatenate(labels)
        return messages

    def _read(self, message: Message, part: slice) -> WordArray:
        return np.frombuffer(message.payload, dtype="<u8").reshape(-1, 2)

    def protocol(self, plan: GarbledPlan, chunk: Chunk, index: IndexArray) -> Protocol[ChunkShares]:
        """Receive the chunk's garbled edges and evaluate them."""
        first_edge = self.link.first_edge(chunk.owners) + chunk.start
        coins = NO_LABELS
        if plan.coin_wires:
            channel = self.coin_channel(chunk)
            if plan.pieces:
                bits = yield from self._looked_up(plan, chunk, index, first_edge)
            else:
                bits = self.own_bits(plan, chunk)
            coins = yield from self._coins(plan, channel, bits)
        (reply,) = yield plan.shape(plan.rounds, EVALUATOR, chunk.count)
        check_reply(reply, plan.shape(plan.rounds, GARBLER, chunk.count), self.peer)
        # half-gates: one table of two rows an AND
        garbled = GarbledEdges.decode(reply.payload, self.link.circuit, plan.ring, chunk.count)
        labels = self.labels(chunk, index, plan, coins)
        # active labels in, additive shares out
        shares = evaluate(self.link.circuit, plan.ring, garbled, labels, first_edge, self._hash)
        return shares if plan.noisy else sum_shares(shares)

    def _looked_up(
        self, plan: GarbledPlan, chunk: Chunk, index: IndexArray, first_edge: int
    ) -> Protocol[BitArray]:
        """This side's part of the bits that both look up: (bits · n,)."""
        # All but the tables is here, and the garbler is still making them.
        places = self.places(chunk, index)
        keys = self.row_keys(plan, chunk, places, own=True)
        values = self.piece_values(plan, chunk, index)
        (reply,) = yield plan.shape(1, EVALUATOR, chunk.count)
        check_reply(reply, plan.shape(1, GARBLER, chunk.count), self.peer)
        place = self._row_hash, first_edge
        # one row of each table opens: own value against the garbler's
        found = read_tables(reply.payload, plan.pieces, keys, values, places, *place)
        return bits_of_wires(plan.pieces, found)

    def _coins(
        self, plan: GarbledPlan, channel: CorrelatedReceiver, own_bits: BitArray
    ) -> Protocol[WordArray]:
        """The active labels of bits that this side chooses: random ones, or looked up."""
        # its bits choose labels; the garbler sees no bit
        batch, message = channel.extend(own_bits)
        (reply,) = yield plan.coins(message.payload)
        check_reply(reply, silence(COINS, plan.choices_round), self.peer)
        return batch.blocks


def record_bits(blocks: Sequence[WireBlock], columns: Columns) -> BitArray:
    """The bits of these records that have labels, in the blocks' order: (bits,) uint8."""
    rows = [np.empty(0, dtype=np.uint8)]
    for block in blocks:
        for _, field, bit in block.carried:
            rows.append((columns[field][block.records] >> bit & 1).astype(np.uint8))
    return np.concatenate(rows)


def fresh_labels(seed: bytes, count: int) -> WordArray:
    """Labels of bit 0: (count, 2) uint64."""
    return Stream(seed).words(2 * count).reshape(count, 2)
