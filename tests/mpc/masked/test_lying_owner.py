"""A lying owner of pairs, on the real compiled plan, against the robust sensitivity."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.kernels import SMALL, expressions
from tests.support.liars import PAIR, Lies, evaluate_with_liar, flippable, program_of_pair
from tests.support.liars import worst_change as change_by
from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import derive
from umpc.errors import KernelError, RangeError
from umpc.mpc.masked import compiler
from umpc.mpc.masked import plan_items as lookup_comparison
from umpc.mpc.masked.edge_layout import masked_wires, wire_masks
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.ustat.kernel import Kernel
from umpc.ustat.robust import obstacle
from umpc.ustat.statistics import LIBRARY

MOST = 1 << 16
"""Edges of one run of the liar."""
RECORDS = {"x": np.arange(9) // 3, "y": np.arange(9) % 3 - 1}
"""All records of the small schema."""
PARAMETERS = {
    "uniformity": {"cells": 5},
    "ranking_hinge": {"weights": [2, 1], "margin": 1},
    "contrastive_loss": {"weights": [1], "margin": 2},
}


def kernel(text: str) -> Kernel:
    return Kernel.from_text(text, SMALL, symmetric=False)


def library_kernels() -> dict[str, Kernel]:
    """All kernels of pairs of the library, over the small schema."""
    found = {}
    for name, statistic in LIBRARY.items():
        if statistic.degree == 2:
            columns = ["x", "y", "x", "y"][: len(statistic.arguments)]
            if name == "ranking_hinge":
                columns = ["x", "y"]
            for number, each in enumerate(statistic.expressions(columns, PARAMETERS.get(name))):
                found[f"{name} {number}"] = Kernel(each, SMALL, 2, symmetric=False)
    return found


PAIRS = library_kernels()


def opens_bits_only(plan: Plan) -> bool:
    """Whether nothing but bits, and the compared records themselves, is opened or multiplied."""
    numbers = any(term.factors for output in plan.outputs for term in output.terms)
    return not numbers and all(isinstance(place, RecordPlace) for place in plan.places)


def in_units(change: Fraction, of: Kernel) -> int:
    units = change / of.unit
    assert units.denominator == 1
    return int(units)


@pytest.mark.parametrize("name", PAIRS)
def test_the_criterion_is_that_of_the_compiled_plan_for_the_library(name):
    plan = program_of_pair(PAIRS[name]).plans[PAIR]
    assert opens_bits_only(plan) == (obstacle(PAIRS[name].polynomial, 2) == "")


@settings(max_examples=100, derandomize=True, suppress_health_check=list(HealthCheck))
@given(expression=expressions(degree=2))
def test_the_criterion_is_that_of_the_compiled_plan_for_random_kernels(expression):
    try:
        random = Kernel(expression, SMALL, 2, symmetric=False)
        plan = program_of_pair(random).plans[PAIR]
    except (KernelError, RangeError):
        assume(False)
    assert opens_bits_only(plan) == (obstacle(random.polynomial, 2) == "")


@pytest.mark.parametrize("liar", PAIR)
@pytest.mark.parametrize("name", [n for n, k in PAIRS.items() if not obstacle(k.polynomial, 2)])
def test_a_liar_never_moves_the_library_beyond_the_robust_sensitivity(name, liar):
    of = PAIRS[name]
    assert change_by(of, liar, RECORDS, MOST, name) <= in_units(of.robust.change, of)


IN_PIECES = ("kendall_tau 0", "duplicate_pair_ratio 0", "rand_index 0", "auc 0")


@pytest.mark.parametrize("liar", PAIR)
@pytest.mark.parametrize("name", IN_PIECES)
def test_a_liar_that_flips_bits_of_single_pieces_stays_within_it(name, liar, limit):
    """Pieces of one bit: a comparison of the small schema then takes several of them."""
    of = PAIRS[name]
    limit(lookup_comparison, ONE_PIECE=1)
    limit(lookup_comparison, PIECE=1)
    compiler.program_of.cache_clear()
    try:
        plan = program_of_pair(of).plans[PAIR]
        assert len(plan.layers) > 1
        assert change_by(of, liar, RECORDS, MOST, name) <= in_units(of.robust.change, of)
    finally:
        compiler.program_of.cache_clear()


@pytest.mark.parametrize("liar", PAIR)
@pytest.mark.parametrize(
    ("text", "honest", "robust"),
    [
        ("sign(a.x - b.x) * sign(a.y - b.y)", 2, 6),
        ("(sign(a.x - b.x) + 1) * (1/2)", 1, Fraction(3, 2)),
        ("(a.x == b.x)", 1, 1),
        ("(a.x == 1) ^ (b.x == 1)", 1, 1),
        ("sign(a.x - b.x) + a.y + b.y", 6, 5),
    ],
)
def test_the_robust_sensitivity_is_reached(text, honest, robust, liar):
    """The honest sensitivity is passed, so noise for it would not do.

    In the last kernel the honest owner's own number moves by 2, and the bits of both by 3.
    """
    of = kernel(text)
    assert of.interval.width == honest and of.robust.change == max(honest, robust)
    assert change_by(of, liar, RECORDS, MOST, text) == in_units(Fraction(robust), of)


@st.composite
def kernels_of_bits(draw: st.DrawFn, depth: int = 3) -> str:
    """Sums, products and logic of comparisons, as text."""
    if depth == 0:
        return draw(st.sampled_from(COMPARISONS))
    kind = draw(st.sampled_from("+-*&|^c"))
    left, right = (draw(kernels_of_bits(depth=depth - 1)) for _ in "lr")
    if kind in "&|^":
        left, right = (f"(0 < {side})" if "sign" in side else side for side in (left, right))
        if any(mark in left + right for mark in "+-*"):
            return left
    return f"({left} + 2)" if kind == "c" else f"({left} {kind} {right})"


COMPARISONS = (
    "(a.x < b.x)",
    "(b.x < a.x)",
    "(a.x == b.x)",
    "(a.y == b.y)",
    "(a.x + a.y < b.x)",
    "(a.x == 1)",
    "(b.y == 0)",
    "(b.x < 2)",
    "sign(a.y - b.y)",
    "sign(a.x - b.y)",
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(text=kernels_of_bits(), liar=st.sampled_from(PAIR))
def test_a_liar_never_moves_random_kernels_beyond_the_robust_sensitivity(text, liar):
    try:
        of = kernel(text)
        reason = obstacle(of.polynomial, 2)
        plan = program_of_pair(of).plans[PAIR]
    except (KernelError, RangeError):
        assume(False)
    assert opens_bits_only(plan) == (reason == "")
    assume(not reason)
    robust = in_units(of.robust.change, of)
    assert change_by(of, liar, RECORDS, 1 << 12, of.text) <= robust


@pytest.mark.parametrize("liar", PAIR)
def test_a_liar_that_flips_bits_of_pieces_stays_within_the_robust_sensitivity(liar, limit):
    limit(lookup_comparison, ONE_PIECE=1)
    limit(lookup_comparison, PIECE=1)
    compiler.program_of.cache_clear()
    of = kernel("sign(a.x - b.x) * sign(a.y - b.y)")
    assert len(program_of_pair(of).plans[PAIR].layers) == 2
    assert change_by(of, liar, RECORDS, MOST, "pieces") == in_units(of.robust.change, of) == 6
    compiler.program_of.cache_clear()


def test_a_liar_moves_a_product_beyond_any_bound():
    """`obstacle` refuses it: one number in the ring makes the honest record a large factor."""
    of = kernel("(a.x - b.x) * (a.y - b.y)")
    assert change_by(of, 1, RECORDS, 1 << 10, "product") > 1 << 40


@pytest.mark.parametrize("edges", [1, 3, 8])
def test_a_sum_over_a_records_edges_changes_by_at_most_as_many_robust_sensitivities(edges):
    """One record stands in several edges: the liar's best flips add up, and no further."""
    of = kernel("sign(a.x - b.x) * sign(a.y - b.y)")
    bits = len(flippable(program_of_pair(of).plans[PAIR], 1))
    changes = set()
    for flips in range(1 << bits):
        lies = Lies(
            [np.zeros(9 * edges, dtype=np.uint64)] * 2,
            np.array([[flips >> bit & 1] * 9 * edges for bit in range(bits)], dtype=np.uint8),
        )
        honest = {name: np.repeat(column, edges) for name, column in RECORDS.items()}
        values = evaluate_with_middle(of, honest, lies, edges)
        sums = values.reshape(9, edges).sum(axis=1)
        changes.add(int(sums.max() - sums.min()))
    assert max(changes) == 6 * edges


def evaluate_with_middle(of: Kernel, honest, lies: Lies, edges: int) -> np.ndarray:
    """Evaluate with a liar, as `evaluate_with_liar` does, whose true record is (1, 0)."""

    program, count = program_of_pair(of), 9 * edges
    masks = wire_masks(program, derive(seed_of("liar"), "masks", 1), count)
    middle = {"x": np.full(count, 1), "y": np.zeros(count, dtype=np.int64)}
    wires = masked_wires(program, middle, masks, count)
    return evaluate_with_liar(of, honest, 1, Lies(wires, lies.flips))
