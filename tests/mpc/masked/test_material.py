"""Material has the bytes that the plan says, and no seed, stream or mask serves two purposes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.support.kernels import (
    KERNELS,
    QUADRUPLE_KERNELS,
    SCHEMA,
    TRIPLE_KERNELS,
    Case,
    corner_edges,
    take,
)
from tests.support.limits import small_chunks
from tests.support.mpc_studies import (
    ALPHA,
    LEANING,
    ChunkRun,
    loose,
    program_of,
    run_chunk,
    seed_of,
    shared_rows,
    shares_of_rows,
    table_starts,
)
from tests.support.one_chunk import dealt_part, encoded_part, seeded_part
from tests.support.studies import Entropy, make_attempt, make_study
from umpc.crypto.ring import RINGS
from umpc.dealer.material import MaterialDealer
from umpc.errors import EncodingError
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.edge_layout import EdgeLayout, wire_masks
from umpc.mpc.masked.material import DealtPart, SeededPart, Shares, dealt_bytes
from umpc.mpc.masked.plan import MAX_CHUNK
from umpc.testing import lying
from umpc.ustat.kernel import Kernel

PLAN = program_of(KERNELS["kendall_tau"], RINGS[1]).plans[0, 1]
TABLES = program_of(TRIPLE_KERNELS["wide_leaning"], RINGS[0], (0, 1, 2)).plans[0, 1, 2]
KEYS = program_of(KERNELS["wide_sign"], RINGS[1], few=True).plans[0, 1]
CASES = {name: Case(KERNELS, name, (0, 1)) for name in KERNELS}
CASES |= {f"{name} of three": Case(TRIPLE_KERNELS, name, (0, 1, 2)) for name in TRIPLE_KERNELS}
CASES |= {
    f"{name} of four{owners}": Case(QUADRUPLE_KERNELS, name, pattern)
    for name in QUADRUPLE_KERNELS
    for owners, pattern in (("", (0, 1, 2, 3)), (", two owners", (0, 0, 0, 1)))
}


def run_of(name: str, ring=RINGS[1], count: int = 49, few: bool = False) -> ChunkRun:
    pattern = CASES[name].pattern
    edges = [take(slot, slice(0, count)) for slot in corner_edges(len(pattern))]
    return run_chunk(CASES[name].kernel, ring, edges, count, pattern=pattern, few=few)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("ring", "few"), [*zip(RINGS, (False, True), strict=True)], ids=str)
def test_material_takes_the_bytes_it_says_and_comes_back(name, ring, few):
    """Keys to their holders, shares to the last; `run_of` has decoded what was encoded."""
    run = run_of(name, ring, few=few)
    plan, last = run.plan, run.plan.parties - 1
    for party, dealt in enumerate(run.dealt):
        data = encoded_part(dealt)
        assert len(data) == dealt_bytes(plan, party, 49)
        assert tuple(dealt.keys) == plan.holds_keys(party)
        assert (dealt.shares is None) == (party < last)
        again = dealt_part(plan, data, party, 49)
        assert encoded_part(again) == data and equal_shares(again.shares, dealt.shares)
    keys = sum(len(keys.encode()) for keys in run.dealt[last].keys.values())
    shares = plan.ring.bytes * len(plan.elements) * 49 + -(-plan.shared_bits * 49 // 8)
    assert dealt_bytes(plan, last, 49) == keys + shares


def equal_shares(first: Shares | None, second: Shares | None) -> bool:
    if first is None or second is None:
        return first is second
    return (
        np.array_equal(first.elements, second.elements)
        and np.array_equal(first.bits, second.bits)
        and all(map(np.array_equal, first.tables, second.tables))
    )


def test_shares_of_any_bits_and_elements_come_back():
    """The plan of a comparison of three owners, with padding after the bits.

    It has rows of tables and products.
    """
    rng, count = np.random.default_rng(5), 3
    elements = rng.integers(0, 2**32, (len(TABLES.elements), count), dtype=np.uint32)
    rows = rng.integers(0, 2, (table_starts(TABLES)[-1], count), dtype=np.uint8)
    shares = shares_of_rows(TABLES, elements, rows)
    assert np.array_equal(shared_rows(TABLES, shares, count), rows)
    data = encoded_part(DealtPart({}, shares))
    assert len(data) == dealt_bytes(TABLES, 2, count) and TABLES.shared_bits * count % 8
    assert equal_shares(dealt_part(TABLES, data, 2, count).shares, shares)
    with pytest.raises(EncodingError, match="padding"):
        dealt_part(TABLES, data[:-1] + bytes([data[-1] | 128]), 2, count)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize(
    ("plan", "party"),
    [(PLAN, 0), (PLAN, 1), (KEYS, 0), (KEYS, 1), (TABLES, 0), (TABLES, 1), (TABLES, 2)],
    ids=["0/2", "1/2", "key 0/2", "key 1/2", "0/3", "1/3", "2/3"],
)
def test_material_of_a_wrong_length_is_refused(plan, party, change):
    size = dealt_bytes(plan, party, 3) + change
    with pytest.raises(EncodingError, match="material of 3 edges"):
        dealt_part(plan, bytes(size) if size >= 0 else b"too long", party, 3)


@pytest.mark.parametrize("plan", [PLAN, TABLES], ids=["two", "three"])
def test_material_of_another_party_is_refused(plan):
    with pytest.raises(EncodingError):
        dealt_part(plan, bytes(dealt_bytes(plan, plan.parties - 1, 3)), 0, 3)


@pytest.mark.parametrize("party", range(3))
def test_a_seed_always_expands_to_the_same_part(party):
    first, second = (seeded_part(TABLES, seed_of("part"), party, 5) for _ in range(2))
    other = seeded_part(TABLES, seed_of("another"), party, 5)
    assert all(np.array_equal(a, b) for a, b in zip(pieces(first), pieces(second), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(pieces(first), pieces(other), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_a_party_expands_what_it_opens_and_all_but_the_last_their_shares(name):
    pattern = CASES[name].pattern
    plan = program_of(CASES[name].kernel, RINGS[0], pattern).plans[pattern]
    layers = range(len(plan.layers))
    for party in plan.everybody:
        part = seeded_part(plan, seed_of("part"), party, 5)
        assert set(part.bit_masks) == {
            bit for layer in layers for bit in plan.opened_bits(layer, party)
        }
        assert set(part.place_masks) == {
            place for layer in layers for place in plan.opened_places(layer, party)
        }
        assert all(
            int(mask.max()) < 1 << plan.place_width(n) for n, mask in part.place_masks.items()
        )
        assert tuple(part.roots) == plan.holds_keys(party)
        assert (part.shares is None) == (party == plan.parties - 1)
        if part.shares is not None:
            assert part.shares.elements.shape == (len(plan.elements), 5)
            assert part.shares.bits.shape == (len(plan.bit_elements), 1)
            assert shared_rows(plan, part.shares, 5).shape == (table_starts(plan)[-1], 5)


def test_chunk_seeds_differ_by_node_cell_chunk_and_purpose():
    attempt = make_attempt(make_study(nodes=3), [3, 3, 3])
    cells = [*product(range(4), repeat=2), *product(range(4), repeat=3)]
    chunks = [
        Chunk(owners, number, 0, 8, noise)
        for owners in cells
        for number in range(4)
        for noise in (False, True)
    ]
    seeds = {attempt.chunk_seed(seed_of(str(node)), chunk) for node in range(4) for chunk in chunks}
    assert len(seeds) == 4 * len(chunks)


@pytest.mark.parametrize("degree", [2, 3])
def test_no_stream_gives_one_word_twice_over_chunks_cells_parties_and_attempts(
    monkeypatch, limit, degree
):
    """Words of 64 bits never repeat in the roots, masks and shares of two attempts at one study."""
    small_chunks(limit)
    study = make_study(nodes=3) if degree == 2 else make_study(LEANING, 3, degree=3)
    counts = [7, 6, 5] if degree == 2 else [3, 3, 3]
    words, chunks = [], 0
    for number in range(2):
        attempt = make_attempt(study, counts, f"attempt {number}")
        dealer = MaterialDealer(attempt, Entropy(f"dealer {number}"))
        for chunk in attempt.chunks():
            chunks += 1
            for party, node in enumerate(chunk.parties):
                seed = attempt.chunk_seed(dealer.seed_frame(node).payload, chunk)
                # long enough that every array gives whole words
                part = seeded_part(attempt.plan(chunk), seed, party, 64)
                words += [
                    np.ascontiguousarray(p).view(np.uint64).reshape(-1) for p in wide_pieces(part)
                ]
    every = np.concatenate(words)
    assert chunks == 2 * (6 + 5 + 4 if degree == 2 else 6 * 2 + 4) and len(np.unique(every)) == len(
        every
    )


def test_a_record_has_one_mask_and_no_two_records_share_a_stream():
    """Masks of 64 bits, so that two alike would show."""
    study = make_study("a.x * b.x", 3, x=("-20000", "20000"))
    attempt = make_attempt(study, [50, 50, 50])
    assert [wire.width for wire in attempt.program.wires] == [64]
    dealers = [MaterialDealer(attempt, Entropy(f"masks {number}")) for number in range(2)]
    tasks = [dealer.task(chunk) for dealer in dealers for chunk in attempt.chunks()]
    masks = [each for task in tasks for each in task.record_masks.values()]
    assert len(np.unique(np.concatenate(masks))) == 300


def test_parts_show_nothing_of_themselves():
    run = run_of("leaning of three")
    assert {repr(part) for part in run.dealt} == {"DealtPart(<redacted>)"}
    assert {repr(part) for part in run.seeded} == {"SeededPart(<redacted>)"}
    assert repr(run.dealt[-1].shares) == "Shares(<redacted>)"


def test_a_chunk_is_no_longer_than_the_plan_allows():
    assert PLAN.chunk_edges <= MAX_CHUNK and TABLES.chunk_edges <= MAX_CHUNK


DRAWN = (
    TRIPLE_KERNELS["distance_against_a_third"],
    TRIPLE_KERNELS["product_of_three"],
    Kernel.from_text("a.big < c.big", SCHEMA, 3, symmetric=False),
)
"""Kernels that together draw everything that there is."""


def drawn(count: int, cut: int = 0) -> dict[str, np.ndarray]:
    """All masks and shares, highest bit first: of places, wires, bits, rows, elements.

    cut: bits that are lost.
    """
    program = program_of(DRAWN, RINGS[1], (0, 1, 2), few=True)
    plan = program.plans[0, 1, 2]
    part = seeded_part(plan, seed_of("balanced"), 0, count)
    words = {f"place {n}": (mask, plan.place_width(n)) for n, mask in part.place_masks.items()}
    words |= {
        f"wire {n}": (m, program.wires[n].width)
        for n, m in enumerate(wire_masks(program, seed_of("w"), count))
    }
    words |= {f"root {n}": (root.reshape(-1), 64) for n, root in part.roots.items()}
    words |= {f"element {n}": (row, 64) for n, row in enumerate(part.shares.elements)}
    words |= {
        f"bit {n}": (loose(mask, count).astype(np.uint64), 1) for n, mask in part.bit_masks.items()
    }
    rows = shared_rows(plan, part.shares, count)
    words |= {f"row {n}": (row.astype(np.uint64), 1) for n, row in enumerate(rows)}
    return {
        name: values >> np.uint64(cut) << np.uint64(64 - width)
        for name, (values, width) in words.items()
    }


def worst(words: dict[str, np.ndarray], widths: dict[str, int]) -> float:
    """The smallest p-value of "this bit is a fair coin", times how many bits there are."""
    found = []
    for name, values in words.items():
        bits = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(len(values), 8), axis=1)[
            :, : widths[name]
        ]
        z = np.abs(bits.sum(axis=0) - len(values) / 2) / np.sqrt(len(values) / 4)
        found += list(2 * stats.norm.sf(z))
    return min(found) * len(found)


def test_every_bit_of_every_mask_and_share_is_drawn():
    """The highest bits too: a mask that is one bit short hides all but the sign."""
    program = program_of(DRAWN, RINGS[1], (0, 1, 2), few=True)
    plan, words = program.plans[0, 1, 2], drawn(4000)
    widths = {name: 64 if name.split()[0] in ("root", "element") else 1 for name in words}
    widths |= {f"wire {n}": wire.width for n, wire in enumerate(program.wires)}
    widths |= {
        name: plan.place_width(int(name.split()[1])) for name in words if name.startswith("place")
    }
    assert {name.split()[0] for name in words} == {"place", "wire", "root", "element", "bit", "row"}
    assert worst(words, widths) > ALPHA, "N = 4000, seed 'balanced'"
    for name in words:
        assert worst({name: drawn(4000, cut=1)[name]}, widths) < ALPHA, (
            f"power: {name} without its top bit passes"
        )


def pieces(part: SeededPart) -> list[np.ndarray]:
    found = [*part.roots.values(), *part.bit_masks.values(), *part.place_masks.values()]
    if part.shares is None:
        return found
    return [*found, part.shares.elements, *part.shares.tables, part.shares.bits]


def wide_pieces(part: SeededPart) -> list[np.ndarray]:
    """The pieces as their streams' own bytes; elements of 32 bits pair up into words."""
    found = [*part.roots.values(), *part.bit_masks.values()]
    if part.shares is not None:
        found += [part.shares.elements, *part.shares.tables, part.shares.bits]
    return [piece for piece in found if piece.size]


@pytest.mark.parametrize("plan", [PLAN, TABLES, KEYS], ids=["pair", "three", "keys"])
def test_each_kind_of_mask_has_a_stream_of_its_own(plan):
    """A table's pads that equal the masks of opened bits would let the last owner combine both."""
    used = []

    def spy(honest, seeds, *labels):
        used.extend((seed, *labels) for seed in seeds)
        return honest(seeds, *labels)

    with lying("everybody", derive_each=spy):
        for party in plan.everybody:
            seeded_part(plan, seed_of(f"party {party}"), party, 10)
    assert len(set(used)) == len(used)
    kinds = {"roots", "sigma", "places", "elements", "tables", "bits"}
    assert {"sigma", "elements"} <= {label for _, label in used} <= kinds


@pytest.mark.parametrize("plan", [PLAN, TABLES, KEYS], ids=["pair", "three", "keys"])
def test_several_chunks_expand_to_what_each_is_alone(plan):
    """Whether its edges fill bytes or not."""
    counts = [1, 8, 3, 16, 9]
    for party in plan.everybody:
        seeds = [seed_of(f"chunk {number} of {party}") for number in range(len(counts))]
        whole = SeededPart.expand_all(plan, seeds, party, EdgeLayout(counts)).shares
        if whole is None or not len(whole.bits):
            continue
        loose = []
        for seed, count in zip(seeds, counts, strict=True):
            alone = seeded_part(plan, seed, party, count).shares
            assert alone is not None
            loose.append(np.unpackbits(alone.bits, axis=1, count=count, bitorder="little"))
        joined = np.packbits(np.concatenate(loose, axis=1), axis=1, bitorder="little")
        assert np.array_equal(whole.bits, joined)
