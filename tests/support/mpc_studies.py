"""Shared by the protocol's tests: α and N, and one chunk dealt and evaluated.

Whole studies are in `tests/support/studies.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product

import numpy as np
from scipy import stats

from tests.support.fields import number_field
from tests.support.one_chunk import dealt_part, encoded_part, evaluate_chunk, read_open, seeded_part
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import SentMessage, run_in_memory
from umpc.mpc.chunks import Pattern
from umpc.mpc.masked import edge_layout, tasks
from umpc.mpc.masked.bit_shares import LayerShares
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.dcf import row_type
from umpc.mpc.masked.edge_layout import EdgeLayout, PlaceValues, masked_wires, modulus
from umpc.mpc.masked.material import ChunkInputs, DealtPart, SeededPart, Shares
from umpc.mpc.masked.plan import Plan, Program
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema

ALPHA = 1e-6
"""The chance that one statistical test of right code fails, over random seeds."""
RUNS = 250
"""Whole studies per data set in a statistical test."""
EDGES = 20_000
"""Edges, each with fresh masks and keys, per data set in a statistical test of one chunk."""

LEANING = " + ".join(f"sign({p}.x + {q}.x - 2 * {r}.x)" for p, q, r in ("abc", "acb", "bca"))
"""An asymmetric kernel of three records: every comparison mixes all three."""

Columns = Mapping[str, np.ndarray]


def deal_chunk(
    plan: Plan,
    record_masks: PlaceValues,
    seeds: Sequence[bytes],
    count: int,
    tree_hash: FixedKeyHash,
) -> list[DealtPart]:
    """The material of all owners for one chunk.

    Args:
        record_masks: for each place of a record (count,) uint64: its mask in each edge.
        seeds: the chunk seeds of the owners, in party order.

    Reveals: the dealer learns masks only; it sees nothing that is computed from data.
    """
    return tasks.deal_chunks(
        plan, record_masks, [[seed] for seed in seeds], EdgeLayout([count]), tree_hash
    )


def seed_of(label: str) -> bytes:
    return hashlib.sha256(label.encode()).digest()


def patterns(degree: int) -> list[Pattern]:
    """Return every pattern that balanced sampling can give.

    The records of one node stand side by side, and there are two nodes or more.
    """
    steps = product((0, 1), repeat=degree - 1)
    return [tuple(int(n) for n in np.cumsum((0, *step))) for step in steps if any(step)]


def make_schema(**fields: tuple[str, ...]) -> Schema:
    """Return a schema from name=(lower, upper) or (lower, upper, resolution), as exact text."""
    return Schema(number_field(name, *bounds).schema() for name, bounds in fields.items())


@dataclass
class ChunkRun:
    """One chunk, dealt and evaluated by all owners in memory.

    masks and masked hold (count,) uint64 per slot and wire.
    """

    plan: Plan
    program: Program
    inputs: list[ChunkInputs]
    masks: list[list[np.ndarray]]
    masked: list[list[np.ndarray]]
    dealt: list[DealtPart]
    seeded: list[SeededPart]
    shares: list[list[int]]
    sent: list[SentMessage]
    totals: list[int]


def program_of(
    kernels: Kernel | Sequence[Kernel], ring: Ring, pattern: Pattern = (0, 1), few: bool = False
) -> Program:
    """Compile the program of one pattern alone. Args: few: as for a study of few edges."""
    kernels = [kernels] if isinstance(kernels, Kernel) else kernels
    return compile_program(kernels, ring, [pattern], few=few)


def shared_rows(plan: Plan, shares: Shares, count: int) -> np.ndarray:
    """Return all shared bits, a row each: bit elements, then the places of every table."""
    rows = [np.unpackbits(shares.bits, axis=1, count=count, bitorder="little")]
    for table, words in zip(plan.tables, shares.tables, strict=True):
        octets = np.ascontiguousarray(words.T).view(np.uint8).reshape(count, -1)
        bits = np.unpackbits(octets, axis=1, bitorder="little")
        rows.append(bits[:, : 1 << table.size].T)
    return np.concatenate(rows)


def table_starts(plan: Plan) -> list[int]:
    """Return the first row of each table in `shared_rows`, and the number of all rows."""
    sizes = (1 << table.size for table in plan.tables)
    return list(accumulate(sizes, initial=len(plan.bit_elements)))


def shares_of_rows(plan: Plan, elements: np.ndarray, rows: np.ndarray) -> Shares:
    """Return the shares that have these rows; unused bits of tables are 0."""
    count = elements.shape[1]
    bits = np.packbits(rows[: len(plan.bit_elements)], axis=1, bitorder="little")
    tables = []
    for table, start in zip(plan.tables, table_starts(plan), strict=False):
        padded = np.zeros((count, table.bits), dtype=np.uint8)
        padded[:, : 1 << table.size] = rows[start : start + (1 << table.size)].T
        octets = np.packbits(padded, axis=1, bitorder="little")
        tables.append(np.ascontiguousarray(octets.view(row_type(table)).T))
    return Shares(elements, tuple(tables), bits)


def run_chunk(
    kernels: Kernel | Sequence[Kernel],
    ring: Ring,
    records: Sequence[Columns],
    count: int,
    label: str = "chunk",
    pattern: Pattern = (0, 1),
    few: bool = False,
    tree_hash: FixedKeyHash | None = None,
) -> ChunkRun:
    """Deal and evaluate one chunk, in which edge j is row j of every slot's table.

    Every record has its own masks. The material goes through its encoding.
    """
    program, seed = program_of(kernels, ring, pattern, few), seed_of(label)
    tree_hash = tree_hash or tree_hash_of(label)
    plan = program.plans[pattern]
    masks = [
        edge_layout.wire_masks(program, derive(seed, "masks", slot), count)
        for slot in range(len(pattern))
    ]
    masked = [
        masked_wires(program, columns, mask, count)
        for columns, mask in zip(records, masks, strict=True)
    ]
    places = {n: place for n, place in enumerate(plan.places) if isinstance(place, RecordPlace)}
    seeds = [derive(seed, "party", party) for party in plan.everybody]
    known = {number: masks[place.slot][place.wire] for number, place in places.items()}
    dealt = deal_chunk(plan, known, seeds, count, tree_hash)
    dealt = [dealt_part(plan, encoded_part(part), party, count) for party, part in enumerate(dealt)]
    seeded = [seeded_part(plan, seeds[party], party, count) for party in plan.everybody]
    inputs = [
        ChunkInputs(
            {number: masked[place.slot][place.wire] for number, place in places.items()},
            {
                number: mask
                for number, mask in known.items()
                if pattern[places[number].slot] == party
            },
            {slot: records[slot] for slot in plan.own_slots(party)},
            count,
            [f"node-{party}" for party in plan.everybody],
        )
        for party in plan.everybody
    ]
    parties = zip(plan.everybody, inputs, dealt, seeded, strict=True)
    shares, sent = run_in_memory(
        [evaluate_chunk(p, plan, i, d, s, tree_hash) for p, i, d, s in parties]
    )
    totals = [ring.decode(sum(parts)) for parts in zip(*shares, strict=True)]
    return ChunkRun(plan, program, inputs, masks, masked, dealt, seeded, shares, sent, totals)


def tree_hash_of(label: str) -> FixedKeyHash:
    return FixedKeyHash(seed_of(label + " tree"))


def clear_total(kernel: Kernel, ring: Ring, records: Sequence[Columns]) -> int:
    """Return the sum over all edges in the clear, reduced into the ring."""
    return ring.decode(ring.encode(sum(int(value) for value in kernel.evaluate(records))))


def loose(bits: np.ndarray, count: int) -> np.ndarray:
    """Bits that stand eight edges to a byte, one to a byte."""
    return np.unpackbits(bits, count=count, bitorder="little")


def sent_shares(run: ChunkRun, layer: int, count: int) -> list[LayerShares]:
    """Return each party's message of a layer, its bits one to a byte.

    It is empty for a party that sends nothing.
    """
    lines = {line.party: line.message for line in run.sent if line.round == layer + 1}
    found = []
    for party in run.plan.everybody:
        sent = LayerShares({}, {})
        if party in lines:
            sent = read_open(run.plan, layer, party, lines[party], count)
        bits = {number: loose(row, count) for number, row in sent.bits.items()}
        found.append(LayerShares(bits, sent.places))
    return found


def opened(run: ChunkRun, count: int) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Return what all owners see after all openings: bits and places by number, all masked."""
    bits: dict[int, np.ndarray] = {}
    places: dict[int, np.ndarray] = {}
    for layer in range(len(run.plan.layers)):
        for part in sent_shares(run, layer, count):
            for number, share in part.bits.items():
                bits[number] = bits.get(number, np.uint8(0)) ^ share
            for number, share in part.places.items():
                places[number] = (places.get(number, np.uint64(0)) + share) & modulus(
                    run.plan.place_width(number)
                )
    return bits, places


def homogeneity(*samples: np.ndarray) -> float:
    """Return the p-value of “all samples of small categories come from one law” (chi-square)."""
    size = max(int(sample.max()) for sample in samples) + 1
    counts = np.stack([np.bincount(each.astype(np.int64), minlength=size) for each in samples])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] == 1:
        return 1.0
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    freedom = (len(samples) - 1) * (counts.shape[1] - 1)
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), freedom))


def uniformity(sample: np.ndarray, categories: int) -> float:
    """Return the p-value of “the sample is uniform over the categories” (chi-square)."""
    return float(stats.chisquare(np.bincount(sample.astype(np.int64), minlength=categories)).pvalue)
