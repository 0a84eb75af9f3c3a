"""One node's part in cells that two owners evaluate alone, by garbled circuits.

This is `backend = "garbled"`. Between two nodes, of which the first in the study garbles:

    set up    base transfers and the trees of their extension
              (`channel_set_up.py`), unless the two have a channel from after an earlier study
              (`channels.py`); Δ is the garbler's
    round 1   evaluator → garbler: the extension for its records' bits, each bit once
              garbler → evaluator: the active labels of its own records' bits, each bit once
    round 2   garbler → evaluator: for every chunk the garbled edges (`garbling.py`)

Where the owners compare numbers of their own (`pieces.py`), two messages of every chunk come before
the last: garbler → evaluator, masked tables (`piece_tables.py`); evaluator → garbler, the extension
for the bits that it looked up.

With noise inside the circuit (`PairNoise`) every chunk has a round before the last:
evaluator → garbler, the extension for bits that the evaluator draws. The label that it gets for
one, r_E, is one of q and q ⊕ Δ. The garbler takes q ⊕ r_G·Δ for the label of 0, with a bit of its
own, so the wire carries r_G ⊕ r_E.

A committee's noise (`coins_from_transfers.py`) takes transfers of the same links, before the data.
It uses a fork of each channel: the same Δ, with numbers of its own, hashed under another key than
gates. It also uses links between members that share no edge.

After the rounds each node has an additive share of every edge, and adds up, unless every edge is a
result of its own. A label serves all edges of its record. The edges of a link are numbered through,
so no hash is asked for twice.

Reveals: the garbler sees the extension, pseudorandom whatever the evaluator's bits are. The
evaluator sees one label of each wire, uniform, and garbled edges, pseudorandom given those labels.
Assumptions: CDH on edwards25519 with a random oracle (base transfers), SHAKE-256 as a pseudorandom
function, AES-128 as an ideal permutation (extension, tables and garbling).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.prg import FixedKeyHash, derive, digest
from umpc.crypto.rounds import Mesh, Message, Protocol
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import IndexArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.cells import Cells
from umpc.mpc.chunks import Chunk, ChunkShares, require
from umpc.mpc.garbled.plan import GarbledPlan, NodePair
from umpc.mpc.garbled.sides import EvaluatingSide, GarblingSide
from umpc.mpc.transfers.channels import CommitteeMember
from umpc.mpc.transfers.coins_from_transfers import toss
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.message_shapes import link_shapes
from umpc.ustat.cell_rows import Owners

WINDOW = 16
"""Chunks whose edges are ordered together."""


class GarbledCells(Cells):
    """The garbled backend's `Cells` (see `umpc/mpc/cells.py`).

    Memory: 16 bytes for each bit of the records that share edges with a peer.
    """

    def _begin(self) -> None:
        self._windows: dict[Owners, tuple[int, IndexArray]] = {}
        self.sides = {peer: self._side(peer) for peer in self.attempt.peers(self.node)}

    def _side(self, peer: int) -> GarblingSide | EvaluatingSide:
        """This node's side of its link with a peer."""
        attempt = self.attempt
        link = NodePair.of(attempt, self.node, peer)
        names = [attempt.members[each].name for each in (link.garbler, link.evaluator)]
        session = digest(b"umpc garbled link 1", attempt.id, *(name.encode() for name in names))
        seed = derive(self._seed, "garbled link", peer)
        peer_name = attempt.members[peer].name
        if self.node == link.garbler:
            return GarblingSide(link, self.node, peer_name, self.columns, seed, session)
        return EvaluatingSide(link, self.node, peer_name, self.columns, seed, session)

    @staticmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The set-up's messages, with zero bytes in place of their content."""
        link = NodePair.of(attempt, sender, receiver)
        if not link.needs_transfers:
            return []
        return link_shapes(sender, receiver)

    @staticmethod
    def field_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The messages of round 1, with zero bytes in place of their content."""
        return NodePair.of(attempt, sender, receiver).field_shapes(sender)

    def has_channel(self, peer: int) -> bool:
        """Whether there is a channel of transfers to a peer."""
        return self.sides[peer].link.needs_transfers

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        """This node's end of the channel to a peer, after the set-up."""
        return self.sides[peer].channel

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        """Use a channel to a peer that was made before, in place of `set_up`."""
        match self.sides[peer], channel:
            case (GarblingSide() as garbler, CorrelatedSender()):
                garbler.take_up(channel)
            case (EvaluatingSide() as evaluator, CorrelatedReceiver()):
                evaluator.take_up(channel)
            case side, _:
                raise LocalProtocolError(
                    f"the channel to {side.peer} has its ends the other way round"
                )

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The set-up of the oblivious transfers with a peer; None where there are none."""
        return self.sides[peer].set_up() if self.has_channel(peer) else None

    def toss(self) -> Mesh[list[int]] | None:
        """This node's part in the committee's coins; None where it has none.

        The links' channels are forked, as their transfers are no label's.
        """
        attempt = self.attempt
        plan = attempt.toss_plan
        if plan is None or not attempt.tosses(self.node):
            return None
        senders = {}
        receivers = {}
        for number, peer in enumerate(attempt.committee):
            match self.sides.get(peer):
                case GarblingSide() as side:
                    senders[number] = side.fork("toss")
                case EvaluatingSide() as side:
                    receivers[number] = side.fork("toss")
        names = [attempt.members[member].name for member in attempt.committee]
        seat = CommitteeMember(attempt.committee.index(self.node), names, senders, receivers)
        return toss(plan, seat, derive(self._coin_seed, "toss"))

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1 to a peer: labels, or choices of labels."""
        return self.sides[peer].fields()

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer. Raises: RemoteProtocolError."""
        self.sides[peer].receive(messages)

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether round 1 with the other owner is done."""
        (peer,) = set(chunk.owners) - {self.node}
        return self.sides[peer].complete

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[ChunkShares]:
        """The rounds of a chunk. Raises: EncodingError where material came, which nobody deals."""
        if material:
            raise EncodingError(f"garbled edges take no material, {len(material)} bytes came")
        (peer,) = set(chunk.owners) - {self.node}
        plan = require(self.attempt.plan(chunk), GarbledPlan)
        return self.sides[peer].protocol(plan, chunk, self._edges(chunk, plan))

    def _edges(self, chunk: Chunk, plan: GarbledPlan) -> IndexArray:
        """The edges of a chunk: (2, n).

        Edges of one record of the evaluator share pads of tables, so those of WINDOW chunks are put
        in the order of these records. E is public, and both sides order it alike.
        """
        cell = self.attempt.hypergraph.cells[chunk.owners]
        if not plan.pieces:
            return cell.edges(chunk.start, chunk.stop)
        size = WINDOW * plan.chunk_edges
        first = chunk.start // size * size
        if self._windows.get(chunk.owners, (None,))[0] != first:
            index = cell.edges(first, min(first + size, cell.count))
            slot = chunk.owners.index(max(chunk.owners))
            order = np.argsort(index[slot], kind="stable")
            self._windows[chunk.owners] = first, index[:, order]
        ordered = self._windows[chunk.owners][1]
        return ordered[:, chunk.start - first : chunk.stop - first]
