"""The evaluation of circuits in the clear: the oracle of every other one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from umpc.mpc.arrays import BitArray, IntArray
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.mpc.garbled.pieces import LESS, PIECES, NumberPiece
from umpc.ustat.clear import Columns
from umpc.ustat.expression import Expression
from umpc.ustat.schema import Schema


def circuit_of(expression: Expression, schema: Schema, unit: Fraction) -> Circuit:
    """The circuit of one kernel; its sum counts `unit`, of which every value is a multiple.

    Raises: KernelError where it needs too many gates.
    """
    return circuit_of_all([expression], schema, [unit])


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
