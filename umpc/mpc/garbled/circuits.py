"""Boolean circuits of XOR and AND gates, whose outputs are weighted sums of bits.

Additions after the last AND gate need no gates: an output is Σ ω·b + constant for any bits b and
integers ω, since two parties can add that up under additive shares. Two's complement (weights 2^i
and −2^(w−1)) is one case. The evaluation in the clear below is the oracle of every other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from umpc.mpc.arrays import BitArray, IntArray


class InputBit(NamedTuple):
    """Bit `bit` of a field of record 0 or 1, or of a random number.

    A field is counted in steps of its resolution, in two's complement.
    """

    record: int
    field: str
    bit: int


class Gate(NamedTuple):
    """A gate that reads two wires; its output is the wire after the inputs and all gates before."""

    is_and: bool
    left: int
    right: int


class WeightedSum(NamedTuple):
    """constant + Σ weight · bit of wire: terms are (wire, weight)."""

    constant: int
    terms: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Circuit:
    """Wires are numbered: first the inputs, sorted, then the gates' outputs.

    Gates are in the order of their AND depth. At each depth the ANDs, which are independent of each
    other, come first, and the XORs follow.
    """

    inputs: tuple[InputBit, ...]
    gates: tuple[Gate, ...]
    sums: tuple[WeightedSum, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.inputs, self.gates, self.sums))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def and_count(self) -> int:
        """The number of AND gates."""
        return sum(gate.is_and for gate in self.gates)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """For each wire the most AND gates on a path from an input."""
        depths = [0] * len(self.inputs)
        for gate in self.gates:
            depths.append(max(depths[gate.left], depths[gate.right]) + gate.is_and)
        return tuple(depths)

    @property
    def depth(self) -> int:
        """The most AND gates on a path."""
        return max(self.depths, default=0)

    def inputs_of(self, record: int) -> tuple[int, ...]:
        """The wires that carry a record's bits."""
        return tuple(wire for wire, bit in enumerate(self.inputs) if bit.record == record)


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
