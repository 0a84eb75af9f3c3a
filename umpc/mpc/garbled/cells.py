"""One node's part in the cells that two owners evaluate alone, by garbled circuits: `backend = "garbled"`.

Between two nodes, of which the first in the study garbles (`garbled_plan.py`):

    set up    base transfers (`base_ot.py`) and the roots of their extension (`correlated_ot.py`); Δ is the garbler's
    round 1   evaluator → garbler: the extension for its records' bits, each bit once
              garbler → evaluator: the active labels of its own records' bits, each bit once
    round 2   garbler → evaluator: for every chunk the garbled edges (`garbling.py`)

With noise inside the circuit (`pairs.py`) there is a round before the last, for every chunk: evaluator → garbler, the
extension for bits that the evaluator draws. The label that it gets for one, r_E, is one of q and q ⊕ Δ; the garbler
takes q ⊕ r_G·Δ for the label of 0, with a bit of its own, so the wire carries r_G ⊕ r_E.

A committee's noise (`toss.py`) takes transfers of the same links, before the data: a fork of each channel, so the same
Δ, with numbers of its own, hashed under another key than gates; and links between members that share no edge.

Now each has an additive share of every edge, and adds up, unless every edge is a result of its own. A label serves all
edges of its record; the edges of a link are numbered through, so no hash is asked for twice.

Sees: the garbler, the extension, pseudorandom whatever the evaluator's bits are. The evaluator, one label of each wire,
uniform, and garbled edges, pseudorandom given those labels. Assumptions: CDH on P-256 with a random oracle (base
transfers), AES and HMAC-SHA-256 as pseudorandom functions (extension), AES-128 as an ideal permutation (garbling).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import SEED_BYTES, FixedKeyHash, Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import Attempt, Chunk
from umpc.mpc.garbled.garbling import GarbledEdges, active_labels, evaluate, garble, sum_shares
from umpc.mpc.garbled.gates import GateHash
from umpc.mpc.garbled.outputs import LABEL_BITS
from umpc.mpc.garbled.plan import COINS, EVALUATOR, GARBLER, LABELS, GarbledPlan, Link, WireBlock
from umpc.mpc.transfers.base_ot import silence
from umpc.mpc.transfers.coins_from_transfers import CommitteeMember, toss
from umpc.mpc.transfers.correlated_ot import (
    CorrelatedReceiver,
    CorrelatedSender,
    extend_shape,
    fresh_delta,
    open_receiver,
    open_sender,
    set_up_shapes,
)

Columns = Mapping[str, np.ndarray]
Shares = list[int] | np.ndarray
"""A node's share of each sum of a chunk; where every edge is a result of its own, (sums, n) of the ring."""
LAST = 2
"""The round of the garbled edges, in which a plan's shape is asked for."""
NO_LABELS = np.empty((0, 2), dtype=np.uint64)


class GarbledCells:
    """As `cells.Cells` says. Memory: 16 bytes for each bit of the records that share edges with a peer."""

    def __init__(
        self,
        attempt: Attempt,
        node: int,
        columns: Columns,
        seed: bytes,
        drawn: Mapping[Chunk, np.ndarray],
    ):
        self.attempt, self.node, self._seed = attempt, node, seed
        self._sides: dict[int, GarblingSide | EvaluatingSide] = {}
        for peer in attempt.peers(node):
            link = Link.of(attempt, node, peer)
            side = GarblingSide if node == link.garbler else EvaluatingSide
            names = [attempt.members[each].name for each in (link.garbler, link.evaluator)]
            session = digest(b"umpc garbled link 1", attempt.id, *(name.encode() for name in names))
            own_seed = derive(seed, "garbled link", peer)
            self._sides[peer] = side(
                link, node, attempt.members[peer].name, columns, own_seed, session
            )

    def __repr__(self) -> str:
        return f"GarbledCells({self.attempt.members[self.node].name}, <redacted>)"

    @staticmethod
    def set_up_shapes(attempt: Attempt, sender: int, receiver: int) -> list[Message]:
        link = Link.of(attempt, sender, receiver)
        if not link.needs_transfers:
            return []
        return [
            message for garbles, message in set_up_shapes() if garbles == (sender == link.garbler)
        ]

    @staticmethod
    def field_shapes(attempt: Attempt, sender: int, receiver: int) -> list[Message]:
        return Link.of(attempt, sender, receiver).field_shapes(sender)

    def set_up(self, peer: int) -> Protocol[None] | None:
        side = self._sides[peer]
        return side.set_up() if side.link.needs_transfers else None

    def toss(self) -> Mesh[list[int]] | None:
        """The links' channels under a label of their own: their transfers are no label's."""
        attempt, committee = self.attempt, self.attempt.committee
        if not attempt.tosses(self.node):
            return None
        channels = {
            number: self._sides[peer].fork("toss")
            for number, peer in enumerate(committee)
            if peer != self.node
        }
        names = [attempt.members[member].name for member in committee]
        seat = CommitteeMember(committee.index(self.node), names, channels)
        return toss(attempt.toss_plan, seat, derive(self._seed, "toss"))

    def fields_for(self, peer: int) -> list[Message]:
        return self._sides[peer].fields()

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        self._sides[peer].receive(messages)

    def is_ready(self, chunk: Chunk) -> bool:
        (peer,) = set(chunk.owners) - {self.node}
        return self._sides[peer].complete

    def protocol(self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash) -> Protocol[Shares]:
        if material:
            raise EncodingError(f"garbled edges take no material, {len(material)} bytes came")
        (peer,) = set(chunk.owners) - {self.node}
        index = self.attempt.hypergraph.cells[chunk.owners].edges(chunk.start, chunk.stop)
        return self._sides[peer].protocol(self.attempt.plan(chunk), chunk, index)


class Side:
    """One node's side of one link. seed: 32 uniform bytes of this node's own, for this link alone.

    session: names link and attempt, the same for both. peer: its name, for errors.
    """

    def __init__(
        self, link: Link, node: int, peer: str, columns: Columns, seed: bytes, session: bytes
    ):
        self.link, self.peer, self._seed, self._session = link, peer, seed, session
        self._node, self._sender = node, link.garbler + link.evaluator - node
        self._own, self._theirs = link.blocks(node), link.blocks(self._sender)
        self._bits = record_bits(link, self._own, columns)
        self._hash = GateHash(derive(bytes(SEED_BYTES), "garbled gates", session))  # public
        self._channel: CorrelatedSender | CorrelatedReceiver | None = None
        self._own_labels: np.ndarray | None = None
        self._their_labels: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(link with {self.peer}, <redacted>)"

    def set_up(self) -> Protocol[None]:
        """Raises: RemoteProtocolError."""
        try:
            self._channel = yield from self._open()
        except EncodingError as error:
            raise RemoteProtocolError(error.message, culprit=self.peer, step=error.step) from error

    def fork(self, *labels: str | int) -> CorrelatedSender | CorrelatedReceiver:
        """This side's end of a channel of the same Δ. No label may be used twice."""
        if self._channel is None:
            raise LocalProtocolError(f"nothing is set up with {self.peer}")
        return self._channel.fork(*labels)

    @property
    def complete(self) -> bool:
        return self._own_labels is not None and self._their_labels is not None

    def fields(self) -> list[Message]:
        """Round 1, once: a second time would be other labels, or another batch."""
        if self._own_labels is not None:
            raise LocalProtocolError(f"the labels for {self.peer} were made before")
        return self._make_fields()

    def receive(self, messages: Sequence[Message]) -> None:
        """Raises: RemoteProtocolError where they are not what was due."""
        due = self.link.field_shapes(self._sender)
        if self._their_labels is not None or len(messages) != len(due):
            step = due[0].step if due else LABELS
            raise RemoteProtocolError(
                f"{self.peer} sent {len(messages)} message(s) of labels, {len(due)} were due, once",
                culprit=self.peer,
                step=step,
            )
        for message, shape in zip(messages, due, strict=True):
            check_reply(message, shape, self.peer)
        parts = [
            self._read(*part) for part in zip(messages, self.link.parts(self._sender), strict=True)
        ]
        self._their_labels = np.concatenate([*parts, np.empty((0, 2), dtype=np.uint64)])

    def labels(
        self, chunk: Chunk, index: np.ndarray, plan: GarbledPlan, coins: np.ndarray
    ) -> np.ndarray:
        """(inputs, n, 2): this side's labels of the input wires of a chunk's edges.

        index: (2, n), its records. coins: (random bits · n, 2), the labels of those.
        """
        labels = np.empty((len(self.link.circuit.inputs), index.shape[1], 2), dtype=np.uint64)
        for blocks, known in ((self._own, self._own_labels), (self._theirs, self._their_labels)):
            (block,) = (each for each in blocks if each.owners == chunk.owners)
            table = known[block.bits].reshape(len(block.wires), len(block.records), 2)
            labels[list(block.wires)] = table[:, np.searchsorted(block.records, index[block.slot])]
        if plan.coin_wires:
            labels[list(plan.coin_wires)] = coins.reshape(len(plan.coin_wires), -1, 2)
        return labels

    def own_bits(self, plan: GarbledPlan, chunk: Chunk) -> np.ndarray:
        """This side's part of a chunk's random bits: (bits · n,) uint8."""
        seed = derive(self._seed, "coins", *chunk.owners, chunk.number)
        return Stream(seed).bits(plan.coin_count(chunk.count))

    def _open(self) -> Protocol[CorrelatedSender | CorrelatedReceiver]:
        raise NotImplementedError

    def _make_fields(self) -> list[Message]:
        raise NotImplementedError

    def _read(self, message: Message, part: slice) -> np.ndarray:
        raise NotImplementedError

    def protocol(self, plan: GarbledPlan, chunk: Chunk, index: np.ndarray) -> Protocol[Shares]:
        raise NotImplementedError


class GarblingSide(Side):
    """Its labels are those of bit 0, whoever's record it is."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._delta = fresh_delta(derive(self._seed, "delta"))

    def _open(self) -> Protocol[CorrelatedSender]:
        return (
            yield from open_sender(
                derive(self._seed, "set-up"), self._delta, self._session, self.peer
            )
        )

    def _make_fields(self) -> list[Message]:
        self._own_labels = fresh_labels(derive(self._seed, "labels"), len(self._bits))
        active = active_labels(self._own_labels, self._bits, self._delta)
        parts = (active[part] for part in self.link.parts(self._node))
        return [
            Message(LABELS, part.astype("<u8").tobytes(), len(part), LABEL_BITS) for part in parts
        ]

    def _read(self, message: Message, part: slice) -> np.ndarray:
        return self._channel.extend(message, part.stop - part.start).blocks

    def protocol(self, plan: GarbledPlan, chunk: Chunk, index: np.ndarray) -> Protocol[Shares]:
        first_edge = self.link.first_edge(chunk.owners) + chunk.start
        coins = (yield from self._coins(plan, chunk)) if plan.coin_wires else NO_LABELS
        labels = self.labels(chunk, index, plan, coins)
        garbled, shares = garble(
            self.link.circuit, plan.ring, self._delta, labels, first_edge, self._hash
        )
        result = shares if plan.noisy else sum_shares(shares)
        message = plan.garbled(garbled.encode(), chunk.count)
        del garbled, shares, labels, coins
        (reply,) = yield message
        check_reply(reply, plan.shape(LAST, EVALUATOR, chunk.count), self.peer)
        return result

    def _coins(self, plan: GarbledPlan, chunk: Chunk) -> Protocol[np.ndarray]:
        """Labels of 0 of the chunk's random bits: those of the transfers, half of them turned."""
        (reply,) = yield silence(COINS, 1)
        check_reply(reply, plan.shape(1, EVALUATOR, chunk.count), self.peer)
        count = plan.coin_count(chunk.count)
        message = replace(extend_shape(count, 1), payload=reply.payload)
        channel = self.fork("coins", *chunk.owners, chunk.number)
        return active_labels(
            channel.extend(message, count).blocks, self.own_bits(plan, chunk), self._delta
        )


class EvaluatingSide(Side):
    """Its labels are the active ones."""

    def _open(self) -> Protocol[CorrelatedReceiver]:
        return (yield from open_receiver(derive(self._seed, "set-up"), self._session, self.peer))

    def _make_fields(self) -> list[Message]:
        messages, labels = [], [np.empty((0, 2), dtype=np.uint64)]
        for part in self.link.parts(self._node):
            batch, message = self._channel.extend(self._bits[part])
            labels.append(batch.blocks)
            messages.append(message)
        self._own_labels = np.concatenate(labels)
        return messages

    def _read(self, message: Message, part: slice) -> np.ndarray:
        return np.frombuffer(message.payload, dtype="<u8").reshape(-1, 2)

    def protocol(self, plan: GarbledPlan, chunk: Chunk, index: np.ndarray) -> Protocol[Shares]:
        coins = (yield from self._coins(plan, chunk)) if plan.coin_wires else NO_LABELS
        (reply,) = yield plan.shape(LAST, EVALUATOR, chunk.count)
        check_reply(reply, plan.shape(LAST, GARBLER, chunk.count), self.peer)
        garbled = GarbledEdges.decode(reply.payload, self.link.circuit, plan.ring, chunk.count)
        first_edge = self.link.first_edge(chunk.owners) + chunk.start
        labels = self.labels(chunk, index, plan, coins)
        shares = evaluate(self.link.circuit, plan.ring, garbled, labels, first_edge, self._hash)
        return shares if plan.noisy else sum_shares(shares)

    def _coins(self, plan: GarbledPlan, chunk: Chunk) -> Protocol[np.ndarray]:
        """The active labels of the chunk's random bits, of which this side chooses its part."""
        channel = self.fork("coins", *chunk.owners, chunk.number)
        batch, message = channel.extend(self.own_bits(plan, chunk))
        (reply,) = yield plan.coins(message.payload)
        check_reply(reply, silence(COINS, 1), self.peer)
        return batch.blocks


def record_bits(link: Link, blocks: Sequence[WireBlock], columns: Columns) -> np.ndarray:
    """(bits,) uint8: what the wires of these records carry, in the blocks' order."""
    rows = [np.empty(0, dtype=np.uint8)]
    for block in blocks:
        for wire in block.wires:
            _, field, bit = link.circuit.inputs[wire]
            rows.append((columns[field][block.records] >> bit & 1).astype(np.uint8))
    return np.concatenate(rows)


def fresh_labels(seed: bytes, count: int) -> np.ndarray:
    """(count, 2) uint64: labels of bit 0."""
    return Stream(seed).words(2 * count).reshape(count, 2)
