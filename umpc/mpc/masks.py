"""Masked wires: what every node sends once per record, and the arithmetic on it.

A node's masks come from its mask seed, which only the node and the dealer know. Public arithmetic on masked
values and the same arithmetic on masks keep `value = masked − mask` true, so both live here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.mpc.plan import Linear, PairPlan
from umpc.mpc.prg import Stream, derive
from umpc.ustat.clear import Columns
from umpc.ustat.local import evaluate_local

Wires = Sequence[np.ndarray]
"""Per wire of the plan (n,) uint64, modulo 2^width of the wire."""


def wire_masks(plan: PairPlan, mask_seed: bytes, records: int) -> list[np.ndarray]:
    """A node's masks: per wire (records,) uint64 below 2^width."""
    return [
        Stream(derive(mask_seed, "mask", number)).words(records) & modulus(wire.width)
        for number, wire in enumerate(plan.wires)
    ]


def masked_wires(plan: PairPlan, columns: Columns, masks: Wires, records: int) -> list[np.ndarray]:
    """A node's wires under their masks: per wire (records,) uint64 below 2^width."""
    return [
        (evaluate_local(wire.of, columns, records).view(np.uint64) + mask) & modulus(wire.width)
        for wire, mask in zip(plan.wires, masks, strict=True)
    ]


def modulus(width: int) -> np.uint64:
    """The bit mask of w bits: reduction is by &, never by %."""
    return np.uint64((1 << width) - 1)


def linear_value(form: Linear, first: Wires | None, second: Wires | None, *, constant: bool) -> np.ndarray:
    """constant + Σ coefficient · wire, modulo 2^64, over the sides that are given."""
    total = np.uint64(form.constant & (2**64 - 1)) if constant else np.uint64(0)
    for scaled, wires in ((form.first, first), (form.second, second)):
        for number, coefficient in scaled if wires is not None else ():
            value = wires[number]
            if coefficient == 1:
                total = total + value
            elif coefficient == -1:
                total = total - value
            else:
                total = total + value * np.uint64(coefficient & (2**64 - 1))
    return total
