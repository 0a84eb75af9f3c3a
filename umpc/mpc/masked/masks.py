"""Masked wires: what every node sends once per record, and the arithmetic on it.

A node's masks come from its mask seed, which only the node and the dealer know. Public arithmetic on masked
values and the same arithmetic on masks keep `value = masked − mask` true, so both live here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.crypto.prg import Stream, derive
from umpc.mpc.masked.plan import Linear, Program
from umpc.ustat.clear import Columns
from umpc.ustat.local import evaluate_local

Wires = Sequence[np.ndarray]
"""Per wire of the program (n,) uint64, modulo 2^width of the wire."""
Places = Mapping[int, np.ndarray]
"""Per place of the plan (n,) uint64: masked values, or masks, of the places that are known."""


def wire_masks(program: Program, mask_seed: bytes, records: int) -> list[np.ndarray]:
    """A node's masks: per wire (records,) uint64 below 2^width."""
    return [
        Stream(derive(mask_seed, "mask", number)).words(records) & modulus(wire.width)
        for number, wire in enumerate(program.wires)
    ]


def masked_wires(
    program: Program, columns: Columns, masks: Wires, records: int
) -> list[np.ndarray]:
    """A node's wires under their masks: per wire (records,) uint64 below 2^width."""
    return [
        (evaluate_local(wire.of, {0: columns}, records).view(np.uint64) + mask)
        & modulus(wire.width)
        for wire, mask in zip(program.wires, masks, strict=True)
    ]


def modulus(width: int) -> np.uint64:
    """The bit mask of w bits: reduction is by &, never by %."""
    return np.uint64((1 << width) - 1)


def linear_value(form: Linear, places: Places) -> np.ndarray:
    """constant + Σ coefficient · place, modulo 2^64, over the places that are known."""
    total = np.uint64(form.constant & (2**64 - 1))
    for number, coefficient in form.terms:
        value = places.get(number)
        if value is None:
            continue
        if coefficient == 1:
            total = total + value
        elif coefficient == -1:
            total = total - value
        else:
            total = total + value * np.uint64(coefficient & (2**64 - 1))
    return total
