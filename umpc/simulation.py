"""A whole study in one process: the real sessions of coordinator, dealer and nodes, driven in lockstep.

For tests, audits and predictions. Nothing here protects anything: all secrets sit in one memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from umpc.coordinator.sessions import coordinator_session
from umpc.crypto.mesh import run_mesh
from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.rounds import run_in_memory
from umpc.dealer.session import DealerSession
from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import sent_by_round
from umpc.node.sessions import Session, session_of
from umpc.protocols.ghazi_shuffle.coordinator import ShuffledCoordinator
from umpc.protocols.ghazi_shuffle.node import frames_to
from umpc.protocols.ghazi_shuffle.shuffler import ShufflerSession
from umpc.protocols.u_mpc.node import NodeSession
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.frames import Frame, frame_of
from umpc.study.report import Measured, Report, count_online

Table = Mapping[str, np.ndarray]


@dataclass
class Transcript:
    """Everything that was sent: (sender, receiver, frame), the final shares, or what nodes gave to shufflers; the
    question and its answers if there is one."""

    offline: list[tuple[str, str, Frame]] = field(default_factory=list)
    online: list[tuple[str, str, Frame]] = field(default_factory=list)
    shares: list[bytes] = field(default_factory=list)
    question: bytes = b""
    answers: list[bytes] = field(default_factory=list)
    deliveries: list[m.Delivery] = field(default_factory=list)


@dataclass(frozen=True)
class Simulated:
    report: Report
    attempt: Attempt
    transcript: Transcript
    nodes: list[Session]


def simulate(study: Study, tables: Sequence[Table], entropy: Callable[[int], bytes]) -> Simulated:
    """Run a study over the nodes' tables (field → (records,) int64 in steps of the resolution)."""
    coordinator = coordinator_session(study)
    kind = session_of(study)
    nodes = [
        kind(node.name, study, table, len(next(iter(table.values()))), entropy)
        for node, table in zip(study.nodes, tables, strict=True)
    ]
    agree = coordinator.agree([m.Accepted(study.hash, node.accept()) for node in nodes])
    begin = coordinator.begin([m.Opened(node.agree(agree.members)) for node in nodes])
    attempts = [node.begin(begin.openings) for node in nodes]
    coordinator.check_prepared([m.Prepared(attempt.id, 0) for attempt in attempts])
    transcript = Transcript()
    if study.one_message:
        for node in nodes:
            node.randomise()
    else:
        _deal_and_evaluate(coordinator.attempt, nodes, entropy, transcript)
    if study.shuffled:
        transcript.deliveries = [node.release() for node in nodes]
        transcript.shares = [b""] * len(nodes)
        shuffle(coordinator, coordinator.attempt, transcript, entropy)
    else:
        transcript.shares = [node.release() for node in nodes]
    released = [
        m.Released(attempt.id, share, node.records, node.accept().first_class)
        for attempt, share, node in zip(attempts, transcript.shares, nodes, strict=True)
    ]
    if ask := coordinator.ask(released):
        transcript.question = ask.question
        transcript.answers = [node.answer(ask.question) for node in nodes]
        coordinator.hear([m.Answer(answer) for answer in transcript.answers])
    report = coordinator.finish(released, _measure(transcript, study))
    return Simulated(report, coordinator.attempt, transcript, nodes)


def shuffle(
    coordinator: ShuffledCoordinator,
    attempt: Attempt,
    transcript: Transcript,
    entropy: Callable[[int], bytes],
) -> None:
    """Every node's delivery through both shufflers to the coordinator."""
    study, order = attempt.study, entropy(SEED_BYTES)
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
            coordinator.receive(place, frame)


def _deal_and_evaluate(
    attempt: Attempt,
    nodes: Sequence[NodeSession],
    entropy: Callable[[int], bytes],
    transcript: Transcript,
) -> None:
    names = [node.name for node in attempt.study.nodes]
    dealer = DealerSession(attempt, entropy) if attempt.needs_dealer else None
    for index, node in enumerate(nodes):
        seed = dealer.seed_frame(index) if dealer else None
        if seed:
            transcript.offline.append((attempt.study.dealer.name, names[index], seed))
        node.receive_seed(seed.payload if seed else entropy(SEED_BYTES))
        node.evaluate_inner()
    _set_up(names, nodes, transcript)
    _toss(attempt, nodes, transcript)
    for sender, node in enumerate(nodes):
        for receiver in node.peers:
            messages = node.fields_for(receiver)
            nodes[receiver].receive_fields(sender, messages)
            link = (min(sender, receiver), max(sender, receiver))
            for number, message in enumerate(messages):
                transcript.online.append(
                    (names[sender], names[receiver], frame_of(message, link, number))
                )
    tree_hash = attempt.tree_hash()
    for chunk in attempt.chunks():
        dealt = dict(dealer.deal_one(chunk)) if dealer else {}
        transcript.offline += [
            (attempt.study.dealer.name, names[node], frame) for node, frame in dealt.items()
        ]
        material = {node: dealt[node].payload if dealer else b"" for node in chunk.parties}
        parties = [nodes[node].protocol(chunk, material[node], tree_hash) for node in chunk.parties]
        results, sent = run_in_memory(parties)
        for line in sent:
            sender, frame = (
                chunk.parties[line.party],
                frame_of(line.message, chunk.place, chunk.number),
            )
            others = (node for node in chunk.parties if node != sender)
            phase = transcript.offline if chunk.noise else transcript.online
            phase += [(names[sender], names[other], frame) for other in others]
        for node, result in zip(chunk.parties, results, strict=True):
            nodes[node].add(chunk, result)


def _set_up(names: Sequence[str], nodes: Sequence[NodeSession], transcript: Transcript) -> None:
    """What goes before all data, link by link."""
    for first, node in enumerate(nodes):
        for second in node.peers:
            ends = (
                [nodes[first].set_up(second), nodes[second].set_up(first)]
                if first < second
                else [None]
            )
            if None not in ends:
                _, sent = run_in_memory(ends)
                for line in sent:
                    link = (names[first], names[second])[:: -1 if line.party else 1]
                    transcript.offline.append((*link, frame_of(line.message, (first, second), 0)))


def _toss(attempt: Attempt, nodes: Sequence[NodeSession], transcript: Transcript) -> None:
    """The committee's noise where nothing is dealt."""
    parties = [protocol for node in nodes if (protocol := node.toss()) is not None]
    names = [attempt.members[member].name for member in attempt.committee]
    for line in run_mesh(parties)[1] if parties else ():
        frame = frame_of(line.message, (), line.round - 1)
        transcript.offline.append((names[line.sender], names[line.receiver], frame))


def _measure(transcript: Transcript, study: Study) -> Measured:
    sent = {participant.name: Counter() for participant in (*study.nodes, *study.shufflers)}
    for sender, _, frame in transcript.online:
        sent[sender][frame.step, frame.round] += frame.wire_bytes
    steps = {frame.round_of_study for _, _, frame in transcript.online}
    told = transcript.answers or [b""] * len(study.nodes)
    revealed = [
        len(share) + len(answer) for share, answer in zip(transcript.shares, told, strict=True)
    ]
    asked = [len(transcript.question)] * len(transcript.answers)
    by_round = [sent_by_round(sent[node.name]) for node in study.nodes]
    heaps = [sum(sent[shuffler.name].values()) for shuffler in study.shufflers]
    return Measured(
        rounds=len(steps) + (not heaps) + bool(asked),
        **count_online(by_round, revealed, asked, heaps),
        bytes_offline=sum(f.wire_bytes for _, _, f in transcript.offline),
    )
