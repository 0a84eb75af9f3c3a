"""The order in which a garbled circuit is worked on: in batches of independent gates, with few labels at a time.

Garbler and evaluator follow one schedule. It depends on nothing but the circuit and the size of a batch, and what is
sent does not depend on that size: ANDs are numbered in the circuit's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.outputs import Outputs, outputs_of


@dataclass(frozen=True)
class Ands:
    """ANDs first, first + 1, … that read `slots` and write the slots `out`.

    inputs: all left inputs, then all right ones, as positions in `slots`; None if they are just `slots`, in order.
    hashes: the number of each input's hash, as a column.
    """

    first: int
    slots: np.ndarray
    inputs: np.ndarray | None
    hashes: np.ndarray
    out: np.ndarray


@dataclass(frozen=True)
class Xor:
    left: int
    right: int
    out: int


@dataclass(frozen=True)
class Schedule:
    """slots: how many labels are kept at a time. at_end: where the wires are that have output elements."""

    steps: tuple[Ands | Xor, ...]
    slots: int
    at_end: Mapping[int, int]


class _Slots:
    """Where the label of a wire is kept; its place is free again after its last reader."""

    def __init__(self, reads: list[list[int]], inputs: int):
        self._last = {wire: step for step, wires in enumerate(reads) for wire in wires}
        self._reads = reads
        self._place = {wire: wire for wire in range(inputs)}
        self._free: list[int] = []
        self.size = inputs

    def read(self, step: int) -> list[int]:
        places = [self._place[wire] for wire in self._reads[step]]
        self._free += [
            self._place.pop(wire) for wire in set(self._reads[step]) if self._last[wire] == step
        ]
        return places

    def write(self, wire: int) -> int:
        if not self._free:
            self._free.append(self.size)
            self.size += 1
        self._place[wire] = self._free.pop()
        return self._place[wire]


@lru_cache(maxsize=64)
def schedule_of(circuit: Circuit, group: int) -> Schedule:
    """Steps of at most `group` independent ANDs."""
    outputs = outputs_of(circuit)
    gates, at_end = dict(outputs.gates), [wire for wire, _ in outputs.wires]
    numbers = {
        wire: number
        for number, wire in enumerate(wire for wire, gate in gates.items() if gate.is_and)
    }
    order = list(_batches(circuit, outputs, group))
    reads = [
        [gates[wire].left for wire in wires] + [gates[wire].right for wire in wires]
        for wires in order
    ]
    slots, steps = _Slots([*reads, at_end], len(circuit.inputs)), []
    for step, wires in enumerate(order):
        places = slots.read(step)
        if wires[0] not in numbers:
            steps.append(Xor(*places, slots.write(wires[0])))
            continue
        distinct, where = np.unique(places, return_inverse=True)
        kept, at = (distinct, where) if len(distinct) < len(places) else (np.array(places), None)
        hashes = [2 * numbers[wire] + half for half in (0, 1) for wire in wires]
        out = np.array([slots.write(wire) for wire in wires])
        steps.append(
            Ands(numbers[wires[0]], kept, at, np.array(hashes, dtype=np.uint64)[:, None], out)
        )
    return Schedule(
        tuple(steps), slots.size, dict(zip(at_end, slots.read(len(order)), strict=True))
    )


def _batches(circuit: Circuit, outputs: Outputs, group: int) -> Iterator[list[int]]:
    """The wires that each step makes: ANDs of one depth, or one XOR."""
    for (_, is_and), level in groupby(
        outputs.gates, key=lambda item: (circuit.depths[item[0]], item[1].is_and)
    ):
        wires = [wire for wire, _ in level]
        size = group if is_and else 1
        yield from (wires[start : start + size] for start in range(0, len(wires), size))
