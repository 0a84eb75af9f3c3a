"""Boolean circuits of XOR and AND gates, whose outputs are weighted sums of bits.

Additions after the last AND gate need no gates: an output is Σ ω·b + constant for any bits b and
integers ω, since two parties can add that up under additive shares. Two's complement (weights 2^i
and −2^(w−1)) is one case.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


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
