"""Garbled equals plain equals clear, and the evaluator's view does not depend on the inputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mpc.garbled.test_circuits import BANK, PAIR_STATISTICS, edges, library_kernels, units_of
from tests.support.mpc_studies import ALPHA, EDGES, homogeneity, seed_of, uniformity
from tests.ustat.expressions import SCHEMA, fits, numbers
from umpc.crypto.prg import Stream
from umpc.crypto.ring import RINGS, Ring
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.garbled import garbling, gates
from umpc.mpc.garbled.circuits import (
    Circuit,
    Gate,
    InputBit,
    WeightedSum,
    evaluate_circuit,
    input_bits,
)
from umpc.mpc.garbled.garbling import (
    GarbledEdges,
    active_labels,
    aes_blocks,
    evaluate,
    garble,
    garbled_bits,
    garbled_size,
    sum_shares,
)
from umpc.mpc.garbled.gates import GateHash, tweak
from umpc.mpc.garbled.kernel_to_circuit import circuit_of, circuit_of_all
from umpc.ustat.clear import evaluate_clear
from umpc.ustat.polynomial import polynomial_of

HASH = GateHash(seed_of("gates"))
RING = Ring(64)
KINDS = {"and": (True, lambda x, y: x & y), "xor": (False, lambda x, y: x ^ y)}


def one_gate(is_and: bool, weight: int = 1, garbled: bool = False) -> Circuit:
    """A gate of two bits a and b, or with `garbled` its XOR with a.

    An AND that a gate reads is garbled as a gate.
    """
    bits = (InputBit(0, "x", 0), InputBit(1, "x", 0))
    gates = (Gate(is_and, 0, 1), Gate(False, 0, 2))
    return Circuit(bits, gates[: 1 + garbled], (WeightedSum(0, ((2 + garbled, weight),)),))


AND = one_gate(True, garbled=True)
"""One garbled gate: a·b ⊕ a."""
PRODUCT = one_gate(True)
"""One product among the outputs: a·b."""
BOTH = pytest.mark.parametrize("circuit", [AND, PRODUCT], ids=["gate", "product"])


@dataclass
class Run:
    """One garbling and its evaluation. labels: of bit 0, (inputs, n, 2)."""

    delta: np.ndarray
    labels: np.ndarray
    active: np.ndarray
    garbled: GarbledEdges
    kept: np.ndarray
    found: np.ndarray

    @property
    def values(self) -> np.ndarray:
        return (self.kept + self.found).view(f"i{self.kept.dtype.itemsize}").astype(np.int64)


def offset(label: str) -> np.ndarray:
    delta = Stream(seed_of(label + " offset")).words(2).copy()
    delta[0] |= np.uint64(1)
    return delta


def run(
    circuit: Circuit, bits: np.ndarray, label: str, ring: Ring = RING, first_edge: int = 0
) -> Run:
    delta, count = offset(label), bits.shape[1]
    labels = Stream(seed_of(label)).words(2 * len(bits) * count).reshape(len(bits), count, 2)
    active = active_labels(labels, bits, delta)
    garbled, kept = garble(circuit, ring, delta, labels, first_edge, HASH)
    sent = GarbledEdges.decode(garbled.encode(), circuit, ring, count)
    return Run(
        delta,
        labels,
        active,
        garbled,
        kept,
        evaluate(circuit, ring, sent, active, first_edge, HASH),
    )


def inputs(count: int, *bits: int) -> np.ndarray:
    return np.tile(np.array(bits, dtype=np.uint8)[:, None], count)


FOUR = np.array(list(product((0, 1), repeat=2)), dtype=np.uint8).T


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
    bits = input_bits(circuit, records)
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
    bits = input_bits(circuit, records)
    clear = evaluate_clear(node, SCHEMA, records, unit)
    assert np.array_equal(run(circuit, bits, "random kernels", ring).values[0], clear)


def test_neither_batches_nor_chunks_change_what_is_sent(monkeypatch):
    """One call, calls of their own numbers, and batches of other sizes give the same bytes."""
    (expression,) = library_kernels("kendall_tau")
    circuit = circuit_of(expression, BANK, Fraction(1))
    bits = input_bits(circuit, edges(BANK, 300, 9))
    whole = run(circuit, bits, "whole", first_edge=70)
    for batch, together in ((1, 7), (64, 64), (1000, 299)):
        monkeypatch.setattr(gates, "BATCH", batch)
        monkeypatch.setattr(garbling, "EDGES", together)
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


# --- as the papers have it ------------------------------------------------------------------------


def block(words: np.ndarray) -> int:
    return int(words[0]) | int(words[1]) << 64


def by_hand(key: bytes, label: int, edge: int, number: int) -> int:
    """TMMO with the tweak added: π(π(x) ⊕ i) ⊕ π(x) ⊕ i."""

    def pi(x: int) -> int:
        out = (
            Cipher(algorithms.AES(key[:16]), modes.ECB())
            .encryptor()
            .update(x.to_bytes(16, "little"))
        )
        return int.from_bytes(out, "little")

    low, high = tweak(edge, number)
    y = pi(label) ^ low ^ high << 64
    return pi(y) ^ y


def test_a_gate_is_the_papers_half_gates():
    """Zahur, Rosulek & Evans 2015, figure 2, in Python's integers, with its case distinctions.

    A unit is added.
    """
    got = run(AND, np.repeat(FOUR, 8, axis=1), "by hand", Ring(32), first_edge=5)
    delta = block(got.delta)
    for row in range(32):
        edge = 5 + row
        a0, b0 = (block(got.labels[wire, row]) for wire in (0, 1))
        a1, b1, p_a, p_b = a0 ^ delta, b0 ^ delta, a0 & 1, b0 & 1
        h = [
            by_hand(seed_of("gates"), label, edge, number)
            for label, number in ((a0, 0), (a1, 0), (b0, 1), (b1, 1))
        ]
        t_g = h[0] ^ h[1] ^ (delta if p_b else 0)
        w_g = h[0] ^ (t_g if p_a else 0)
        t_e = h[2] ^ h[3] ^ a0
        w_e = h[2] ^ (t_e ^ a0 if p_b else 0)
        assert [block(got.garbled.tables[0, half, row]) for half in (0, 1)] == [t_g, t_e]
        c0 = w_g ^ w_e ^ a0
        by_color = sorted((c0, c0 ^ delta), key=lambda label: label & 1)
        pads = [by_hand(seed_of("gates"), label, edge, 2) % (1 << 32) for label in by_color]
        p = c0 & 1
        rho = pads[0] - p
        assert int(got.garbled.elements[0, row]) == ((1 ^ p) + rho - pads[1]) % (1 << 32)
        assert int(got.kept[0, row]) == -rho % (1 << 32)


def test_a_product_is_three_elements_as_described():
    """Units, products and switches in Python's integers, with the pads of their wires.

    Here all pads are words of one hash.
    """
    ring, size = Ring(32), 1 << 32
    got = run(PRODUCT, np.repeat(FOUR, 8, axis=1), "by hand", ring, first_edge=5)
    for row in range(32):
        pads = []
        for wire in (0, 1):
            both = [block(got.labels[wire, row]), block(got.labels[wire, row] ^ got.delta)]
            hashes = [
                by_hand(seed_of("gates"), x, 5 + row, wire)
                for x in sorted(both, key=lambda label: label & 1)
            ]
            pads.append([[h >> 32 * lane & (size - 1) for h in hashes] for lane in range(4)])
        p_a, p_b = (int(got.labels[wire, row, 0]) & 1 for wire in (0, 1))
        (k_0, k_1), (v_0, v_1), (h_0, h_1) = pads[0][0], pads[1][0], pads[1][1]
        rho_b, rho = v_0 - p_b, h_0 - p_a * p_b
        unit, product = (1 - p_b) + rho_b - v_1, p_a * (1 - p_b) + rho - h_1
        switch = rho + k_0 - (rho_b - rho) - k_1
        assert [int(t) for t in got.garbled.elements[:, row]] == [
            t % size for t in (unit, product, switch)
        ]
        assert int(got.kept[0, row]) == -(rho + k_0) % size


def test_the_hash_is_the_same_in_one_step_and_in_two():
    labels, tweaks = (
        Stream(seed_of(name)).words(20).reshape(10, 2) for name in ("labels", "tweaks")
    )
    tweaks = np.array([tweak(edge, 3) for edge in range(10)], dtype=np.uint64)
    expected = [
        by_hand(seed_of("gates"), block(label), edge, 3) for edge, label in enumerate(labels)
    ]
    assert [block(row) for row in HASH(labels, tweaks)] == expected


def test_the_wire_format_stays_as_it_is():
    """A known answer: whoever changes it changes what nodes of one version say to each other."""
    got = run(AND, FOUR, "known", Ring(32))
    assert hashlib.sha256(got.garbled.encode()).hexdigest()[:16] == "d4e7625e4295e07e"


def test_tweaks_are_unique_over_edges_and_hashes():
    assert len({tweak(edge, number) for edge in range(200) for number in range(200)}) == 200 * 200


@pytest.mark.parametrize("ring", RINGS)
def test_each_hash_of_a_circuit_has_a_number_of_its_own(ring, monkeypatch):
    """Garbler and evaluator use the same numbers, each once, and `aes_blocks` AES blocks."""
    (expression,) = library_kernels("covariance")
    circuit = circuit_of(expression, BANK, Fraction(1, 2))
    bits, numbers, blocks = input_bits(circuit, edges(BANK, 16, 1)), [], []
    second, permute = gates.Worker._second, GateHash.permute
    monkeypatch.setattr(gates, "BATCH", 16)
    monkeypatch.setattr(
        gates.Worker,
        "_second",
        lambda self, y, hashes: numbers.extend(hashes[:, 0].tolist()) or second(self, y, hashes),
    )
    monkeypatch.setattr(
        GateHash,
        "permute",
        lambda self, x, out: blocks.append(x.size // 2) or permute(self, x, out),
    )
    run(circuit, bits, "numbers", ring)
    half = len(numbers) // 2
    assert sorted(numbers[:half]) == sorted(numbers[half:]) == list(range(half))
    assert sum(blocks) == 16 * sum(aes_blocks(circuit, ring))


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
    data = run(circuit, input_bits(circuit, edges(BANK, 5, 1)), "bytes", ring).garbled.encode()
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


# --- what the evaluator cannot do or see ----------------------------------------------------------


@BOTH
@pytest.mark.parametrize("wire", [0, 1])
def test_a_wrong_label_gives_garbage(circuit, wire):
    """Neither value of the output, even with a label of the right color."""
    got = run(circuit, np.repeat(FOUR, 64, axis=1), "wrong")
    active = got.active.copy()
    active[wire, :, 1] ^= np.uint64(1 << 40)
    found = evaluate(circuit, RING, got.garbled, active, 0, HASH)
    values = (got.kept + found).view(np.int64)
    assert not np.isin(values, (0, 1)).any() and len(np.unique(values)) == values.size


@pytest.mark.parametrize("half", [0, 1])
def test_a_changed_table_gives_garbage_where_its_row_is_used(half):
    got = run(AND, np.repeat(FOUR, 64, axis=1), "changed")
    got.garbled.tables[0, half, :, 0] ^= np.uint64(1 << 20)
    values = (got.kept + evaluate(AND, RING, got.garbled, got.active, 0, HASH)).view(np.int64)[0]
    used = (got.active[half, :, 0] & np.uint64(1)).astype(bool)
    assert not np.isin(values[used], (0, 1)).any() and np.isin(values[~used], (0, 1)).all()


@BOTH
def test_another_edge_number_gives_garbage(circuit):
    got = run(circuit, np.repeat(FOUR, 64, axis=1), "number")
    values = (got.kept + evaluate(circuit, RING, got.garbled, got.active, 1, HASH)).view(np.int64)
    assert not np.isin(values, (0, 1)).any()


def view(
    circuit: Circuit,
    bits: tuple[int, int],
    label: str,
    gate_hash: GateHash = HASH,
    one_record: bool = False,
) -> tuple[np.ndarray, int]:
    """Bits of ciphertexts, elements, the evaluator's share and its labels, as one category.

    one_record: both labels are the same on all edges, as those of two records would be; they are
        left out.
    """
    delta, count = offset(label), 1 if one_record else EDGES
    labels = Stream(seed_of(label)).words(4 * count).reshape(2, count, 2)
    labels = np.ascontiguousarray(np.broadcast_to(labels, (2, EDGES, 2)))
    active = active_labels(labels, inputs(EDGES, *bits), delta)
    garbled, _ = garble(circuit, RING, delta, labels, 0, gate_hash)
    found = evaluate(circuit, RING, garbled, active, 0, gate_hash)
    words = [*(half for table in garbled.tables for half in table), *(() if one_record else active)]
    parts = [word[:, 0] & np.uint64(1) for word in words] + [
        word[:, 1] >> np.uint64(63) for word in words
    ]
    parts += [element & np.uint64(1) for element in (*garbled.elements, *found)]
    return sum(part.astype(np.int64) << i for i, part in enumerate(parts)), 1 << len(parts)


class NoHash(GateHash):
    """π is 0, so a hash is its tweak, and nothing is a pad."""

    def permute(self, blocks: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[:] = 0
        return out[: blocks.size].reshape(blocks.shape)


class OneTweak(GateHash):
    """All edges have the tweak of the first one."""

    def permute(self, blocks: np.ndarray, out: np.ndarray) -> np.ndarray:
        every = np.broadcast_to(blocks[..., :1, :], blocks.shape)
        return super().permute(np.ascontiguousarray(every), out)


INPUTS = list(product((0, 1), repeat=2))


@BOTH
@pytest.mark.parametrize("one_record", [False, True])
@pytest.mark.parametrize("bits", INPUTS)
def test_the_evaluators_view_is_uniform_whatever_the_inputs(circuit, bits, one_record):
    p = uniformity(*view(circuit, bits, f"view {bits}", one_record=one_record))
    assert p > ALPHA, f"a view is not uniform: p = {p:.1e}, N = {EDGES}, inputs {bits}"


@BOTH
@pytest.mark.parametrize("one_record", [False, True])
@pytest.mark.parametrize("bits", INPUTS[1:])
def test_views_of_different_inputs_have_one_law(circuit, bits, one_record):
    p = homogeneity(
        *(
            view(circuit, inputs, f"law {inputs}", one_record=one_record)[0]
            for inputs in ((0, 0), bits)
        )
    )
    assert p > ALPHA, f"a view depends on the inputs: p = {p:.1e}, N = {EDGES}, inputs {bits}"


@BOTH
@pytest.mark.parametrize("bits", INPUTS[1:])
def test_power_the_same_test_finds_gates_without_pads(circuit, bits):
    mutant = NoHash(bytes(16))
    assert (
        homogeneity(
            *(view(circuit, inputs, f"law {inputs}", mutant)[0] for inputs in ((0, 0), bits))
        )
        < ALPHA
    )


@BOTH
@pytest.mark.parametrize("bits", INPUTS)
def test_power_the_same_test_finds_a_tweak_that_is_used_twice(circuit, bits):
    assert (
        uniformity(
            *view(circuit, bits, f"view {bits}", OneTweak(seed_of("gates")), one_record=True)
        )
        < ALPHA
    )


@pytest.mark.parametrize("bits", INPUTS)
def test_colors_of_all_wires_are_uniform(bits):
    """The colors of both inputs and of the output, as the evaluator finds them.

    The lowest bit chose between pad and pad + t.
    """
    got = run(AND, inputs(EDGES, *bits), f"colors {bits}")
    color = (
        got.found[0] != evaluate(AND, RING, without_elements(got.garbled), got.active, 0, HASH)[0]
    )
    colors = [*(got.active[:, :, 0] & np.uint64(1)), color]
    p = uniformity(sum(color.astype(np.int64) << i for i, color in enumerate(colors)), 8)
    assert p > ALPHA, f"colors are not uniform: p = {p:.1e}, N = {EDGES}, inputs {bits}"


def without_elements(garbled: GarbledEdges) -> GarbledEdges:
    return GarbledEdges(garbled.tables, np.zeros_like(garbled.elements))


@pytest.mark.parametrize("garbled", [False, True])
@pytest.mark.parametrize("weight", [1, 1000])
@pytest.mark.parametrize("bits", INPUTS)
def test_both_shares_are_uniform(bits, weight, garbled):
    got = run(
        one_gate(True, weight, garbled), inputs(EDGES, *bits), f"shares {bits} {weight}", Ring(32)
    )
    for share in (got.kept, got.found):
        p = uniformity(share[0] >> np.uint32(24), 256)
        assert p > ALPHA, (
            f"shares are not uniform: p = {p:.1e}, N = {EDGES}, inputs {bits}, weight {weight}"
        )
