"""Nodes in one memory whose links stand: they evaluate chunk after chunk, or a wave at once.

*Wave in memory.* All nodes' batches of a wave in memory, in lockstep, with every message that was
sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Finished, Message, resume, run_in_memory, run_mesh
from umpc.dealer.material import dealt
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import AFTER, AHEAD, Chunk, in_batches
from umpc.mpc.masked.evaluation import Together
from umpc.protocols.base.node import MeshSide
from umpc.protocols.base.protocol import Dealing
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.messages import Frame, frame_of


@dataclass
class Transcript:
    """Everything that was sent.

    offline, online: (sender, receiver, frame). shares: the final shares, in the nodes' order.
    told: from the coordinator to nodes, on data. question, answers: in protocols that ask.
    deliveries: what nodes gave to shufflers.
    """

    offline: list[tuple[str, str, Frame]] = field(default_factory=list)
    online: list[tuple[str, str, Frame]] = field(default_factory=list)
    shares: list[bytes] = field(default_factory=list)
    told: list[tuple[str, str, Frame]] = field(default_factory=list)
    question: bytes = b""
    answers: list[bytes] = field(default_factory=list)
    deliveries: list[m.Delivery] = field(default_factory=list)


@dataclass(frozen=True)
class EdgesInMemory:
    """Nodes whose links stand, and a dealer where there is one: they evaluate chunk after chunk."""

    attempt: SharedAttempt
    meshes: Sequence[MeshSide]
    dealer: Dealing | None
    tree_hash: FixedKeyHash
    transcript: Transcript

    def deal(self, chunk: Chunk) -> dict[int, Frame]:
        """The dealer's material for a chunk, by node; empty where nothing is dealt."""
        (frames,) = self._deal([chunk])
        return frames

    def _deal(self, batch: Sequence[Chunk]) -> list[dict[int, Frame]]:
        """The material of chunks that are dealt together, by node."""
        if self.dealer is None:
            return [{} for _ in batch]
        names = names_of(self.attempt)
        found = [dict(material) for material in dealt(self.dealer, batch)]
        for frames in found:
            for node, frame in frames.items():
                self.transcript.offline.append((dealer_name(self.attempt), names[node], frame))
        return found

    def evaluate(self, chunk: Chunk, frames: Mapping[int, Frame]) -> None:
        """The rounds of a chunk, and its owners' results. Args: frames: its material, by node."""
        self._add(chunk, {node: frames[node].payload for node in chunk.parties if node in frames})

    def evaluate_wave(self, chunks: Sequence[Chunk]) -> None:
        """The rounds of a wave of small chunks, which each node computes in batches."""
        plan_of = self.attempt.plan
        material: dict[Chunk, dict[int, Frame]] = {}
        for batch in in_batches(chunks, plan_of):
            material.update(zip(batch, self._deal(batch), strict=True))
        begun: list[NodeBatch] = []
        for node, mesh in enumerate(self.meshes):
            own = (chunk for chunk in chunks if node in chunk.owners)
            for batch in in_batches(own, plan_of, node):
                payloads = [
                    material[chunk][node].payload if material[chunk] else b"" for chunk in batch
                ]
                begun += self._begun(mesh, batch, payloads)
        results, sent = run_wave(begun)
        names = names_of(self.attempt)
        by_chunk: dict[Chunk, list[SentInWave]] = {chunk: [] for chunk in chunks}
        for line in sent:
            by_chunk[line.chunk].append(line)
        for chunk in chunks:
            for line in by_chunk[chunk]:
                frame = frame_of(line.message, chunk.place, chunk.number)
                receivers = (node for node in chunk.parties if node != line.sender)
                self.transcript.online.extend(
                    (names[line.sender], names[receiver], frame) for receiver in receivers
                )
            for node in chunk.parties:
                self.meshes[node].add(chunk, results[node, chunk])

    def _begun(
        self, mesh: MeshSide, batch: Sequence[Chunk], payloads: Sequence[bytes]
    ) -> Iterator[NodeBatch]:
        """A node's batch, or its chunks one by one where the node computes them in its own way."""
        together = mesh.batch(batch, payloads)
        if together is not None:
            yield NodeBatch(mesh.index, batch, together.protocol(self.tree_hash))
            return
        for chunk, payload in zip(batch, payloads, strict=True):
            alone = mesh.protocol(chunk, payload, self.tree_hash)
            yield NodeBatch(mesh.index, [chunk], as_batch(alone))

    def evaluate_prepared(self, chunk: Chunk) -> None:
        """The rounds of a chunk that a preparation does, and then the others."""
        ahead = replace(chunk, part=AHEAD)
        made = self._run(ahead, {}, self.transcript.offline)
        self._add(replace(chunk, part=AFTER), made)

    def _add(self, chunk: Chunk, material: Mapping[int, bytes]) -> None:
        phase = self.transcript.offline if chunk.noise else self.transcript.online
        for node, result in self._run(chunk, material, phase).items():
            self.meshes[node].add(chunk, result)

    def _run(
        self, chunk: Chunk, material: Mapping[int, bytes], phase: list[tuple[str, str, Frame]]
    ) -> dict[int, Any]:
        """The rounds of a chunk: each owner's result. Args: phase: gets what was sent."""
        names = names_of(self.attempt)
        parties = [
            self.meshes[node].protocol(chunk, material.get(node, b""), self.tree_hash)
            for node in chunk.parties
        ]
        results, sent = _run_parties(parties, self.attempt.plan(chunk).addressed)
        for from_party, to_party, message in sent:
            sender, receiver = chunk.parties[from_party], chunk.parties[to_party]
            frame = frame_of(message, chunk.place, chunk.number)
            phase.append((names[sender], names[receiver], frame))
        return dict(zip(chunk.parties, results, strict=True))


def names_of(attempt: Attempt) -> list[str]:
    """The names of an attempt's nodes."""
    return [node.name for node in attempt.study.nodes]


def dealer_name(attempt: Attempt) -> str:
    """The name of an attempt's dealer, or nothing."""
    dealer = attempt.study.dealer
    return dealer.name if dealer else ""


def _run_parties(
    parties: Sequence[Any], addressed: bool
) -> tuple[list[Any], list[tuple[int, int, Message]]]:
    """All parties of a chunk: their results, and (sender, receiver, message) of all that was sent.

    Args: addressed: whether messages differ from peer to peer.
    """
    if addressed:
        results, lines = run_mesh(parties)
        return results, [(line.sender, line.receiver, line.message) for line in lines]
    results, said = run_in_memory(parties)
    everybody = range(len(parties))
    sent = [
        (line.party, other, line.message)
        for line in said
        for other in everybody
        if other != line.party
    ]
    return results, sent


# --- wave in memory -------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeBatch:
    """A node's batch. rounds: of its chunks, not yet begun."""

    node: int
    chunks: Sequence[Chunk]
    rounds: Together[list[Any]]


@dataclass(frozen=True)
class SentInWave:
    """One message of a chunk. sender: the node."""

    chunk: Chunk
    sender: int
    message: Message


def run_wave(batches: Sequence[NodeBatch]) -> tuple[dict[tuple[int, Chunk], Any], list[SentInWave]]:
    """Run all nodes' batches of one wave, which together have every party of every chunk.

    Returns: (node, chunk) → its result, and the messages that were sent, those of width 0 left out.
    """
    results: dict[tuple[int, Chunk], Any] = {}
    sent: list[SentInWave] = []
    heard: dict[tuple[int, Chunk], Message] | None = None
    running = list(batches)
    while running:
        said: dict[tuple[int, Chunk], Message] = {}
        going = []
        for batch in running:
            keys = [(batch.node, chunk) for chunk in batch.chunks]
            answer = resume(batch.rounds, None if heard is None else _replies(batch, heard))
            if isinstance(answer, Finished):
                results.update(zip(keys, answer.result, strict=True))
            else:
                said.update(zip(keys, answer, strict=True))
                going.append(batch)
        for (node, chunk), message in said.items():
            if message.width:
                sent.append(SentInWave(chunk, node, message))
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
