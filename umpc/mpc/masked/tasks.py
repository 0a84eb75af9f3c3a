"""The work of a chunk as a value: any process of the site computes it, with the same result.

A task holds everything that its computation reads, and the computation draws nothing and changes
nothing. So a task whose worker died is computed again elsewhere: masks, shares and keys follow from
the chunk's seed, its material and its place in the attempt, and come out the same, byte for byte. A
task sends nothing. Only the node and the dealer send, each message once, after a result is there.

| task | by | result |
|---|---|---|
| `OwnerTask` | a node | the rounds of one owner in a chunk, as `TaskRounds` |
| `DealTask` | the dealer | the material of all owners of a chunk |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Finished, Message, Protocol, resume
from umpc.errors import LocalProtocolError
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.dealing import deal_chunk
from umpc.mpc.masked.evaluation import evaluate_chunk
from umpc.mpc.masked.masks import PlaceValues
from umpc.mpc.masked.material import DealtPart, SeededPart
from umpc.mpc.masked.plan import Plan

Heard: TypeAlias = tuple[tuple[Message, ...], ...]
"""The other owners' messages of a chunk, in party order, for each round so far."""
Said: TypeAlias = Message | Finished[list[int]]
"""An owner's message of its next round, or its result."""


@dataclass(frozen=True)
class OwnerTask:
    """One owner's part of a chunk.

    material: the dealer's bytes for it. seed: its seed of the chunk. tree_key: of the attempt's GGM
    hash.
    """

    party: int
    plan: Plan
    inputs: ChunkInputs
    material: bytes
    seed: bytes
    tree_key: bytes

    def __repr__(self) -> str:
        return f"OwnerTask({self.inputs.count} edges, <redacted>)"

    def protocol(self, tree_hash: FixedKeyHash) -> Protocol[list[int]]:
        """The rounds of the chunk. Raises: EncodingError on malformed material."""
        count = self.inputs.count
        dealt = DealtPart.decode(self.plan, self.material, self.party, count)
        seeded = SeededPart.expand(self.plan, self.seed, self.party, count)
        return evaluate_chunk(self.party, self.plan, self.inputs, dealt, seeded, tree_hash)

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return self.inputs.count

    @property
    def size(self) -> int:
        """About the bytes that the task takes in memory."""
        inputs = self.inputs
        words = sum(array.nbytes for array in (*inputs.places.values(), *inputs.masks.values()))
        records = (column for record in inputs.records.values() for column in record.values())
        return len(self.material) + words + sum(column.nbytes for column in records)


class TaskRounds:
    """The rounds of an owner's task, as far as they have gone.

    It stands for the same computation wherever it is: a copy that goes to another process goes as
    its task, and takes the rounds again there. Each round is answered once. So two sets of messages
    can never be combined with the same masks.
    """

    def __init__(self, task: OwnerTask):
        self._task = task
        self._protocol = task.protocol(FixedKeyHash(task.tree_key))
        self._heard: Heard = ()
        self._said: list[Said] = [resume(self._protocol, None)]

    def __repr__(self) -> str:
        return f"TaskRounds(round {len(self._said)}, <redacted>)"

    def __reduce__(self) -> tuple[type[TaskRounds], tuple[OwnerTask]]:
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
    """The dealer's computation for a chunk. seeds: the owners' seeds of the chunk."""

    plan: Plan
    record_masks: PlaceValues
    seeds: Sequence[bytes]
    count: int
    tree_key: bytes

    def __repr__(self) -> str:
        return f"DealTask({self.count} edges, <redacted>)"

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return self.count

    def payloads(self) -> list[bytes]:
        """The material of each owner, in party order."""
        tree_hash = FixedKeyHash(self.tree_key)
        parts = deal_chunk(self.plan, self.record_masks, self.seeds, self.count, tree_hash)
        return [part.encode() for part in parts]
