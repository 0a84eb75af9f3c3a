"""Comparison by tables is right for all masks of small widths, for any number of owners."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.mpc_studies import ChunkRun, deal_chunk, loose, opened, seed_of, tree_hash_of
from tests.support.one_chunk import evaluate_chunk, seeded_part
from tests.support.studies import generator
from umpc.crypto.prg import derive
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.masked import plan_items as lookup_comparison
from umpc.mpc.masked.edge_layout import modulus, top_bit
from umpc.mpc.masked.material import ChunkInputs
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    MOST_PIECES,
    ONE_PIECE,
    PIECE,
    Linear,
    Logic,
    LookupBit,
    PlanBuilder,
    RecordPlace,
    SharedPolynomial,
    Term,
    compare,
    pieces,
)
from umpc.testing import lying
from umpc.ustat.polynomial import constant

Compared = tuple[list[np.ndarray], list[int]]
"""Both bits of each edge, and their sums over the edges."""


def comparing(width: int, parties: int) -> tuple[Plan, list[int]]:
    """The plan that compares a sum of one place of each party with zero, and its two bits."""
    builder = PlanBuilder()
    places = [builder.add_place(RecordPlace(party, 0), 0) for party in range(parties)]
    difference = Linear(tuple((place, 1) for place in places))
    results = [compare(builder, difference, width, kind, 1) for kind in ("less", "equal")]
    nothing = (constant(0),) * parties
    plan = Plan(
        pattern=tuple(range(parties)),
        ring=RINGS[0],
        places=tuple(builder.places),
        comparisons=(),
        tables=tuple(builder.tables),
        bits=tuple(builder.bits),
        layers=builder.layers(),
        outputs=tuple(SharedPolynomial((Term(1, (bit,)),), nothing, 0) for bit in results),
    )
    return plan, results


def compared(
    width: int, mask: np.ndarray, difference: np.ndarray, label: str, parties: int
) -> Compared:
    """Compare in memory: the bits from all owners' shares and masks."""
    plan, results = comparing(width, parties)
    count, rng, tree_hash = len(mask), generator(label), tree_hash_of(label)
    masks = [rng.integers(0, 2**64, count, dtype=np.uint64) for _ in range(parties - 1)]
    masks.append(mask - np.add.reduce(masks))
    places = [mask + rng.integers(0, 2**64, count, dtype=np.uint64) for mask in masks[:-1]]
    places.append(difference + mask - np.add.reduce(places))
    seeds = [derive(seed_of(label), party) for party in range(parties)]
    dealt = deal_chunk(plan, dict(enumerate(masks)), seeds, count, tree_hash)
    seeded = [seeded_part(plan, seed, party, count) for party, seed in enumerate(seeds)]
    known = [
        ChunkInputs(dict(enumerate(places)), {n: masks[n]}, {}, count, "abc")
        for n in range(parties)
    ]
    parts = zip(range(parties), known, dealt, seeded, strict=True)
    shares, sent = run_in_memory(
        [evaluate_chunk(p, plan, i, d, s, tree_hash) for p, i, d, s in parts]
    )
    run = ChunkRun(plan, None, known, [], [], dealt, seeded, shares, sent, [])
    bits, _ = opened(run, count)
    values = [
        np.bitwise_xor.reduce([bits[n], *(loose(part.bit_masks[n], count) for part in seeded)])
        for n in results
    ]
    values[0] ^= top_bit(Linear(((0, 1),)), width, {0: mask})  # a sign is under msb(r) as well
    return values, [plan.ring.decode(sum(part)) for part in zip(*shares, strict=True)]


def signed(width: int, values: np.ndarray) -> np.ndarray:
    """d in [−2^(w−1), 2^(w−1)) of its w low bits."""
    shift = np.uint64(64 - width)
    return (values.astype(np.uint64) << shift).view(np.int64) >> np.int64(64 - width)


def check(width: int, mask: np.ndarray, difference: np.ndarray, parties: int) -> None:
    """Both bits are right for every d above −2^(w−1)."""
    possible = signed(width, difference) > -(1 << (width - 1))
    mask, difference = mask[possible], difference[possible]
    label = f"tables {width}"
    (less, equal), sums = compared(width, mask, difference, label, parties)
    assert np.array_equal(less, signed(width, difference) < 0), f"width {width}"
    assert np.array_equal(equal, difference == 0), f"width {width}"
    assert sums == [int((signed(width, difference) < 0).sum()), int((difference == 0).sum())]


def check_all(width: int, parties: int) -> None:
    every = np.arange(1 << width, dtype=np.uint64)
    check(width, np.repeat(every, 1 << width), np.tile(every, 1 << width), parties)


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("width", range(2, 8))
def test_every_mask_and_every_difference(width, parties):
    check_all(width, parties)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("width", range(3, 8))
def test_every_mask_and_every_difference_in_several_pieces(width, size, limit):
    limit(lookup_comparison, ONE_PIECE=1)
    limit(lookup_comparison, PIECE=size)
    check_all(width, 2)


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("width", [*range(8, 20), 21, 22, 32, 33, 40, 52, 61, 62, 63, 64])
def test_random_masks_with_differences_at_all_corners(width, parties):
    """Corners of the number and of every piece, and masks at both ends of the range."""
    low, rng = modulus(width), generator(f"wide {width}")
    edges = [0, 1, -1, (1 << (width - 1)) - 1, -(1 << (width - 1)) + 1]
    edges += [
        sign * ((1 << at) + off)
        for at, _ in pieces(width - 1)[:-1]
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
    check(width, mask, difference, parties)


@pytest.mark.parametrize("width", range(2, 65))
def test_a_further_round_combines_what_does_not_fit_one_table(width):
    plan, _ = comparing(width, 2)
    assert len(plan.layers) == (1 if width - 1 <= ONE_PIECE else 2)
    assert len(plan.tables) <= MOST_PIECES
    conjunctions = [
        part for bit in plan.bits if isinstance(bit, Logic) for part in bit.conjunctions
    ]
    assert max(map(len, conjunctions), default=1) == len(plan.tables)


@pytest.mark.parametrize("width", range(2, 65))
def test_tables_cover_each_low_bit_of_the_mask_once(width):
    found = pieces(width - 1)
    ends = [0, *(low + size for low, size in found[::-1])]
    assert [low for low, _ in found[::-1]] == ends[:-1] and ends[-1] == width - 1
    sizes = {size for _, size in found}
    assert max(sizes) - min(sizes) <= 1 and max(sizes) <= ONE_PIECE


def test_the_lowest_pieces_equality_is_opened_for_ties_only():
    builder, difference = PlanBuilder(), Linear(((0, 1), (1, 1)))
    compare(builder, difference, 18, "less", 1)
    tables = list(builder.tables)
    lookups = [
        (tables[bit.table].low, bit.kind) for bit in builder.bits if isinstance(bit, LookupBit)
    ]
    assert sorted(lookups) == [(0, "less"), (5, "equal"), (5, "less"), (11, "equal"), (11, "less")]


def test_power_a_wrong_row_of_a_table_is_found():
    """A dealer whose rows are off by one place."""

    def moved(honest, *given):
        return [rows << rows.dtype.type(1) for rows in honest(*given)]

    with lying("dealer", one_hot_rows=moved), pytest.raises(AssertionError):
        check(4, np.arange(16, dtype=np.uint64), np.full(16, 3, np.uint64), 2)


def test_power_a_sign_without_the_masks_top_bit_is_found():
    with lying("dealer", bit_of=lambda *given: np.uint8(0)), pytest.raises(AssertionError):
        check_all(4, 2)


def test_the_lowest_number_counts_as_zero_too():
    """It is why a width holds the negative of every bound."""
    (less, equal), _ = compared(4, np.arange(16, dtype=np.uint64), np.full(16, 8, np.uint64), "", 2)
    assert less.all() and equal.all()
