"""Boolean circuits of XOR and AND gates, whose outputs are weighted sums of bits.

Additions after the last AND gate need no gates: an output is Σ ω·b + constant for any bits b and
integers ω, since two parties can add that up under additive shares. Two's complement (weights 2^i
and −2^(w−1)) is one case.

*Circuit builder.* A circuit in the making, with few AND gates.

A garbled XOR is free ("free XOR"), and an inversion costs nothing. So
only AND gates count, and the builder therefore does two things:

- It keeps inversions out of gates. A *literal* is a wire or its complement; (x ⊕ 1)·y = xy ⊕ y
  moves inversions to the outputs, where the complement of a bit of weight ω is ω − ω·b.
- It knows every wire as a sum modulo 2 of inputs and AND gates. Two wires with one sum are one
  wire, and so are ANDs of them. Gates with a constant input do not arise, and gates that no output
  needs are dropped.

*Outputs.* The elements that turn the bits of a garbled circuit into additive shares of its weighted
sums.

An *element* is one number of the ring an edge, which the garbler sends. With it a wire's label
becomes a share of the meaning of its bit.

| element | one for | what the evaluator gets |
|---|---|---|
| unit | each bit b of a sum, and each summand of a product | b + ρ |
| product | each AND a·b that only sums read: a is its *switch*, b its *summand* | p_a·b + ρ |
| switch | each switch a and sum: Σ ω b over its products there | a·Σ ω b + ρ |

p_a is the color of a's label of 0. So the last multiplications of a kernel are not garbled as
gates: a product costs one element, and one more for each switch and each summand, where an AND and
its unit cost 256 bits and an element. `garbling.py` says how and why.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from umpc.errors import KernelError


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


# --- circuit builder ------------------------------------------------------------------------------

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
        # equal sums over GF(2) are one wire
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
        # XOR is free, so complements cost nothing
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
        # the least deep literals are joined first
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
        # two of three literals are inverted alike
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
            # x·(x·y) is the known gate x·y
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


# --- outputs --------------------------------------------------------------------------------------

LABEL_BITS = 128


@dataclass(frozen=True)
class Unit:
    """A bit itself. weights: (sum, weight) of each sum that the bit is in itself."""

    wire: int
    weights: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Product:
    """An AND that only sums read. Its pads are those of `wire`, the summand."""

    switch: int
    wire: int


@dataclass(frozen=True)
class Switch:
    """A switch of one sum.

    products, units: the elements of its products and of their summands. weights: of the products.
    """

    wire: int
    sum: int
    products: tuple[int, ...]
    units: tuple[int, ...]
    weights: tuple[int, ...]


OutputElement: TypeAlias = Unit | Product | Switch


@dataclass(frozen=True)
class Outputs:
    """The gates that are garbled, and the elements.

    gates: (wire, gate) of each garbled gate, in order.
    elements: units, then products, then switches.
    wires: each wire that has elements, with the elements' numbers.
    """

    gates: tuple[tuple[int, Gate], ...]
    elements: tuple[OutputElement, ...]
    wires: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def and_count(self) -> int:
        """The number of garbled ANDs."""
        return sum(gate.is_and for _, gate in self.gates)


@lru_cache(maxsize=64)
def outputs_of(circuit: Circuit) -> Outputs:
    """The elements of a circuit, and the gates that are left."""
    gates = list(enumerate(circuit.gates, len(circuit.inputs)))
    weights = _weights(circuit)
    # ANDs that only sums read need no garbled gate
    products = _products(gates, weights.keys())
    units = _units(products, weights)
    switches = _switches(products, units, weights)
    elements: list[OutputElement] = [*units]
    elements += [Product(gate.left, gate.right) for gate in products.values()]
    elements += switches
    kept = tuple((wire, gate) for wire, gate in gates if wire not in products)
    return Outputs(kept, tuple(elements), _by_wire(elements))


def _weights(circuit: Circuit) -> dict[int, list[tuple[int, int]]]:
    """For each wire that sums read, (sum, weight) of each."""
    weights: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, each in enumerate(circuit.sums):
        for wire, weight in each.terms:
            weights[wire].append((number, weight))
    return weights


def _products(gates: Sequence[tuple[int, Gate]], summed: Iterable[int]) -> dict[int, Gate]:
    """The ANDs that sums read and no gate reads, by wire."""
    read = {wire for _, gate in gates for wire in (gate.left, gate.right)}
    # no gate reads them, so elements replace them
    only_summed = set(summed) - read
    return {wire: gate for wire, gate in gates if gate.is_and and wire in only_summed}


def _units(products: dict[int, Gate], weights: dict[int, list[tuple[int, int]]]) -> list[Unit]:
    """The units: of every bit that a sum reads as it is, and of every summand."""
    wires = {gate.right for gate in products.values()} | (weights.keys() - products.keys())
    return [Unit(wire, tuple(weights.get(wire, ()))) for wire in sorted(wires)]


def _switches(
    products: dict[int, Gate], units: Sequence[Unit], weights: dict[int, list[tuple[int, int]]]
) -> list[Switch]:
    """The switches, ordered by wire and sum. Elements are numbered: units, then products."""
    unit_of = {unit.wire: number for number, unit in enumerate(units)}
    terms: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, (wire, gate) in enumerate(products.items(), len(units)):
        for total, weight in weights[wire]:
            terms[gate.left, total].append((number, unit_of[gate.right], weight))
    switches = []
    for (wire, total), parts in sorted(terms.items()):
        numbers, summands, factors = zip(*parts, strict=True)
        switches.append(Switch(wire, total, numbers, summands, factors))
    return switches


def _by_wire(elements: Sequence[OutputElement]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The numbers of each wire's elements, ordered by wire."""
    wires: dict[int, list[int]] = defaultdict(list)
    for number, element in enumerate(elements):
        wires[element.wire].append(number)
    return tuple((wire, tuple(numbers)) for wire, numbers in sorted(wires.items()))
