"""A plan says who opens, reads and gets what; chunks are cut so that nothing outgrows a frame."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.kernels import KERNELS, QUADRUPLE_KERNELS, TRIPLE_KERNELS
from tests.support.mpc_studies import patterns, program_of
from umpc.crypto.ring import RINGS
from umpc.mpc.chunks import pattern_of
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.masked.plan import MAX_CHUNK, Plan
from umpc.mpc.masked.plan_items import (
    Compared,
    EdgePlace,
    Linear,
    Local,
    Term,
    WordPlace,
    expansions,
    subsets,
)
from umpc.study.messages import MAX_PAYLOAD

KERNELS_BY_NAME = {
    f"{name} of {kernels.degree}": (kernels, name)
    for kernels in (KERNELS, TRIPLE_KERNELS, QUADRUPLE_KERNELS)
    for name in kernels
}
every_kernel = pytest.mark.parametrize("name", KERNELS_BY_NAME)


@cache
def plans_of(name: str) -> list[Plan]:
    """A kernel's plans for every pattern and ring, compiled when the first test asks for them."""
    kernels, kernel = KERNELS_BY_NAME[name]
    return [
        program_of(kernels[kernel], ring, pattern).plans[pattern]
        for pattern in patterns(kernels.degree)
        for ring in RINGS
    ]


@every_kernel
def test_a_chunks_material_and_messages_fit_one_frame(name):
    for plan in plans_of(name):
        assert plan.chunk_edges % 8 == 0 and 8 <= plan.chunk_edges <= MAX_CHUNK
        for party in plan.everybody:
            assert dealt_bytes(plan, party, plan.chunk_edges) <= MAX_PAYLOAD
            shapes = [
                plan.shape(layer + 1, party, plan.chunk_edges) for layer in range(len(plan.layers))
            ]
            assert all(len(shape.payload) <= MAX_PAYLOAD for shape in shapes)
        assert plan.open_bits == max(
            (s for p in plan.everybody for s in widths(plan, p)), default=0
        )


def widths(plan, party) -> list[int]:
    return [plan.open_width(layer, party) for layer in range(len(plan.layers))]


@every_kernel
def test_every_bit_and_word_is_opened_once_by_those_who_have_a_part_in_it(name):
    for plan in plans_of(name):
        bits = [bit for layer in plan.layers for bit in layer.bits]
        places = [place for layer in plan.layers for place in layer.places]
        assert sorted(bits) == list(range(len(plan.bits)))
        sent = [
            n for n, place in enumerate(plan.places) if isinstance(place, EdgePlace | WordPlace)
        ]
        assert sorted(places) == sent and all(layer.bits or layer.places for layer in plan.layers)
        for number, bit in enumerate(plan.bits):
            match bit:
                case Local(party):
                    expected = (party,)
                case Compared(gate):
                    expected = plan.comparisons[gate].holders
                case _:
                    expected = plan.everybody
            layer = next(n for n, layer in enumerate(plan.layers) if number in layer.bits)
            assert plan.contributors(number) == expected
            assert (
                tuple(p for p in plan.everybody if number in plan.opened_bits(layer, p)) == expected
            )
        for number in places:
            place, layer = (
                plan.places[number],
                next(n for n, layer in enumerate(plan.layers) if number in layer.places),
            )
            senders = tuple(p for p in plan.everybody if number in plan.opened_places(layer, p))
            assert senders == (plan.everybody if isinstance(place, WordPlace) else (place.party,))


@every_kernel
def test_a_party_reads_its_own_records_only(name):
    for plan in plans_of(name):
        for party in plan.everybody:
            assert all(plan.pattern[slot] == party for slot in plan.own_slots(party))


@every_kernel
def test_material_is_dealt_to_the_last_and_keys_to_their_holders(name):
    for plan in plans_of(name):
        keys = [len(plan.holds_keys(party)) for party in plan.everybody]
        assert sum(keys) == 2 * len(plan.comparisons)
        shares = 8 * plan.ring.bytes * len(plan.elements) + plan.shared_bits
        assert plan.needs_dealer == bool(shares or plan.comparisons)
        for party in plan.everybody[:-1]:
            assert (
                bool(plan.dealt_bits(party)) == bool(keys[party])
                and plan.dealt_bits(party) % 8 == 0
            )
        assert plan.shared_bits == len(plan.bit_elements) + sum(
            max(8, 1 << table.size) for table in plan.tables
        )
        assert all(bits or len(factors) > 1 for bits, factors in plan.elements)


@pytest.mark.parametrize(
    ("owners", "pattern"),
    [
        ((4, 7), (0, 1)),
        ((7, 4), (1, 0)),
        ((3, 3, 9), (0, 0, 1)),
        ((0, 2, 5, 5), (0, 1, 2, 2)),
        ((9, 1, 9), (1, 0, 1)),
    ],
)
def test_the_pattern_of_a_cell_numbers_its_nodes_in_their_order(owners, pattern):
    assert pattern_of(owners) == pattern


def test_a_term_expands_into_all_subsets_but_the_empty_one():
    found = list(expansions(Term(1, (0, 1, 2))))
    assert len(found) == len(set(found)) == 7 and ((0, 2), ()) in found


def test_a_term_with_factors_expands_into_their_masks():
    """A factor's constant is no mask."""
    first, second = Linear(((0, 2),), 5), Linear(((1, -1), (2, 3)), 7)
    found = list(expansions(Term(4, (3,), (first, second))))
    assert len(found) == len(set(found)) == 2**3 - 1
    assert {form for _, factors in found for form in factors} == {
        Linear(((0, 2),)),
        Linear(((1, -1), (2, 3))),
    }


def test_subsets_come_in_order():
    assert list(subsets("ab")) == [(), ("a",), ("b",), ("a", "b")] and list(subsets([])) == [()]


def test_a_program_counts_the_rounds_of_its_deepest_plan():
    kernel = TRIPLE_KERNELS["leaning"]
    program = compile_program([kernel], RINGS[0], [(0, 0, 1), (0, 1, 2), (0, 1, 1)])
    assert {pattern: len(plan.layers) for pattern, plan in program.plans.items()} == {
        (0, 0, 1): 1,
        (0, 1, 1): 1,
        (0, 1, 2): 1,
    }
    assert (
        program.rounds == 2
        and program.needs_dealer
        and program.wire_bits == sum(w.width for w in program.wires)
    )
    assert compile_program([kernel], RINGS[0], []).rounds == 0
