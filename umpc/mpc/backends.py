"""The interface of a node's part in its cells: one for every backend.

The statements of a backend's plans about a chunk are public: `attempt.plan(chunk)` has `everybody`,
`chunk_edges`, `rounds`, and `shape(round, party, count)`, a message of a round with zero bytes in
place of its content. A node's secrets are in its `Cells`.

| step | `shared` backend | `garbled` backend | `triples` backend |
|---|---|---|---|
| `set_up`, once per link | transfers between members | transfers | transfers |
| `toss`, once: a committee's noise | coins by transfers, or chunks | coins | coins |
| `fields_for`, `receive_fields`: round 1 | masked records | labels or choices | nothing |
| `protocol`, the further rounds of a chunk | masked openings | garbled edges | triples, gates |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from umpc.crypto import rounds
from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Message
from umpc.mpc.arrays import WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, ChunkShares
from umpc.mpc.masked.cells import SharedCells
from umpc.study.document import Study
from umpc.ustat.clear import Columns

if TYPE_CHECKING:
    from umpc.mpc.masked.committee_transfers import CommitteeTransfers


class Cells(Protocol):
    """One node's part in all cells of an attempt.

    Args:
        columns: field → (records,) int64 in steps of the resolution.
        seed: 32 uniform bytes that nobody else knows, except the dealer where there is one.
        contributions: this node's random words for each chunk of noise.
        coin_seed: 32 uniform bytes that nobody else knows, the dealer neither, for coins from
            transfers; empty where this node tosses none.
    """

    def __init__(
        self,
        attempt: SharedAttempt,
        node: int,
        columns: Columns,
        seed: bytes,
        contributions: Mapping[Chunk, WordArray],
        coin_seed: bytes = b"",
    ): ...

    @staticmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """One node's messages to another in `set_up`, with zero bytes in place of their content."""
        ...

    @staticmethod
    def field_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """One node's messages to another in round 1, with zero bytes in place of their content."""
        ...

    def set_up(self, peer: int) -> rounds.Protocol[None] | None:
        """The rounds before all data between this node and a peer; None where there are none.

        In each round one of the two is silent.
        """
        ...

    def toss(self) -> Mesh[list[int]] | None:
        """The committee's coins, after all set-ups, once: this node's share of each sum of coins.

        None where this node tosses no coins.
        """
        ...

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's records that occur in an edge with the peer."""
        ...

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer. Raises: EncodingError, RemoteProtocolError."""
        ...

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether a chunk has everything that it needs of its owners' records."""
        ...

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> rounds.Protocol[ChunkShares] | Mesh[ChunkShares] | Mesh[bytes]:
        """The rounds of a chunk, whose result is this node's share of each sum.

        It is a mesh over the chunk's parties where the plan's messages are `addressed`. The rounds
        of part AHEAD have material as their result, for those of part AFTER.

        material: the dealer's bytes for this node and chunk, or what was made ahead.
        """
        ...


def backend_of(study: Study) -> type[Cells]:
    """The class of the cells of a study's backend.

    Any other backend has no edges of several owners. Its nodes toss coins as those of `shared` do.
    """
    if study.backend == "garbled":
        from umpc.mpc.garbled.cells import GarbledCells  # loaded where a study needs circuits

        return GarbledCells
    if study.backend == "triples":
        from umpc.mpc.triples.cells import TriplesCells

        return TriplesCells
    return SharedCells


def tosses_apart(study: Study) -> bool:
    """Whether a study's coins have transfers of their own, which need no seed of the cells."""
    return backend_of(study) is SharedCells


def transfers_of(
    study: Study, attempt: SharedAttempt, node: int, coin_seed: bytes
) -> CommitteeTransfers | None:
    """A node's transfers for coins where they are apart from its cells; None where it has none.

    The other backends toss coins over the channels of their edges.
    """
    if not tosses_apart(study) or not attempt.tosses(node):
        return None
    from umpc.mpc.masked.committee_transfers import CommitteeTransfers

    return CommitteeTransfers(attempt, node, coin_seed)
