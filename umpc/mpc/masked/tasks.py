"""The work of chunks as a value: any process of the site computes it, with the same result.

A task holds everything that its computation reads, and the computation draws nothing and changes
nothing. So a task whose worker died is computed again elsewhere: masks, shares and keys follow from
the chunk's seed, its material and its place in the attempt, and come out the same, byte for byte. A
task sends nothing. Only the node and the dealer send, each message once, after a result is there.

| task | by | result |
|---|---|---|
| `OwnerBatch` | a node | the rounds of one owner in a chunk, or in many small ones with one plan |
| `DealTask` | the dealer | the material of all owners, of one chunk or of many small ones |
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Finished, Message, Protocol, resume
from umpc.errors import LocalProtocolError
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.dealing import deal_chunks
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import (
    Names,
    PartyChunk,
    Together,
    evaluate_chunk,
    evaluate_together,
)
from umpc.mpc.masked.masks import PlaceValues
from umpc.mpc.masked.material import DealtPart, SeededPart
from umpc.mpc.masked.plan import Plan

Heard: TypeAlias = tuple[tuple[Any, ...], ...]
"""For each round so far and each chunk the other owners' messages, in party order."""
Said: TypeAlias = list[Message] | Finished[Any]
"""An owner's messages of its next round, one of each chunk; or its result."""


@dataclass(frozen=True)
class OwnerBatch:
    """One owner's part of a chunk, or of many small chunks of edges that are computed together.

    inputs: of the edges of all chunks. names: the owners' of each chunk. counts: edges of each.
    materials: the dealer's bytes for each chunk. seeds: the owner's seed of each chunk. tree_key:
    of the attempt's GGM hash.
    """

    party: int
    plan: Plan
    inputs: ChunkInputs
    names: Sequence[Names]
    counts: Sequence[int]
    materials: Sequence[bytes]
    seeds: Sequence[bytes]
    tree_key: bytes

    def __repr__(self) -> str:
        return f"OwnerBatch({len(self.counts)} chunks, <redacted>)"

    def protocol(self, tree_hash: FixedKeyHash) -> Together[list[list[int]]]:
        """The rounds of all chunks. Raises: EncodingError on malformed material."""
        layout = EdgeLayout(self.counts)
        dealt = DealtPart.decode_all(self.plan, self.materials, self.party, layout)
        seeded = SeededPart.expand_all(self.plan, self.seeds, self.party, layout)
        chunk = PartyChunk(self.party, self.plan, self.inputs, dealt, seeded, tree_hash)
        return evaluate_together(chunk, self.names, layout)

    def alone(self, tree_hash: FixedKeyHash) -> Protocol[list[int]]:
        """The rounds of the only chunk. Raises: EncodingError on malformed material."""
        (count,), (material,), (seed,) = self.counts, self.materials, self.seeds
        dealt = DealtPart.decode(self.plan, material, self.party, count)
        seeded = SeededPart.expand(self.plan, seed, self.party, count)
        return evaluate_chunk(self.party, self.plan, self.inputs, dealt, seeded, tree_hash)

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return self.inputs.count

    @property
    def size(self) -> int:
        """About the bytes that the task takes in memory."""
        return _bytes_of(self.inputs) + sum(map(len, self.materials))


def _bytes_of(inputs: ChunkInputs) -> int:
    words = sum(array.nbytes for array in (*inputs.places.values(), *inputs.masks.values()))
    records = (column for record in inputs.records.values() for column in record.values())
    return words + sum(column.nbytes for column in records)


class TaskRounds:
    """The rounds of an owner's task, as far as they have gone.

    It stands for the same computation wherever it is: a copy that goes to another process goes as
    its task, and takes the rounds again there. Each round is answered once. So two sets of messages
    can never be combined with the same masks.
    """

    def __init__(self, task: OwnerBatch):
        self._task = task
        self._protocol: Generator[Any, Any, Any] = task.protocol(FixedKeyHash(task.tree_key))
        self._heard: Heard = ()
        self._said: list[Said] = [resume(self._protocol, None)]

    def __repr__(self) -> str:
        return f"TaskRounds(round {len(self._said)}, <redacted>)"

    def __reduce__(self) -> tuple[type[TaskRounds], tuple[OwnerBatch]]:
        return TaskRounds, (self._task,)

    def __sizeof__(self) -> int:
        # Shares, masks and the tree's results take about as much as the task itself.
        return 2 * self._task.size

    def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds.

        Args: heard: of all rounds so far, those that it has heard before among them.
        Raises: LocalProtocolError where a round has other messages than before;
            RemoteProtocolError naming the sender of a malformed message.
        """
        if any(one != other for one, other in zip(self._heard, heard, strict=False)):
            raise LocalProtocolError(
                "a round of a chunk came with other messages than before; its masks serve once"
            )
        for messages in heard[len(self._heard) :]:
            self._said.append(resume(self._protocol, list(messages)))
            self._heard = (*self._heard, messages)
        return self._said[len(heard)]


@dataclass(frozen=True)
class DealTask:
    """The dealer's computation for a chunk, or for several small ones with the same plan.

    record_masks: of the edges of all chunks. seeds: of each owner, its seed of each chunk.
    counts: edges of each chunk.
    """

    plan: Plan
    record_masks: PlaceValues
    seeds: Sequence[Sequence[bytes]]
    counts: Sequence[int]
    tree_key: bytes

    def __repr__(self) -> str:
        return f"DealTask({self.edge_count} edges, <redacted>)"

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return sum(self.counts)

    @property
    def size(self) -> int:
        """About the bytes that the task takes in memory."""
        return sum(values.nbytes for values in self.record_masks.values())

    def payloads(self) -> list[list[bytes]]:
        """For each chunk the material of each owner, in party order."""
        layout = EdgeLayout(self.counts)
        tree_hash = FixedKeyHash(self.tree_key)
        parts = deal_chunks(self.plan, self.record_masks, self.seeds, layout, tree_hash)
        by_party = [part.encode_all(layout) for part in parts]
        return [list(payloads) for payloads in zip(*by_party, strict=True)]
