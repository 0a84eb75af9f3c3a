"""Circuits as the arrays that the compiled kernel reads (`umpc/native/garbled.py`).

The kernel takes a few edges through all gates and output elements, where `gates.py` takes all edges
through one gate after the other. Both give the same bytes: ANDs, hashes and elements have the same
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.outputs import OutputElement, Product, Switch, outputs_of
from umpc.mpc.garbled.schedule import schedule_of
from umpc.native.garbled import CircuitArrays

UNIT, PRODUCT, SWITCH = 0, 1, 2
"""The numbers of native/garbled_types.h."""
_WORD = (1 << 64) - 1


@lru_cache(maxsize=64)
def arrays_of(circuit: Circuit) -> CircuitArrays:
    """The circuit for the kernel, one AND after another. It is public, and shared."""
    outputs = outputs_of(circuit)
    schedule = schedule_of(circuit)
    wires: list[tuple[int, int, int]] = []
    numbers: list[int] = []
    for wire, own in outputs.wires:
        wires.append((schedule.at_end[wire], len(numbers), len(own)))
        numbers += own
    elements: list[tuple[int, ...]] = []
    terms: list[tuple[int, int, int]] = []
    for element in outputs.elements:
        kind, other, own_terms = _element(element, schedule.at_end)
        place = schedule.at_end[element.wire]
        elements.append((kind, place, other, len(terms), len(own_terms)))
        terms += own_terms
    return CircuitArrays(
        _table(schedule.steps, 5),
        _table(wires, 3),
        np.array(numbers, dtype=np.int64),
        _table(elements, 5),
        np.array(terms, dtype=np.uint64).reshape(-1, 3),
        len(circuit.inputs),
        schedule.slots,
        outputs.and_count,
        len(circuit.sums),
    )


def _element(
    element: OutputElement, places: Mapping[int, int]
) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Kind, the switch's place or the sum, and terms."""
    if isinstance(element, Product):
        return PRODUCT, places[element.switch], []
    if isinstance(element, Switch):
        rows = zip(element.products, element.units, element.weights, strict=True)
        return SWITCH, element.sum, [(one, other, w & _WORD) for one, other, w in rows]
    return UNIT, 0, [(total, 0, w & _WORD) for total, w in element.weights]


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
