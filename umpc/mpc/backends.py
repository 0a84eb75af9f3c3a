"""How edges of several owners are evaluated: one interface for every backend.

What a backend's plans say of a chunk is public: `attempt.plan(chunk)` has `everybody`, `chunk_edges`, `rounds`, and
`shape(round, party, count)`, a message of a round but for its content. What a node keeps secret is in its `Cells`.

| step | shared | garbled |
|---|---|---|
| `set_up`, once per link, before any data | nothing | oblivious transfers |
| `toss`, once: a committee's noise | nothing: chunks like others | coins by transfers, all members together |
| `fields_for`, `receive_fields`: round 1, once per link | masked records | labels, choices of labels |
| `protocol`, the further rounds of a chunk | masked openings | garbled edges |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from umpc.crypto import rounds
from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Message
from umpc.mpc.attempt import Attempt, Chunk
from umpc.mpc.garbled.cells import GarbledCells
from umpc.mpc.masked.cells import SharedCells
from umpc.study.document import Study


class Cells(Protocol):
    """One node's part in all cells of an attempt.

    Args:
        columns: field → (records,) int64 in steps of the resolution.
        seed: 32 uniform bytes that nobody else knows, but for the dealer where there is one.
        drawn: this node's random words for chunks of noise.
    """

    def __init__(
        self,
        attempt: Attempt,
        node: int,
        columns: Mapping[str, np.ndarray],
        seed: bytes,
        drawn: Mapping[Chunk, np.ndarray],
    ): ...

    @staticmethod
    def set_up_shapes(attempt: Attempt, sender: int, receiver: int) -> list[Message]:
        """What one node sends another in `set_up`, but for the content."""
        ...

    @staticmethod
    def field_shapes(attempt: Attempt, sender: int, receiver: int) -> list[Message]:
        """What one node sends another in round 1, but for the content."""
        ...

    def set_up(self, peer: int) -> rounds.Protocol[None] | None:
        """What goes before all data between this node and a peer; in each round one of the two is silent."""
        ...

    def toss(self) -> Mesh[list[int]] | None:
        """The committee's coins, after all set-ups, once: its share of each sum's. None: no part in any."""
        ...

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's records that occur in an edge with the peer."""
        ...

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer. Raises: EncodingError, RemoteProtocolError."""
        ...

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether all that a chunk needs of its owners' records has come."""
        ...

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> rounds.Protocol[list[int]]:
        """The rounds of a chunk, whose result is this node's share of each sum. material: what was dealt for it."""
        ...


BACKENDS: dict[str, type[Cells]] = {"shared": SharedCells, "garbled": GarbledCells}


def backend_of(study: Study) -> type[Cells]:
    return BACKENDS[study.backend]
