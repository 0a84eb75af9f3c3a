"""What an attempt costs, from its plan and the sizes of its cells alone: rounds, bytes online, bytes dealt.

Tests hold measured traffic equal to these numbers, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from umpc.mpc.attempt import Attempt
from umpc.mpc.cells import backend_of
from umpc.mpc.frames import frame_bytes
from umpc.mpc.material import dealt_bytes
from umpc.mpc.prg import SEED_BYTES
from umpc.mpc.rounds import Message
from umpc.ustat.hypergraph import Owners


@dataclass(frozen=True)
class Cost:
    """rounds: masked fields, openings, reveal. Bytes are sums over all links, framing included."""

    rounds: int
    bytes_online: int
    bytes_offline: int


def predict(attempt: Attempt) -> Cost:
    """The cost of an attempt: online between nodes and to the coordinator, offline all that goes before the data."""
    nodes = len(attempt.members)
    set_up, fields = _links(attempt)
    released = sum(attempt.released_values(node) for node in range(nodes))
    online = released * attempt.ring.bytes * len(attempt.study.kernels) + fields
    offline = set_up
    offline += nodes * frame_bytes("node_seed", (), 0, 1, 8 * SEED_BYTES, SEED_BYTES) if attempt.needs_dealer else 0
    for chunk in attempt.chunks():
        plan = attempt.plan(chunk)
        for party in plan.everybody:
            shapes = (plan.shape(number, party, chunk.count) for number in range(1, plan.rounds + 1))
            sent = (plan.parties - 1) * sum(_bytes(shape, chunk.place, chunk.number) for shape in shapes)
            online, offline = (online, offline + sent) if chunk.noise else (online + sent, offline)
            if attempt.needs_dealer:
                size, width = dealt_bytes(plan, party, chunk.count), plan.dealt_bits(party)
                offline += frame_bytes("material", chunk.place, chunk.number, chunk.count, width, size)
    return Cost(attempt.rounds, online, offline)


def _links(attempt: Attempt) -> tuple[int, int]:
    """What every node sends to every node with which it shares an edge: to set up, and in round 1."""
    backend, set_up, fields = backend_of(attempt.study), 0, 0
    for node in range(len(attempt.members)):
        for peer in attempt.hypergraph.neighbours(node):
            link = (min(node, peer), max(node, peer))
            set_up += sum(_bytes(shape, link, 0) for shape in backend.set_up_shapes(attempt, node, peer))
            shapes = enumerate(backend.field_shapes(attempt, node, peer))
            fields += sum(_bytes(shape, link, number) for number, shape in shapes)
    return set_up, fields


def _bytes(shape: Message, owners: Owners, number: int) -> int:
    """Of a message as a frame; one of width 0 is not sent."""
    if not shape.width:
        return 0
    return frame_bytes(shape.step, owners, number, shape.count, shape.width, len(shape.payload), shape.round)
