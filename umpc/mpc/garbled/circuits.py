"""Boolean circuits of XOR and AND gates whose output is a weighted sum of bits, and their evaluation in the clear.

A garbled XOR is free and an inversion is none at all, so only AND gates count. The builder therefore

- keeps inversions out of gates: a *literal* is a wire, or its complement; (x ⊕ 1)·y = xy ⊕ y moves them to the outputs,
  where the complement of a bit of weight ω is ω − ω·b;
- knows every wire as a sum modulo 2 of inputs and AND gates: two wires with one sum are one wire, and so are ANDs of
  them. Gates with a constant input do not arise, and gates that no output needs are dropped.

Additions after the last AND gate need no gates: an output is Σ ω·b + constant for any bits b and integers ω, since
that is what two parties can add up under additive shares. Two's complement (weights 2^i and −2^(w−1)) is one case.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from umpc.errors import KernelError
from umpc.ustat.clear import Columns

MAX_WIRES = 1 << 14
"""Wires of a circuit while it is built, at most: 5,000 AND gates are 160 kB an edge."""

FALSE, TRUE = 0, 1
"""The constant literals. A literal is 2·wire + inverted; wire 0 of a builder is the constant 0."""

Literal = int


class InputBit(NamedTuple):
    """Bit `bit` of a field of record 0 or 1, in steps of its resolution, in two's complement; or of a random number."""

    record: int
    field: str
    bit: int


class Gate(NamedTuple):
    """Its output is the wire after those of the inputs and of the gates before it."""

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

    Gates are in the order of their AND depth; of one depth the ANDs, which are independent of each other, come first,
    then the XORs.
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
        return sum(gate.is_and for gate in self.gates)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Of each wire: the most AND gates on a path from an input."""
        depths = [0] * len(self.inputs)
        for gate in self.gates:
            depths.append(max(depths[gate.left], depths[gate.right]) + gate.is_and)
        return tuple(depths)

    @property
    def depth(self) -> int:
        return max(self.depths, default=0)

    def inputs_of(self, record: int) -> tuple[int, ...]:
        """The wires that carry a record's bits."""
        return tuple(wire for wire, bit in enumerate(self.inputs) if bit.record == record)


def input_bits(circuit: Circuit, records: Sequence[Columns]) -> np.ndarray:
    """What the input wires carry: (inputs, n) uint8. records: one Columns per record, row j of each is edge j."""
    count = max((len(column) for columns in records for column in columns.values()), default=0)
    bits = np.empty((len(circuit.inputs), count), dtype=np.uint8)
    for row, (record, field, bit) in zip(bits, circuit.inputs, strict=True):
        row[:] = records[record][field] >> bit & 1
    return bits


def evaluate_wires(circuit: Circuit, bits: np.ndarray) -> np.ndarray:
    """Every wire in the clear: (wires, n) uint8."""
    wires = np.empty((len(circuit.inputs) + len(circuit.gates), bits.shape[1]), dtype=np.uint8)
    wires[: len(bits)] = bits
    for wire, gate in enumerate(circuit.gates, len(bits)):
        combine = np.bitwise_and if gate.is_and else np.bitwise_xor
        combine(wires[gate.left], wires[gate.right], out=wires[wire])
    return wires


def evaluate_circuit(circuit: Circuit, bits: np.ndarray) -> np.ndarray:
    """The sums in the clear: (sums, n) int64, right where they fit. The oracle of every other evaluation."""
    wires = evaluate_wires(circuit, bits).astype(np.int64)
    values = np.empty((len(circuit.sums), bits.shape[1]), dtype=np.int64)
    for row, (constant, terms) in zip(values, circuit.sums, strict=True):
        row[:] = constant
        for wire, weight in terms:
            row += np.int64((weight + (1 << 63)) % (1 << 64) - (1 << 63)) * wires[wire]
    return values


class CircuitBuilder:
    """Makes gates on demand. `sums` maps a wire to the inputs and AND gates that it is the sum of: bits of a number."""

    def __init__(self) -> None:
        self.gates: list[Gate | InputBit | None] = [None]
        self.depths = [0]
        self._sums = [0]
        self._wires: dict[int, int] = {0: 0}
        self._known: dict[tuple[int, int] | InputBit, int] = {}
        self._basis = 0

    def input(self, bit: InputBit) -> Literal:
        if bit not in self._known:
            self._known[bit] = self._new(bit, self._fresh(), 0)
        return 2 * self._known[bit]

    def xor(self, left: Literal, right: Literal) -> Literal:
        first, second, inverted = left >> 1, right >> 1, (left ^ right) & 1
        total = self._sums[first] ^ self._sums[second]
        if total not in self._wires:
            self._new(
                Gate(False, first, second), total, max(self.depths[first], self.depths[second])
            )
        return 2 * self._wires[total] + inverted

    def conjunction(self, left: Literal, right: Literal) -> Literal:
        if left >> 1 == right >> 1 or left < 2 or right < 2:
            return self._trivial(left, right)
        first, second = sorted((left, right))
        product = self._product(first >> 1, second >> 1)
        if second & 1:  # x(y ⊕ 1) = xy ⊕ x
            product = self.xor(product, first)
        elif first & 1:
            product = self.xor(product, second)
        return self.xor(product, 2 * (second >> 1)) if first & second & 1 else product

    def disjunction(self, left: Literal, right: Literal) -> Literal:
        return self.conjunction(left ^ 1, right ^ 1) ^ 1

    def all_of(self, literals: Iterable[Literal]) -> Literal:
        """Their conjunction, of the least depth."""
        queue = [(self.depths[literal >> 1], literal) for literal in literals]
        heapq.heapify(queue)
        while len(queue) > 1:
            both = self.conjunction(heapq.heappop(queue)[1], heapq.heappop(queue)[1])
            heapq.heappush(queue, (self.depths[both >> 1], both))
        return queue[0][1] if queue else TRUE

    def multiplexer(self, condition: Literal, then: Literal, otherwise: Literal) -> Literal:
        if condition & 1:
            condition, then, otherwise = condition ^ 1, otherwise, then
        return self.xor(otherwise, self.conjunction(condition, self.xor(then, otherwise)))

    def majority(self, a: Literal, b: Literal, c: Literal) -> Literal:
        """The carry of a + b + c, by one AND: b ⊕ (a ⊕ b)(b ⊕ c), so turned that nothing in it is inverted."""
        p, q, other = next(
            (x, y, z) for x, y, z in ((a, b, c), (a, c, b), (b, c, a)) if not (x ^ y) & 1
        )
        same = other if not (p ^ other) & 1 else other ^ 1
        pivot = q if same == other else p
        return self.xor(q, self.conjunction(self.xor(p, q), self.xor(pivot, same)))

    def split(self, terms: Mapping[int, int]) -> dict[int, int]:
        """The same sum with x(1 ⊕ y) as x − xy, and x ∨ y as x + y − xy: so xy is an AND that no gate reads."""
        total: dict[int, int] = defaultdict(int)
        for wire, weight in terms.items():
            for part, factor in (self._parts(wire) or {wire: 1}).items():
                total[part] += weight * factor
        return {wire: weight for wire, weight in total.items() if weight}

    def _parts(self, wire: int) -> dict[int, int] | None:
        """A sum of bits that is x ⊕ xy or x ⊕ y ⊕ xy, if that is how the wire is made."""
        for x, other in self._operands(wire, is_and=False):
            if x in dict(self._operands(other, is_and=True)):
                return {x: 1, other: -1}
            for y, both in self._operands(other, is_and=False):
                if dict(self._operands(both, is_and=True)).get(x) == y:
                    return {x: 1, y: 1, both: -1}
        return None

    def _operands(self, wire: int, is_and: bool) -> tuple[tuple[int, int], ...]:
        """Both orders of what a gate of that kind reads."""
        gate = self.gates[wire]
        fits = isinstance(gate, Gate) and gate.is_and == is_and
        return ((gate.left, gate.right), (gate.right, gate.left)) if fits else ()

    def finish(self, sums: Sequence[tuple[int, Mapping[int, int]]]) -> Circuit:
        """The circuit of these sums, each a constant and wire → weight, with only the gates that they need."""
        needed = self._needed({wire for _, terms in sums for wire in terms})
        inputs = sorted(wire for wire in needed if isinstance(self.gates[wire], InputBit))
        inputs.sort(key=lambda wire: self.gates[wire])
        gates = sorted(
            (w for w in needed if isinstance(self.gates[w], Gate)), key=lambda w: self._place(w)
        )
        number = {wire: index for index, wire in enumerate((*inputs, *gates))}
        return Circuit(
            tuple(self.gates[wire] for wire in inputs),
            tuple(
                Gate(g.is_and, number[g.left], number[g.right])
                for g in map(self.gates.__getitem__, gates)
            ),
            tuple(
                WeightedSum(c, tuple(sorted((number[w], weight) for w, weight in t.items())))
                for c, t in sums
            ),
        )

    def _place(self, wire: int) -> tuple[int, bool, int]:
        return self.depths[wire], not self.gates[wire].is_and, wire

    def _needed(self, outputs: set[int]) -> set[int]:
        needed = set(outputs)
        for wire in range(len(self.gates) - 1, 0, -1):
            gate = self.gates[wire]
            if wire in needed and isinstance(gate, Gate):
                needed |= {gate.left, gate.right}
        return needed

    def _trivial(self, left: Literal, right: Literal) -> Literal:
        if left == right ^ 1 or FALSE in (left, right):
            return FALSE
        return max(left, right) if min(left, right) == TRUE else left

    def _product(self, first: int, second: int) -> Literal:
        key = (first, second)
        if key not in self._known:
            for factor, other in (key, key[::-1]):
                gate = self.gates[other]
                if isinstance(gate, Gate) and gate.is_and and factor in (gate.left, gate.right):
                    return 2 * other
            depth = max(self.depths[first], self.depths[second]) + 1
            self._known[key] = self._new(Gate(True, first, second), self._fresh(), depth)
        return 2 * self._known[key]

    def _fresh(self) -> int:
        self._basis += 1
        return 1 << self._basis

    def _new(self, gate: Gate | InputBit, total: int, depth: int) -> int:
        if len(self.gates) == MAX_WIRES:
            raise KernelError(
                f"the kernel, and noise inside its circuit, need more than {MAX_WIRES} wires; narrow its fields' "
                f"bounds, take a coarser resolution, fewer products or sums, or a larger epsilon"
            )
        self._wires[total] = len(self.gates)
        self.gates.append(gate)
        self._sums.append(total)
        self.depths.append(depth)
        return self._wires[total]
