"""What a kernel becomes: as few wires, comparisons, bits and dealt products as its normal form needs."""

from __future__ import annotations

import pytest

from umpc.errors import KernelError
from umpc.mpc.frames import MAX_PAYLOAD
from umpc.mpc.material import dealt_bytes
from umpc.mpc.plan import MAX_CHUNK, PairPlan, Term, compile_pair, expansions
from umpc.mpc.ring import RINGS
from umpc.ustat.kernel import Kernel
from umpc.ustat.tracing import sign, trace

from .kernels import KERNELS, SCHEMA
from .studies import make_schema

SMALL, LARGE = RINGS


def plan_of(kernel, ring=SMALL, **fields) -> PairPlan:
    return compile_pair(Kernel(trace(kernel), make_schema(**fields) if fields else SCHEMA), ring)


def test_kendall_is_two_comparisons_four_bits_and_eight_products_of_masks():
    """docs/protocol.md: masked fields (round 1), 4 bits per edge (round 2)."""
    plan = compile_pair(KERNELS["kendall_tau"], SMALL)
    assert [(wire.width) for wire in plan.wires] == [4, 5]  # x in 0..5, y in -4..4 halves
    assert [(c.width, c.less is not None, c.equal is not None) for c in plan.comparisons] == [
        (4, True, True),
        (5, True, True),
    ]
    assert (plan.bits, plan.rounds, plan.needs_dealer) == (4, 2, True)
    assert len(plan.elements) == 8
    assert plan.key_bytes == 24 and plan.element_bytes == 32
    assert all(not factors and 1 <= len(bits) <= 2 for bits, factors in plan.elements)


def test_a_distance_opens_one_bit_and_sends_its_wire_at_the_rings_width():
    plan = compile_pair(KERNELS["gini_mean_difference"], LARGE)
    assert [wire.width for wire in plan.wires] == [64]
    assert (plan.bits, plan.rounds, len(plan.elements)) == (1, 2, 2)
    assert plan.comparisons[0].equal is None


def test_a_width_is_what_the_domain_needs():
    """Age 0..127 is compared with 8 bits."""
    for upper, width in ((1, 2), (127, 8), (128, 9), (2**40, 42)):
        plan = plan_of(lambda a, b: a.age == b.age, age=("0", str(upper)))
        assert plan.comparisons[0].width == width


def test_products_alone_need_one_round_and_no_keys():
    plan = compile_pair(KERNELS["product"], SMALL)
    assert (plan.rounds, plan.key_bytes, len(plan.elements), plan.needs_dealer) == (1, 0, 1, True)


@pytest.mark.parametrize("name", ["separable", "constant", "zero"])
def test_what_every_owner_knows_alone_needs_neither_round_nor_dealer(name):
    plan = compile_pair(KERNELS[name], SMALL)
    assert (plan.rounds, plan.needs_dealer, plan.wires, plan.elements, plan.chunk_edges) == (
        0,
        False,
        (),
        (),
        MAX_CHUNK,
    )


def test_multiples_of_one_form_share_a_wire_and_one_comparison():
    plan = plan_of(lambda a, b: sign(3 * a.x - 3 * b.x) * (b.x - a.x) + (b.x == a.x))
    assert len(plan.wires) == 1 and len(plan.comparisons) == 1 and plan.bits == 2


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: ring.bits)
def test_a_chunks_material_fits_one_frame(name, ring):
    plan = compile_pair(KERNELS[name], ring)
    assert plan.chunk_edges % 8 == 0 and 8 <= plan.chunk_edges <= MAX_CHUNK
    assert dealt_bytes(plan, 1) * plan.chunk_edges <= MAX_PAYLOAD


@pytest.mark.parametrize("name", KERNELS)
def test_compiling_again_gives_the_same_plan(name):
    assert compile_pair(KERNELS[name], SMALL) == compile_pair(KERNELS[name], SMALL)
    assert compile_pair(KERNELS[name], SMALL).elements == compile_pair(KERNELS[name], SMALL).elements


@pytest.mark.parametrize(
    "kernel",
    [lambda a, b: a.x * b.x < 3, lambda a, b: ((a.x < b.x) == (b.y < a.y)) + ((b.x < a.x) == (a.y < b.y))],
    ids=["product", "bits of two records"],
)
def test_a_comparison_that_mixes_records_is_refused(kernel):
    with pytest.raises(KernelError, match="not supported yet"):
        plan_of(kernel)


def test_a_term_expands_into_all_subsets_but_the_empty_one():
    found = list(expansions(Term(1, (0, 1, 2))))
    assert len(found) == len(set(found)) == 7 and ((0, 2), ()) in found


def equal_in(count: int) -> Kernel:
    fields = {f"x{i}": ("0", "3") for i in range(count)}
    return Kernel.from_text(" * ".join(f"(a.{name} == b.{name})" for name in fields), make_schema(**fields))


def test_products_of_masks_double_with_every_comparison_that_is_multiplied():
    plan = compile_pair(equal_in(12), LARGE)
    assert len(plan.elements) == 4095 and dealt_bytes(plan, 1) * plan.chunk_edges <= MAX_PAYLOAD


@pytest.mark.parametrize("count", [14, 20])
def test_material_that_would_not_fit_a_frame_is_refused_before_it_is_expanded(count):
    with pytest.raises(KernelError, match="multiply fewer"):
        compile_pair(equal_in(count), LARGE)
