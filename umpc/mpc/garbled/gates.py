"""The gates of `garbling.py` as operations on arrays, for garbler and evaluator, up to EDGES edges.

Labels are (…, n, 2) uint64. An operation goes over all edges, so that the cost of a call of numpy
or OpenSSL is paid once for thousands of gates. It goes over so few edges that its arrays fit a
cache. The comments name the steps of half-gates (Zahur, Rosulek & Evans 2015).

This is the reference, and it runs where umpc has no compiled kernel (`compiled.py`).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from umpc.crypto.prg import BLOCK_BYTES
from umpc.crypto.ring import Ring
from umpc.mpc.arrays import BlockItems, IntArray, RingArray, WordArray
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.outputs import LABEL_BITS, Product, Switch, Unit, outputs_of
from umpc.mpc.garbled.schedule import AndBatch, XorGate, schedule_of

BATCH = 1 << 12
"""Gates × edges hashed by one call."""

_Item = TypeVar("_Item", bound=np.generic)
_ONE = np.uint64(1)
_MASKS = np.array([[0, 0], [-1, -1]], dtype=np.int64).view(np.complex128).reshape(2)
"""The part of a ciphertext that a color keeps: nothing, or all.

A label moves as one item when numpy takes it for a complex number.
"""


def pad_hashes(count: int, ring: Ring) -> int:
    """The number of hashes of one label whose words pad `count` elements."""
    return -(-count * ring.bits // LABEL_BITS)


class GateHash:
    """H(x, i) = π(y) ⊕ y with y = π(x) ⊕ i. The key is public.

    It is computed in two steps, so that gates with a common input share π(x).
    """

    def __init__(self, key: bytes):
        self.key = key[:BLOCK_BYTES]
        self._encryptor = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()

    def permute(self, blocks: WordArray, out: WordArray) -> WordArray:
        """π of contiguous blocks (…, 2) uint64, into the beginning of `out`.

        out: flat, two words longer than the blocks; it may be their memory.
        """
        self._encryptor.update_into(blocks.data.cast("B"), out.data.cast("B"))
        return out[: blocks.size].reshape(blocks.shape)

    def __call__(self, labels: WordArray, tweaks: WordArray) -> WordArray:
        """Both steps at once: (n, 2) and (n, 2) uint64 → (n, 2) uint64."""
        once = self.permute(np.ascontiguousarray(labels), np.empty(labels.size + 2, np.uint64))
        y = once ^ tweaks
        return y ^ self.permute(y, np.empty(y.size + 2, dtype=np.uint64))


class Worker:
    """One party's work on up to EDGES edges: a label of every live wire, and room for hashes.

    labels: (inputs, n, 2) uint64. first_edge: the number of the first edge.
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
    ):
        self.ring = ring
        self.hash = gate_hash
        self.count = labels.shape[1]
        self.outputs = outputs_of(circuit)
        group = max(1, BATCH // max(1, self.count))
        self.schedule = schedule_of(circuit, group)
        self.labels = np.empty((self.schedule.slots, self.count, 2), dtype=np.uint64)
        self.labels[: len(labels)] = labels
        edges = np.zeros((self.count, 2), dtype=np.uint64)
        edges[:, 0] = np.uint64(first_edge) + np.arange(self.count, dtype=np.uint64)
        self.edges = np.tile(edges, (self.per_wire, 1)).reshape(-1)
        most = 2 * group * self.per_wire * self.count
        self.room = [np.empty(2 * most + 2, dtype=np.uint64) for _ in range(2)]
        self.rows = np.empty((2 * group, self.count, 2), dtype=np.uint64)
        self.colors = np.empty((2 * group, self.count), dtype=np.int64)
        self.chosen = np.empty((2 * group, self.count), dtype=np.complex128)
        self.spare = np.empty((group, self.count, 2), dtype=np.uint64)
        self.out = np.empty((group, self.count, 2), dtype=np.uint64)

    def run(self, tables: WordArray, elements: RingArray, shares: RingArray) -> None:
        """Work on all gates, then on the outputs; tables and elements are made or used."""
        for step in self.schedule.steps:
            if isinstance(step, XorGate):
                # Free XOR: the label of the output is the XOR of the inputs' labels.
                left = self.labels[step.left]
                np.bitwise_xor(left, self.labels[step.right], out=self.labels[step.out])
            else:
                self.conjunctions(step, tables[step.first : step.first + len(step.out)])
        first_hash = 2 * self.outputs.and_count
        pads = np.empty((self.per_wire, *elements.shape), dtype=self.ring.dtype)
        for wire, numbers in self.outputs.wires:
            self._pads(wire, numbers, first_hash, pads)
            first_hash += pad_hashes(len(numbers), self.ring)
        self.share(pads, elements, shares)

    def conjunctions(self, step: AndBatch, tables: WordArray) -> None:
        """Garble or evaluate independent ANDs. tables: (gates, 2, n, 2), T_G and T_E."""
        raise NotImplementedError

    def hashed_labels(self, slots: NDArray[np.intp]) -> WordArray:
        """The labels that this party hashes: (wires, per wire, n, 2), contiguous."""
        raise NotImplementedError

    def share(self, pads: RingArray, elements: RingArray, shares: RingArray) -> None:
        """Make or use the elements, and add to this party's shares of the sums."""
        raise NotImplementedError

    def _pads(self, wire: int, numbers: tuple[int, ...], first_hash: int, pads: RingArray) -> None:
        """The pads of a wire's elements: the words of as many hashes as it takes."""
        y = self._first(self.hashed_labels(np.array([self.schedule.at_end[wire]]))).copy()
        lanes = LABEL_BITS // self.ring.bits
        for block, start in enumerate(range(0, len(numbers), lanes)):
            room = self.room[0][: y.size].reshape(y.shape)
            room[:] = y
            hashed = self._second(room, np.array([[first_hash + block]], dtype=np.uint64))
            words = hashed[0].view(self.ring.dtype)
            for lane, number in enumerate(numbers[start : start + lanes]):
                pads[:, number] = words[..., lane]

    def _color(self, wire: int) -> RingArray:
        """The color of a wire's label: (n,) of the ring."""
        label = self.labels[self.schedule.at_end[wire]]
        color: RingArray = (label[:, 0] & _ONE).astype(self.ring.dtype)
        return color

    def _scalars(self, weights: tuple[int, ...]) -> RingArray:
        return np.array([self.ring.encode(weight) for weight in weights], dtype=self.ring.dtype)

    def _take(
        self, slots: NDArray[np.intp], table: BlockItems
    ) -> tuple[WordArray, IntArray, WordArray]:
        """The labels (wires, n, 2) and colors (wires, n) of wires.

        The third result has a table's item of each color: (wires, n, 2).
        """
        rows = self.labels.take(slots, axis=0, out=self.rows[: len(slots)], mode="clip")
        colors = self.colors[: len(slots)]
        np.bitwise_and(rows[..., 0], _ONE, out=colors.view(np.uint64))
        return rows, colors, self._choose(table, colors, self.chosen[: len(slots)])

    @staticmethod
    def _choose(table: BlockItems, colors: IntArray, out: BlockItems) -> WordArray:
        chosen = table.take(colors, out=out, mode="clip").view(np.uint64)
        return chosen.reshape(*colors.shape, 2)

    def _first(self, labels: WordArray) -> WordArray:
        """π(x) ⊕ e of (wires, per wire, n, 2) labels in room 0, in place."""
        y = self.hash.permute(labels, self.room[0])
        flat = y.reshape(len(y), -1)
        np.bitwise_xor(flat, self.edges, out=flat)
        return y

    def _second(self, y: WordArray, hashes: WordArray) -> WordArray:
        """H of (hashes, per wire, n, 2), from π(x) ⊕ e, which is overwritten."""
        flat = y.reshape(len(y), -1)
        np.bitwise_xor(flat, hashes, out=flat)
        hashed = self.hash.permute(y, self.room[1])
        np.bitwise_xor(hashed, y, out=hashed)
        return hashed

    def _hash_inputs(self, step: AndBatch, labels: WordArray) -> WordArray:
        """H of all left inputs, then of all right ones: (2 · gates, per wire, n, 2)."""
        y = self._first(labels)
        if step.inputs is not None:
            shape = (len(step.inputs), *y.shape[1:])
            into = self.room[1][: len(step.inputs) * y[0].size].reshape(shape)
            y = y.take(step.inputs, axis=0, out=into, mode="clip")
            self.room.reverse()
        return self._second(y, step.hashes)

    @staticmethod
    def _sides(step: AndBatch, by_slot: NDArray[_Item]) -> tuple[NDArray[_Item], NDArray[_Item]]:
        """The slots' values, for left and for right inputs."""
        gates = len(step.out)
        if step.inputs is None:
            return by_slot[:gates], by_slot[gates:]
        return by_slot[step.inputs[:gates]], by_slot[step.inputs[gates:]]

    def _put(self, step: AndBatch, first: WordArray, second: WordArray) -> None:
        """first ⊕ second as the outputs' labels."""
        if len(step.out) == 1:
            np.bitwise_xor(first[0], second[0], out=self.labels[step.out[0]])
        else:
            self.labels[step.out] = np.bitwise_xor(first, second, out=first)


class Garbler(Worker):
    """The garbler's work; its labels are those of bit 0. delta: (2,) uint64, Δ."""

    per_wire = 2

    def __init__(
        self,
        circuit: Circuit,
        ring: Ring,
        labels: WordArray,
        first_edge: int,
        gate_hash: GateHash,
        delta: WordArray,
    ):
        super().__init__(circuit, ring, labels, first_edge, gate_hash)
        self.offset = np.tile(delta, self.count)
        both = np.stack([np.zeros_like(delta), delta])
        self.offsets = both.view(np.complex128).reshape(2)

    def hashed_labels(self, slots: NDArray[np.intp]) -> WordArray:
        rows, _, offsets = self._take(slots, self.offsets)
        return self._both(rows, offsets)

    def _both(self, rows: WordArray, offsets: WordArray) -> WordArray:
        """L⁰ and L¹ of wires, the labels of color 0 and 1: (wires, 2, n, 2)."""
        labels = self.room[0][: 2 * rows.size].reshape(len(rows), 2, -1)
        flat = labels[:, 0]
        np.bitwise_xor(rows.reshape(flat.shape), offsets.reshape(flat.shape), out=flat)
        np.bitwise_xor(flat, self.offset, out=labels[:, 1])
        return labels.reshape(len(rows), 2, -1, 2)

    def conjunctions(self, step: AndBatch, tables: WordArray) -> None:
        """GbAnd of half-gates, for independent ANDs."""
        gates = len(step.out)
        # p_a and p_b are the colors of the labels of 0; offsets are p·Δ.
        rows, colors, offsets = self._take(step.slots, self.offsets)
        hashes = self._hash_inputs(step, self._both(rows, offsets))
        left, right = hashes[:gates], hashes[gates:]
        spare = self.spare[:gates]
        out = self.out[:gates]
        # First half gate: T_G = H(A⁰, j) ⊕ H(A¹, j) ⊕ p_b·Δ.
        np.bitwise_xor(left[:, 0], left[:, 1], out=spare)
        np.bitwise_xor(spare, self._sides(step, offsets)[1], out=tables[:, 0])
        # Second half gate: T_E = H(B⁰, j') ⊕ H(B¹, j') ⊕ A0.
        np.bitwise_xor(right[:, 0], right[:, 1], out=spare)
        np.bitwise_xor(spare, self._sides(step, rows)[0], out=tables[:, 1])
        # Combine the halves: C0 = H(A⁰, j) ⊕ H(B⁰, j') ⊕ p_a·p_b·Δ.
        np.bitwise_xor(left[:, 0], right[:, 0], out=out)
        p_a, p_b = self._sides(step, colors)
        both = self._choose(self.offsets, np.bitwise_and(p_a, p_b), self.chosen[:gates])
        self._put(step, out, both)

    def share(self, pads: RingArray, elements: RingArray, shares: RingArray) -> None:
        """The elements t = f·(1 ⊕ p) + ρ − h_1, and this party's shares, −ω·ρ."""
        rho, second = pads
        np.subtract(rho, second, out=elements)
        for number, element in enumerate(self.outputs.elements):
            if isinstance(element, Switch):
                # t = R + k_0 − S − k_1 with R = Σ ω ρ_ab and S = Σ ω (ρ_b − ρ_ab).
                weights = self._scalars(element.weights)
                of_products = weights @ rho[list(element.products)]
                of_units = weights @ rho[list(element.units)]
                elements[number] += of_products + of_products - of_units
                shares[element.sum] -= of_products + rho[number]
                continue
            p = self._color(element.wire)
            if isinstance(element, Product):
                factor = self._color(element.switch)
                rho[number] -= factor * p
                elements[number] += factor * (1 - p - p)
                continue
            rho[number] -= p
            elements[number] += 1 - p - p
            for total, weight in element.weights:
                shares[total] -= self.ring.scalar(weight) * rho[number]


class Evaluator(Worker):
    """The evaluator's work; its labels are the active ones."""

    def conjunctions(self, step: AndBatch, tables: WordArray) -> None:
        """Ev of half-gates, for independent ANDs."""
        gates = len(step.out)
        # s_a and s_b are the colors of the active labels; masks are all ones where they are 1.
        rows, _, masks = self._take(step.slots, _MASKS)
        hashes = self._hash_inputs(step, rows[:, None])[:, 0]
        mask_a, mask_b = self._sides(step, masks)
        spare = self.spare[:gates]
        out = self.out[:gates]
        # First half gate: W_G = H(A, j) ⊕ s_a·T_G, with H(B, j') of the second one added.
        np.bitwise_xor(hashes[:gates], hashes[gates:], out=out)
        np.bitwise_and(tables[:, 0], mask_a, out=spare)
        np.bitwise_xor(out, spare, out=out)
        # Second half gate: W_E = H(B, j') ⊕ s_b·(T_E ⊕ A); combine the halves.
        np.bitwise_xor(tables[:, 1], self._sides(step, rows)[0], out=spare)
        self._put(step, out, np.bitwise_and(spare, mask_b, out=spare))

    def hashed_labels(self, slots: NDArray[np.intp]) -> WordArray:
        active: WordArray = self.labels[slots][:, None]
        return active

    def share(self, pads: RingArray, elements: RingArray, shares: RingArray) -> None:
        """The values h_color + color·t = f·b + ρ, and this party's shares of the sums."""
        (values,) = pads
        for wire, numbers in self.outputs.wires:
            color = self._color(wire)
            for number in numbers:
                values[number] += color * elements[number]
        for number, element in enumerate(self.outputs.elements):
            if isinstance(element, Unit):
                for total, weight in element.weights:
                    shares[total] += self.ring.scalar(weight) * values[number]
            elif isinstance(element, Switch):
                # Color 0: Σ ω P_ab. Color 1: Σ ω (v_b − P_ab).
                weights = self._scalars(element.weights)
                of_products = weights @ values[list(element.products)]
                of_units = weights @ values[list(element.units)]
                switched = self._color(element.wire) * (of_units - of_products - of_products)
                shares[element.sum] += values[number] + of_products + switched
