"""The shares of an edge sum to the kernel in the clear, under every pattern of owners."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernels import (
    KERNELS,
    QUADRUPLE_KERNELS,
    SCHEMA,
    SMALL,
    TRIPLE_KERNELS,
    corner_edges,
    every_edge,
    expressions,
    random_records,
    take,
)
from tests.support.mpc_studies import clear_total, make_schema, patterns, program_of, run_chunk
from tests.support.studies import generator
from umpc.crypto.ring import RINGS
from umpc.errors import KernelError, RangeError
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import EdgePlace, Logic, LookupTable, RecordPlace, WordPlace
from umpc.ustat.expression import Add, permute_records
from umpc.ustat.kernel import Kernel
from umpc.ustat.text import to_text
from umpc.ustat.tracing import trace

TWO_SAMPLE = [(0, 1), (1, 0)]
CASES = [(2, name, pattern) for name in KERNELS for pattern in TWO_SAMPLE]
CASES += [(3, name, pattern) for name in TRIPLE_KERNELS for pattern in patterns(3)]
CASES += [(4, name, pattern) for name in QUADRUPLE_KERNELS for pattern in patterns(4)]
BY_DEGREE = {2: KERNELS, 3: TRIPLE_KERNELS, 4: QUADRUPLE_KERNELS}


def ring_of(kernel: Kernel, pattern, wanted: int = 0):
    """A ring of the two: the large one where the small one cannot hold an opened number."""
    fits = program_of(kernel, RINGS[0], pattern).word_bits <= RINGS[0].bits
    return RINGS[wanted] if fits else RINGS[1]


def some_edges(degree: int, label: str) -> list[dict[str, np.ndarray]]:
    """Corners against corners and random records with many ties: 120 edges."""
    rng = generator(label)
    corners = corner_edges(degree)
    rows = rng.integers(0, len(corners[0]["x"]), 60)
    return [
        {
            name: np.concatenate([slot[name][rows], values])
            for name, values in random_records(rng, 60).items()
        }
        for slot in corners
    ]


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_patterns_are_all_ways_to_share_out_records_in_order(degree):
    found = patterns(degree)
    assert len(set(found)) == 2 ** (degree - 1) - 1
    assert all(list(p) == sorted(p) and set(p) == set(range(p[-1] + 1)) and p[-1] for p in found)


@pytest.mark.parametrize(("wanted", "few"), [(0, True), (1, False)], ids=["ring32", "ring64"])
@pytest.mark.parametrize(("degree", "name", "pattern"), CASES, ids=str)
def test_shares_sum_to_the_kernel_in_the_clear(degree, name, pattern, wanted, few):
    """few: two owners compare wide numbers by keys, and by pieces otherwise."""
    kernel, label = BY_DEGREE[degree][name], f"edges {name} {pattern}"
    records = some_edges(degree, label)
    ring = ring_of(kernel, pattern, wanted)
    run = run_chunk(kernel, ring, records, 120, label, pattern, few)
    assert run.totals == [clear_total(kernel, ring, records)], f"{kernel.text}, seed {label!r}"


def shapes_of(plan: Plan) -> set[str]:
    """The kinds of items in the plan."""
    found = {type(place).__name__ for place in plan.places} | {
        type(bit).__name__ for bit in plan.bits
    }
    found |= {"LookupTable"} if plan.tables else set()
    found |= {"Comparison"} if plan.comparisons else set()
    factors = [len(term.factors) for output in plan.outputs for term in output.terms]
    return found | {f"{number} factors" for number in factors} | {f"{plan.parties} owners"}


def test_the_kernels_above_have_every_shape_of_plan():
    """So that a shape that is left out of the lists above is noticed."""
    found: Counter[str] = Counter()
    for (degree, name, pattern), few in product(CASES, (False, True)):
        program = program_of(BY_DEGREE[degree][name], RINGS[1], pattern, few)
        found.update(shapes_of(program.plans[pattern]))
    expected = {RecordPlace, EdgePlace, WordPlace, LookupTable, Logic}
    names = {kind.__name__ for kind in expected} | {"Comparison", "Compared", "LookupBit", "Local"}
    assert found.keys() >= names | {f"{n} factors" for n in range(1, 5)} | {
        f"{n} owners" for n in (2, 3, 4)
    }


@pytest.mark.parametrize(
    "pattern", [*patterns(3), (1, 0, 0), (0, 1, 0), (2, 0, 1), (1, 0, 2)], ids=str
)
def test_several_sums_at_once_are_each_right(pattern):
    """Sums share wires and comparisons; none takes another's."""
    names = [
        "spearman",
        "product_of_three",
        "constant",
        "distance_against_a_third",
        "leaning",
        "separable",
    ]
    kernels = [TRIPLE_KERNELS[name] for name in names]
    records = some_edges(3, f"several {pattern}")
    run = run_chunk(kernels, RINGS[1], records, 120, f"several {pattern}", pattern)
    assert run.totals == [clear_total(kernel, RINGS[1], records) for kernel in kernels]
    assert len(set(run.totals)) == len(names)


def test_sums_share_what_they_have_in_common():
    kernels = [TRIPLE_KERNELS["kendall_of_two"], TRIPLE_KERNELS["spearman"]]
    both, one = (
        program_of(group, RINGS[0], (0, 1, 2)).plans[0, 1, 2] for group in (kernels, kernels[:1])
    )
    assert len(both.tables) == len(one.tables) == 6 and both.bits == one.bits


def leaning(bits: int, scale: int, owners: int) -> tuple[Kernel, list[dict[str, np.ndarray]]]:
    """[(s + 1)b + sc + … < (…)a] and 3·[a tie], for x of so many bits; edges at ties and bounds."""
    top = (1 << bits) - 1
    factors = [scale + 1] + [scale] * (owners - 2)
    others = " + ".join(
        f"{factor} * {name}.x" for factor, name in zip(factors, "bcd"[: owners - 1], strict=True)
    )
    text = f"({others} < {sum(factors)} * a.x) + 3 * ({others} == {sum(factors)} * a.x)"
    values = np.array([0, 1, top // 2, top // 2 + 1, top - 1, top], dtype=np.int64)
    index = np.array(list(product(range(len(values)), repeat=owners))).T
    kernel = Kernel.from_text(text, make_schema(x=("0", str(top))), owners, symmetric=False)
    return kernel, [{"x": values[rows]} for rows in index]


WIDTHS = {
    3: [
        (1, 1, 3),
        (2, 1, 5),
        (3, 1, 6),
        (4, 1, 7),
        (14, 1, 17),
        (15, 1, 18),
        (30, 1, 33),
        (52, 1, 55),
        (52, 120, 61),
    ],
    4: [(1, 1, 4), (4, 1, 7), (15, 1, 18), (31, 1, 34), (52, 100, 62), (50, 500, 62)],
}
"""Owners: (bits of x, scale, width of the difference)."""


@pytest.mark.parametrize(
    ("owners", "bits", "scale", "width"),
    [(owners, *case) for owners, cases in WIDTHS.items() for case in cases],
)
def test_numbers_of_three_and_four_owners_are_compared_at_every_width(owners, bits, scale, width):
    kernel, records = leaning(bits, scale, owners)
    count, pattern, ring = len(records[0]["x"]), tuple(range(owners)), RINGS[bits % 2]
    run = run_chunk(kernel, ring, records, count, f"lean {bits} {owners}", pattern)
    assert {table.width for table in run.plan.tables} == {width} and not run.plan.comparisons
    assert run.totals == [clear_total(kernel, ring, records)]


# --- any kernel -----------------------------------------------------------------------------------


def check_any(kernel: Kernel, pattern, ring, label: str) -> None:
    """Over all edges between all nine records; refused only for its size."""
    try:
        program = program_of(kernel, ring, pattern)
    except (KernelError, RangeError) as refusal:
        assert (
            isinstance(refusal, RangeError) or "multiplies so many comparisons" in refusal.message
        ), kernel.text
        return
    if len(program.plans[pattern].elements) > 300:
        return
    records = every_edge(len(pattern))
    run = run_chunk(kernel, ring, records, len(records[0]["x"]), label, pattern)
    assert run.totals == [clear_total(kernel, ring, records)], (
        f"{kernel.text} under {pattern}, seed {label!r}"
    )


def kernel_of(expression, degree: int, symmetric: bool) -> Kernel | None:
    try:
        return Kernel(expression, SMALL, degree, symmetric)
    except KernelError as refusal:
        assert "expand" in refusal.message, to_text(expression)
    return None


@settings(max_examples=100)
@given(half=expressions(2), seed=st.integers(0, 2**32))
def test_any_pair_kernel_made_symmetric(half, seed):
    """f(a, b) + f(b, a): equal to the clear, or refused with a reason."""
    kernel = kernel_of(Add(half, permute_records(half, (1, 0))), 2, symmetric=True)
    if kernel is not None:
        check_any(kernel, TWO_SAMPLE[seed % 2], RINGS[seed // 2 % 2], f"any {seed}")


every_pattern = [p for p in product(range(3), repeat=3) if set(p) in ({0, 1}, {0, 1, 2})]


@settings(max_examples=150)
@given(
    expression=expressions(3), pattern=st.sampled_from(every_pattern), seed=st.integers(0, 2**32)
)
def test_any_kernel_of_three_under_any_pattern(expression, pattern, seed):
    """Not symmetric, so that each record has a part of its own, and owners in any order."""
    kernel = kernel_of(expression, 3, symmetric=False)
    if kernel is not None:
        check_any(kernel, pattern, RINGS[seed % 2], f"any {seed}")


def test_the_small_ring_is_refused_to_nobody_here_but_a_wide_word_needs_the_large_one():
    """A number that is opened under shares must fit the ring, as in an attempt."""
    wide = Kernel(trace(lambda a, b: a.big * b.x < 3 * a.z), SCHEMA, 2, symmetric=False)
    program = program_of(wide, RINGS[0])
    assert program.word_bits > 32 and ring_of(wide, (0, 1)) == RINGS[1]
    records = [take(slot, slice(None)) for slot in corner_edges(2)]
    assert run_chunk(wide, RINGS[1], records, 49).totals == [clear_total(wide, RINGS[1], records)]
