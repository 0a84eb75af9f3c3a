"""What an attempt costs, from its plan and the sizes of its cells alone: rounds, bytes online, bytes dealt.

Tests hold measured traffic equal to these numbers, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from umpc.mpc.attempt import Attempt, Chunk
from umpc.mpc.evaluation import open_shape
from umpc.mpc.fields import fields_frames
from umpc.mpc.frames import frame_bytes
from umpc.mpc.material import dealt_bytes
from umpc.mpc.plan import Plan
from umpc.mpc.prg import SEED_BYTES


@dataclass(frozen=True)
class Cost:
    """rounds: masked fields, openings, reveal. Bytes are sums over all links, framing included."""

    rounds: int
    bytes_online: int
    bytes_offline: int


def predict(attempt: Attempt) -> Cost:
    """The cost of an attempt: online between nodes and to the coordinator, offline from the dealer and for noise."""
    nodes = len(attempt.members)
    online = nodes * attempt.ring.bytes * len(attempt.study.kernels) + _fields(attempt)
    offline = nodes * frame_bytes("node_seed", (), 0, 1, 8 * SEED_BYTES, SEED_BYTES) if attempt.needs_dealer else 0
    for chunk in attempt.chunks():
        plan = attempt.plan(chunk)
        for party in plan.everybody:
            opened = (plan.parties - 1) * _opened(plan, party, chunk)
            online, offline = (online, offline + opened) if chunk.noise else (online + opened, offline)
            size, width = dealt_bytes(plan, party, chunk.count), plan.dealt_bits(party)
            if attempt.needs_dealer:
                offline += frame_bytes("material", chunk.place, chunk.number, chunk.count, width, size)
    return Cost(attempt.rounds, online, offline)


def _fields(attempt: Attempt) -> int:
    """Masked records: every node to every node with which it shares an edge."""
    total, graph = 0, attempt.hypergraph
    for node in range(len(attempt.members)):
        for peer in graph.neighbours(node):
            link = (min(node, peer), max(node, peer))
            for number, count, size in fields_frames(attempt.program, len(graph.shared_records(node, peer))):
                total += frame_bytes("masked_fields", link, number, count, attempt.program.wire_bits, size)
    return total


def _opened(plan: Plan, party: int, chunk: Chunk) -> int:
    """What a party sends to one other owner, over all rounds."""
    shapes = (open_shape(plan, layer, party, chunk.count) for layer in range(len(plan.layers)))
    return sum(
        frame_bytes("open", chunk.place, chunk.number, shape.count, shape.width, len(shape.payload), shape.round)
        for shape in shapes
        if shape.width
    )
