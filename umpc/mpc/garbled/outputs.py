"""The elements that turn the bits of a garbled circuit into additive shares of its weighted sums.

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

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from umpc.mpc.garbled.circuits import Circuit, Gate

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
