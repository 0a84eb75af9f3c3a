"""Circuits are right for all small records, library and random kernels, and have no spare gates."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.circuits import circuit_of, evaluate_circuit, input_values
from tests.ustat.expressions import EVERY_KIND, SCHEMA, all_records, columns, fits, numbers
from umpc.errors import KernelError
from umpc.mpc.garbled.circuits import FALSE, TRUE, Circuit, CircuitBuilder, InputBit
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.ustat import expression as ex
from umpc.ustat import tracing
from umpc.ustat.clear import Columns, evaluate_clear
from umpc.ustat.polynomial import polynomial_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.tracing import trace

PAIRS = list(product(all_records(), repeat=2))
EVERY_PAIR = [columns(SCHEMA, [pair[side] for pair in PAIRS]) for side in (0, 1)]

BANK = Schema(
    [
        FieldSchema("age", Fraction(0), Fraction(127), Fraction(1)),
        FieldSchema("balance", Fraction(-3313), Fraction(71188), Fraction(1)),
        FieldSchema("label", Fraction(0), Fraction(1), Fraction(1)),
    ]
)
"""Differences of 8 and 18 bits."""
PARAMETERS: Mapping[str, dict] = {
    "uniformity": {"cells": 128},
    "ranking_hinge": {"weights": ["1", "1/4"], "margin": "5/2"},
    "contrastive_loss": {"weights": ["1", "1/4"], "margin": 20},
}
PAIR_STATISTICS = sorted(name for name, statistic in LIBRARY.items() if statistic.degree == 2)


def library_kernels(name: str) -> tuple[ex.Expression, ...]:
    """A statistic of the library over age, balance and the label."""
    names = {
        "x": ["age"],
        "y": ["balance"],
        "z": ["balance"],
        "score": ["balance"],
        "score_a": ["balance"],
        "score_b": ["age"],
        "label": ["label"],
        "x...": ["age", "balance"],
        "time": ["age"],
        "event": ["label"],
        "stratum": ["label"],
    }
    fields = [field for argument in LIBRARY[name].arguments for field in names[argument]]
    return LIBRARY[name].expressions(fields, PARAMETERS.get(name, {}))


def units_of(expressions: tuple[ex.Expression, ...], schema: Schema) -> list[Fraction]:
    return [polynomial_of(expression, schema).unit for expression in expressions]


def edges(schema: Schema, count: int, seed: int) -> list[dict[str, np.ndarray]]:
    """Random records, with ties in a third of the edges, and all pairs of bounds of each field."""
    rng = np.random.default_rng(seed)
    bounds = [(field.name, field.lower_units, field.upper_units) for field in schema]
    sides = [
        {n: rng.integers(low, high, count, endpoint=True) for n, low, high in bounds}
        for _ in (0, 1)
    ]
    for name, low, high in bounds:
        tied = rng.random(count) < 1 / 3
        sides[1][name][tied] = sides[0][name][tied]
        for row, (first, second) in enumerate(product((low, high), repeat=2)):
            sides[0][name][row::16][:1], sides[1][name][row::16][:1] = first, second
    return sides


def values(circuit: Circuit, records: list[Columns]) -> np.ndarray:
    return evaluate_circuit(circuit, input_values(circuit, records))


def kernel(text: str, schema: Schema = BANK) -> Circuit:
    return circuit_of(traced(text), schema, polynomial_of(traced(text), schema).unit)


def traced(text: str) -> ex.Expression:
    """A kernel as Python writes it."""
    return trace(eval(f"lambda a, b: {text}", vars(tracing)))


# --- right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_node_kind_is_right_on_all_pairs_of_records(kind):
    unit = Fraction(1, 6)
    circuit = circuit_of(EVERY_KIND[kind], SCHEMA, unit)
    assert np.array_equal(
        values(circuit, EVERY_PAIR)[0], evaluate_clear(EVERY_KIND[kind], SCHEMA, EVERY_PAIR, unit)
    )


@settings(max_examples=300)
@given(numbers(size=12).filter(fits))
def test_random_kernels_are_right_on_all_pairs_of_records(node):
    unit = polynomial_of(node, SCHEMA).unit
    circuit = circuit_of(node, SCHEMA, unit)
    assert np.array_equal(
        values(circuit, EVERY_PAIR)[0], evaluate_clear(node, SCHEMA, EVERY_PAIR, unit)
    )


FIELDS = st.builds(
    lambda low, span, divisor: (low, low + span, divisor),
    st.integers(-9, 9),
    st.integers(0, 9),
    st.integers(1, 3),
)


@settings(max_examples=100)
@given(FIELDS, FIELDS, numbers(("x", "y")).filter(lambda node: bool(node)))
def test_random_kernels_are_right_whatever_the_bounds(first, second, node):
    schema = Schema(
        FieldSchema(name, Fraction(low, by), Fraction(high, by), Fraction(1, by))
        for name, (low, high, by) in (("x", first), ("y", second))
    )
    try:
        unit = polynomial_of(node, schema).unit
    except KernelError:
        return
    records = edges(schema, 200, 1)
    circuit = circuit_of(node, schema, unit)
    assert np.array_equal(values(circuit, records)[0], evaluate_clear(node, schema, records, unit))


@pytest.mark.parametrize("name", PAIR_STATISTICS)
def test_the_library_is_right_with_ties_and_bounds(name):
    expressions = library_kernels(name)
    units = units_of(expressions, BANK)
    records = edges(BANK, 3000, 2)
    got = values(circuit_of_all(expressions, BANK, units), records)
    for row, expression, unit in zip(got, expressions, units, strict=True):
        assert np.array_equal(row, evaluate_clear(expression, BANK, records, unit))


@pytest.mark.parametrize(
    "text",
    [
        "a.x < b.x",
        "a.x == b.x",
        "abs(a.x - b.x)",
        "a.x * b.x",
        "(a.x - b.x) ** 2",
        "abs(abs(a.x) - a.x)",  # the last three are never negative, though their intervals
        "abs(abs(a.x - b.x) - a.x + b.x)",  # begin below zero: no bit of their sums is a sign
        "maximum(abs(a.x - b.x) - a.x + b.x, 0)",
    ],
)
@pytest.mark.parametrize(
    ("low", "high"),
    [(3, 4), (-2, 1), (0, 15), (-8, 7), (-9, 3), (5, 12), (-12, -5), (0, 0), (3, 3)],
)
def test_small_domains_exhaustively(text, low, high):
    schema = Schema([FieldSchema("x", Fraction(low), Fraction(high), Fraction(1))])
    domain = np.arange(low, high + 1)
    records = [{"x": np.repeat(domain, len(domain))}, {"x": np.tile(domain, len(domain))}]
    clear = evaluate_clear(traced(text), schema, records, polynomial_of(traced(text), schema).unit)
    assert np.array_equal(values(kernel(text, schema), records)[0], clear)


def test_categories_are_compared_by_number():
    schema = Schema(
        [FieldSchema("c", Fraction(0), Fraction(2), Fraction(1), ("red", "green", "blue"))]
    )
    circuit = circuit_of(ex.Equal(ex.Field(0, "c"), ex.Field(1, "c")), schema, Fraction(1))
    every = np.arange(3)
    got = values(circuit, [{"c": np.repeat(every, 3)}, {"c": np.tile(every, 3)}])
    assert got.reshape(3, 3).tolist() == np.eye(3, dtype=int).tolist() and circuit.and_count == 1


@pytest.mark.parametrize(
    "text", ["a.age + abs(a.age)", "abs(a.balance - 3) * 3 - 3 * a.balance + 9", "a.balance / 3"]
)
def test_a_sum_of_bits_whose_weights_the_unit_does_not_divide(text):
    records = edges(BANK, 500, 5)
    expression, unit = traced(text), polynomial_of(traced(text), BANK).unit
    assert np.array_equal(
        values(kernel(text), records)[0], evaluate_clear(expression, BANK, records, unit)
    )


def test_a_constant_kernel_has_no_gate_and_no_input():
    circuit = circuit_of(ex.Constant(Fraction(3, 2)), SCHEMA, Fraction(1, 2))
    assert (circuit.inputs, circuit.gates, circuit.sums[0].constant) == ((), (), 3)
    assert values(circuit, EVERY_PAIR).tolist() == [[3] * len(PAIRS)] or len(PAIRS) == 0


# --- small ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ands", "outputs"),
    [
        ("a.age - 3 * b.age", 0, 14),  # a weighted sum of bits is an output
        ("a.age < b.age", 7, 1),
        ("a.balance < b.balance", 17, 1),
        ("a.age == b.age", 6, 3),
        ("a.age != 77", 6, 1),
        ("abs(a.age - b.age)", 7, 8),
        ("sign(a.age - b.age)", 7 + 6, 4),
        ("sign(a.age - b.age) * sign(a.balance - b.balance)", 7 + 6 + 17 + 17 + 2, 2),
        ("(a.age - b.age) ** 2", 7 + 28, 36),
        ("a.age * b.age", 49, 49),
        ("maximum(a.age, b.age)", 7 + 7, 7),
        ("minimum(a.age, b.age)", 7 + 7, 7),
        ("clamp(a.age - b.age, -64, 63)", 7 + 7 + 7 + 1, 15),
        ("select(a.label == b.label, a.age, b.age)", 7, 7),
        ("maximum(0, a.age - b.age)", 7 + 7, 14),  # x − x·s in place of x·(1 ⊕ s)
        (
            "select(a.label == b.label, (a.age - b.age) ** 2, 0)",
            7 + 8 + 28,
            36,
        ),  # (c·x)², not c·(x²)
        ("(a.label == 1) & (b.label == 1)", 1, 1),
        ("(a.label == 1) ^ (b.label == 0)", 0, 1),
        ("(a.age < b.age) + (a.age < b.age)", 7, 1),
        ("a.age * 0 + (a.age - a.age)", 0, 0),
    ],
)
def test_and_gates(text, ands, outputs):
    circuit = kernel(text)
    assert (circuit.and_count, sum(len(each.terms) for each in circuit.sums)) == (ands, outputs)


@pytest.mark.parametrize("name", PAIR_STATISTICS)
def test_no_gate_is_superfluous(name):
    """None has a constant or two equal inputs, none is there twice, and each is read."""
    expressions = library_kernels(name)
    circuit = circuit_of_all(expressions, BANK, units_of(expressions, BANK))
    pairs = [(gate.is_and, *sorted((gate.left, gate.right))) for gate in circuit.gates]
    assert len(set(pairs)) == len(pairs) and all(left != right for _, left, right in pairs)
    read = {wire for _, left, right in pairs for wire in (left, right)}
    read |= {wire for each in circuit.sums for wire, _ in each.terms}
    assert read == set(range(len(circuit.inputs) + len(circuit.gates)))


def test_gates_are_in_order_of_depth_and_read_only_what_is_before_them():
    circuit = kernel("sign(a.age - b.age) * sign(a.balance - b.balance)")
    first = len(circuit.inputs)
    for wire, gate in enumerate(circuit.gates, first):
        assert max(gate.left, gate.right) < wire
    keys = [
        (circuit.depths[wire], not gate.is_and) for wire, gate in enumerate(circuit.gates, first)
    ]
    assert keys == sorted(keys) and circuit.depth == keys[-1][0] == 18


def test_inputs_are_sorted_by_record_field_and_bit():
    circuit = kernel("a.age < b.age")
    assert circuit.inputs == tuple(
        InputBit(record, "age", bit) for record in (0, 1) for bit in range(7)
    )
    assert circuit.inputs_of(1) == tuple(range(7, 14))


def test_widths_of_fields():
    inputs = circuit_of_all(
        library_kernels("kendall_tau_b"), BANK, units_of(library_kernels("kendall_tau_b"), BANK)
    ).inputs
    assert {
        bit.field: 1 + max(b.bit for b in inputs if b.field == bit.field) for bit in inputs
    } == {
        "age": 7,
        "balance": 18,
    }


def test_kernels_of_one_circuit_share_gates():
    circuit = circuit_of_all(
        library_kernels("kendall_tau_b"), BANK, units_of(library_kernels("kendall_tau_b"), BANK)
    )
    assert (
        circuit.and_count == kernel("sign(a.age - b.age) * sign(a.balance - b.balance)").and_count
    )


# --- the builder ----------------------------------------------------------------------------------


GATES = {
    "and": (lambda g, a, b, c: g.conjunction(a, b), lambda a, b, c: a & b),
    "or": (lambda g, a, b, c: g.disjunction(a, b), lambda a, b, c: a | b),
    "xor": (lambda g, a, b, c: g.xor(a, b), lambda a, b, c: a ^ b),
    "majority": (lambda g, a, b, c: g.majority(a, b, c), lambda a, b, c: (a + b + c) >> 1),
    "multiplexer": (lambda g, a, b, c: g.multiplexer(a, b, c), lambda a, b, c: np.where(a, b, c)),
    "all": (lambda g, a, b, c: g.all_of([a, b, c]), lambda a, b, c: a & b & c),
}


@pytest.mark.parametrize("name", GATES)
def test_gates_of_inputs_constants_and_their_complements(name):
    """All choices of three literals of three inputs and a constant take at most 1 AND (all: 2)."""
    build, oracle = GATES[name]
    bits = np.array(list(product((0, 1), repeat=3)), dtype=np.uint8).T
    for choice in product(range(8), repeat=3):
        gates = CircuitBuilder()
        variables = [gates.input(InputBit(0, "x", bit)) for bit in range(3)]
        literals = [(FALSE, *variables)[literal >> 1] ^ literal & 1 for literal in choice]
        result = build(gates, *literals)
        circuit = gates.finish(
            [(result & 1, {result >> 1: 1 - 2 * (result & 1)} if result >> 1 else {})]
        )
        chosen = [
            [np.zeros_like(bits[0]), *bits][literal >> 1] ^ (literal & 1) for literal in choice
        ]
        used = bits[[bit.bit for bit in circuit.inputs]].reshape(-1, 8)
        assert np.array_equal(evaluate_circuit(circuit, used)[0], oracle(*chosen)), (name, choice)
        assert circuit.and_count <= (2 if name == "all" else 1)
        assert circuit.and_count == 0 or len(set(literal >> 1 for literal in choice)) > 1


def test_what_is_known_is_not_built_again():
    gates = CircuitBuilder()
    x, y = (gates.input(InputBit(0, "x", bit)) for bit in range(2))
    both = gates.conjunction(x, y)
    assert gates.conjunction(y, x) == both == gates.conjunction(x, both)
    assert gates.xor(gates.xor(x, y), y) == x and gates.xor(x, x ^ 1) == TRUE
    before = len(gates.gates)
    gates.conjunction(x ^ 1, y ^ 1)  # 1 ⊕ x ⊕ y ⊕ xy: no second AND
    assert not any(gate.is_and for gate in gates.gates[before:])


# --- refused --------------------------------------------------------------------------------------


def test_a_kernel_that_takes_too_many_gates_is_refused():
    with pytest.raises(KernelError, match="more than 16384 wires"):
        kernel("(a.balance * b.balance) ** 3 < 5")
