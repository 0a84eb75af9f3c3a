"""What the protocol's tests share: α and N, seeded randomness, small studies, one chunk dealt and evaluated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from umpc.agreement import attempt_of
from umpc.mpc.attempt import Attempt, Member, commit
from umpc.mpc.dealing import deal_chunk
from umpc.mpc.evaluation import ChunkInputs, evaluate_chunk
from umpc.mpc.masks import masked_wires, wire_masks
from umpc.mpc.material import DealtPart, SeededPart
from umpc.mpc.plan import PairPlan, compile_pair
from umpc.mpc.prg import FixedKeyHash, Stream, derive
from umpc.mpc.ring import Ring
from umpc.mpc.rounds import Sent, run_in_memory
from umpc.mpc.zero_shares import KeyAgreement
from umpc.study import FieldText, Participant, Study
from umpc.ustat.kernel import Kernel
from umpc.ustat.local import evaluate_local
from umpc.ustat.schema import Schema

ALPHA = 1e-6
"""Chance that one statistical test of right code fails, had its seed been chosen at random."""
RUNS = 250
"""Whole studies per data set in a statistical test."""
EDGES = 20_000
"""Edges, each with fresh masks and keys, per data set in a statistical test of one chunk."""

KENDALL = "sign(a.x - b.x) * sign(a.y - b.y)"
GINI = "abs(a.x - b.x)"

Columns = Mapping[str, np.ndarray]


class Entropy:
    """Uniform bytes that are the same for the same seed; its repr is what a failing test prints."""

    def __init__(self, seed: str):
        self.seed = seed
        self._stream = Stream(hashlib.sha256(seed.encode()).digest())

    def __call__(self, count: int) -> bytes:
        return self._stream.bytes(count)

    def __repr__(self) -> str:
        return f"Entropy({self.seed!r})"


def seed_of(label: str) -> bytes:
    return hashlib.sha256(label.encode()).digest()


def generator(label: str) -> np.random.Generator:
    return np.random.default_rng(np.frombuffer(seed_of(label), dtype=np.uint64))


def make_study(
    kernel: str = KENDALL,
    nodes: int = 2,
    *,
    edges: str = "all",
    epsilon: str = "1",
    colluding: int = 0,
    x: tuple[str, str] = ("0", "3"),
    y: tuple[str, str] = ("0", "3"),
    name: str = "study",
) -> Study:
    return Study(
        name=name,
        statistic="custom",
        kernel=kernel,
        fields=(FieldText("x", *x), FieldText("y", *y)),
        epsilon=epsilon,
        edges=edges,
        max_colluding=colluding,
        coordinator="coordinator",
        dealer=Participant("dealer", "dealer:1"),
        nodes=tuple(Participant(f"node-{i}", f"node-{i}:1") for i in range(nodes)),
    )


def table(x: Sequence[int], y: Sequence[int]) -> dict[str, np.ndarray]:
    return {"x": np.array(x, dtype=np.int64), "y": np.array(y, dtype=np.int64)}


def random_tables(counts: Sequence[int], label: str, low: int = 0, high: int = 3) -> list[dict[str, np.ndarray]]:
    rng = generator(label)
    return [table(*rng.integers(low, high, (2, count), endpoint=True)) for count in counts]


def make_members(study: Study, counts: Sequence[int], label: str = "members") -> tuple[list[Member], list[bytes]]:
    """Members and openings as honest nodes would make them."""
    entropy = Entropy(label)
    openings = [entropy(32) for _ in counts]
    members = [
        Member(node.name, count, commit(study.hash, node.name, opening), KeyAgreement(entropy(32)).public_key)
        for node, count, opening in zip(study.nodes, counts, openings, strict=True)
    ]
    return members, openings


def make_attempt(study: Study, counts: Sequence[int], label: str = "members") -> Attempt:
    return attempt_of(study, *make_members(study, counts, label))


def exact_sum(study: Study, tables: Sequence[Columns], attempt: Attempt) -> int:
    """Σ kernel over E in the clear, in units."""
    total = 0
    for (u, v), cell in attempt.hypergraph.cells.items():
        rows = cell.edges(0, cell.count)
        records = [{k: c[r] for k, c in tables[n].items()} for n, r in zip((u, v), rows, strict=True)]
        total += int(study.parsed_kernel.evaluate(records).sum())
    return total


def make_schema(**fields: tuple[str, ...]) -> Schema:
    """name=(lower, upper) or (lower, upper, resolution), as exact text."""
    return Schema(FieldText(name, *bounds).schema() for name, bounds in fields.items())


@dataclass
class ChunkRun:
    """One chunk, dealt and evaluated by both owners in memory."""

    plan: PairPlan
    masked: list[list[np.ndarray]]
    dealt: tuple[DealtPart, DealtPart]
    seeded: list[SeededPart]
    shares: list[int]
    sent: list[Sent]
    total: int


def run_chunk(
    kernel: Kernel, ring: Ring, first: Columns, second: Columns, count: int, label: str = "chunk"
) -> ChunkRun:
    """Edge j is row j of both tables; every record has its own masks. Material goes through its encoding."""
    plan, seed, tree_hash = compile_pair(kernel, ring), seed_of(label), FixedKeyHash(seed_of(label + " tree"))
    tables = (first, second)
    masks = [wire_masks(plan, derive(seed, "masks", side), count) for side in (0, 1)]
    masked = [masked_wires(plan, columns, mask, count) for columns, mask in zip(tables, masks, strict=True)]
    seeds = (derive(seed, "party", 0), derive(seed, "party", 1))
    dealt = deal_chunk(plan, *masks, seeds, count, tree_hash)
    dealt = tuple(DealtPart.decode(plan, part.encode(), party, count) for party, part in enumerate(dealt))
    seeded = [SeededPart.expand(plan, seeds[party], party, count) for party in (0, 1)]
    parties = [
        evaluate_chunk(
            party, plan, ChunkInputs(masked[0], masked[1], masks[party], count), dealt[party], seeded[party], tree_hash
        )
        for party in (0, 1)
    ]
    shares, sent = run_in_memory(parties)
    local = sum(
        int(part)
        for of, columns in zip((plan.first_local, plan.second_local), tables, strict=True)
        for part in evaluate_local(of, columns, count)
    )
    total = ring.decode(sum(shares) + local + plan.constant * count)
    return ChunkRun(plan, masked, dealt, seeded, shares, sent, total)


def clear_total(kernel: Kernel, ring: Ring, first: Columns, second: Columns) -> int:
    """The same in the clear, reduced into the ring."""
    return ring.decode(ring.encode(sum(int(value) for value in kernel.evaluate([first, second]))))


def opened_bits(run: ChunkRun) -> np.ndarray:
    """What both owners see after round 2: (bits, edges) uint8."""
    payloads = [np.frombuffer(line.message.payload, dtype=np.uint8) for line in run.sent]
    bits = np.unpackbits(payloads[0] ^ payloads[1], bitorder="little", count=run.sent[0].message.count)
    return bits.reshape(run.plan.bits, -1)


def homogeneity(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of "both samples of small categories come from one law" (chi-square)."""
    size = int(max(first.max(), second.max())) + 1
    counts = np.stack([np.bincount(sample.astype(np.int64), minlength=size) for sample in (first, second)])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] == 1:
        return 1.0
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.shape[1] - 1))


def uniformity(sample: np.ndarray, categories: int) -> float:
    """The p-value of "the sample is uniform over the categories" (chi-square)."""
    return float(stats.chisquare(np.bincount(sample.astype(np.int64), minlength=categories)).pvalue)
