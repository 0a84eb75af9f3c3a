"""The gates of `garbling.py` as operations on arrays: what garbler and evaluator do, for up to EDGES edges.

Labels are (…, n, 2) uint64. An operation goes over all edges, so that numpy's and OpenSSL's cost per call is paid once
for thousands of gates, and over so few that its arrays fit a cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from umpc.crypto.prg import BLOCK_BYTES
from umpc.crypto.ring import Ring
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.outputs import LABEL_BITS, Product, Switch, Unit, outputs_of
from umpc.mpc.garbled.schedule import Ands, Xor, schedule_of

BATCH = 1 << 12
"""Gates × edges hashed by one call."""

_ONE = np.uint64(1)
_MASKS = np.array([[0, 0], [-1, -1]], dtype=np.int64).view(np.complex128).reshape(2)
"""What a color keeps of a ciphertext. A label moves as one item when numpy takes it for a complex number."""


def pad_hashes(count: int, ring: Ring) -> int:
    """Hashes of one label whose words pad so many elements."""
    return -(-count * ring.bits // LABEL_BITS)


class GateHash:
    """H(x, i) = π(y) ⊕ y with y = π(x) ⊕ i, in the two steps that share π(x) between gates. The key is public."""

    def __init__(self, key: bytes):
        self._encryptor = Cipher(algorithms.AES(key[:BLOCK_BYTES]), modes.ECB()).encryptor()

    def permute(self, blocks: np.ndarray, out: np.ndarray) -> np.ndarray:
        """π of contiguous blocks (…, 2) uint64, into the beginning of `out`: flat, two words longer; may be theirs."""
        self._encryptor.update_into(memoryview(blocks).cast("B"), memoryview(out).cast("B"))
        return out[: blocks.size].reshape(blocks.shape)

    def __call__(self, labels: np.ndarray, tweaks: np.ndarray) -> np.ndarray:
        """All in one: (n, 2) and (n, 2) uint64 → (n, 2) uint64."""
        y = (
            self.permute(np.ascontiguousarray(labels), np.empty(labels.size + 2, dtype=np.uint64))
            ^ tweaks
        )
        return y ^ self.permute(y, np.empty(y.size + 2, dtype=np.uint64))


def tweak(edge: int, hash_number: int) -> tuple[int, int]:
    """The tweak of a hash of an edge, as its two words."""
    return edge ^ hash_number, hash_number


class Worker:
    """One party's work on up to EDGES edges: a label of every live wire, and room for a batch of hashes."""

    per_wire = 1
    """Labels of a wire that are hashed."""

    def __init__(
        self, circuit: Circuit, ring: Ring, labels: np.ndarray, first_edge: int, gate_hash: GateHash
    ):
        self.ring, self.hash, self.count = ring, gate_hash, labels.shape[1]
        self.outputs = outputs_of(circuit)
        group = max(1, BATCH // max(1, self.count))
        self.schedule = schedule_of(circuit, group)
        self.labels = np.empty((self.schedule.slots, self.count, 2), dtype=np.uint64)
        self.labels[: len(labels)] = labels
        self.edges = np.zeros((self.count, 2), dtype=np.uint64)
        self.edges[:, 0] = np.uint64(first_edge) + np.arange(self.count, dtype=np.uint64)
        self.edges = np.tile(self.edges, (self.per_wire, 1)).reshape(-1)
        most = 2 * group * self.per_wire * self.count
        self.room = [np.empty(2 * most + 2, dtype=np.uint64) for _ in range(2)]
        self.rows = np.empty((2 * group, self.count, 2), dtype=np.uint64)
        self.colors = np.empty((2 * group, self.count), dtype=np.int64)
        self.chosen = np.empty((2 * group, self.count), dtype=np.complex128)
        self.spare = np.empty((group, self.count, 2), dtype=np.uint64)
        self.out = np.empty((group, self.count, 2), dtype=np.uint64)

    def run(self, tables: np.ndarray, elements: np.ndarray, shares: np.ndarray) -> None:
        for step in self.schedule.steps:
            if isinstance(step, Xor):
                np.bitwise_xor(
                    self.labels[step.left], self.labels[step.right], out=self.labels[step.out]
                )
            else:
                self.conjunctions(step, tables[step.first : step.first + len(step.out)])
        first_hash = 2 * self.outputs.and_count
        pads = np.empty((self.per_wire, *elements.shape), dtype=self.ring.dtype)
        for wire, numbers in self.outputs.wires:
            self._pads(wire, numbers, first_hash, pads)
            first_hash += pad_hashes(len(numbers), self.ring)
        self.share(pads, elements, shares)

    def conjunctions(self, step: Ands, tables: np.ndarray) -> None:
        """Garble or evaluate independent ANDs."""
        raise NotImplementedError

    def hashed_labels(self, slots: np.ndarray) -> np.ndarray:
        """The labels that this party hashes: (wires, per wire, n, 2), contiguous."""
        raise NotImplementedError

    def share(self, pads: np.ndarray, elements: np.ndarray, shares: np.ndarray) -> None:
        """Make or use the elements, and add to this party's shares of the sums."""
        raise NotImplementedError

    def _pads(self, wire: int, numbers: tuple[int, ...], first_hash: int, pads: np.ndarray) -> None:
        """The pads of a wire's elements: the words of as many hashes as it takes."""
        y = self._first(self.hashed_labels(np.array([self.schedule.at_end[wire]]))).copy()
        lanes = LABEL_BITS // self.ring.bits
        for block, start in enumerate(range(0, len(numbers), lanes)):
            room = self.room[0][: y.size].reshape(y.shape)
            room[:] = y
            words = self._second(room, np.array([[first_hash + block]], dtype=np.uint64))[0].view(
                self.ring.dtype
            )
            for lane, number in enumerate(numbers[start : start + lanes]):
                pads[:, number] = words[..., lane]

    def _color(self, wire: int) -> np.ndarray:
        """(n,) of the ring."""
        return (self.labels[self.schedule.at_end[wire], :, 0] & _ONE).astype(self.ring.dtype)

    def _scalars(self, weights: tuple[int, ...]) -> np.ndarray:
        return np.array([self.ring.encode(weight) for weight in weights], dtype=self.ring.dtype)

    def _take(
        self, slots: np.ndarray, table: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of wires: labels (wires, n, 2), colors (wires, n), and of a table the item of that color (wires, n, 2)."""
        rows = self.labels.take(slots, axis=0, out=self.rows[: len(slots)], mode="clip")
        colors = self.colors[: len(slots)]
        np.bitwise_and(rows[..., 0], _ONE, out=colors.view(np.uint64))
        return rows, colors, self._choose(table, colors, self.chosen[: len(slots)])

    @staticmethod
    def _choose(table: np.ndarray, colors: np.ndarray, out: np.ndarray) -> np.ndarray:
        return table.take(colors, out=out, mode="clip").view(np.uint64).reshape(*colors.shape, 2)

    def _first(self, labels: np.ndarray) -> np.ndarray:
        """π(x) ⊕ e of (wires, per wire, n, 2) labels in room 0, in place."""
        y = self.hash.permute(labels, self.room[0])
        flat = y.reshape(len(y), -1)
        np.bitwise_xor(flat, self.edges, out=flat)
        return y

    def _second(self, y: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """H of (hashes, per wire, n, 2), from π(x) ⊕ e, which is overwritten."""
        flat = y.reshape(len(y), -1)
        np.bitwise_xor(flat, hashes, out=flat)
        hashed = self.hash.permute(y, self.room[1])
        return np.bitwise_xor(hashed, y, out=hashed)

    def _hash_inputs(self, step: Ands, labels: np.ndarray) -> np.ndarray:
        """H of all left inputs, then of all right ones: (2 · gates, per wire, n, 2)."""
        y = self._first(labels)
        if step.inputs is not None:
            into = self.room[1][: len(step.inputs) * y[0].size].reshape(
                len(step.inputs), *y.shape[1:]
            )
            y = y.take(step.inputs, axis=0, out=into, mode="clip")
            self.room.reverse()
        return self._second(y, step.hashes)

    @staticmethod
    def _inputs(step: Ands, of_slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the slots have, for left and right inputs."""
        gates = len(step.out)
        if step.inputs is None:
            return of_slots[:gates], of_slots[gates:]
        return of_slots[step.inputs[:gates]], of_slots[step.inputs[gates:]]

    def _put(self, step: Ands, first: np.ndarray, second: np.ndarray) -> None:
        """first ⊕ second as the outputs' labels."""
        if len(step.out) == 1:
            np.bitwise_xor(first[0], second[0], out=self.labels[step.out[0]])
        else:
            self.labels[step.out] = np.bitwise_xor(first, second, out=first)


class Garbler(Worker):
    per_wire = 2

    def __init__(self, *public: Any, delta: np.ndarray):
        super().__init__(*public)
        self.offset = np.tile(delta, self.count)
        self.offsets = np.stack([np.zeros_like(delta), delta]).view(np.complex128).reshape(2)

    def hashed_labels(self, slots: np.ndarray) -> np.ndarray:
        rows, _, offsets = self._take(slots, self.offsets)
        return self._both(rows, offsets)

    def _both(self, rows: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """L⁰ and L¹ of wires: (wires, 2, n, 2)."""
        labels = self.room[0][: 2 * rows.size].reshape(len(rows), 2, -1)
        flat = labels[:, 0]
        np.bitwise_xor(rows.reshape(flat.shape), offsets.reshape(flat.shape), out=flat)
        np.bitwise_xor(flat, self.offset, out=labels[:, 1])
        return labels.reshape(len(rows), 2, -1, 2)

    def conjunctions(self, step: Ands, tables: np.ndarray) -> None:
        gates = len(step.out)
        rows, colors, offsets = self._take(step.slots, self.offsets)
        hashes = self._hash_inputs(step, self._both(rows, offsets))
        left, right = hashes[:gates], hashes[gates:]
        spare, out = self.spare[:gates], self.out[:gates]
        np.bitwise_xor(left[:, 0], left[:, 1], out=spare)
        np.bitwise_xor(spare, self._inputs(step, offsets)[1], out=tables[:, 0])
        np.bitwise_xor(right[:, 0], right[:, 1], out=spare)
        np.bitwise_xor(spare, self._inputs(step, rows)[0], out=tables[:, 1])
        np.bitwise_xor(left[:, 0], right[:, 0], out=out)
        self._put(
            step,
            out,
            self._choose(
                self.offsets, np.bitwise_and(*self._inputs(step, colors)), self.chosen[:gates]
            ),
        )

    def share(self, pads: np.ndarray, elements: np.ndarray, shares: np.ndarray) -> None:
        rho, second = pads
        np.subtract(rho, second, out=elements)
        for number, element in enumerate(self.outputs.elements):
            if isinstance(element, Switch):
                of_products = self._scalars(element.weights) @ rho[list(element.products)]
                of_units = self._scalars(element.weights) @ rho[list(element.units)]
                elements[number] += of_products + of_products - of_units
                shares[element.sum] -= of_products + rho[number]
                continue
            p = self._color(element.wire)
            factor = (
                self._color(element.switch) if isinstance(element, Product) else self.ring.scalar(1)
            )
            rho[number] -= factor * p
            elements[number] += factor * (1 - p - p)
            for total, weight in element.weights if isinstance(element, Unit) else ():
                shares[total] -= self.ring.scalar(weight) * rho[number]


class Evaluator(Worker):
    def conjunctions(self, step: Ands, tables: np.ndarray) -> None:
        gates = len(step.out)
        rows, _, masks = self._take(step.slots, _MASKS)
        hashes = self._hash_inputs(step, rows[:, None])[:, 0]
        mask_a, mask_b = self._inputs(step, masks)
        spare, out = self.spare[:gates], self.out[:gates]
        np.bitwise_xor(hashes[:gates], hashes[gates:], out=out)
        np.bitwise_and(tables[:, 0], mask_a, out=spare)
        np.bitwise_xor(out, spare, out=out)
        np.bitwise_xor(tables[:, 1], self._inputs(step, rows)[0], out=spare)
        self._put(step, out, np.bitwise_and(spare, mask_b, out=spare))

    def hashed_labels(self, slots: np.ndarray) -> np.ndarray:
        return self.labels[slots][:, None]

    def share(self, pads: np.ndarray, elements: np.ndarray, shares: np.ndarray) -> None:
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
                of_products = self._scalars(element.weights) @ values[list(element.products)]
                of_units = self._scalars(element.weights) @ values[list(element.units)]
                switched = self._color(element.wire) * (of_units - of_products - of_products)
                shares[element.sum] += values[number] + of_products + switched
