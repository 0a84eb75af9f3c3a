"""The gates of `garbling.py` as operations on arrays, for garbler and evaluator, up to EDGES edges.

Labels are (…, n, 2) uint64. One gate is worked on for all edges, so the cost of a call of numpy or
OpenSSL is paid once for thousands of them. The comments name the steps of half-gates (Zahur,
Rosulek & Evans 2015).

This is the reference, and it runs where umpc has no compiled kernel (`garbling.py`).

*Schedule.* The order in which a garbled circuit is worked on: gate after gate, with few labels.

Garbler and evaluator follow one schedule, which depends only on the circuit. A label's memory, its
*slot*, serves another wire after the last gate that reads the label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from umpc.crypto.prg import BLOCK_BYTES
from umpc.crypto.ring import Ring
from umpc.mpc.arrays import RingArray, WordArray
from umpc.mpc.garbled.circuits import LABEL_BITS, Circuit, Product, Switch, Unit, outputs_of

_ONE = np.uint64(1)


def pad_hashes(count: int, ring: Ring) -> int:
    """The number of hashes of one label whose words pad `count` elements."""
    return -(-count * ring.bits // LABEL_BITS)


class GateHash:
    """H(x, i) = π(y) ⊕ y with y = π(x) ⊕ i. The key is public.

    It is computed in two steps, so that the pads of one label share π(x).
    """

    def __init__(self, key: bytes):
        self.key = key[:BLOCK_BYTES]
        self._encryptor = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()

    def permute(self, blocks: WordArray) -> WordArray:
        """π of blocks (…, 2) uint64."""
        # Guo et al. 2020: fixed-key AES under the public key of a session
        permuted = np.frombuffer(self._encryptor.update(blocks.tobytes()), dtype=np.uint64)
        return permuted.reshape(blocks.shape)

    def second(self, once: WordArray, tweaks: WordArray) -> WordArray:
        """H(x, i) from π(x)."""
        # spec/garbled.py, `gate_hash`: σ = π(x) ⊕ i, H = π(σ) ⊕ σ
        y = once ^ tweaks
        return y ^ self.permute(y)

    def __call__(self, labels: WordArray, tweaks: WordArray) -> WordArray:
        """Both steps: (…, n, 2) and (n, 2) uint64 → (…, n, 2) uint64."""
        return self.second(self.permute(labels), tweaks)


NO_DELTA = np.zeros(2, dtype=np.uint64)
"""The evaluator's, who does not know Δ."""


class Worker:
    """One party's work on up to EDGES edges, with a label of every live wire.

    labels: (inputs, n, 2) uint64. first_edge: the number of the first edge. delta: Δ, (2,) uint64.
    """

    per_wire = 1
    """Labels of a wire that are hashed."""

    def __init__(
        self,
        circuit: Circuit,
        ring: Ring,
        labels: WordArray,
        first_edge: int,
        gate_hash: GateHash,
        delta: WordArray = NO_DELTA,
    ):
        count = labels.shape[1]
        self._delta = delta
        self.ring = ring
        self.hash = gate_hash
        self.outputs = outputs_of(circuit)
        self.schedule = schedule_of(circuit)
        self.labels = np.empty((self.schedule.slots, count, 2), dtype=np.uint64)
        self.labels[: len(labels)] = labels
        self._edges = np.zeros((count, 2), dtype=np.uint64)
        self._edges[:, 0] = np.uint64(first_edge) + np.arange(count, dtype=np.uint64)

    def run(self, tables: WordArray, elements: RingArray, shares: RingArray) -> None:
        """Work on all gates, then on the outputs; tables and elements are made or used."""
        for step in self.schedule.steps:
            left, right = self.labels[step.left], self.labels[step.right]
            if step.is_and:
                # two hashes and a table of two rows an AND
                made = self.conjunction(left, right, 2 * step.number, tables[step.number])
            else:
                # Free XOR: the label of the output is the XOR of the inputs' labels.
                made = left ^ right
            self.labels[step.out] = made
        # hashes of outputs are numbered after those of gates
        first_hash = 2 * self.outputs.and_count
        pads = np.empty((self.per_wire, *elements.shape), dtype=self.ring.dtype)
        for wire, numbers in self.outputs.wires:
            self._pads(wire, numbers, first_hash, pads)
            first_hash += pad_hashes(len(numbers), self.ring)
        self.share(pads, elements, shares)

    def conjunction(
        self, left: WordArray, right: WordArray, number: int, table: WordArray
    ) -> WordArray:
        """Garble or evaluate an AND. Returns: the output's labels (n, 2).

        left, right: the inputs' labels (n, 2). number: of the first of its two hashes. table:
        (2, n, 2), T_G and T_E.
        """
        raise NotImplementedError

    def hashed_labels(self, labels: WordArray) -> WordArray:
        """The labels of a wire that this party hashes: (per wire, n, 2)."""
        raise NotImplementedError

    def share(self, pads: RingArray, elements: RingArray, shares: RingArray) -> None:
        """Make or use the elements, and add to this party's shares of the sums."""
        raise NotImplementedError

    def tweaks(self, number: int) -> WordArray:
        """The tweaks of all edges for one hash: (n, 2)."""
        # (edge, hash): no pair comes twice under one Δ
        return self._edges ^ np.uint64(number)

    def _pads(self, wire: int, numbers: tuple[int, ...], first_hash: int, pads: RingArray) -> None:
        """The pads of a wire's elements: the words of as many hashes as it takes."""
        labels = self.labels[self.schedule.at_end[wire]]
        # π(x) once for all pads of a label
        once = self.hash.permute(self.hashed_labels(labels))
        lanes = LABEL_BITS // self.ring.bits
        for block, start in enumerate(range(0, len(numbers), lanes)):
            hashed = self.hash.second(once, self.tweaks(first_hash + block))
            # one hash makes the pads of several elements
            words = hashed.view(self.ring.dtype)
            for lane, number in enumerate(numbers[start : start + lanes]):
                pads[:, number] = words[..., lane]

    def _color(self, wire: int) -> RingArray:
        """The color of a wire's label: (n,) of the ring."""
        label = self.labels[self.schedule.at_end[wire]]
        # point and permute: the lowest bit of the label
        color: RingArray = (label[:, 0] & _ONE).astype(self.ring.dtype)
        return color

    def _scalars(self, weights: tuple[int, ...]) -> RingArray:
        return np.array([self.ring.encode(weight) for weight in weights], dtype=self.ring.dtype)


def _all_if_color(labels: WordArray) -> WordArray:
    """(n, 1) uint64: all bits where a label's color is 1, and none elsewhere."""
    # all ones or zeros, without a branch on the color
    spread: WordArray = np.negative(labels[:, :1] & _ONE)
    return spread


class Garbler(Worker):
    """The garbler's work; its labels are those of bit 0."""

    per_wire = 2

    def hashed_labels(self, labels: WordArray) -> WordArray:
        """L⁰ and L¹, the labels of color 0 and 1."""
        # L⁰ is the label whose color is 0
        of_color_0 = labels ^ (_all_if_color(labels) & self._delta)
        return np.stack([of_color_0, of_color_0 ^ self._delta])

    def conjunction(
        self, left: WordArray, right: WordArray, number: int, table: WordArray
    ) -> WordArray:
        """GbAnd of half-gates."""
        # H(A⁰, j) and H(A¹, j)
        a = self.hash(self.hashed_labels(left), self.tweaks(number))
        # H(B⁰, j') and H(B¹, j')
        b = self.hash(self.hashed_labels(right), self.tweaks(number + 1))
        # p_a and p_b are the colors of the labels of 0.
        p_a = _all_if_color(left)
        p_b_delta = _all_if_color(right) & self._delta
        # First half gate: T_G = H(A⁰, j) ⊕ H(A¹, j) ⊕ p_b·Δ.
        table[0] = a[0] ^ a[1] ^ p_b_delta
        # Second half gate: T_E = H(B⁰, j') ⊕ H(B¹, j') ⊕ A0.
        table[1] = b[0] ^ b[1] ^ left
        # Combine the halves: C0 = H(A⁰, j) ⊕ H(B⁰, j') ⊕ p_a·p_b·Δ.
        combined: WordArray = a[0] ^ b[0] ^ (p_a & p_b_delta)
        return combined

    def share(self, pads: RingArray, elements: RingArray, shares: RingArray) -> None:
        """The elements t = f·(1 ⊕ p) + ρ − h_1, and this party's shares, −ω·ρ."""
        # Ball, Malkin & Rosulek 2016: from labels to additive shares
        rho, second = pads
        np.subtract(rho, second, out=elements)
        for number, element in enumerate(self.outputs.elements):
            if isinstance(element, Switch):
                # t = R + k_0 − S − k_1 with R = Σ ω ρ_ab and S = Σ ω (ρ_b − ρ_ab).
                weights = self._scalars(element.weights)
                of_products = weights @ rho[list(element.products)]
                of_units = weights @ rho[list(element.units)]
                elements[number] += of_products + of_products - of_units
                # −R and the switch's own pad
                shares[element.sum] -= of_products + rho[number]
                continue
            p = self._color(element.wire)
            if isinstance(element, Product):
                # product of two bits: pads of the summand serve it
                factor = self._color(element.switch)
                rho[number] -= factor * p
                elements[number] += factor * (1 - p - p)
                continue
            rho[number] -= p
            elements[number] += 1 - p - p
            for total, weight in element.weights:
                # garbler's share: −ω·ρ
                shares[total] -= self.ring.scalar(weight) * rho[number]


class Evaluator(Worker):
    """The evaluator's work; its labels are the active ones."""

    def conjunction(
        self, left: WordArray, right: WordArray, number: int, table: WordArray
    ) -> WordArray:
        """Ev of half-gates, with the colors s_a and s_b of the active labels."""
        # First half gate: W_G = H(A, j) ⊕ s_a·T_G.
        w_g = self.hash(left, self.tweaks(number)) ^ (_all_if_color(left) & table[0])
        # Second half gate: W_E = H(B, j') ⊕ s_b·(T_E ⊕ A).
        w_e = self.hash(right, self.tweaks(number + 1))
        w_e ^= _all_if_color(right) & (table[1] ^ left)
        # C = W_G ⊕ W_E
        combined: WordArray = w_g ^ w_e
        return combined

    def hashed_labels(self, labels: WordArray) -> WordArray:
        """The active label alone."""
        return labels[None]

    def share(self, pads: RingArray, elements: RingArray, shares: RingArray) -> None:
        """The values h_color + color·t = f·b + ρ, and this party's shares of the sums."""
        (values,) = pads
        for wire, numbers in self.outputs.wires:
            color = self._color(wire)
            for number in numbers:
                # h_color + color·t opens f·b + ρ, and nothing else
                values[number] += color * elements[number]
        for number, element in enumerate(self.outputs.elements):
            if isinstance(element, Unit):
                for total, weight in element.weights:
                    # evaluator's share: ω·(b + ρ)
                    shares[total] += self.ring.scalar(weight) * values[number]
            elif isinstance(element, Switch):
                # Color 0: Σ ω P_ab. Color 1: Σ ω (v_b − P_ab).
                weights = self._scalars(element.weights)
                of_products = weights @ values[list(element.products)]
                of_units = weights @ values[list(element.units)]
                switched = self._color(element.wire) * (of_units - of_products - of_products)
                shares[element.sum] += values[number] + of_products + switched


# --- schedule -------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One gate, which reads and writes slots. number: its place among the ANDs; 0 for an XOR."""

    is_and: bool
    left: int
    right: int
    out: int
    number: int


@dataclass(frozen=True)
class Schedule:
    """The steps of a circuit.

    slots: the number of labels that are kept at a time.
    at_end: the slots of the wires that have output elements.
    """

    steps: tuple[Step, ...]
    slots: int
    at_end: Mapping[int, int]


class _Slots:
    """The place of each live wire's label; it is free again after the wire's last reader."""

    def __init__(self, reads: Sequence[Sequence[int]], inputs: int):
        self._last = {wire: step for step, wires in enumerate(reads) for wire in wires}
        self._reads = reads
        self._place = {wire: wire for wire in range(inputs)}
        self._free: list[int] = []
        self.size = inputs

    def read(self, step: int) -> list[int]:
        """The places that a step reads; those that it reads last become free."""
        wires = self._reads[step]
        # labels of wires that nobody reads again make room
        places = [self._place[wire] for wire in wires]
        ending = (wire for wire in set(wires) if self._last[wire] == step)
        self._free += [self._place.pop(wire) for wire in ending]
        return places

    def write(self, wire: int) -> int:
        """A free place for a new wire."""
        if not self._free:
            self._free.append(self.size)
            self.size += 1
        self._place[wire] = self._free.pop()
        return self._place[wire]


@lru_cache(maxsize=64)
def schedule_of(circuit: Circuit) -> Schedule:
    """The steps of the gates that are garbled, in the circuit's order."""
    outputs = outputs_of(circuit)
    at_end = [wire for wire, _ in outputs.wires]
    reads = [(gate.left, gate.right) for _, gate in outputs.gates]
    slots = _Slots([*reads, at_end], len(circuit.inputs))
    steps = []
    ands = 0
    for place, (wire, gate) in enumerate(outputs.gates):
        left, right = slots.read(place)
        steps.append(Step(gate.is_and, left, right, slots.write(wire), ands * gate.is_and))
        ands += gate.is_and
    last = slots.read(len(reads))
    return Schedule(tuple(steps), slots.size, dict(zip(at_end, last, strict=True)))
