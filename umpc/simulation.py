"""A whole study in one process: the real sides of coordinator, dealer and nodes, in lockstep.

For tests, audits and predictions. Nothing here protects anything: all secrets sit in one memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from umpc.crypto.mesh import run_mesh
from umpc.crypto.prg import SEED_BYTES, FixedKeyHash
from umpc.crypto.rounds import Message, run_in_memory
from umpc.crypto.signing import MemoryAuthority
from umpc.dealer.session import DealerSession, dealt
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import AFTER, AHEAD, Chunk
from umpc.mpc.wave_in_memory import NodeBatch, SentInWave, as_batch, run_wave
from umpc.mpc.waves import in_batches
from umpc.protocols.base.coordinator import CoordinatorSide, HeapSide
from umpc.protocols.base.node import GivesTasks, MeshSide, NodeSide
from umpc.protocols.base.protocol import Dealing
from umpc.protocols.ghazi_shuffle.node import frames_to
from umpc.protocols.ghazi_shuffle.shuffler import ShufflerSession
from umpc.protocols.registry import checked, protocol_of
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import sent_by_round
from umpc.study.document import Study
from umpc.study.frames import Frame, frame_of
from umpc.study.report import Measured, Report, count_online

Table = Mapping[str, np.ndarray]
"""One node's records: field → (records,) int64 in steps of the resolution."""
Entropy = Callable[[int], bytes]
AUTHORITY = MemoryAuthority("simulation")
"""It signs the certificates of all simulated processes."""


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
class Simulated:
    """A simulated study: its report, and everything that it left behind."""

    report: Report
    attempt: Attempt
    transcript: Transcript
    nodes: list[NodeSide]


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
        names = _names(self.attempt)
        found = [dict(material) for material in dealt(self.dealer, batch)]
        for frames in found:
            for node, frame in frames.items():
                self.transcript.offline.append((_dealer_name(self.attempt), names[node], frame))
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
        names = _names(self.attempt)
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
        together = mesh.batch(batch, payloads) if isinstance(mesh, GivesTasks) else None
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
        names = _names(self.attempt)
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


def simulate(
    study: Study, tables: Sequence[Table], entropy: Entropy, *, prepared: bool = False
) -> Simulated:
    """Run a study over the nodes' tables. Args: prepared: as `umpc study prepare` does it."""
    coordinator, nodes = _joined(study, tables, entropy)
    transcript = Transcript()
    _evaluate(coordinator.attempt, nodes, entropy, transcript, prepared=prepared)
    _aggregate(coordinator, nodes, transcript)
    released = [_release(node, transcript) for node in nodes]
    if coordinator.heaps is not None:
        shuffle(coordinator.heaps, coordinator.attempt, transcript, entropy)
    ask = coordinator.ask(released)
    if ask is not None:
        transcript.question = ask.question
        transcript.answers = [node.answer(ask.question) for node in nodes]
        coordinator.hear([m.Answer(answer) for answer in transcript.answers])
    measured = replace(_measure(transcript, study), prepared=prepared)
    report = coordinator.finish(released, measured)
    return Simulated(report, coordinator.attempt, transcript, nodes)


def _joined(
    study: Study, tables: Sequence[Table], entropy: Entropy
) -> tuple[CoordinatorSide, list[NodeSide]]:
    """The sides of a study that have agreed."""
    protocol = protocol_of(study)
    coordinator = protocol.coordinator(checked(study), AUTHORITY.verify)
    nodes = [
        protocol.node(
            AUTHORITY.credentials(node.name), study, table, len(next(iter(table.values()))), entropy
        )
        for node, table in zip(study.nodes, tables, strict=True)
    ]
    _join(coordinator, nodes)
    return coordinator, nodes


def _join(coordinator: CoordinatorSide, nodes: Sequence[NodeSide]) -> None:
    """All steps up to *evaluate*: everybody checks everybody's signatures."""
    study = coordinator.study
    agree = coordinator.agree([m.Accepted(study.hash, node.accept()) for node in nodes])
    members = agree.members if agree else ()
    opened = [m.Opened(node.agree(members), node.sign_members()) for node in nodes]
    begin = coordinator.begin(opened)
    prepared = []
    for node in nodes:
        node.check_agreed(begin.signatures)
        attempt = node.begin(begin.openings)
        prepared.append(m.Prepared(attempt.id, 0, signature=node.sign_attempt()))
    coordinator.check_prepared(prepared)
    evaluate = coordinator.evaluate()
    for node in nodes:
        node.check_prepared(evaluate.signatures)


def _release(node: NodeSide, transcript: Transcript) -> m.Released:
    """A node's release, as the coordinator gets it."""
    kept = node.release()
    if isinstance(kept, m.Delivery):
        transcript.deliveries.append(kept)
        own = node.accept()
        kept = m.Released(kept.attempt, b"", own.records, own.first_class)
    transcript.shares.append(kept.share)
    return kept


def shuffle(heaps: HeapSide, attempt: Attempt, transcript: Transcript, entropy: Entropy) -> None:
    """Every node's delivery through both shufflers to the coordinator."""
    study = attempt.study
    order = entropy(SEED_BYTES)
    for place, shuffler in enumerate(study.shufflers):
        session = ShufflerSession(attempt, shuffler.name, order, {})
        for node, delivery in enumerate(transcript.deliveries):
            inbox = session.inbox(node)
            for frame in frames_to(place, node, study, delivery):
                transcript.online.append((study.nodes[node].name, shuffler.name, frame))
                inbox.take(frame)
            session.deliver(node, inbox.data)
        for frame in session.heap():
            transcript.online.append((shuffler.name, study.coordinator, frame))
            heaps.receive(place, frame)


def _evaluate(
    attempt: Attempt,
    nodes: Sequence[NodeSide],
    entropy: Entropy,
    transcript: Transcript,
    *,
    prepared: bool,
) -> None:
    """The nodes' own work, and their rounds with each other if the protocol has any."""
    if not isinstance(attempt, SharedAttempt):
        for node in nodes:
            _run_own_steps(node)
        return
    edges = _ready_for_edges(attempt, nodes, entropy, transcript)
    for wave, chunks in groupby(attempt.chunks(), lambda chunk: chunk.wave):
        if wave:
            edges.evaluate_wave(list(chunks))
            continue
        for chunk in chunks:
            if prepared and attempt.makes_ahead and not chunk.noise:
                edges.evaluate_prepared(chunk)
            else:
                edges.evaluate(chunk, edges.deal(chunk))


def ready_for_edges(
    study: Study, tables: Sequence[Table], entropy: Entropy
) -> EdgesInMemory | None:
    """A study up to its first edge; None where the nodes evaluate no edges together."""
    coordinator, nodes = _joined(study, tables, entropy)
    attempt = coordinator.attempt
    if not isinstance(attempt, SharedAttempt):
        return None
    return _ready_for_edges(attempt, nodes, entropy, Transcript())


def _ready_for_edges(
    attempt: SharedAttempt, nodes: Sequence[NodeSide], entropy: Entropy, transcript: Transcript
) -> EdgesInMemory:
    """The seeds, the nodes' own steps, the links, the noise and round 1."""
    dealer = _dealer_of(attempt, entropy) if attempt.needs_dealer else None
    meshes = [node.mesh for node in nodes if node.mesh is not None]
    for node, mesh in zip(nodes, meshes, strict=True):
        _seed(attempt, mesh, dealer, entropy, transcript)
        _run_own_steps(node)
    _set_up(attempt, meshes, transcript)
    _toss(attempt, meshes, transcript)
    _exchange_fields(attempt, meshes, transcript)
    return EdgesInMemory(attempt, meshes, dealer, attempt.tree_hash(), transcript)


def _dealer_of(attempt: SharedAttempt, entropy: Entropy) -> Dealing:
    own = protocol_of(attempt.study).dealing(attempt, entropy)
    return own or DealerSession(attempt, entropy)


def _aggregate(
    coordinator: CoordinatorSide, nodes: Sequence[NodeSide], transcript: Transcript
) -> None:
    """The total of the nodes' masked vectors, in protocols that have one."""
    adding = coordinator.aggregation
    parts = [node.aggregation for node in nodes if node.aggregation is not None]
    if adding is None:
        return
    for place, (name, part) in enumerate(zip(coordinator.names, parts, strict=True)):
        for frame in part.masked():
            transcript.online.append((name, coordinator.study.coordinator, frame))
            adding.add(place, frame)
    for frame in adding.total():
        for name, part in zip(coordinator.names, parts, strict=True):
            transcript.told.append((coordinator.study.coordinator, name, frame))
            part.take(frame)
    signatures = [part.sign() for part in parts]
    adding.check_signed(signatures)
    for part in parts:
        part.confirm(signatures)


def _run_own_steps(node: NodeSide) -> None:
    for _ in node.own_steps():
        pass


def _names(attempt: Attempt) -> list[str]:
    return [node.name for node in attempt.study.nodes]


def _dealer_name(attempt: Attempt) -> str:
    dealer = attempt.study.dealer
    return dealer.name if dealer else ""


def _seed(
    attempt: SharedAttempt,
    mesh: MeshSide,
    dealer: Dealing | None,
    entropy: Entropy,
    transcript: Transcript,
) -> None:
    """A node's seed: the dealer's, or its own where nothing is dealt."""
    if dealer is None:
        mesh.receive_seed(entropy(SEED_BYTES))
        return
    seed = dealer.seed_frame(mesh.index)
    name = _names(attempt)[mesh.index]
    transcript.offline.append((_dealer_name(attempt), name, seed))
    mesh.receive_seed(seed.payload)


def _exchange_fields(
    attempt: SharedAttempt, meshes: Sequence[MeshSide], transcript: Transcript
) -> None:
    """Round 1 between all nodes that share edges."""
    names = _names(attempt)
    for sender, mesh in enumerate(meshes):
        for receiver in mesh.peers:
            messages = mesh.fields_for(receiver)
            meshes[receiver].receive_fields(sender, messages)
            link = (min(sender, receiver), max(sender, receiver))
            for number, message in enumerate(messages):
                frame = frame_of(message, link, number)
                transcript.online.append((names[sender], names[receiver], frame))


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


def _set_up(attempt: SharedAttempt, meshes: Sequence[MeshSide], transcript: Transcript) -> None:
    """The messages that go before all data, link by link."""
    names = _names(attempt)
    for first, mesh in enumerate(meshes):
        for second in mesh.peers:
            if second < first:
                continue
            one = mesh.set_up(second)
            other = meshes[second].set_up(first)
            if one is None or other is None:
                continue
            _, sent = run_in_memory([one, other])
            for line in sent:
                link = (names[first], names[second])[:: -1 if line.party else 1]
                frame = frame_of(line.message, (first, second), 0)
                transcript.offline.append((link[0], link[1], frame))


def _toss(attempt: SharedAttempt, meshes: Sequence[MeshSide], transcript: Transcript) -> None:
    """The committee's noise where nothing is dealt."""
    parties = [protocol for mesh in meshes if (protocol := mesh.toss()) is not None]
    names = [attempt.members[member].name for member in attempt.committee]
    for line in run_mesh(parties)[1] if parties else ():
        frame = frame_of(line.message, (), line.round - 1)
        transcript.offline.append((names[line.sender], names[line.receiver], frame))


def _measure(transcript: Transcript, study: Study) -> Measured:
    """The rounds and bytes of a transcript, as processes would count them."""
    sent: dict[str, Counter[tuple[str, int]]] = {
        participant.name: Counter() for participant in (*study.nodes, *study.shufflers)
    }
    for sender, _, frame in transcript.online:
        sent[sender][frame.step, frame.round] += frame.wire_bytes
    for _, receiver, frame in transcript.told:
        sent[receiver][frame.step, frame.round] += frame.wire_bytes
    steps = {frame.round_of_study for _, _, frame in transcript.online + transcript.told}
    answers = transcript.answers or [b""] * len(study.nodes)
    revealed = [
        len(share) + len(answer) for share, answer in zip(transcript.shares, answers, strict=True)
    ]
    asked = [len(transcript.question)] * len(transcript.answers)
    by_round = [sent_by_round(sent[node.name]) for node in study.nodes]
    heaps = [sum(sent[shuffler.name].values()) for shuffler in study.shufflers]
    return Measured(
        rounds=len(steps) + (not heaps) + bool(asked),
        **count_online(by_round, revealed, asked, heaps),
        bytes_offline=sum(frame.wire_bytes for _, _, frame in transcript.offline),
    )
