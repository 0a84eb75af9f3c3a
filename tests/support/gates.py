"""One garbled gate, or any circuit, garbled and evaluated over many edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import Stream
from umpc.crypto.ring import Ring
from umpc.mpc.arrays import BitArray, IntArray
from umpc.mpc.garbled.circuits import (
    Circuit,
    Gate,
    InputBit,
    WeightedSum,
)
from umpc.mpc.garbled.garbling import (
    GarbledEdges,
    active_labels,
    evaluate,
    garble,
)
from umpc.mpc.garbled.gates import GateHash
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.mpc.garbled.pieces import LESS, PIECES, NumberPiece
from umpc.ustat.clear import Columns
from umpc.ustat.expression import Expression
from umpc.ustat.schema import Schema

HASH = GateHash(seed_of("gates"))
RING = Ring(64)


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


# --- in the clear


def evaluate_wires(circuit: Circuit, bits: BitArray) -> BitArray:
    """Every wire in the clear: (wires, n) uint8."""
    wires = np.empty((len(circuit.inputs) + len(circuit.gates), bits.shape[1]), dtype=np.uint8)
    wires[: len(bits)] = bits
    for wire, gate in enumerate(circuit.gates, len(bits)):
        combine = np.bitwise_and if gate.is_and else np.bitwise_xor
        combine(wires[gate.left], wires[gate.right], out=wires[wire])
    return wires


def evaluate_circuit(circuit: Circuit, bits: BitArray) -> IntArray:
    """The sums in the clear: (sums, n) int64, right where they fit."""
    wires = evaluate_wires(circuit, bits).astype(np.int64)
    values = np.empty((len(circuit.sums), bits.shape[1]), dtype=np.int64)
    for row, (constant, terms) in zip(values, circuit.sums, strict=True):
        row[:] = constant
        for wire, weight in terms:
            row += np.int64((weight + (1 << 63)) % (1 << 64) - (1 << 63)) * wires[wire]
    return values


def input_values(circuit: Circuit, records: Sequence[Columns]) -> BitArray:
    """The values of the input wires, pieces among them: (inputs, n) uint8, in the clear.

    records: one Columns per record; row j of each is edge j.
    """
    count = max((len(column) for columns in records for column in columns.values()), default=0)
    bits = np.empty((len(circuit.inputs), count), dtype=np.uint8)
    for row, bit in zip(bits, circuit.inputs, strict=True):
        if bit.record != PIECES:
            row[:] = records[bit.record][bit.field] >> bit.bit & 1
            continue
        piece = NumberPiece.of(bit)
        x, y = (piece.rows_of(columns[piece.field]) ^ piece.turned for columns in records[:2])
        row[:] = x < y if bit.bit == LESS else x == y
    return bits


def circuit_of(expression: Expression, schema: Schema, unit: Fraction) -> Circuit:
    """The circuit of one kernel; its sum counts `unit`, of which every value is a multiple.

    Raises: KernelError where it needs too many gates.
    """
    return circuit_of_all([expression], schema, [unit])
