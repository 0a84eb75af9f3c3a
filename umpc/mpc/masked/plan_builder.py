"""A plan in the making: its places, bits, comparisons and tables, each numbered once.

Places and bits come with the layer that opens them. Layer 0 holds the places of records, which
round 1 sends once per record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from umpc.mpc.masked.plan_items import (
    Bit,
    Comparison,
    InputPlace,
    Layer,
    Literal,
    Logic,
    LookupBit,
    LookupTable,
    TopBit,
)

Item = TypeVar("Item")


class PlanBuilder:
    """The items of one plan, numbered in the order in which they were first added."""

    def __init__(self) -> None:
        self.places: dict[InputPlace, int] = {}
        self.bits: dict[Bit, int] = {}
        self.comparisons: dict[Comparison, int] = {}
        self.tables: dict[LookupTable, int] = {}
        self.place_layers: list[int] = []
        self.bit_layers: list[int] = []

    def add_place(self, place: InputPlace, layer: int) -> int:
        """The number of a place, which is opened in a layer."""
        if place not in self.places:
            self.place_layers.append(layer)
        return _number(place, self.places)

    def add_bit(self, bit: Bit, layer: int) -> int:
        """The number of a bit, which is opened in a layer."""
        if bit not in self.bits:
            self.bit_layers.append(layer)
        return _number(bit, self.bits)

    def add_comparison(self, gate: Comparison) -> int:
        """The number of a comparison."""
        return _number(gate, self.comparisons)

    def add_table(self, table: LookupTable) -> int:
        """The number of a table."""
        return _number(table, self.tables)

    def lookup_bit(
        self, table: LookupTable, kind: str, layer: int, top: TopBit | None = None
    ) -> int:
        """The number of a bit of a table, with a top bit added to it."""
        return self.add_bit(LookupBit(self.add_table(table), kind, top), layer)

    def add_logic(self, conjunctions: Sequence[tuple[int, ...]], top: TopBit | None = None) -> int:
        """The number of the exclusive or of conjunctions of bits, and of a top bit."""
        literals = tuple(tuple(Literal((bit,)) for bit in bits) for bits in conjunctions)
        return self.add_function(Logic(literals, constant=False, top=top))

    def add_function(self, function: Logic) -> int:
        """The number of a function's bit, opened one layer after the last bit that it reads."""
        needed = (
            self.bit_layers[bit]
            for conjunction in function.conjunctions
            for literal in conjunction
            for bit in literal.bits
        )
        return self.add_bit(function, 1 + max(needed))

    def layers(self) -> tuple[Layer, ...]:
        """The items that each round opens, from layer 1 to the last."""
        last = max([*self.place_layers, *self.bit_layers], default=0)
        return tuple(
            Layer(_opened_in(layer, self.bit_layers), _opened_in(layer, self.place_layers))
            for layer in range(1, last + 1)
        )


def _number(item: Item, known: dict[Item, int]) -> int:
    return known.setdefault(item, len(known))


def _opened_in(layer: int, layers: Iterable[int]) -> tuple[int, ...]:
    return tuple(number for number, each in enumerate(layers) if each == layer)
