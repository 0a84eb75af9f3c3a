"""What an attempt costs, from its plan and the sizes of its cells alone: rounds, bytes online, bytes dealt.

Tests hold measured traffic equal to these numbers, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from umpc.mpc.attempt import Attempt
from umpc.mpc.evaluation import fields_frames
from umpc.mpc.frames import frame_bytes
from umpc.mpc.material import dealt_bytes
from umpc.mpc.prg import SEED_BYTES
from umpc.mpc.ring import packed_size


@dataclass(frozen=True)
class Cost:
    """rounds: masked fields, opened bits, reveal. Bytes are sums over all links, framing included."""

    rounds: int
    bytes_online: int
    bytes_offline: int


def predict(attempt: Attempt) -> Cost:
    """The cost of an attempt: online between nodes and to the coordinator, offline from the dealer."""
    plan, nodes = attempt.plan, len(attempt.members)
    online = nodes * attempt.ring.bytes
    offline = nodes * frame_bytes("node_seed", (0, 0), 0, 1, 8 * SEED_BYTES, SEED_BYTES) if plan.needs_dealer else 0
    for owners, cell in attempt.hypergraph.shared_cells.items():
        for side in (0, 1) if plan.wires else ():
            for number, count, size in fields_frames(plan, len(cell.records(side))):
                width = sum(wire.width for wire in plan.wires)
                online += frame_bytes("masked_fields", owners, number, count, width, size)
    for chunk in attempt.chunks():
        if plan.bits:
            bits = plan.bits * chunk.count
            online += 2 * frame_bytes("open_bits", chunk.owners, chunk.number, bits, 1, packed_size(bits, 1))
        for party in (0, 1) if plan.needs_dealer else ():
            size = dealt_bytes(plan, party)
            offline += frame_bytes("material", chunk.owners, chunk.number, chunk.count, 8 * size, size * chunk.count)
    interactive = plan.rounds if attempt.hypergraph.shared_cells else 0
    return Cost(interactive + 1, online, offline)
