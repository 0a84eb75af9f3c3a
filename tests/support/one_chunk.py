"""The rounds of one owner in a single chunk, for tests that make its parts themselves."""

from __future__ import annotations

from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Protocol
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import PartyChunk, evaluate_together, only
from umpc.mpc.masked.material import ChunkInputs, DealtPart, SeededPart
from umpc.mpc.masked.plan import Plan


def evaluate_chunk(
    party: int,
    plan: Plan,
    inputs: ChunkInputs,
    dealt: DealtPart,
    seeded: SeededPart,
    tree_hash: FixedKeyHash,
) -> Protocol[list[int]]:
    """One owner's share of each kernel's sum over the chunk's edges."""
    chunk = PartyChunk(party, plan, inputs, dealt, seeded, tree_hash)
    return only(evaluate_together(chunk, [inputs.names], EdgeLayout([inputs.count])))
