"""What an attempt costs, from its plan and the sizes of its cells alone: rounds, bytes online, bytes dealt.

Tests hold measured traffic equal to these numbers, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.rounds import Message
from umpc.mpc.attempt import Attempt
from umpc.mpc.backends import backend_of
from umpc.mpc.masked.material import dealt_bytes
from umpc.study.cost import Cost, sent_by_round
from umpc.study.frames import frame_bytes
from umpc.ustat.hypergraph import Owners


def predict(attempt: Attempt) -> Cost:
    """The cost of an attempt: online between nodes and to the coordinator, offline all that goes before the data."""
    nodes = range(len(attempt.members))
    sent: list[Counter[tuple[str, int]]] = [Counter() for _ in nodes]
    offline = _links(attempt, sent) + _tosses(attempt)
    offline += (
        len(nodes)
        * frame_bytes("node_seed", (), 0, 1, 8 * SEED_BYTES, SEED_BYTES)
        * attempt.needs_dealer
    )
    for chunk in attempt.chunks():
        plan = attempt.plan(chunk)
        for party in plan.everybody:
            for number in range(1, plan.rounds + 1):
                shape = plan.shape(number, party, chunk.count)
                size = (plan.parties - 1) * _bytes(shape, chunk.place, chunk.number)
                if chunk.noise:
                    offline += size
                else:
                    sent[chunk.parties[party]][shape.step, shape.round] += size
            if attempt.needs_dealer:
                size, width = dealt_bytes(plan, party, chunk.count), plan.dealt_bits(party)
                offline += frame_bytes(
                    "material", chunk.place, chunk.number, chunk.count, width, size
                )
    revealed = [
        attempt.released_values(node) * attempt.ring.bytes * len(attempt.study.kernels)
        for node in nodes
    ]
    return Cost(attempt.rounds, tuple(map(sent_by_round, sent)), tuple(revealed), offline)


def _links(attempt: Attempt, sent: list[Counter[tuple[str, int]]]) -> int:
    """What every node sends to each of its peers: to set up, and in round 1."""
    backend, set_up = backend_of(attempt.study), 0
    for node, own in enumerate(sent):
        for peer in attempt.peers(node):
            link = (min(node, peer), max(node, peer))
            set_up += sum(
                _bytes(shape, link, 0) for shape in backend.set_up_shapes(attempt, node, peer)
            )
            for number, shape in enumerate(backend.field_shapes(attempt, node, peer)):
                own[shape.step, shape.round] += _bytes(shape, link, number)
    return set_up


def _tosses(attempt: Attempt) -> int:
    """A committee's coins without a dealer."""
    if attempt.toss_plan is None:
        return 0
    pairs = permutations(range(attempt.toss_plan.members), 2)
    shapes = (enumerate(attempt.toss_plan.shapes(*pair)) for pair in pairs)
    return sum(_bytes(shape, (), number) for rounds in shapes for number, shape in rounds)


def _bytes(shape: Message, owners: Owners, number: int) -> int:
    """Of a message as a frame; one of width 0 is not sent."""
    if not shape.width:
        return 0
    return frame_bytes(
        shape.step, owners, number, shape.count, shape.width, len(shape.payload), shape.round
    )
