"""How the bits of a garbled circuit become additive shares of its weighted sums: which elements are sent for it.

An *element* is one number of the ring an edge. With it a wire's label becomes a share of whatever its bit means.

| element | of | what the evaluator gets |
|---|---|---|
| unit | each bit b of a sum, and each summand of a product | b + ρ |
| product | each AND a·b that only sums read: a is its *switch*, b its *summand* | p_a·b + ρ, p_a the color of a's 0 |
| switch | each switch a and sum: Σ ω b over its products there | a·Σ ω b + ρ |

So the last multiplications of a kernel are not garbled as gates: a product costs one element, and one more for each
switch and each summand, where an AND and its unit cost 256 bits and an element. `garbling.py` says how and why.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from umpc.mpc.garbled.circuits import Circuit, Gate

LABEL_BITS = 128


@dataclass(frozen=True)
class Unit:
    """weights: (sum, weight) of each sum that the bit is in itself."""

    wire: int
    weights: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Product:
    """The pads are those of `wire`, the summand."""

    switch: int
    wire: int


@dataclass(frozen=True)
class Switch:
    """Of one sum. products, units: the elements of its products and of their summands, with these weights."""

    wire: int
    sum: int
    products: tuple[int, ...]
    units: tuple[int, ...]
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Outputs:
    """gates: (wire, gate) of those that are garbled, in order. elements: units, then products, then switches.

    wires: each wire that has elements, with their numbers.
    """

    gates: tuple[tuple[int, Gate], ...]
    elements: tuple[Unit | Product | Switch, ...]
    wires: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def and_count(self) -> int:
        return sum(gate.is_and for _, gate in self.gates)


@lru_cache(maxsize=64)
def outputs_of(circuit: Circuit) -> Outputs:
    """The elements of a circuit, and the gates that are left."""
    gates = list(enumerate(circuit.gates, len(circuit.inputs)))
    read = {wire for _, gate in gates for wire in (gate.left, gate.right)}
    weights = defaultdict(list)
    for number, each in enumerate(circuit.sums):
        for wire, weight in each.terms:
            weights[wire].append((number, weight))
    products = {
        wire: gate for wire, gate in gates if gate.is_and and wire in weights and wire not in read
    }
    summands = {gate.right for gate in products.values()}
    units = [
        Unit(w, tuple(weights[w])) for w in sorted(summands | (weights.keys() - products.keys()))
    ]
    unit_of = {unit.wire: number for number, unit in enumerate(units)}
    product_of = {wire: len(units) + number for number, wire in enumerate(products)}
    terms = defaultdict(list)
    for wire, gate in products.items():
        for number, weight in weights[wire]:
            terms[gate.left, number].append((product_of[wire], unit_of[gate.right], weight))
    elements = (
        *units,
        *(Product(gate.left, gate.right) for gate in products.values()),
        *(
            Switch(wire, number, *zip(*of, strict=True))
            for (wire, number), of in sorted(terms.items())
        ),
    )
    wires = defaultdict(list)
    for number, element in enumerate(elements):
        wires[element.wire].append(number)
    kept = tuple((wire, gate) for wire, gate in gates if wire not in products)
    return Outputs(
        kept, elements, tuple((wire, tuple(numbers)) for wire, numbers in sorted(wires.items()))
    )
