"""A whole study in one process: the real sides of coordinator, dealer and nodes, in lockstep.

For tests, audits and predictions. Nothing here protects anything: all secrets sit in one memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import cast

import numpy as np

from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.rounds import run_in_memory, run_mesh
from umpc.crypto.signing import MemoryAuthority
from umpc.dealer.material import MaterialDealer
from umpc.edges_in_memory import EdgesInMemory, Transcript, dealer_name, names_of
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.base.coordinator import CoordinatorSide, HeapSide
from umpc.protocols.base.node import MeshSide, NodeAggregation, NodeSide
from umpc.protocols.base.protocol import AnsweringDealer, CheckingDealer, Dealing
from umpc.protocols.registry import checked, protocol_of
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Measured, count_online, sent_by_round
from umpc.study.document import Study
from umpc.study.messages import frame_of
from umpc.study.report import Report

Table = Mapping[str, np.ndarray]
"""One node's records: field → (records,) int64 in steps of the resolution."""
Entropy = Callable[[int], bytes]
AUTHORITY = MemoryAuthority("simulation")
"""It signs the certificates of all simulated processes."""


@dataclass(frozen=True)
class Simulated:
    """A simulated study: its report, and everything that it left behind.

    A node's side shows what that node alone knows, for example its own `noise`.
    """

    report: Report
    attempt: Attempt
    transcript: Transcript
    nodes: list[NodeSide]


def simulate(
    study: Study, tables: Sequence[Table], entropy: Entropy, *, prepared: bool = False
) -> Simulated:
    """Run a study over the nodes' tables, or over shares of one table that these make together.

    Args: prepared: as `umpc study prepare` does it.
    """
    coordinator, nodes = _joined(study, tables, entropy)
    transcript = Transcript()
    dealer = _evaluate(coordinator.attempt, nodes, entropy, transcript, prepared=prepared)
    _aggregate(coordinator, nodes, dealer, transcript)
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
    owns = [AUTHORITY.credentials(node.name) for node in study.nodes]
    if study.settings.shares_tables:
        from umpc.protocols.people.in_memory import shared_out

        study, tables, shared = shared_out(checked(study), tables, owns, entropy)
        counts = [shared] * len(owns)
    else:
        counts = [len(next(iter(table.values()))) for table in tables]
    coordinator = protocol.coordinator(checked(study), AUTHORITY.verify)
    nodes = [
        protocol.node(own, study, table, count, entropy)
        for own, table, count in zip(owns, tables, counts, strict=True)
    ]
    _join(coordinator, nodes)
    return coordinator, nodes


def _join(coordinator: CoordinatorSide, nodes: Sequence[NodeSide]) -> None:
    """All steps up to *evaluate*: everybody checks everybody's signatures."""
    study = coordinator.study
    agree = coordinator.agree([m.Accepted(study.hash, node.accept()) for node in nodes])
    members = () if agree is None else agree.members
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
        session = protocol_of(study).helper(attempt, shuffler.name, order)
        for node, delivery in enumerate(transcript.deliveries):
            inbox = session.inbox(node)
            for frame in protocol_of(study).delivered(place, node, study, delivery):
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
) -> Dealing | None:
    """The nodes' own work, and their rounds with each other if the protocol has any.

    Returns: the dealer, where there is one.
    """
    if not isinstance(attempt, SharedAttempt):
        for node in nodes:
            _run_own_steps(node)
        return None
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
    return edges.dealer


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
    if isinstance(own, CheckingDealer):
        from umpc.protocols.people.in_memory import made_up_alpha

        own.alpha = made_up_alpha(attempt.study)
    return own or MaterialDealer(attempt, entropy)


def _aggregate(
    coordinator: CoordinatorSide,
    nodes: Sequence[NodeSide],
    dealer: Dealing | None,
    transcript: Transcript,
) -> None:
    """The total of the nodes' masked vectors, in protocols that have one."""
    adding = coordinator.aggregation
    parts = [node.aggregation for node in nodes if node.aggregation is not None]
    if adding is None:
        return
    named = list(enumerate(zip(coordinator.names, parts, strict=True)))
    for number in range(adding.exchanges):
        for place, (name, part) in named:
            for frame in part.masked():
                transcript.online.append((name, coordinator.study.coordinator, frame))
                adding.add(place, frame)
        adding.end_exchange()
        if adding.asks == number + 1:
            _ask_dealer(coordinator, parts, dealer, transcript)
            adding.end_exchange()
        for place, (name, part) in named:
            for frame in adding.told(place):
                transcript.told.append((coordinator.study.coordinator, name, frame))
                part.take(frame)
    signatures = [part.sign() for part in parts]
    adding.check_signed(signatures)
    for part in parts:
        part.confirm(signatures)


def _ask_dealer(
    coordinator: CoordinatorSide,
    parts: Sequence[NodeAggregation],
    dealer: Dealing | None,
    transcript: Transcript,
) -> None:
    """All nodes' statements to the dealer, and its one answer to everybody."""
    adding = coordinator.aggregation
    answering = cast(AnsweringDealer, dealer)
    own = AUTHORITY.credentials(dealer_name(coordinator.attempt), "dealer")
    for frame in answering.answer(adding.questions if adding else [], own.sign):
        for name, part in zip(coordinator.names, parts, strict=True):
            if part.asks:
                transcript.told.append((dealer_name(coordinator.attempt), name, frame))
                part.hear(frame, own.certificate)
        if adding is not None:
            adding.hear(frame, own.certificate)


def _run_own_steps(node: NodeSide) -> None:
    for _ in node.own_steps():
        pass


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
    name = names_of(attempt)[mesh.index]
    transcript.offline.append((dealer_name(attempt), name, seed))
    mesh.receive_seed(seed.payload)


def _exchange_fields(
    attempt: SharedAttempt, meshes: Sequence[MeshSide], transcript: Transcript
) -> None:
    """Round 1 between all nodes that share edges."""
    names = names_of(attempt)
    for sender, mesh in enumerate(meshes):
        for receiver in mesh.peers:
            messages = mesh.fields_for(receiver)
            meshes[receiver].receive_fields(sender, messages)
            link = (min(sender, receiver), max(sender, receiver))
            for number, message in enumerate(messages):
                frame = frame_of(message, link, number)
                transcript.online.append((names[sender], names[receiver], frame))


def _set_up(attempt: SharedAttempt, meshes: Sequence[MeshSide], transcript: Transcript) -> None:
    """The messages that go before all data, link by link."""
    names = names_of(attempt)
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
