"""All nodes' batches of a wave in memory, in lockstep, with every message that was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from umpc.crypto.rounds import Finished, Message, resume
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.evaluation import Together


@dataclass(frozen=True)
class NodeBatch:
    """A node's batch. rounds: of its chunks, not yet begun."""

    node: int
    chunks: Sequence[Chunk]
    rounds: Together[list[Any]]


@dataclass(frozen=True)
class SentInWave:
    """One message of a chunk. sender: the node. round: from 1."""

    chunk: Chunk
    round: int
    sender: int
    message: Message


def run_wave(batches: Sequence[NodeBatch]) -> tuple[dict[tuple[int, Chunk], Any], list[SentInWave]]:
    """Run all nodes' batches of one wave, which together have every party of every chunk.

    Returns: (node, chunk) → its result, and the messages that were sent, those of width 0 left out.
    """
    results: dict[tuple[int, Chunk], Any] = {}
    sent: list[SentInWave] = []
    heard: dict[tuple[int, Chunk], Message] = {}
    running = list(batches)
    number = 0
    while running:
        said: dict[tuple[int, Chunk], Message] = {}
        going = []
        for batch in running:
            keys = [(batch.node, chunk) for chunk in batch.chunks]
            answer = resume(batch.rounds, _replies(batch, heard) if number else None)
            if isinstance(answer, Finished):
                results.update(zip(keys, answer.result, strict=True))
            else:
                said.update(zip(keys, answer, strict=True))
                going.append(batch)
        number += 1
        for (node, chunk), message in said.items():
            if message.width:
                sent.append(SentInWave(chunk, number, node, message))
        heard, running = said, going
    return results, sent


def as_batch(alone: Any) -> Together[list[Any]]:
    """The rounds of one chunk, in the form of a batch of one. Args: alone: a `Protocol`."""
    theirs: Sequence[Message] | None = None
    while True:
        answer = resume(alone, theirs)
        if isinstance(answer, Finished):
            return [answer.result]
        (theirs,) = yield [answer]


def _replies(batch: NodeBatch, heard: dict[tuple[int, Chunk], Message]) -> list[list[Message]]:
    """The other owners' messages of a round for each chunk, in party order."""
    return [
        [heard[other, chunk] for other in chunk.parties if other != batch.node]
        for chunk in batch.chunks
    ]
