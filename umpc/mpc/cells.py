"""One node's part in all cells of an attempt: the base of every backend's cells.

`backends.py` says which steps call what. A backend without a step keeps what is written here:
nothing is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from umpc.crypto import rounds
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Mesh, Message
from umpc.mpc.arrays import WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk, ChunkShares
from umpc.ustat.clear import Columns


class Cells(ABC):
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
    ):
        self.attempt = attempt
        self.node = node
        self.columns = columns
        self._seed = seed
        self._contributions = dict(contributions)
        self._coin_seed = coin_seed
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Make what the backend keeps beside its arguments."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.attempt.members[self.node].name}, <redacted>)"

    @staticmethod
    @abstractmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """One node's messages to another in `set_up`, with zero bytes in place of their content."""

    @staticmethod
    def field_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """One node's messages to another in round 1, with zero bytes in place of their content."""
        return []

    def set_up(self, peer: int) -> rounds.Protocol[None] | None:
        """The rounds before all data between this node and a peer; None where there are none.

        In each round one of the two is silent.
        """
        return None

    def toss(self) -> Mesh[list[int]] | None:
        """The committee's coins, after all set-ups, once: this node's share of each sum of coins.

        None where this node tosses no coins.
        """
        return None

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's records that occur in an edge with the peer."""
        return []

    @abstractmethod
    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer. Raises: EncodingError, RemoteProtocolError."""

    def is_ready(self, chunk: Chunk) -> bool:
        """Whether a chunk has everything that it needs of its owners' records."""
        return True

    @abstractmethod
    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> rounds.Protocol[ChunkShares] | Mesh[ChunkShares] | Mesh[bytes]:
        """The rounds of a chunk, whose result is this node's share of each sum.

        It is a mesh over the chunk's parties where the plan's messages are `addressed`. The rounds
        of part AHEAD have material as their result, for those of part AFTER.

        material: the dealer's bytes for this node and chunk, or what was made ahead.
        """
