"""A gate and a product are as the papers have them, computed by hand."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from bench.garbling import aes_blocks
from tests.mpc.garbled.test_circuits import BANK, edges, library_kernels
from tests.support.circuits import circuit_of, input_values
from tests.support.gates import AND, FOUR, HASH, PRODUCT, run
from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import Stream
from umpc.crypto.ring import RINGS, Ring
from umpc.testing import lying


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


def tweak(edge: int, hash_number: int) -> tuple[int, int]:
    """The tweak of a hash of an edge, as its two words."""
    return edge ^ hash_number, hash_number


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


@pytest.mark.usefixtures("in_numpy")
@pytest.mark.parametrize("ring", RINGS)
def test_each_hash_of_a_circuit_has_a_number_of_its_own(ring):
    """Garbler and evaluator use the same numbers, each once, and `aes_blocks` AES blocks."""
    (expression,) = library_kernels("covariance")
    circuit = circuit_of(expression, BANK, Fraction(1, 2))
    bits, numbers, blocks = input_values(circuit, edges(BANK, 16, 1)), [], []

    def second(honest, gate_hash, x, tweaks):
        numbers.append(int(tweaks[0, 1]))
        return honest(gate_hash, x, tweaks)

    def permute(honest, gate_hash, x):
        blocks.append(x.size // 2)
        return honest(gate_hash, x)

    with lying("everybody", second=second, permute=permute):
        run(circuit, bits, "numbers", ring)
    half = len(numbers) // 2
    assert sorted(numbers[:half]) == sorted(numbers[half:]) == list(range(half))
    assert sum(blocks) == 16 * sum(aes_blocks(circuit, ring))
