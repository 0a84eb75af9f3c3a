"""A circuit in the making, with few AND gates.

A garbled XOR is free ("free XOR"), and an inversion costs nothing. So
only AND gates count, and the builder therefore does two things:

- It keeps inversions out of gates. A *literal* is a wire or its complement; (x ⊕ 1)·y = xy ⊕ y
  moves inversions to the outputs, where the complement of a bit of weight ω is ω − ω·b.
- It knows every wire as a sum modulo 2 of inputs and AND gates. Two wires with one sum are one
  wire, and so are ANDs of them. Gates with a constant input do not arise, and gates that no output
  needs are dropped.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from umpc.errors import KernelError
from umpc.mpc.garbled.circuits import Circuit, Gate, InputBit, WeightedSum

MAX_WIRES = 1 << 14
"""The most wires of a circuit while it is built: 5,000 AND gates are 160 kB an edge."""

WireLiteral: TypeAlias = int
"""A wire or its complement: 2·wire + inverted. Wire 0 of a builder is the constant 0."""
FALSE: WireLiteral = 0
TRUE: WireLiteral = 1


class CircuitBuilder:
    """Makes gates on demand; every gate exists once."""

    def __init__(self) -> None:
        self.gates: list[Gate | InputBit | None] = [None]
        """The maker of each wire; None for the constant wire."""
        self.depths = [0]
        self._sums = [0]
        """For each wire the set of inputs and AND gates whose sum it is, as bits of a number."""
        self._wires: dict[int, int] = {0: 0}
        self._known: dict[tuple[int, int] | InputBit, int] = {}
        self._basis = 0

    def input(self, bit: InputBit) -> WireLiteral:
        """The wire of an input bit."""
        if bit not in self._known:
            self._known[bit] = self._new(bit, self._fresh(), 0)
        return 2 * self._known[bit]

    def xor(self, left: WireLiteral, right: WireLiteral) -> WireLiteral:
        """left ⊕ right."""
        first = left >> 1
        second = right >> 1
        inverted = (left ^ right) & 1
        total = self._sums[first] ^ self._sums[second]
        if total not in self._wires:
            depth = max(self.depths[first], self.depths[second])
            self._new(Gate(False, first, second), total, depth)
        return 2 * self._wires[total] + inverted

    def conjunction(self, left: WireLiteral, right: WireLiteral) -> WireLiteral:
        """left ∧ right, by at most one AND."""
        if left >> 1 == right >> 1 or left < 2 or right < 2:
            return self._trivial(left, right)
        first, second = sorted((left, right))
        product = self._product(first >> 1, second >> 1)
        if second & 1:  # x(y ⊕ 1) = xy ⊕ x
            product = self.xor(product, first)
        elif first & 1:
            product = self.xor(product, second)
        if first & second & 1:
            return self.xor(product, 2 * (second >> 1))
        return product

    def disjunction(self, left: WireLiteral, right: WireLiteral) -> WireLiteral:
        """left ∨ right, by at most one AND."""
        return self.conjunction(left ^ 1, right ^ 1) ^ 1

    def all_of(self, literals: Iterable[WireLiteral]) -> WireLiteral:
        """The conjunction of all literals, at the least depth."""
        queue = [(self.depths[literal >> 1], literal) for literal in literals]
        heapq.heapify(queue)
        while len(queue) > 1:
            both = self.conjunction(heapq.heappop(queue)[1], heapq.heappop(queue)[1])
            heapq.heappush(queue, (self.depths[both >> 1], both))
        return queue[0][1] if queue else TRUE

    def multiplexer(
        self, condition: WireLiteral, then: WireLiteral, otherwise: WireLiteral
    ) -> WireLiteral:
        """then where the condition holds, else otherwise, by at most one AND."""
        if condition & 1:
            condition, then, otherwise = condition ^ 1, otherwise, then
        return self.xor(otherwise, self.conjunction(condition, self.xor(then, otherwise)))

    def majority(self, a: WireLiteral, b: WireLiteral, c: WireLiteral) -> WireLiteral:
        """The carry of a + b + c, by one AND: b ⊕ (a ⊕ b)(b ⊕ c).

        The inputs are turned so that nothing in it is inverted.
        """
        turns = ((a, b, c), (a, c, b), (b, c, a))
        p, q, other = next((x, y, z) for x, y, z in turns if not (x ^ y) & 1)
        same = other if not (p ^ other) & 1 else other ^ 1
        pivot = q if same == other else p
        return self.xor(q, self.conjunction(self.xor(p, q), self.xor(pivot, same)))

    def split(self, terms: Mapping[int, int]) -> dict[int, int]:
        """An equal sum with x(1 ⊕ y) as x − xy, and x ∨ y as x + y − xy.

        Then xy is an AND that no gate reads.
        """
        total: dict[int, int] = defaultdict(int)
        for wire, weight in terms.items():
            for part, factor in (self._parts(wire) or {wire: 1}).items():
                total[part] += weight * factor
        return {wire: weight for wire, weight in total.items() if weight}

    def _parts(self, wire: int) -> dict[int, int] | None:
        """The sum of bits that a wire is, if it is made as x ⊕ xy or as x ⊕ y ⊕ xy."""
        for x, other in self._operands(wire, is_and=False):
            if x in dict(self._operands(other, is_and=True)):
                return {x: 1, other: -1}
            for y, both in self._operands(other, is_and=False):
                if dict(self._operands(both, is_and=True)).get(x) == y:
                    return {x: 1, y: 1, both: -1}
        return None

    def _operands(self, wire: int, is_and: bool) -> tuple[tuple[int, int], ...]:
        """Both orders of the wires that a gate of that kind reads."""
        gate = self.gates[wire]
        if isinstance(gate, Gate) and gate.is_and == is_and:
            return ((gate.left, gate.right), (gate.right, gate.left))
        return ()

    def finish(self, sums: Sequence[tuple[int, Mapping[int, int]]]) -> Circuit:
        """The circuit of these sums, with only the gates that they need.

        sums: each a constant and wire → weight.
        """
        needed = self._needed({wire for _, terms in sums for wire in terms})
        makers = [(wire, self.gates[wire]) for wire in sorted(needed)]
        inputs = [(maker, wire) for wire, maker in makers if isinstance(maker, InputBit)]
        gates = [
            (self.depths[wire], not maker.is_and, wire, maker)
            for wire, maker in makers
            if isinstance(maker, Gate)
        ]
        inputs.sort()
        gates.sort()
        wires = [wire for _, wire in inputs] + [wire for _, _, wire, _ in gates]
        number = {wire: index for index, wire in enumerate(wires)}
        return Circuit(
            tuple(bit for bit, _ in inputs),
            tuple(Gate(g.is_and, number[g.left], number[g.right]) for *_, g in gates),
            tuple(
                WeightedSum(constant, tuple(sorted((number[w], c) for w, c in terms.items())))
                for constant, terms in sums
            ),
        )

    def _needed(self, outputs: set[int]) -> set[int]:
        """The wires from which the outputs are made, themselves included."""
        needed = set(outputs)
        for wire in range(len(self.gates) - 1, 0, -1):
            gate = self.gates[wire]
            if wire in needed and isinstance(gate, Gate):
                needed |= {gate.left, gate.right}
        return needed

    def _trivial(self, left: WireLiteral, right: WireLiteral) -> WireLiteral:
        """left ∧ right where one is constant, or both are of one wire."""
        if left == right ^ 1 or FALSE in (left, right):
            return FALSE
        return max(left, right) if min(left, right) == TRUE else left

    def _product(self, first: int, second: int) -> WireLiteral:
        """The AND of two wires; x·(x·y) is x·y."""
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
        """A sum of one new input or AND gate."""
        self._basis += 1
        return 1 << self._basis

    def _new(self, maker: Gate | InputBit, total: int, depth: int) -> int:
        """A new wire. Raises: KernelError where there are too many."""
        if len(self.gates) == MAX_WIRES:
            raise KernelError(
                f"the kernel, and noise inside its circuit, need more than {MAX_WIRES} wires; "
                "narrow its fields' bounds, take a coarser resolution, fewer products or sums, or "
                "a larger epsilon"
            )
        self._wires[total] = len(self.gates)
        self.gates.append(maker)
        self._sums.append(total)
        self.depths.append(depth)
        return self._wires[total]
