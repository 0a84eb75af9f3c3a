"""Comparison of a number of three or more owners is right for all masks of small widths."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.support.mpc_studies import ChunkRun, opened, seed_of, tree_hash_of
from tests.support.studies import generator
from umpc.crypto.prg import derive
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.masked import dealing
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.dealing import deal_chunk
from umpc.mpc.masked.evaluation import evaluate_chunk
from umpc.mpc.masked.lookup_comparison import FAN, PIECE, compare
from umpc.mpc.masked.masks import modulus
from umpc.mpc.masked.material import SeededPart
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    Bit,
    Layer,
    Linear,
    Literal,
    Logic,
    LookupBit,
    LookupTable,
    RecordPlace,
    SharedPolynomial,
    Term,
)
from umpc.ustat.polynomial import constant

PARTIES = 3


class Recorder:
    """A builder that only numbers tables and bits and notes the layer of each."""

    def __init__(self) -> None:
        self.tables: list[LookupTable] = []
        self.layers: dict[Bit, int] = {}

    def lookup_bit(self, table: LookupTable, kind: str, layer: int) -> int:
        if table not in self.tables:
            self.tables.append(table)
        return self._number(LookupBit(self.tables.index(table), kind), layer)

    def add_logic(self, conjunctions, *, constant: bool = False) -> int:
        literals = tuple(
            tuple(Literal((bit,)) for bit in conjunction) for conjunction in conjunctions
        )
        layers = list(self.layers.values())
        return self._number(
            Logic(literals, constant), 1 + max(layers[bit] for c in conjunctions for bit in c)
        )

    def _number(self, bit: Bit, layer: int) -> int:
        self.layers.setdefault(bit, layer)
        return list(self.layers).index(bit)


def comparing(width: int, parties: int = PARTIES) -> tuple[Plan, list[int]]:
    """The plan that compares a sum of one place of each party with zero, and its two bits."""
    difference, recorder = Linear(tuple((party, 1) for party in range(parties))), Recorder()
    results = [compare(recorder, difference, width, kind, 1) for kind in ("less", "equal")]
    layers = [
        [n for n, at in enumerate(recorder.layers.values()) if at == layer]
        for layer in range(1, 99)
    ]
    nothing = (constant(0),) * parties
    plan = Plan(
        pattern=tuple(range(parties)),
        ring=RINGS[0],
        places=tuple(RecordPlace(party, 0) for party in range(parties)),
        comparisons=(),
        tables=tuple(recorder.tables),
        bits=tuple(recorder.layers),
        layers=tuple(Layer(tuple(bits), ()) for bits in layers if bits),
        outputs=tuple(SharedPolynomial((Term(1, (bit,)),), nothing, 0) for bit in results),
    )
    return plan, results


def compared(
    width: int, mask: np.ndarray, difference: np.ndarray, label: str
) -> tuple[list[np.ndarray], list[int]]:
    """Both bits of each edge, from all owners' shares and masks, and their sums over the edges."""
    plan, results = comparing(width)
    count, rng, tree_hash = len(mask), generator(label), tree_hash_of(label)
    masks = [rng.integers(0, 2**64, count, dtype=np.uint64) for _ in range(PARTIES - 1)]
    masks.append(mask - masks[0] - masks[1])
    places = [mask + rng.integers(0, 2**64, count, dtype=np.uint64) for mask in masks[:-1]]
    places.append(difference + mask - places[0] - places[1])
    seeds = [derive(seed_of(label), party) for party in range(PARTIES)]
    dealt = deal_chunk(plan, dict(enumerate(masks)), seeds, count, tree_hash)
    seeded = [SeededPart.expand(plan, seed, party, count) for party, seed in enumerate(seeds)]
    known = [
        ChunkInputs(dict(enumerate(places)), {n: masks[n]}, {}, count, "abc")
        for n in range(PARTIES)
    ]
    parts = zip(range(PARTIES), known, dealt, seeded, strict=True)
    shares, sent = run_in_memory(
        [evaluate_chunk(p, plan, i, d, s, tree_hash) for p, i, d, s in parts]
    )
    run = ChunkRun(plan, None, known, [], [], dealt, seeded, shares, sent, [])
    bits, _ = opened(run, count)
    values = [
        np.bitwise_xor.reduce([bits[n], *(part.bit_masks[n] for part in seeded)]) for n in results
    ]
    return values, [plan.ring.decode(sum(part)) for part in zip(*shares, strict=True)]


def signed(width: int, values: np.ndarray) -> np.ndarray:
    """d in [−2^(w−1), 2^(w−1)) of its w low bits."""
    shift = np.uint64(64 - width)
    return (values.astype(np.uint64) << shift).view(np.int64) >> np.int64(64 - width)


def check(width: int, mask: np.ndarray, difference: np.ndarray) -> None:
    (less, equal), sums = compared(width, mask, difference, f"tables {width}")
    assert np.array_equal(less, signed(width, difference) < 0), f"width {width}"
    assert np.array_equal(equal, difference == 0), f"width {width}"
    assert sums == [int((signed(width, difference) < 0).sum()), int((difference == 0).sum())]


@pytest.mark.parametrize("width", range(2, 8))
def test_every_mask_and_every_difference(width):
    every = np.arange(1 << width, dtype=np.uint64)
    check(width, np.repeat(every, 1 << width), np.tile(every, 1 << width))


@pytest.mark.parametrize("width", [*range(8, 20), 21, 22, 32, 33, 34, 61, 62, 63, 64])
def test_random_masks_with_differences_at_all_corners(width):
    """Corners of the number and of every piece, and masks at both ends of the range."""
    low, rng = modulus(width), generator(f"wide {width}")
    edges = [0, 1, -1, (1 << (width - 1)) - 1, -(1 << (width - 1)), -(1 << (width - 1)) + 1]
    edges += [
        sign * ((1 << at) + off)
        for at in range(PIECE, width - 1, PIECE)
        for sign in (1, -1)
        for off in (0, -1)
    ]
    corners = np.array([edge & (2**64 - 1) for edge in edges], dtype=np.uint64) & low
    difference = np.concatenate(
        [np.repeat(corners, 20), rng.integers(0, 2**64, 200, dtype=np.uint64) & low]
    )
    mask = rng.integers(0, 2**64, len(difference), dtype=np.uint64) & low
    ends = [0, int(low), 1, int(low) >> 1, (int(low) >> 1) + 1, PIECE, (1 << PIECE) - 1]
    for offset, end in enumerate(ends):
        mask[offset::20] = np.uint64(end) & low
    check(width, mask, difference)


@pytest.mark.parametrize("width", range(2, 65))
def test_the_depth_is_logarithmic_in_the_width(width):
    """One round for the pieces, then FAN pieces become one in a round."""
    pieces, rounds = -(-(width - 1) // PIECE), 1
    while FAN**rounds < pieces:
        rounds += 1
    plan, _ = comparing(width)
    assert len(plan.layers) == 1 + rounds <= 4
    assert len(plan.tables) == pieces + 1 and max(table.size for table in plan.tables) <= PIECE


@pytest.mark.parametrize("width", range(2, 65))
def test_tables_cover_each_bit_of_the_mask_once(width):
    plan, _ = comparing(width)
    pieces = sorted((table.low, table.low + table.size) for table in plan.tables)
    assert pieces[0][0] == 0 and pieces[-1] == (width - 1, width)
    assert all(first[1] == second[0] for first, second in pairwise(pieces))
    assert all(1 << table.size <= 1 << PIECE for table in plan.tables)


def test_the_lowest_pieces_equality_is_opened_for_ties_only():
    recorder, difference = Recorder(), Linear(((0, 1), (1, 1), (2, 1)))
    compare(recorder, difference, 10, "less", 1)
    lookups = [
        (recorder.tables[bit.table].low, bit.kind)
        for bit in recorder.layers
        if isinstance(bit, LookupBit)
    ]
    assert lookups == [
        (9, "equal"),
        (8, "less"),
        (4, "less"),
        (0, "less"),
        (8, "equal"),
        (4, "equal"),
    ]


def test_power_a_wrong_row_of_a_table_is_found(monkeypatch):
    """A dealer whose rows are off by one place."""
    real = dealing.one_hot_rows
    monkeypatch.setattr(
        dealing, "one_hot_rows", lambda *a: [np.roll(rows, 1, axis=0) for rows in real(*a)]
    )
    with pytest.raises(AssertionError):
        check(4, np.arange(16, dtype=np.uint64), np.full(16, 3, np.uint64))
