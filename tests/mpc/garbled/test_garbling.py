"""Garbled equals plain equals clear, and the evaluator's view does not depend on the inputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mpc.garbled.test_circuits import BANK, PAIR_STATISTICS, edges, library_kernels, units_of
from tests.support.circuits import circuit_of, evaluate_circuit, input_values
from tests.support.gates import AND, FOUR, HASH, RING, inputs, offset, one_gate, run
from tests.support.mpc_studies import seed_of
from tests.ustat.expressions import SCHEMA, fits, numbers
from umpc.crypto.prg import Stream
from umpc.crypto.ring import RINGS, Ring
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.garbled import garbling
from umpc.mpc.garbled.circuits import Circuit, Gate, InputBit, WeightedSum
from umpc.mpc.garbled.garbling import (
    GarbledEdges,
    garble,
    garbled_bits,
    garbled_size,
    sum_shares,
)
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.ustat.clear import evaluate_clear
from umpc.ustat.polynomial import polynomial_of

KINDS = {"and": (True, lambda x, y: x & y), "xor": (False, lambda x, y: x ^ y)}


# --- right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("weight", [1, -1, 5, -(1 << 30)])
@pytest.mark.parametrize("garbled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_gate_on_all_inputs_and_colors(kind, garbled, weight, ring):
    """Each of the four inputs on 64 edges, so with all colors."""
    is_and, oracle = KINDS[kind]
    bits = np.repeat(FOUR, 64, axis=1).astype(np.int64)
    got = run(one_gate(is_and, weight, garbled), bits, f"gate {kind} {weight}", ring)
    assert np.array_equal(got.values[0], weight * (oracle(*bits) ^ (bits[0] if garbled else 0)))
    assert len(set(zip(*(got.labels[:, :, 0] & np.uint64(1)).tolist(), strict=True))) == 4


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    """Random gates, also such as no builder makes, in the order that circuits have."""
    count = draw(st.integers(1, 6))
    pairs = [
        (draw(st.booleans()), *sorted(draw(st.tuples(*[st.integers(0, count + n - 1)] * 2))))
        for n in range(12)
    ]
    depths, gates = [0] * count, []
    for is_and, left, right in pairs:
        gates.append(Gate(is_and, left, right))
        depths.append(max(depths[left], depths[right]) + is_and)
    order = sorted(range(len(gates)), key=lambda n: (depths[count + n], not gates[n].is_and, n))
    number = {count + n: count + position for position, n in enumerate(order)} | {
        n: n for n in range(count)
    }
    gates = [Gate(gates[n].is_and, number[gates[n].left], number[gates[n].right]) for n in order]
    wires = st.integers(0, count + len(gates) - 1)
    sums = draw(
        st.lists(
            st.dictionaries(wires, st.integers(-(1 << 20), 1 << 20), max_size=5),
            min_size=1,
            max_size=3,
        )
    )
    return Circuit(
        tuple(InputBit(n % 2, "x", n) for n in range(count)),
        tuple(gates),
        tuple(WeightedSum(len(terms), tuple(sorted(terms.items()))) for terms in sums),
    )


@settings(max_examples=150)
@given(circuits(), st.sampled_from(RINGS), st.sampled_from([1, 3, 40]))
def test_random_circuits(circuit, ring, count):
    bits = (
        Stream(seed_of("random circuits"))
        .bits(len(circuit.inputs) * count)
        .reshape(len(circuit.inputs), count)
    )
    assert np.array_equal(
        run(circuit, bits, "random circuits", ring).values, evaluate_circuit(circuit, bits)
    )


@pytest.mark.parametrize("name", PAIR_STATISTICS)
def test_the_library_is_right_with_ties_and_bounds(name):
    expressions = library_kernels(name)
    units = units_of(expressions, BANK)
    circuit, records = circuit_of_all(expressions, BANK, units), edges(BANK, 500, 7)
    bits = input_values(circuit, records)
    got = run(circuit, bits, name)
    assert np.array_equal(got.values, evaluate_circuit(circuit, bits))
    for row, expression, unit in zip(got.values, expressions, units, strict=True):
        assert np.array_equal(row, evaluate_clear(expression, BANK, records, unit))
    totals = [
        RING.decode(x + y) for x, y in zip(sum_shares(got.kept), sum_shares(got.found), strict=True)
    ]
    assert totals == got.values.sum(axis=1).tolist()


@settings(max_examples=60)
@given(numbers().filter(fits), st.sampled_from(RINGS))
def test_random_kernels(node, ring):
    unit = polynomial_of(node, SCHEMA).unit
    circuit, records = circuit_of(node, SCHEMA, unit), edges(SCHEMA, 50, 8)
    bits = input_values(circuit, records)
    clear = evaluate_clear(node, SCHEMA, records, unit)
    assert np.array_equal(run(circuit, bits, "random kernels", ring).values[0], clear)


def test_the_edges_that_are_worked_on_together_change_nothing(limit):
    """One call and calls of their own numbers give the same bytes."""
    (expression,) = library_kernels("kendall_tau")
    circuit = circuit_of(expression, BANK, Fraction(1))
    bits = input_values(circuit, edges(BANK, 300, 9))
    whole = run(circuit, bits, "whole", first_edge=70)
    for together in (7, 64, 299):
        limit(garbling, EDGES=together)
        again = run(circuit, bits, "whole", first_edge=70)
        assert again.garbled.encode() == whole.garbled.encode()
        assert np.array_equal(again.found, whole.found) and np.array_equal(again.kept, whole.kept)
    part, _ = garble(circuit, RING, whole.delta, whole.labels[:, 100:], 170, HASH)
    assert np.array_equal(part.tables, whole.garbled.tables[:, :, 100:])
    assert np.array_equal(part.elements, whole.garbled.elements[:, 100:])


def test_no_edges():
    got = run(AND, inputs(0, 1, 1), "none")
    assert (
        got.garbled.encode() == b"" and got.values.shape == (1, 0) and sum_shares(got.kept) == [0]
    )


# --- bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize(
    ("name", "ands", "elements"),
    [
        ("duplicate_pair_ratio", 5, 4),
        ("gini_mean_difference", 7, 8),
        ("kendall_tau", 48, 4),
        ("variance", 7, 28 + 8 + 7),
        ("covariance", 7 + 17, 8 * 18 + 8 + 18),
    ],
)
def test_edges_take_the_bytes_they_say(name, ands, elements, ring):
    expressions = library_kernels(name)
    circuit = circuit_of_all(expressions, BANK, units_of(expressions, BANK))
    data = run(circuit, input_values(circuit, edges(BANK, 5, 1)), "bytes", ring).garbled.encode()
    assert len(data) == garbled_size(circuit, ring, 5) == 5 * garbled_bits(circuit, ring) // 8
    assert garbled_bits(circuit, ring) == 256 * ands + ring.bits * elements


@pytest.mark.parametrize("change", [-36, -1, 1, 36])
def test_edges_of_a_wrong_length_are_refused(change):
    data = bytes(3 * 36 + change)
    with pytest.raises(
        EncodingError, match="3 garbled edges of 1 ANDs and 1 elements take 108 bytes, got"
    ):
        GarbledEdges.decode(data, AND, Ring(32), 3)


def test_an_offset_without_its_lowest_bit_is_refused():
    labels = np.zeros((2, 1, 2), dtype=np.uint64)
    with pytest.raises(LocalProtocolError, match="lowest bit"):
        garble(AND, RING, np.array([2, 1], dtype=np.uint64), labels, 0, HASH)


@pytest.mark.parametrize("shape", [(1, 4, 2), (3, 4, 2), (2, 8)])
def test_labels_of_a_wrong_shape_are_refused(shape):
    with pytest.raises(LocalProtocolError, match=r"labels of shape \(2, edges, 2\)"):
        garble(AND, RING, offset("shape"), np.zeros(shape, dtype=np.uint64), 0, HASH)


def test_what_is_sent_shows_nothing_of_itself():
    assert "redacted" in repr(run(AND, FOUR, "repr").garbled)
