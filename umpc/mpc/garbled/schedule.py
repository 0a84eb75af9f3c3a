"""The order in which a garbled circuit is worked on: gate after gate, with few labels.

Garbler and evaluator follow one schedule, which depends only on the circuit. A label's memory, its
*slot*, serves another wire after the last gate that reads the label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.outputs import outputs_of


class Step(NamedTuple):
    """One gate, which reads and writes slots. number: its place among the ANDs; 0 for an XOR."""

    is_and: bool
    left: int
    right: int
    out: int
    number: int


@dataclass(frozen=True)
class Schedule:
    """The steps of a circuit.

    slots: the number of labels that are kept at a time.
    at_end: the slots of the wires that have output elements.
    """

    steps: tuple[Step, ...]
    slots: int
    at_end: Mapping[int, int]


class _Slots:
    """The place of each live wire's label; it is free again after the wire's last reader."""

    def __init__(self, reads: Sequence[Sequence[int]], inputs: int):
        self._last = {wire: step for step, wires in enumerate(reads) for wire in wires}
        self._reads = reads
        self._place = {wire: wire for wire in range(inputs)}
        self._free: list[int] = []
        self.size = inputs

    def read(self, step: int) -> list[int]:
        """The places that a step reads; those that it reads last become free."""
        wires = self._reads[step]
        places = [self._place[wire] for wire in wires]
        ending = (wire for wire in set(wires) if self._last[wire] == step)
        self._free += [self._place.pop(wire) for wire in ending]
        return places

    def write(self, wire: int) -> int:
        """A free place for a new wire."""
        if not self._free:
            self._free.append(self.size)
            self.size += 1
        self._place[wire] = self._free.pop()
        return self._place[wire]


@lru_cache(maxsize=64)
def schedule_of(circuit: Circuit) -> Schedule:
    """The steps of the gates that are garbled, in the circuit's order."""
    outputs = outputs_of(circuit)
    at_end = [wire for wire, _ in outputs.wires]
    reads = [(gate.left, gate.right) for _, gate in outputs.gates]
    slots = _Slots([*reads, at_end], len(circuit.inputs))
    steps = []
    ands = 0
    for place, (wire, gate) in enumerate(outputs.gates):
        left, right = slots.read(place)
        steps.append(Step(gate.is_and, left, right, slots.write(wire), ands * gate.is_and))
        ands += gate.is_and
    last = slots.read(len(reads))
    return Schedule(tuple(steps), slots.size, dict(zip(at_end, last, strict=True)))
