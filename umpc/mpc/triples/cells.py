"""One node's part in cells that their owners evaluate by triples: `backend = "triples"`.

Before the data, every two nodes whose records decide a gate together set up transfers. No records
are sent: a node's bits are its own shares. Each chunk has channels of its own, forked from those of
its owners, and makes its triples right before it uses them (`evaluation.py`). So a node holds the
triples of a few chunks only. In a study that is prepared ahead a chunk makes them in the
preparation; they wait on the node's disk, and its run has other channels. A committee's coins take
forks of the same channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.rounds import Message, Protocol
from umpc.errors import EncodingError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import AFTER, AHEAD, Chunk, require
from umpc.mpc.transfers.coins_from_transfers import toss
from umpc.mpc.transfers.committee_links import CommitteeLinks
from umpc.mpc.transfers.message_shapes import link_shapes
from umpc.mpc.triples.evaluation import (
    ChunkOwner,
    evaluate_chunk,
    prepare_chunk,
    unpack_triples,
)
from umpc.mpc.triples.plan import TriplesPlan
from umpc.ustat.clear import Columns


class TriplesCells:
    """The `Cells` of edges that are evaluated by triples (see `backends.py`)."""

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
        self._coin_seed = coin_seed
        names = [member.name for member in attempt.members]
        self._links = CommitteeLinks(node, names, attempt.id, derive(seed, "links"))

    def __repr__(self) -> str:
        return f"TriplesCells({self.attempt.members[self.node].name}, <redacted>)"

    @staticmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The set-up of two nodes that evaluate gates or toss coins together."""
        return link_shapes(sender, receiver) if attempt.needs_transfers(sender, receiver) else []

    @staticmethod
    def field_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """Nothing is sent in round 1."""
        return []

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The set-up of transfers with a peer; None where the two need none."""
        return self._links.set_up(peer) if self.attempt.needs_transfers(self.node, peer) else None

    def toss(self) -> Mesh[list[int]] | None:
        """This node's part in the committee's coins; None where it tosses none."""
        plan = self.attempt.toss_plan
        if plan is None or not self.attempt.tosses(self.node):
            return None
        seat = self._links.forked(self.attempt.committee, "toss")
        return toss(plan, seat, derive(self._coin_seed, "toss"))

    def fields_for(self, peer: int) -> list[Message]:
        """Nothing is sent in round 1."""
        return []

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Raises: EncodingError where a message came."""
        if messages:
            raise EncodingError(
                f"edges by triples take no records, {len(messages)} message(s) came"
            )

    def is_ready(self, chunk: Chunk) -> bool:
        """Nothing of other nodes is waited for."""
        return True

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Mesh[list[int]] | Mesh[bytes]:
        """The rounds of a chunk; of part AHEAD the result is its triples, packed.

        Args: material: the triples, for part AFTER; else nothing.

        Raises: EncodingError where other material came.
        """
        if material and chunk.part != AFTER:
            raise EncodingError(f"edges by triples take no material, {len(material)} bytes came")
        plan = require(self.attempt.plan(chunk), TriplesPlan)
        place = (len(chunk.owners), *chunk.owners, chunk.number)
        # Each part has channels of its own, so that no hash is asked for twice.
        seat = self._links.forked(chunk.parties, chunk.part or "chunk", *place)
        seed = self.attempt.chunk_seed(self._seed, chunk)
        if chunk.part == AHEAD:
            nothing = np.zeros((0, chunk.count), dtype=np.uint8)
            return prepare_chunk(ChunkOwner(plan, seat, nothing, seed))
        owner = ChunkOwner(plan, seat, self._shares(plan, chunk), seed)
        if chunk.part != AFTER:
            return evaluate_chunk(owner)
        return evaluate_chunk(owner, unpack_triples(owner, material))

    def _shares(self, plan: TriplesPlan, chunk: Chunk) -> BitArray:
        """This node's shares of the input wires: its own records' bits, and 0 elsewhere."""
        index = self.attempt.hypergraph.cells[chunk.owners].edges(chunk.start, chunk.stop)
        shares = np.zeros((len(plan.circuit.inputs), chunk.count), dtype=np.uint8)
        for row, (slot, field, bit) in zip(shares, plan.circuit.inputs, strict=True):
            if chunk.owners[slot] == self.node:
                row[:] = self.columns[field][index[slot]] >> bit & 1
        return shares
