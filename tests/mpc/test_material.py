"""Material: its bytes are what the plan says, and no seed, stream or mask is used for two purposes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from umpc.dealer.session import DealerSession
from umpc.errors import EncodingError
from umpc.mpc.material import DealtPart, SeededPart, chunk_seed, dealt_bytes
from umpc.mpc.plan import MAX_CHUNK, compile_pair
from umpc.mpc.ring import RINGS

from .kernels import KERNELS, corner_edges
from .studies import Entropy, make_attempt, make_study, run_chunk, seed_of

PLAN = compile_pair(KERNELS["kendall_tau"], RINGS[1])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
def test_material_takes_the_bytes_it_says(name, ring):
    run = run_chunk(KERNELS[name], ring, *corner_edges(), 49)
    for party, dealt in enumerate(run.dealt):
        assert len(dealt.encode()) == 49 * dealt_bytes(run.plan, party)
    assert dealt_bytes(run.plan, 1) - dealt_bytes(run.plan, 0) == run.plan.element_bytes


@pytest.mark.parametrize("party", [0, 1])
@pytest.mark.parametrize("change", [-1, 1])
def test_material_of_a_wrong_length_is_refused(party, change):
    data = bytes(3 * dealt_bytes(PLAN, party) + change)
    with pytest.raises(EncodingError, match="material of 3 edges"):
        DealtPart.decode(PLAN, data, party, 3)


def test_material_of_the_other_party_is_refused():
    with pytest.raises(EncodingError):
        DealtPart.decode(PLAN, bytes(3 * dealt_bytes(PLAN, 1)), 0, 3)


def test_a_seed_always_expands_to_the_same_part():
    first, second = (SeededPart.expand(PLAN, seed_of("part"), 0, 5) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(pieces(first), pieces(second), strict=True))


def test_only_the_first_party_expands_element_shares():
    assert SeededPart.expand(PLAN, seed_of("part"), 1, 5).elements is None
    assert SeededPart.expand(PLAN, seed_of("part"), 0, 5).elements.shape == (8, 5)


def test_chunk_seeds_differ_by_node_cell_and_chunk():
    seeds = {chunk_seed(seed_of(str(node)), (u, v), n) for node, u, v, n in product(range(4), repeat=4)}
    assert len(seeds) == 4**4


def test_no_stream_gives_one_word_twice_over_chunks_cells_parties_and_attempts(monkeypatch):
    """Roots, σ and elements of all chunks of two attempts at one study: 64-bit words never repeat."""
    monkeypatch.setattr("umpc.mpc.plan.MAX_CHUNK", 8)
    study, words, chunks = make_study(nodes=3), [], 0
    for number in range(2):
        attempt = make_attempt(study, [7, 6, 5], f"attempt {number}")
        dealer = DealerSession(attempt, Entropy(f"dealer {number}"))
        for chunk in attempt.chunks():
            chunks += 1
            for party, node in enumerate(chunk.owners):
                seed = chunk_seed(dealer._seeds[node], chunk.owners, chunk.number)
                # long enough that every array gives whole words
                part = SeededPart.expand(attempt.plan, seed, party, 64)
                words += [np.ascontiguousarray(p).view(np.uint64).reshape(-1) for p in wide_pieces(part)]
    every = np.concatenate(words)
    assert chunks == 2 * (6 + 5 + 4) and len(np.unique(every)) == len(every)


def test_a_record_has_one_mask_and_no_two_records_share_a_stream():
    """Masks of 64 bits, so that two alike would show."""
    study = make_study("a.x * b.x", 3, x=("-20000", "20000"))
    attempt = make_attempt(study, [50, 50, 50])
    assert [wire.width for wire in attempt.plan.wires] == [64]
    dealers = [DealerSession(attempt, Entropy(f"masks {number}")) for number in range(2)]
    masks = np.concatenate([node[0] for dealer in dealers for node in dealer._masks])
    assert len(np.unique(masks)) == 300


def test_parts_show_nothing_of_themselves():
    run = run_chunk(KERNELS["kendall_tau"], RINGS[1], *corner_edges(), 49)
    assert {repr(part) for part in run.dealt} == {"DealtPart(<redacted>)"}
    assert {repr(part) for part in run.seeded} == {"SeededPart(<redacted>)"}


def test_a_chunk_is_no_longer_than_the_plan_allows():
    assert PLAN.chunk_edges <= MAX_CHUNK


def pieces(part: SeededPart) -> list[np.ndarray]:
    return [*part.roots, part.sigma, *([] if part.elements is None else [part.elements])]


def wide_pieces(part: SeededPart) -> list[np.ndarray]:
    """The pieces as their streams' own bytes; elements of 32 bits pair up into words."""
    return [*part.roots, np.packbits(part.sigma), *([] if part.elements is None else [part.elements])]
