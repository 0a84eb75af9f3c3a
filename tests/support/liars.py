"""An owner of pairs that lies: any number in the place of its record, any flip of opened bits.

The liar runs the real compiled plan beside an honest owner, in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.support.mpc_studies import Columns, deal_chunk, seed_of, tree_hash_of
from tests.support.one_chunk import open_message, read_open, seeded_part
from umpc.crypto.prg import derive
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.masked.bit_shares import LayerShares
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.edge_layout import masked_wires, wire_masks
from umpc.mpc.masked.evaluation import PartyChunk
from umpc.mpc.masked.material import ChunkInputs
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.ustat.kernel import Kernel

PAIR = (0, 1)


def program_of_pair(kernel: Kernel, ring: Ring = RINGS[-1]) -> Program:
    """The program of pairs of two owners."""
    return compile_program([kernel], ring, [PAIR])


def flippable(plan: Plan, liar: int) -> list[int]:
    """The opened bits that the liar has a share of."""
    return [bit for bit in range(len(plan.bits)) if liar in plan.contributors(bit)]


@dataclass(frozen=True)
class Lies:
    """The liar's deviations in each edge.

    wires: per wire (edges,) uint64, the masked numbers that it sends in the place of its record.
    flips: (bits, edges) uint8, for the bits of `flippable`.
    """

    wires: Sequence[np.ndarray]
    flips: np.ndarray


def evaluate_with_liar(
    kernel: Kernel, honest: Columns, liar: int, lies: Lies, label: str = "liar"
) -> np.ndarray:
    """The honest owner's share of each edge, plus what the liar knows of it: (edges,) int64.

    This is all that the honest owner's share tells beside numbers that the liar can compute itself.

    Args: honest: the honest owner's record of each edge.
    """
    program = program_of_pair(kernel)
    plan = program.plans[PAIR]
    count, seed, tree_hash = lies.flips.shape[1], seed_of(label), tree_hash_of(label)
    masks = [wire_masks(program, derive(seed, "masks", slot), count) for slot in PAIR]
    sent: list[Sequence[np.ndarray]] = [lies.wires, lies.wires]
    sent[1 - liar] = masked_wires(program, honest, masks[1 - liar], count)
    places = {n: place for n, place in enumerate(plan.places) if isinstance(place, RecordPlace)}
    known = {number: masks[place.slot][place.wire] for number, place in places.items()}
    seeds = [derive(seed, "party", party) for party in PAIR]
    dealt = deal_chunk(plan, known, seeds, count, tree_hash)
    nothing = {name: np.zeros(count, dtype=np.int64) for name in honest}
    records = [nothing, nothing]
    records[1 - liar] = dict(honest)
    chunks = []
    for party in PAIR:
        inputs = ChunkInputs(
            {number: sent[place.slot][place.wire] for number, place in places.items()},
            {number: mask for number, mask in known.items() if places[number].slot == party},
            {slot: records[slot] for slot in plan.own_slots(party)},
            count,
            ["node-0", "node-1"],
        )
        seeded = seeded_part(plan, seeds[party], party, count)
        chunks.append(PartyChunk(party, plan, inputs, dealt[party], seeded, tree_hash))
    for layer in range(len(plan.layers)):
        shares = [chunk.shares(layer) for chunk in chunks]
        flips = dict(zip(flippable(plan, liar), lies.flips, strict=True))
        shares[liar] = _flipped(shares[liar], flips)
        for party in PAIR:
            other = 1 - party
            message = open_message(plan, layer, other, shares[other], count)
            theirs = read_open(plan, layer, other, message, count)
            chunks[party].open(layer, [shares[party], theirs])
    total = sum(chunk.evaluate(plan.outputs[0]) for chunk in chunks)
    return np.asarray(total).astype(np.uint64).view(np.int64)


def _flipped(shares: LayerShares, flips: dict[int, np.ndarray]) -> LayerShares:
    packed = {n: np.packbits(flipped, bitorder="little") for n, flipped in flips.items()}
    return LayerShares({n: bits ^ packed[n] for n, bits in shares.bits.items()}, shares.places)


def every_lie(
    kernel: Kernel, liar: int, honest: Columns, most: int, rng: np.random.Generator
) -> tuple[Lies, dict[str, np.ndarray], int]:
    """Lies and honest records, edge by edge: every lie with every record.

    Where that is more than `most` edges, random lies take their place.

    Returns: the lies, the records, and the number of records, which is the last axis of the edges.
    """
    program = program_of_pair(kernel)
    bits = len(flippable(program.plans[PAIR], liar))
    widths = [*(wire.width for wire in program.wires), *[1] * bits]
    records = len(next(iter(honest.values())))
    if sum(widths) < 40 and records << sum(widths) <= most:
        numbers = np.arange(1 << sum(widths), dtype=np.uint64)
        columns = []
        for width in widths:
            columns.append(numbers & np.uint64((1 << width) - 1))
            numbers = numbers >> np.uint64(width)
    else:
        count = most // records
        columns = [rng.integers(0, 1 << width, count, dtype=np.uint64) for width in widths]
    repeated = [np.repeat(column, records) for column in columns]
    lies = len(repeated[0]) // records if repeated else 1
    wires, flips = repeated[: len(program.wires)], repeated[len(program.wires) :]
    shape = (len(flips), lies * records)
    found = Lies(wires, np.array(flips, dtype=np.uint8).reshape(shape))
    return found, {name: np.tile(column, lies) for name, column in honest.items()}, records


def worst_change(kernel: Kernel, liar: int, honest: Columns, most: int, label: str) -> int:
    """The most that the honest owner's record changes one edge, over the lies, in units."""
    rng = np.random.default_rng(list(seed_of(label)))
    lies, columns, records = every_lie(kernel, liar, honest, most, rng)
    values = evaluate_with_liar(kernel, columns, liar, lies, label).reshape(-1, records)
    return int((values.max(axis=1) - values.min(axis=1)).max())
