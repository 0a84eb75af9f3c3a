"""Plans of edges by triples: which gates cost whom, sizes of messages, chunks that fit a frame."""

from __future__ import annotations

from functools import cache
from itertools import permutations

import pytest

from tests.support.mpc_studies import make_schema, patterns
from tests.support.triples import plan_of
from umpc.crypto.ring import RINGS
from umpc.mpc.transfers.message_shapes import CHECK_ROOM
from umpc.mpc.triples.plan import MAX_CHUNK, TriplesPlan, triples_program
from umpc.study.messages import MAX_PAYLOAD
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import LIBRARY

SCHEMA = make_schema(x=("0", "15"), y=("0", "15"), label=("0", "2"))
COLUMNS = {
    "vus": ["x", "label"],
    "triples_skewness": ["x"],
    "triangle_density": ["label", "x", "y"],
}
LARGE = [name for name, statistic in LIBRARY.items() if statistic.degree > 2]


@cache
def kernels_of(name: str) -> list[Kernel]:
    statistic = LIBRARY[name]
    expressions = statistic.expressions(COLUMNS.get(name, ["x", "y"]))
    return [Kernel(each, SCHEMA, statistic.degree) for each in expressions]


def largest(plan: TriplesPlan, count: int) -> int:
    """The bytes of the largest message of a chunk."""
    pairs = permutations(plan.everybody, 2)
    return max(
        len(message.payload) for pair in pairs for message in plan.own_messages(*pair, count)
    )


@pytest.mark.parametrize("name", LARGE)
def test_a_full_chunk_fits_its_messages_and_one_more_byte_of_edges_does_not(name):
    for ring in RINGS:
        plans = triples_program(kernels_of(name), ring, patterns(LIBRARY[name].degree)).plans
        for plan in plans.values():
            edges = plan.chunk_edges
            assert edges % 8 == 0 and largest(plan, edges) <= MAX_PAYLOAD
            room = MAX_PAYLOAD - CHECK_ROOM
            assert edges == MAX_CHUNK or largest(plan, edges + 8) > room


@pytest.mark.parametrize("name", LARGE)
def test_the_bits_of_an_edge_are_those_of_its_messages(name):
    pattern = tuple(range(LIBRARY[name].degree))
    plan = plan_of(kernels_of(name), pattern)
    # Proofs of choices, and rows filled up to whole blocks, do not grow with 128 edges.
    few, more = (
        sum(
            len(message.payload)
            for pair in permutations(plan.everybody, 2)
            for message in plan.own_messages(*pair, count)
        )
        for count in (128, 256)
    )
    assert 8 * (more - few) == plan.edge_bits * 128


@pytest.mark.parametrize("name", LARGE)
def test_edges_of_fewer_owners_cost_less_and_all_have_one_circuit(name):
    degree = LIBRARY[name].degree
    program = triples_program(kernels_of(name), RINGS[0], patterns(degree))
    everybody = program.plans[tuple(range(degree))]
    for pattern, plan in program.plans.items():
        assert plan.circuit is everybody.circuit is program.circuit
        assert plan is everybody or plan.edge_bits < everybody.edge_bits, pattern
        assert len(plan.ands) <= len(everybody.ands)
    assert program.rounds == everybody.rounds and not program.needs_dealer


def test_a_gate_concerns_the_owners_of_the_records_that_decide_it():
    kernel = Kernel.from_text("(a.x < b.x) & (c.x == 3)", SCHEMA, 3, symmetric=False)
    plan = plan_of(kernel, (0, 1, 2))
    third = [wire for wire in range(len(plan.supports)) if plan.supports[wire] == {2}]
    gates = dict(enumerate(plan.circuit.gates, len(plan.circuit.inputs)))
    assert any(gates[wire].is_and for wire in third if wire in gates), "c.x == 3 takes ANDs"
    assert not set(third) & set(plan.ands)
    compared = [wire for wire in plan.ands if plan.supports[wire] == {0, 1}]
    last = [wire for wire in plan.ands if plan.supports[wire] == {0, 1, 2}]
    assert len(compared) + len(last) == len(plan.ands) and len(last) == 1
    assert plan.and_rows(0, 2).tolist() == [plan.ands.index(last[0])]


def test_a_kernel_without_products_takes_no_round():
    kernel = Kernel.from_text("a.x + b.x - c.x", SCHEMA, 3, symmetric=False)
    plan = plan_of(kernel, (0, 1, 2))
    assert (plan.rounds, plan.pairs, plan.edge_bits) == (0, (), 0)
    assert plan.chunk_edges == MAX_CHUNK
