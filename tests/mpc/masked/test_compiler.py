"""A plan has as few wires, comparisons, bits and dealt products as the normal form needs."""

from __future__ import annotations

import pytest

from tests.support.kernels import KERNELS, QUADRUPLE_KERNELS, SCHEMA, TRIPLE_KERNELS
from tests.support.mpc_studies import make_schema, patterns, program_of
from umpc.crypto.ring import RINGS
from umpc.errors import KernelError
from umpc.mpc.masked.compiler import LONGEST, compile_program
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.masked.plan import MAX_CHUNK, Plan, Program
from umpc.mpc.masked.plan_items import (
    EdgePlace,
    Local,
    Logic,
    LookupBit,
    RecordPlace,
    TopBit,
    WordPlace,
)
from umpc.study.messages import MAX_PAYLOAD
from umpc.ustat.kernel import Kernel
from umpc.ustat.tracing import sign, trace

SMALL, LARGE = RINGS


def program(kernel, ring=SMALL, pattern=(0, 1), few=False, **fields) -> Program:
    """The program of a kernel, not necessarily symmetric."""
    schema = make_schema(**fields) if fields else SCHEMA
    kernel = Kernel(trace(kernel), schema, len(pattern), symmetric=False)
    return program_of(kernel, ring, pattern, few)


def plan_of(kernel, ring=SMALL, pattern=(0, 1), few=False, **fields) -> Plan:
    return program(kernel, ring, pattern, few, **fields).plans[pattern]


def kinds(plan: Plan) -> list[str]:
    return [type(bit).__name__ for bit in plan.bits]


def test_kendall_of_narrow_fields_is_two_tables_four_bits_and_eight_products_of_masks():
    """docs/protocol.md: masked fields (round 1), 4 bits per edge (round 2)."""
    found = program_of(KERNELS["kendall_tau"], SMALL)
    plan = found.plans[0, 1]
    assert [wire.width for wire in found.wires] == [4, 5]  # x in 0..5, y in -4..4 halves
    assert [(table.width, table.low, table.size) for table in plan.tables] == [(4, 0, 3), (5, 0, 4)]
    assert sorted((bit.table, bit.kind) for bit in plan.bits) == [
        (0, "equal"),
        (0, "less"),
        (1, "equal"),
        (1, "less"),
    ]
    assert (len(plan.layers), found.rounds, found.needs_dealer) == (1, 2, True)
    assert len(plan.elements) == 8 and plan.shared_bits == 8 + 16 and not plan.comparisons
    assert (plan.dealt_bits(0), plan.dealt_bits(1)) == (0, 8 + 16 + 8 * 32)
    assert all(not factors and 1 <= len(bits) <= 2 for bits, factors in plan.elements)


def test_a_distance_opens_one_bit_and_sends_its_wire_at_the_rings_width():
    found = program_of(KERNELS["gini_mean_difference"], LARGE)
    plan = found.plans[0, 1]
    assert [wire.width for wire in found.wires] == [64]
    (bit,), (table,) = plan.bits, plan.tables
    assert bit == LookupBit(0, "less", TopBit(table.difference, table.width))
    assert (found.rounds, len(plan.elements)) == (2, 2)


def test_a_width_is_what_the_domain_needs():
    """Age 0..127 is compared with 8 bits."""
    for upper, width in ((1, 2), (127, 8), (128, 9), (2**40, 42)):
        plan = plan_of(lambda a, b: a.age == b.age, age=("0", str(upper)))
        assert {table.width for table in plan.tables} == {width}


def test_products_alone_need_one_round_and_no_keys():
    found = program_of(KERNELS["product"], SMALL)
    plan = found.plans[0, 1]
    assert (found.rounds, plan.comparisons, len(plan.elements), found.needs_dealer) == (
        1,
        (),
        1,
        True,
    )
    assert (plan.dealt_bits(0), plan.dealt_bits(1)) == (0, 32)


def test_a_product_of_three_owners_is_four_products_of_masks():
    """x̂ŷẑ expanded: r_x r_y, r_x r_z, r_y r_z and r_x r_y r_z are dealt.

    Single masks are known to their owners.
    """
    plan = program_of(TRIPLE_KERNELS["product_of_three"], SMALL, (0, 1, 2)).plans[0, 1, 2]
    assert sorted(len(factors) for _, factors in plan.elements) == [2, 2, 2, 3] and not plan.layers
    assert [plan.dealt_bits(party) for party in range(3)] == [0, 0, 4 * 32]


def test_two_records_of_one_owner_multiply_before_they_are_masked():
    plan = program_of(TRIPLE_KERNELS["product_of_three"], SMALL, (0, 1, 1)).plans[0, 1, 1]
    assert [type(place) for place in plan.places] == [RecordPlace, EdgePlace] and len(
        plan.elements
    ) == 1
    assert plan.own_slots(1) == {1, 2} and plan.own_slots(0) == frozenset()


@pytest.mark.parametrize("name", ["separable", "constant", "zero"])
def test_what_every_owner_knows_alone_needs_neither_round_nor_dealer(name):
    found = program_of(KERNELS[name], SMALL)
    plan = found.plans[0, 1]
    assert (found.rounds, found.needs_dealer, found.wires, plan.elements) == (0, False, (), ())
    assert plan.chunk_edges == MAX_CHUNK


def test_multiples_of_one_form_share_a_wire_and_one_comparison():
    found = program(lambda a, b: sign(3 * a.x - 3 * b.x) * (b.x - a.x) + (b.x == a.x))
    plan = found.plans[0, 1]
    assert len(found.wires) == 1 and len(plan.tables) == 1 and len(plan.bits) == 2


def test_patterns_share_wires_and_a_wire_is_as_wide_as_its_widest_use():
    leaning = TRIPLE_KERNELS["leaning_times_value"]
    alone = [compile_program([leaning], SMALL, [pattern]) for pattern in patterns(3)]
    together = compile_program([leaning], SMALL, patterns(3))
    assert {wire.polynomial for wire in together.wires} == {
        wire.polynomial for found in alone for wire in found.wires
    }
    for wire in together.wires:
        assert wire.width == max(
            w.width for found in alone for w in found.wires if w.polynomial == wire.polynomial
        )
    assert len({wire.polynomial for wire in together.wires}) == len(together.wires)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_compiling_again_gives_the_same_plan(degree):
    """In whatever order the patterns come: all processes have one program."""
    for kernel in {2: KERNELS, 3: TRIPLE_KERNELS, 4: QUADRUPLE_KERNELS}[degree].values():
        first, second = (
            compile_program([kernel], LARGE, order)
            for order in (patterns(degree), patterns(degree)[::-1])
        )
        assert first == second
        for pattern, plan in first.plans.items():
            assert plan.elements == second.plans[pattern].elements
            assert plan.bit_elements == second.plans[pattern].bit_elements


# --- who compares what ----------------------------------------------------------------------------


def leans(a, b, c):
    return a.x + b.x < 2 * c.x


@pytest.mark.parametrize(
    ("pattern", "holders"),
    [((0, 0, 1), (0, 1)), ((0, 1, 1), (0, 1)), ((1, 0, 1), (0, 1)), ((0, 1, 2), None)],
)
def test_of_few_edges_two_owners_compare_wide_numbers_with_a_key_and_three_with_tables(
    pattern, holders
):
    plan = plan_of(leans, pattern=pattern, few=True, x=("0", "60000"))
    assert [gate.holders for gate in plan.comparisons] == ([holders] if holders else [])
    assert bool(plan.tables) == (holders is None)
    assert set(kinds(plan)) == ({"Compared"} if holders else {"LookupBit", "Logic"})
    assert len(plan.layers) == (1 if holders else 2)


@pytest.mark.parametrize("pattern", [(0, 0, 1), (0, 1, 1), (1, 0, 1), (0, 1, 2)])
@pytest.mark.parametrize(("few", "upper"), [(False, "60000"), (True, "60"), (False, "60")])
def test_otherwise_all_owners_compare_with_tables(pattern, few, upper):
    plan = plan_of(leans, pattern=pattern, few=few, x=("0", upper))
    assert plan.tables and not plan.comparisons
    assert len(plan.layers) == (2 if len(upper) > 2 else 1)


def test_in_a_triple_of_few_each_pair_compares_with_a_key_of_its_own():
    plan = plan_of(
        lambda a, b, c: (a.x < b.x) + (b.x < c.x) + (a.x < c.x),
        pattern=(0, 1, 2),
        few=True,
        x=("0", "60000"),
    )
    assert (
        sorted(gate.holders for gate in plan.comparisons) == [(0, 1), (0, 2), (1, 2)]
        and not plan.tables
    )
    assert [plan.holds_keys(party) for party in range(3)] == [
        tuple(n for n, gate in enumerate(plan.comparisons) if party in gate.holders)
        for party in range(3)
    ]


def test_comparisons_inside_one_owner_are_its_own_bits():
    plan = plan_of(lambda a, b, c: ((a.x < b.x) & (b.y < 1)) * (a.x < c.x), pattern=(0, 0, 1))
    assert kinds(plan).count("Local") == 1 and kinds(plan).count("LookupBit") == 1
    assert {bit.party for bit in plan.bits if isinstance(bit, Local)} == {0}
    assert plan_of(lambda a, b: (a.x < 2) * 3, pattern=(0, 1)).bits == ()


def test_several_records_of_one_owner_in_a_nonlinear_comparison_are_one_place():
    """|a.x − b.x| of one owner against c.x: opened under the owner's mask, then compared."""
    plan = plan_of(lambda a, b, c: abs(a.x - b.x) < c.x, pattern=(0, 0, 1))
    edges = [place for place in plan.places if isinstance(place, EdgePlace)]
    assert (
        [place.party for place in edges] == [0] and len(plan.layers) == 2 and len(plan.tables) == 1
    )
    assert plan.opened_places(0, 0) and not plan.opened_places(0, 1) and not plan.opened_bits(0, 0)


def test_a_comparison_of_what_two_owners_made_is_nested():
    plan = plan_of(lambda a, b: abs(a.x - b.x) < 2)
    assert [type(place) for place in plan.places].count(WordPlace) == 1 and len(plan.layers) == 3
    assert [(bool(layer.bits), bool(layer.places)) for layer in plan.layers] == [
        (True, False),
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize(
    ("upper", "count"),
    [("3", 1), ("127", 1), ("128", 2), ("2000", 2), ("60000", 3), ("4503599627370496", 8)],
)
def test_several_pieces_take_one_round_more(upper, count):
    """a + b − 2c has one bit more than c."""
    plan = plan_of(leans, pattern=(0, 1, 2), x=("0", upper))
    assert (
        len(plan.tables) == count
        and len(plan.layers) == (2 if count > 1 else 1)
        and all(bit.table < len(plan.tables) for bit in plan.bits if isinstance(bit, LookupBit))
    )


def test_logic_over_more_than_two_comparisons_is_one_bit_in_a_round_of_its_own():
    plan = plan_of(lambda a, b: (a.x == b.x) & (a.y == b.y) & (a.z == b.z), few=True)
    assert kinds(plan).count("Logic") == 1 and len(plan.layers) == 2
    assert len(plan.elements) == 1 and len(plan.bit_elements) == 7


def test_literals_of_one_owner_in_a_conjunction_are_one_bit():
    plan = plan_of(lambda a, b: (a.x < b.x) & (a.y < 1) & (a.z < 0) & (b.y < 1) & (b.label == 1))
    assert kinds(plan).count("Local") == 2 and kinds(plan).count("LookupBit") == 1
    (logic,) = [bit for bit in plan.bits if isinstance(bit, Logic)]
    assert [len(conjunction) for conjunction in logic.conjunctions] == [3]


def test_a_long_conjunction_is_made_of_shorter_ones():
    fields = {f"x{i}": ("0", "3") for i in range(LONGEST + 2)}
    kernel = Kernel.from_text(
        " & ".join(f"(a.{name} == b.{name})" for name in fields), make_schema(**fields), 2, False
    )
    plan = program_of(kernel, SMALL).plans[0, 1]
    logics = [bit for bit in plan.bits if isinstance(bit, Logic)]
    assert (
        len(plan.layers) == 3 and max(len(c) for bit in logics for c in bit.conjunctions) == LONGEST
    )
    assert len(logics) == 3


def test_many_wide_comparisons_are_not_too_many_products_of_masks():
    fields = {f"x{i}": ("0", str((1 << 52) - 1)) for i in range(16)}
    text = " + ".join(f"sign(a.{name} - b.{name})" for name in fields)
    plan = program_of(Kernel.from_text(text, make_schema(**fields), 2, False), LARGE).plans[0, 1]
    assert len(plan.tables) == 16 * 8 and len(plan.layers) == 2


# --- what is too large ----------------------------------------------------------------------------


def equal_in(count: int) -> Kernel:
    fields = {f"x{i}": ("0", "3") for i in range(count)}
    return Kernel.from_text(
        " * ".join(f"(a.{name} == b.{name})" for name in fields), make_schema(**fields)
    )


def test_products_of_masks_double_with_every_comparison_that_is_multiplied():
    plan = program_of(equal_in(12), LARGE).plans[0, 1]
    assert len(plan.elements) == 4095 and dealt_bytes(plan, 1, plan.chunk_edges) <= MAX_PAYLOAD


@pytest.mark.parametrize("count", [14, 20])
def test_material_that_would_not_fit_a_frame_is_refused_before_it_is_expanded(count):
    with pytest.raises(KernelError, match="multiply fewer"):
        program_of(equal_in(count), LARGE)
