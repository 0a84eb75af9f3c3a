"""The order in which a garbled circuit is worked on: batches of independent gates, few labels.

Garbler and evaluator follow one schedule. It depends only on the circuit and the size of a batch.
The bytes that are sent do not depend on that size: ANDs are numbered in the circuit's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.mpc.arrays import WordArray
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.outputs import Outputs, outputs_of


@dataclass(frozen=True)
class AndBatch:
    """Independent ANDs first, first + 1, … that read `slots` and write the slots `out`.

    inputs: all left inputs, then all right ones, as positions in `slots`; None if they are just
        `slots`, in order.
    hashes: the number of each input's hash, as a column.
    """

    first: int
    slots: NDArray[np.intp]
    inputs: NDArray[np.intp] | None
    hashes: WordArray
    out: NDArray[np.intp]


@dataclass(frozen=True)
class XorGate:
    """One XOR, which reads and writes slots."""

    left: int
    right: int
    out: int


Step: TypeAlias = AndBatch | XorGate


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
def schedule_of(circuit: Circuit, group: int) -> Schedule:
    """Steps of at most `group` independent ANDs."""
    outputs = outputs_of(circuit)
    gates = dict(outputs.gates)
    at_end = [wire for wire, _ in outputs.wires]
    ands = (wire for wire, gate in gates.items() if gate.is_and)
    numbers = {wire: number for number, wire in enumerate(ands)}
    order = list(_batches(circuit, outputs, group))
    reads = [
        [gates[wire].left for wire in wires] + [gates[wire].right for wire in wires]
        for wires in order
    ]
    slots = _Slots([*reads, at_end], len(circuit.inputs))
    steps: list[Step] = []
    for step, wires in enumerate(order):
        places = slots.read(step)
        if wires[0] in numbers:
            out = [slots.write(wire) for wire in wires]
            steps.append(_and_batch([numbers[wire] for wire in wires], places, out))
        else:
            left, right = places
            steps.append(XorGate(left, right, slots.write(wires[0])))
    last = slots.read(len(order))
    return Schedule(tuple(steps), slots.size, dict(zip(at_end, last, strict=True)))


def _and_batch(numbers: Sequence[int], places: Sequence[int], out: Sequence[int]) -> AndBatch:
    """A batch of ANDs; a slot that several inputs read is hashed once where possible."""
    distinct, positions = np.unique(places, return_inverse=True)
    repeats = len(distinct) < len(places)
    hashes = [2 * number + half for half in (0, 1) for number in numbers]
    return AndBatch(
        first=numbers[0],
        slots=distinct if repeats else np.array(places),
        inputs=positions if repeats else None,
        hashes=np.array(hashes, dtype=np.uint64)[:, None],
        out=np.array(out),
    )


def _batches(circuit: Circuit, outputs: Outputs, group: int) -> Iterator[list[int]]:
    """The wires that each step makes: ANDs of one depth, or one XOR."""
    levels = groupby(outputs.gates, key=lambda item: (circuit.depths[item[0]], item[1].is_and))
    for (_, is_and), level in levels:
        wires = [wire for wire, _ in level]
        size = group if is_and else 1
        yield from (wires[start : start + size] for start in range(0, len(wires), size))
